/* find_part.h: finds the part of a slot that a work-item or work-group belongs to. */
#ifndef CLPIPE_KERNELS_FIND_PART_H
#define CLPIPE_KERNELS_FIND_PART_H

/* Bisects for the last part whose member `first` does not exceed `item`. Parts without items have
 * the same `first` as the next part and so are never found. */
#define FIND_PART(found, parts, count, item, first)                                                \
    uint found = 0;                                                                                \
    for (uint high_ = (count); high_ - found > 1;) {                                               \
        const uint middle_ = (found + high_) / 2;                                                  \
        if ((parts)[middle_].first <= (item))                                                      \
            found = middle_;                                                                       \
        else                                                                                       \
            high_ = middle_;                                                                       \
    }

#endif
