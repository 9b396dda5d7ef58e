/* target.h: where a job stores its clusters: in its input, or in a separate file. */
#ifndef CLPIPE_JOBS_TARGET_H
#define CLPIPE_JOBS_TARGET_H

#include "jobs/matrix_input.h"
#include "jobs/path_list.h"

struct target {
    const char *output;    /* the file written: the one requested, or the input */
    const char *base;      /* the clpipe file to copy with the clusters, or NULL */
    struct result *holder; /* the requested file, if it has earlier clusters */
    struct workdir *lock;  /* keeps others from writing the output */
    bool replace;          /* clusters of that name exist and are replaced */
    bool found;            /* the same clusters already exist */
};

/* Decides which file to write: the clpipe file itself, or the file `wanted`, which may contain
 * earlier clusters but nothing else. paths: of the rows, or NULL; earlier clusters must be of rows
 * with the same paths. STATUS_USAGE: it contains images, or it is NULL and INPUT is not a clpipe
 * file; STATUS_FAILED: it is not a clpipe file. Close it even after a failure. */
enum status target_open(struct target *out, const struct matrix_input *input, const char *wanted,
                        const struct path_list *paths, struct error *err);

struct target_claim {
    const char *name, *parameters; /* of the clusters */
    bool replace;                  /* replace clusters of that name made with other parameters */
    bool replace_by_run;           /* only if `run` made them under its usual name */
    bool verify;                   /* read all rows before trusting stored clusters */
    enum remedy remedy;            /* what to do if they exist and must not be replaced */
};

/* Checks whether the clusters exist already; otherwise locks the output against other writers.
 * `content` gets the identity of the rows if it was needed, else "". */
enum status target_take(struct target *target, struct matrix_input *input, char content[65],
                        const struct target_claim *claim, struct error *err);

/* The state of INPUT's file and a digest of some rows, as evidence that rows outside clpipe files are
 * unchanged. bytes 0: not trustworthy: the rows are a clpipe file's, or the file has changed since it
 * was opened, or less than two seconds before. STATUS_FAILED: unreadable rows. */
enum status target_origin(struct result_origin *out, struct matrix_input *input, struct error *err);

/* The file with earlier clusters: the requested one or the input; NULL: neither has any. */
struct result *target_holder(const struct target *target, const struct matrix_input *input);

void target_close(struct target *target);

#endif
