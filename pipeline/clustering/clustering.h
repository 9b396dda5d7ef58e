/* clustering.h: the clustering job, from INPUT to /clusters/NAME. The flow is drawn at the top of
 * clustering.c. */
#ifndef CLPIPE_CLUSTERING_CLUSTERING_H
#define CLPIPE_CLUSTERING_CLUSTERING_H

#include "base/parse.h"
#include "clustering/machine.h"
#include "file/words.h"

/* The tolerance of those who ask for none, as in scikit-learn. */
#define CLUSTERING_TOL 1e-4

struct clustering_config {
    const char *input, *feature; /* as matrix_input_open takes them */
    const char *output;          /* a file of its own, or NULL: the input */
    const char *paths;           /* the list of path_list.h: of the rows; NULL: none */
    const char *name;            /* of the result: /clusters/NAME */
    struct number_range k;       /* several: the best one is kept, and the measures of all */
    bool lower_k;                /* nobody asked for k: to the number of different rows, and with */
    bool usual_k;                /* to clustering_usual_k, with a notice */
    int metric;                  /* enum cluster_metric; -1: the one that suits the rows */
    bool as_preset;              /* the preset's rows are projected as it says; else: */
    bool center;                 /* rows are taken from their mean, to unit length */
    bool usual_pca;              /* nobody asked for components: none where all rows are alike */
    uint32_t pca;                /* the same, on that many principal components; 0: on none */
    double whiten;               /* which are divided by their variance to the power of whiten / 2 */
    const char *init;            /* kmeans++, kmeans-parallel, random, or a .npy file */
    const char *weights;         /* as matrix_input_vector takes them, or NULL */
    uint64_t seed;
    /* n_init 0: 1, or with `restarts` as clustering_usual_restarts says. tol below 0: CLUSTERING_TOL, of
     * mini-batches 0. Both: or as the stored clustering that differs in nothing else has them. */
    uint32_t n_init;
    bool restarts;
    uint32_t max_iter, mini_batch; /* mini_batch: rows of a batch; 0: all rows */
    double tol;
    double checkpoint_seconds; /* between two states that are kept; 0: none is */
    bool replace;              /* an earlier result of that name that was made otherwise */
    bool verify_input;         /* all rows are read before a result counts as made from them */
    bool by_run; /* as in struct result_clustering; a result that has it is replaced */
    struct clustering_machine machine;
};

/* The outcome, for summaries and reports. */
struct clustering_report {
    uint32_t k, dimension, iterations, mini_batch, n_init;
    uint64_t rows;
    bool converged;
    bool found; /* it was there already: nothing was computed */
    double inertia;
    uint64_t iterations_resumed; /* made by an earlier run that did not finish */
    double pruned;
    double seconds, seconds_read, seconds_build, seconds_init, seconds_iterate;
    char device[256];
    char name[FEATURE_NAME_MAX], feature[FEATURE_NAME_MAX], metric[16];
    uint64_t *sizes;       /* k */
    int64_t *nearest;      /* k x 3 */
    char *output;          /* the file that holds it */
    bool in_input;         /* that is the input itself */
    struct result *images; /* the clpipe file whose images the rows are, open; or NULL */
    bool has_agreement;
    struct result_agreement agreement; /* with the folders of the images */
    struct result_sweep sweep; /* values NULL: k was given */
    struct words *words;       /* for its clusters, or NULL */
};

/* Runs, or finds the result in the file. STATUS_USAGE: the name is taken by a result that was made
 * otherwise, or an option makes no sense for these rows; else as cluster_run. Clear the report also
 * after a failure. */
enum status clustering_run(struct clustering_report *report, const struct clustering_config *config,
                           struct error *err);
void clustering_report_clear(struct clustering_report *report);

/* The k of those who ask for none: 10, but clusters of five images on average, and at least 2. */
uint32_t clustering_usual_k(uint64_t rows);

/* 10 runs from different initial centroids where that is cheap: rows x dimension x the sum of all k that
 * are tried is at most 2^31; else 1. */
uint32_t clustering_usual_restarts(uint64_t rows, uint32_t dimension, const struct number_range *k);

/* STATUS_USAGE unless `name` can name a dataset: letters, digits, "_", "-" and ".". */
enum status clustering_check_name(const char *name, struct error *err);

#endif
