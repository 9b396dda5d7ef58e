/* copies.h: objects that the format defines, as they are, from a finished file to one that is written:
 * layout, filters, attributes, names of scales, bytes. */
#ifndef CLPIPE_RESULT_COPIES_H
#define CLPIPE_RESULT_COPIES_H

#include "result/result_internal.h"
#include "result/row_list.h"

struct copies {
    struct result *from;
    hid_t to;
    const char *path; /* of the file that is written, for messages */
    /* Whether an object, by its absolute name, is left out with what is below it; NULL: none is. */
    bool (*leave_out)(const void *context, const char *name);
    const void *context;
    bool (*left_out_attribute)(const char *name); /* likewise of attributes */
    /* Which row of `from` each row of images is: datasets that have that axis follow it, and what has no row gets
     * NaN or -1. NULL: rows are the same. */
    const struct row_list *rows;
};

/* Copies the object `name` (absolute) and everything below it; its parent must exist.
 * copy_file_range copies the bytes, sharing them if the file system can. HDF5's one thread. */
enum status copies_make(const struct copies *copies, const char *name, struct error *err);

#endif
