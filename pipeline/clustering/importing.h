/* importing.h: the job behind clpipe import: rows of a .npy file or an HDF5 dataset become a feature of
 * a clpipe file (file/imported.h), row i being image i, or by path. */
#ifndef CLPIPE_CLUSTERING_IMPORTING_H
#define CLPIPE_CLUSTERING_IMPORTING_H

#include "base/stop.h"
#include "features/feature.h"

struct importing_config {
    const char *file;   /* the clpipe file */
    const char *name;   /* of the feature */
    const char *input;  /* as matrix_input_open takes it */
    const char *paths;  /* the list of path_list_open, a path for each row; NULL: by order */
    bool allow_missing; /* images without a row get NaN */
    bool replace;       /* an imported feature of that name */
    uint64_t memory;    /* bytes for rows */
    struct stop *stop;
    /* Of the rows written so far; may be NULL. */
    void (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
    void *progress_context;
};

struct importing_report {
    uint64_t rows, images;    /* of the matrix; of the file */
    uint64_t missing, unused; /* images without a row; rows without an image */
    char first_missing[320], first_unused[320];
    uint32_t dimension;
    char type[12]; /* of the values in the input */
    char from[256];
    char digest[65];
    bool found; /* the file has this feature already: nothing was written */
    unsigned clusterings_removed; /* those of the feature that was replaced */
    double seconds;
};

/* STATUS_USAGE: there is no such input, the name is taken or impossible; STATUS_FAILED: the rows are
 * not as many as the images, values are not finite, paths do not fit. Whatever fails, the file is
 * as it was. */
enum status importing_run(struct importing_report *report, const struct importing_config *config,
                          struct error *err);

#endif
