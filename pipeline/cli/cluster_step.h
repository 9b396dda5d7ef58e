/* cluster_step.h: from INPUT and options to /clusters/NAME, for `cluster` and `run`.
 *
 *     cluster_plan_open    everything that can be looked at before a device is needed; whether the
 *                          result is there already
 *     cluster_step         computes and stores it, or reads what is there
 */
#ifndef CLPIPE_CLI_CLUSTER_STEP_H
#define CLPIPE_CLI_CLUSTER_STEP_H

#include "cli/compute.h"
#include "cli/folders.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cluster/cluster.h"
#include "clustering/target.h"
#include "log/workdir.h"

/* The outcome, as summaries and reports tell it. */
struct cluster_result {
    uint32_t k, dimension, iterations, mini_batch; /* mini_batch: rows of each, 0: all */
    uint64_t rows;
    bool converged;
    bool found; /* it was there already: nothing was computed */
    double inertia;
    uint64_t iterations_resumed; /* that an unfinished run of before had made */
    double pruned;
    double seconds, seconds_read, seconds_build, seconds_init, seconds_iterate;
    char device[256];
    char name[FEATURE_NAME_MAX], feature[FEATURE_NAME_MAX], metric[16];
    uint64_t *sizes;    /* k */
    int64_t *nearest;   /* k x 3 */
    const char *output; /* the file that holds it; the plan's */
    bool has_agreement;
    struct result_agreement agreement; /* with the folders of the images */
    struct result_sweep sweep;         /* values NULL: k was given */
};

struct cluster_plan {
    struct matrix_input input;
    struct cluster_config config; /* k: the largest */
    struct number_range k;
    float *initial;       /* of --init FILE.npy */
    float *weights;       /* of --weights */
    char weighed[48];     /* their digest, or "" */
    const char *output;   /* what is written, */
    struct workdir *lock; /* and what keeps others from doing so */
    const char *base;     /* the clpipe file that a copy of gets the result, or NULL */
    const char *name;     /* /clusters/NAME */
    char *state;          /* the file of the state of an unfinished run */
    struct checkpoint_config checkpoint;
    char init[48], metric[16];
    char *parameters; /* canonical JSON */
    char content[65]; /* identity of the rows; "" until known */
    bool replace;
    bool found;
};

/* feature: as for matrix_input_open. default_k: k was not asked for and may be lowered to the
 * number of different rows (a notice). STATUS_USAGE: the name is taken by a result made otherwise,
 * and --force was not given. */
enum status cluster_plan_open(struct cluster_plan *out, const char *input, const char *feature,
                              const struct options *options, bool default_k, struct error *err);
/* compute is not used where the plan found the result. */
enum status cluster_step(struct cluster_result *out, struct cluster_plan *plan,
                         const struct compute *compute, struct progress *progress,
                         struct error *err);
/* Frees what cluster_plan_open took, also after its failure. */
void cluster_plan_close(struct cluster_plan *plan);
/* Frees what cluster_step has put into the result. */
void cluster_result_clear(struct cluster_result *result);

/* STATUS_USAGE unless `name` can name a dataset: letters, digits, "_", "-" and ".". */
enum status check_name(const struct options *options, const char *name, struct error *err);

/* Says in `text` how two canonical JSON objects differ ("k is 10 there and 5 here"); false: they
 * are equal. */
bool parameters_differ(char *text, size_t size, const char *there, const char *here);
/* The text of a key in such an object, "" where it has none. */
void parameters_text(char *text, size_t size, const char *json, const char *key);

#endif
