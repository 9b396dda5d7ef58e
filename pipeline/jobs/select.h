/* select.h: chooses images of a file: clpipe select.
 *
 *   result ─> candidates (rows that may be chosen) ─> alike.c: those like a kept one are left out
 *          ─> the method's order, first N ─> result/selections.h
 *
 * A method is one row of select_methods and one function. docs/curation.md defines every result so
 * that it can be reproduced in numpy; it depends only on the file and the parameters. */
#ifndef CLPIPE_JOBS_SELECT_H
#define CLPIPE_JOBS_SELECT_H

#include "jobs/selection.h"

struct select_method {
    const char *name;
    bool by_cluster, by_values;
    /* Moves the chosen candidates to the front; with by_values, sets `chosen`. */
    enum status (*order)(struct selection *selection, struct error *err);
    void (*reason)(const void *selection, uint64_t i, char text[SELECTION_REASON]);
};
#define SELECT_METHODS 4
extern const struct select_method select_methods[SELECT_METHODS];

/* Opens the file and chooses. Close it even after a failure. STATUS_USAGE: no such clustering,
 * feature or list; STATUS_FAILED: nothing can be chosen. */
enum status selection_make(struct selection *out, const struct select_config *config,
                           struct error *err);
/* Stores it, unless the file has it; without `replace`, an existing name is STATUS_USAGE. */
enum status selection_store(struct selection *selection, bool replace, struct error *err);
void selection_close(struct selection *selection);

#endif
