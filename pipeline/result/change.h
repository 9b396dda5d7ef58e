/* change.h: a finished file written anew, with one object more or less, or under another name.
 *
 *   what the file has, but for what is left out ─> objects are added ─> checksums, runs, data of others ─>
 *   sync ─> rename
 *
 * Its rows keep their checksums, so that damage stays visible. HDF5's one thread. */
#ifndef CLPIPE_RESULT_CHANGE_H
#define CLPIPE_RESULT_CHANGE_H

#include "result/result.h"
#include <hdf5.h>

struct change {
    const char *output;
    struct result *base;    /* may be the file of that name; NULL: there is only the root */
    const char *parameters; /* of the root, where base is NULL */
    const char *replaces;   /* the absolute name of an object that is left out, or NULL */
    /* Whether another one is left out with what is below it; NULL: none is. */
    bool (*leave_out)(const void *context, const char *name);
    /* Adds to the file, in which it leaves nothing open; may be NULL. */
    enum status (*add)(void *context, hid_t file, const char *path, struct error *err);
    void *context;
    /* Gives a clustering, and the scales that are its own, another name; NULL: none. */
    const char *renamed_from, *renamed_to;
    /* Notes which clustering `run` made under its usual name (NULL: none), in place of the one of before. */
    bool notes_run;
    const char *run_clusters;
};

/* Writes the file; nothing under its name has changed after a failure. */
enum status change_make(const struct change *change, struct error *err);

#endif
