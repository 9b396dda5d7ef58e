/* change.h: rewrites a finished file with an object added, removed or renamed.
 *
 *   what the file has, but for what is left out ─> objects are added ─> checksums, runs, data of others ─>
 *   sync ─> rename
 *
 * Its rows keep their checksums, so that damage stays visible. Only on HDF5's thread. */
#ifndef CLPIPE_RESULT_CHANGE_H
#define CLPIPE_RESULT_CHANGE_H

#include "result/result.h"
#include <hdf5.h>

struct change {
    const char *output;
    struct result *base;    /* may be the existing output; NULL: the new file begins with only
                             * the root */
    const char *parameters; /* of the root, if base is NULL */
    const char *replaces;   /* the absolute name of an object that is left out, or NULL */
    /* Whether to leave out another object with everything below it; NULL: no. */
    bool (*leave_out)(const void *context, const char *name);
    /* Adds objects to the file and closes them; may be NULL. */
    enum status (*add)(void *context, hid_t file, struct error *err);
    void *context;
    /* Renames a clustering and its own scales; NULL: none. */
    const char *renamed_from, *renamed_to;
    /* Records which clustering `run` made under its usual name (NULL: none), in place of the old
     * record. */
    bool notes_run;
    const char *run_clusters;
};

/* Writes the file; nothing under its name has changed after a failure. */
enum status change_make(const struct change *change, struct error *err);

#endif
