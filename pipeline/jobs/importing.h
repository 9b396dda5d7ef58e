/* importing.h: the job behind clpipe import: rows of a .npy file or an HDF5 dataset become a
 * feature of a clpipe file (result/imported.h), row i for image i, or by path. */
#ifndef CLPIPE_JOBS_IMPORTING_H
#define CLPIPE_JOBS_IMPORTING_H

#include "base/watch.h"
#include "jobs/path_match.h"

struct importing_config {
    const char *file;   /* the clpipe file */
    const char *name;   /* of the feature */
    const char *input;  /* as matrix_input_open takes it */
    const char *paths;  /* list for path_list_open, a path per row; NULL: by order */
    bool allow_missing; /* images without a row get NaN */
    bool replace;       /* replace an imported feature of that name */
    uint64_t memory;    /* bytes for rows */
    struct watch watch;
};

struct importing_report {
    uint64_t rows, images;   /* of the matrix; of the file */
    struct path_match match; /* of images and rows; row NULL: by order */
    uint32_t dimension;
    char type[12]; /* of the values in the input */
    char from[256];
    char digest[65];
    bool found;                   /* the file already has this feature: nothing was written */
    unsigned clusterings_removed; /* those of the replaced feature */
    double seconds;
};

/* STATUS_USAGE: no such input, the name is taken or invalid; STATUS_FAILED: the numbers of rows and
 * images differ, values are not finite, paths do not match. A failure leaves the file unchanged. Clear
 * report->match even after a failure. */
enum status importing_run(struct importing_report *report, const struct importing_config *config,
                          struct error *err);

#endif
