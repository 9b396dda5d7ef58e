/* choice.h: what a search decides by the machine unless a test decides it. */
#ifndef CLPIPE_SEARCH_CHOICE_H
#define CLPIPE_SEARCH_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct neighbours_choice {
    const char *tile;      /* struct tile_ops; NULL: the fastest */
    const char *distances; /* distances_choose; NULL: the fastest */
    uint32_t block_rows; /* that the host or the device has at a time; 0: by memory */
    bool device;         /* the device's way on a CPU, too */
    uint32_t list;       /* candidates of a row that the device has room for; 0: usual */
    /* NULL, or where the device's seconds are added up: of encode_rows, bound_spans, filter_pairs,
     * shrink_lists, decide_lists and bound_reaches. Each is waited for then. */
    double *kernel_seconds;
};

#endif
