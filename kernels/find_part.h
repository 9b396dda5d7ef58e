/* find_part.h: which part of a slot a work-item or a group belongs to. */
#ifndef CLPIPE_KERNELS_FIND_PART_H
#define CLPIPE_KERNELS_FIND_PART_H

/* The last part whose first item, the member `first`, is `item` or before: parts without items come
 * before it. By bisection. */
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
