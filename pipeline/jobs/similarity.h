/* similarity.h: the job behind clpipe similar: the nearest images of given images or other
 * pictures, or of every image, which it stores (result/graph.h). */
#ifndef CLPIPE_JOBS_SIMILARITY_H
#define CLPIPE_JOBS_SIMILARITY_H

#include "jobs/machine.h"
#include "jobs/matrix_input.h"

struct similarity_config {
    const char *file;    /* a clpipe file */
    const char *feature; /* as for feature_matrix_open; NULL: the only one */
    int metric;          /* enum cluster_metric; -1: hellinger for l1 histograms, else euclidean */
    uint64_t n;
    uint64_t expand; /* query by means with this many neighbours (neighbours/expansion.h) */
    bool diffuse;    /* rank by diffusion (neighbours/diffusion.h) */
    bool replace;    /* replace an earlier graph of the feature */
    struct clustering_machine machine;
};

struct similarity {
    const struct similarity_config *config;
    struct matrix_input input;
    enum cluster_metric metric;
    struct neighbours found; /* of the last search */
    double *scores;          /* by diffusion: per entry of `found`; NaN: none */
    char device[256];        /* the device used */
    bool stored;             /* the file already has these neighbours: nothing was computed */
};

/* Opens the file. STATUS_USAGE: no such file or feature, several and no name; STATUS_FAILED: no
 * images. Close it even after a failure. */
enum status similarity_open(struct similarity *out, const struct similarity_config *config,
                            struct error *err);
void similarity_close(struct similarity *similarity);

#define SIMILARITY_OUTSIDE UINT64_MAX

/* The row of each of `count` names: "row:N", or the path of an image: relative to its source, below
 * the source as given, or any path to the same file; else SIMILARITY_OUTSIDE. failed, one per name:
 * STATUS_USAGE if there is no such row, or several images have the path; else unchanged. */
enum status similarity_locate(uint64_t *rows, struct error *failed, struct similarity *similarity,
                              const char *const *names, unsigned count, struct error *err);

/* Finds the neighbours of rows of the file, or of values of the feature that can be compared. */
enum status similarity_find(struct similarity *similarity, const struct queries *queries,
                            struct error *err);

/* Finds neighbours of every row and stores them. */
enum status similarity_store(struct similarity *similarity, struct error *err);

#endif
