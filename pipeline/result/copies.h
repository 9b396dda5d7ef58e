/* copies.h: copies objects that the format defines from a finished file to a new one, unchanged:
 * layout, filters, attributes, names of scales, bytes. */
#ifndef CLPIPE_RESULT_COPIES_H
#define CLPIPE_RESULT_COPIES_H

#include "result/result_internal.h"

struct copies {
    struct result *from;
    hid_t to;
    /* Whether to leave out an object (by its absolute name) with everything below it; NULL: no. */
    bool (*leave_out)(const void *context, const char *name);
    const void *context;
    bool (*left_out_attribute)(const char *name); /* likewise of attributes */
    /* The row of `from` for each row of images: datasets with that axis are reordered; new rows get NaN or -1.
     * NULL: the rows are the same. */
    const struct row_list *rows;
};

/* Whether an object or one above it is left out. */
bool copies_leave_out(const struct copies *copies, const char *name);

/* Copies the object `name` (absolute) and everything below it; its parent must exist.
 * copy_file_range copies the bytes, sharing them if the file system can. Only on HDF5's thread. */
enum status copies_make(const struct copies *copies, const char *name, struct error *err);

/* Creates /runs, open as *runs, with the runs of `from` (NULL: none) from its `first` on, and the record of
 * the clustering that `run` made (NULL: none). */
enum status copies_runs(hid_t *runs, hid_t file, struct result *from, unsigned first,
                        const char *clusters, struct error *err);

#endif
