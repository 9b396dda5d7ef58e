/* target.h: where the clusters of a job go: into their input, or into a file of their own. */
#ifndef CLPIPE_CLUSTERING_TARGET_H
#define CLPIPE_CLUSTERING_TARGET_H

#include "base/stop.h"
#include "clustering/matrix_input.h"
#include "clustering/path_list.h"

struct target {
    const char *output;    /* the file that is written: the wanted one, or the input's path */
    const char *base;      /* the clpipe file of which a copy gets the clusters, or NULL */
    struct result *holder; /* the wanted file, where it holds earlier clusters */
    struct workdir *lock;  /* what keeps others from writing the output */
    bool replace;          /* clusters of that name are there and are replaced */
    bool found;            /* the same clusters are there already */
};

/* Decides what is written: the clpipe file itself, or the file `wanted`, which may hold earlier
 * clusters but nothing else. paths: those of the rows, or NULL;
 * earlier clusters must be of rows with the same paths. STATUS_USAGE: it holds images, or it is NULL and INPUT is no clpipe
 * file; STATUS_FAILED: it is no clpipe file. Close it also after a failure. */
enum status target_open(struct target *out, const struct matrix_input *input, const char *wanted,
                        const struct path_list *paths, struct error *err);

struct target_claim {
    const char *name, *parameters; /* of the clusters */
    bool replace;                  /* clusters of that name that were made otherwise */
    bool replace_by_run;           /* only if `run` made them under its usual name */
    bool verify;                   /* all rows are read, whatever vouches for them */
    enum remedy remedy;            /* what to do where they are there and are not to be replaced */
    struct stop *stop;
};

/* Looks whether the clusters are there already, and else locks the output against other writers.
 * `content` gets the identity of the rows where it had to be known, else "". */
enum status target_take(struct target *target, struct matrix_input *input, char content[65],
                        const struct target_claim *claim, struct error *err);

/* Reads the paths of the rows of INPUT; *source, the caller's to free, is the list as a SOURCE, and
 * *names what is stored. Errors as path_list_open_for. */
enum status clustering_read_paths(struct path_list *paths, struct result_names *names, char **source,
                                  const char *list, const struct matrix_input *input,
                                  struct error *err);

/* What holds earlier clusters: the wanted file, or the input; NULL where neither does. */
struct result *target_holder(const struct target *target, const struct matrix_input *input);

void target_close(struct target *target);

#endif
