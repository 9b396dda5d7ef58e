/* similarity.h: the job behind clpipe similar: the nearest images of images and of other pictures, or of
 * every image, which are stored (file/graph.h). */
#ifndef CLPIPE_CLUSTERING_SIMILARITY_H
#define CLPIPE_CLUSTERING_SIMILARITY_H

#include "clustering/machine.h"
#include "clustering/matrix_input.h"
#include "search/neighbours.h"

struct similarity_config {
    const char *file;    /* a clpipe file */
    const char *feature; /* as feature_matrix_open takes it; NULL: the only one */
    int metric;          /* enum cluster_metric; -1: hellinger for l1 histograms, else euclidean */
    uint32_t n;
    uint32_t expand; /* rows and values are answered by means with so many neighbours
                      * (search/expansion.h) */
    bool diffuse; /* rows and values are answered by diffusion (search/diffusion.h) */
    bool replace; /* an earlier graph of the feature */
    struct clustering_machine machine;
};

struct similarity {
    const struct similarity_config *config;
    struct matrix_input input;
    enum cluster_metric metric;
    struct neighbours found; /* of the last search */
    double *scores;          /* by diffusion: of each place of `found`, NaN where there is none */
    char device[256];        /* that it ran on */
    bool stored;             /* the file has these neighbours already: nothing was computed */
};

/* Opens the file. STATUS_USAGE: no such file or feature, several and no name; STATUS_FAILED: it has no
 * images. Close it also after a failure. */
enum status similarity_open(struct similarity *out, const struct similarity_config *config,
                            struct error *err);
void similarity_close(struct similarity *similarity);

#define SIMILARITY_OUTSIDE UINT64_MAX

/* The row of each of `count` names: "row:N", or the path of an image, relative to its source, behind
 * the source as it was given, or any that leads to the same file; else SIMILARITY_OUTSIDE. failed, as
 * many: STATUS_USAGE where there is no such row, or several images have the path; else they stay. */
enum status similarity_locate(uint64_t *rows, struct error *failed, struct similarity *similarity,
                              const char *const *names, unsigned count, struct error *err);

/* Searches for rows of the file, or for `count` rows of values of the feature. */
enum status similarity_of_rows(struct similarity *similarity, const uint64_t *rows, uint32_t count,
                               struct error *err);
enum status similarity_of_values(struct similarity *similarity, const float *values, uint32_t count,
                                 struct error *err);

/* Finds neighbours of every row and stores them. */
enum status similarity_store(struct similarity *similarity, struct error *err);

#endif
