/* held.h: arrays of a function or a module that are freed together; those of a function when it returns.
 *
 *     SCOPED_HELD held = {0};
 *     float *rows = held_array(&held, count, sizeof *rows);
 *     double *sums = held_array(&held, k, sizeof *sums);
 *     enum status status = held_check(&held, "rows", err);
 */
#ifndef CLPIPE_BASE_HELD_H
#define CLPIPE_BASE_HELD_H

#include "base/error.h"
#include <stdint.h>

/* Zeroed: holds nothing. */
struct held {
    struct held_block *last;
    bool failed;
    uint64_t bytes; /* requested so far */
};

/* `count` zeroed elements of `size` bytes; NULL if memory runs out, which held_check reports. */
void *held_array(struct held *held, uint64_t count, size_t size);
/* STATUS_FAILED if an array could not be allocated; `what` names the arrays. */
enum status held_check(const struct held *held, const char *what, struct error *err);
/* Frees all of them, and forgets them. */
void held_free(struct held *held);
/* Declares one whose arrays are freed when its scope is left. */
#define SCOPED_HELD __attribute__((cleanup(held_free))) struct held

#endif
