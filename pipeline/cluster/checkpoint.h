/* checkpoint.h: the state of k-means in a file, so that a run that was killed can be resumed, to
 * the same bits.
 *
 * Three parts, from the outside in; each belongs to the code that changes it, which points to it
 * before that and reads it back, in this order, after a start:
 *
 *     values   a sweep's values of k that are done, and the best outcome so far
 *     runs     the restarts for one k that are done, and the best outcome so far
 *     run      one restart: some of its first centroids, or the centroids after some iterations
 *
 * Of an outcome the centroids are kept: labels and all that follows from them is found again by one
 * assignment. The file is native to the machine's byte order. It is written under a temporary name
 * and renamed; one that is damaged, or of other rows or options, is not used (a notice). */
#ifndef CLPIPE_CLUSTER_CHECKPOINT_H
#define CLPIPE_CLUSTER_CHECKPOINT_H

#include "cluster/cluster_types.h"
#include "cluster/comm.h"

enum checkpoint_stage {
    CHECKPOINT_SEEDING,  /* run.seeds first centroids are known, maybe none */
    CHECKPOINT_ITERATING /* outcome->iterations are done, maybe all */
};

struct checkpoint_values {
    struct cluster_sweep *sweep; /* NULL: not a sweep */
    struct cluster_outcome *best;
    uint32_t done; /* the last ones of sweep->values */
};

struct checkpoint_runs {
    struct cluster_outcome *best; /* where done > 0 */
    uint32_t done;
};

struct checkpoint_run {
    enum checkpoint_stage stage;
    uint32_t seeds;                  /* k, once iterating */
    struct cluster_outcome *outcome; /* k, iterations, converged, history */
    float *centroids;                /* k x stride */
    /* Of mini-batches, else NULL: what the iterations so far came to. */
    uint64_t *counts; /* k */
    int64_t *sums;    /* k x stride */
    int64_t *weights; /* k, where rows have weights */
};

/* Zeroed: nothing is kept, and all calls succeed without an effect. */
struct checkpoint {
    const struct checkpoint_config *config; /* NULL where nothing is written */
    uint8_t identity[32];
    uint32_t dimension, stride;
    struct checkpoint_values values;
    struct checkpoint_runs runs;
    struct checkpoint_run run;
    uint64_t made;    /* iterations so far, over all restarts and values of k */
    uint64_t resumed; /* those of them that the file held */
    int64_t next;     /* clock_now() when the state is to be kept again */
    char *loaded;     /* what the file held, of which `at` bytes were read back */
    size_t size, at;
};

/* Reads the file, if there is one, once the rows were read in order. `extra` are bytes that shape
 * the result beside rows and options. config may be NULL. All ranks call it and get the state that
 * rank 0 has read; rank 0 alone writes. */
enum status checkpoint_open(struct checkpoint *checkpoint, struct comm *comm,
                            const struct checkpoint_config *config, uint32_t dimension,
                            uint32_t stride, const void *extra, size_t extra_size,
                            struct error *err);
/* Frees it; the file stays as it is. */
void checkpoint_close(struct checkpoint *checkpoint);

/* Take up what the file held: the part's `done`, `seeds` or outcome->iterations says what that was.
 * Best outcomes get memory for centroids and histories, the run's for its history. STATUS_FAILED:
 * out of memory, or the file makes no sense. */
enum status checkpoint_take_values(struct checkpoint *checkpoint, struct error *err);
enum status checkpoint_take_runs(struct checkpoint *checkpoint, struct error *err);
enum status checkpoint_take_run(struct checkpoint *checkpoint, struct error *err);

/* Whether it is time to keep the state. */
bool checkpoint_due(const struct checkpoint *checkpoint);
/* Writes the file, unless there is something in it that was not read back yet. Where that fails a
 * notice says so, and the run continues. */
void checkpoint_save(struct checkpoint *checkpoint);
/* The same after STATUS_INTERRUPTED; *err says that the same command resumes from there. */
void checkpoint_save_interrupted(struct checkpoint *checkpoint, struct error *err);
/* The same where the run did not get as far as checkpoint_open: what there is stays. */
void checkpoint_untouched(const struct checkpoint_config *config, struct error *err);

#endif
