/* choice.h: choices of a search that normally depend on the machine, and that tests can force. */
#ifndef CLPIPE_NEIGHBOURS_CHOICE_H
#define CLPIPE_NEIGHBOURS_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct neighbours_choice {
    const char *tile;      /* struct tile_ops; NULL: the fastest */
    const char *distances; /* distances_choose; NULL: the fastest */
    uint32_t block_rows;   /* rows per block on the host or the device; 0: by memory */
    bool device;           /* use the device's method on a CPU, too */
    uint32_t list;         /* capacity of a row's candidate list on the device; 0: default */
    /* NULL, or sums of the device's seconds for encode_rows, bound_spans, filter_pairs,
     * shrink_lists, decide_lists and bound_reaches. The search then waits for each launch. */
    double *kernel_seconds;
};

#endif
