/* checkpoint.h: saves the state of k-means in a file, so that a killed run can resume with
 * bit-identical results.
 *
 * The state has three nested parts. Each belongs to the code that changes it, which points the
 * checkpoint to its variables and, after a restart, reads them back in this order:
 *
 *   values   the completed values of k of a sweep, and the best outcome so far
 *   runs     the completed restarts for one k, and the best outcome so far
 *   run      one restart: some of its initial centroids, or the centroids after some iterations
 *
 * An outcome is saved as its centroids; one assignment restores labels and the rest. The file uses
 * the machine's byte order. It is written under a temporary name and renamed. A file that is
 * damaged, or belongs to other rows or options, is ignored with a notice. */
#ifndef CLPIPE_KMEANS_CHECKPOINT_H
#define CLPIPE_KMEANS_CHECKPOINT_H

#include "kmeans/cluster_types.h"
#include "ranks/comm.h"

/* The finished fits of a job of several, in order, which rank 0 has; the state in the file is that
 * of the next one. */
struct checkpoint_fits {
    uint32_t count;
    struct cluster_outcome *fit; /* k, dimension, iterations, converged, centroids, history */
    uint32_t *round;             /* how often each was resampled */
    uint64_t resumed;            /* iterations that the file held */
    uint64_t made;               /* all iterations so far, including restarts and rounds */
    bool pending;                /* the file holds the state of the next fit */
    int64_t next;                /* as in struct checkpoint */
};

enum checkpoint_stage {
    CHECKPOINT_SEEDING,  /* run.seeds initial centroids are known, possibly none */
    CHECKPOINT_ITERATING /* outcome->iterations are done, possibly all */
};

struct checkpoint_values {
    struct cluster_sweep *sweep; /* NULL: not a sweep */
    struct cluster_outcome *best;
    uint32_t done; /* values completed, from the end of sweep->values */
};

struct checkpoint_runs {
    struct cluster_outcome *best; /* if done > 0 */
    uint32_t done;
};

struct checkpoint_run {
    enum checkpoint_stage stage;
    uint32_t seeds;                  /* k, once iterating */
    struct cluster_outcome *outcome; /* k, iterations, converged, history */
    float *centroids;                /* k x stride */
    /* Mini-batch only, else NULL: the sums of the iterations so far. */
    uint64_t *counts; /* k */
    int64_t *sums;    /* k x stride */
    int64_t *weights; /* k, if rows have weights */
};

/* If zeroed, it keeps nothing, and all calls succeed without effect. */
struct checkpoint {
    const struct checkpoint_config *config; /* NULL: nothing is written */
    uint8_t identity[32];
    uint32_t dimension, stride;
    struct checkpoint_values values;
    struct checkpoint_runs runs;
    struct checkpoint_run run;
    uint64_t made;    /* iterations so far, over all restarts and values of k */
    uint64_t resumed; /* those of them found in the file */
    int64_t next;     /* clock_now() at which to save again */
    char *loaded;     /* the file's contents, `at` bytes of which were read back */
    size_t size, at;
};

/* Reads the file, if it exists, once all rows have been read in order. `extra` are bytes that
 * affect the result besides rows and options. config may be NULL. A collective call: all ranks get
 * the state that rank 0 read; only rank 0 writes. */
enum status checkpoint_open(struct checkpoint *checkpoint, struct comm *comm,
                            const struct checkpoint_config *config, uint32_t dimension,
                            uint32_t stride, const void *extra, size_t extra_size,
                            struct error *err);
/* Frees the memory; leaves the file. */
void checkpoint_close(struct checkpoint *checkpoint);

/* Takes the fits that the file of config (NULL: none) holds. This and the next two functions are
 * for rank 0. */
enum status checkpoint_take_fits(struct checkpoint_fits *fits,
                                 const struct checkpoint_config *config, struct error *err);
/* Keeps a copy of `fit`, in place of the last one if `replace`. */
enum status checkpoint_add_fit(struct checkpoint_fits *fits, const struct cluster_outcome *fit,
                               uint32_t round, bool replace, struct error *err);
/* Writes config->fits, between two fits, if it is time, or if *err is STATUS_INTERRUPTED, which then says how
 * to resume. */
void checkpoint_save_fits(const struct checkpoint_config *config, struct error *err);
void checkpoint_clear_fits(struct checkpoint_fits *fits);

/* Restore the state from the file: the part's `done`, `seeds` or outcome->iterations tells how much
 * was there. They allocate the centroids and history of best outcomes, and the history of the
 * run's. STATUS_FAILED: out of memory, or invalid contents. */
enum status checkpoint_take_values(struct checkpoint *checkpoint, struct error *err);
enum status checkpoint_take_runs(struct checkpoint *checkpoint, struct error *err);
enum status checkpoint_take_run(struct checkpoint *checkpoint, struct error *err);

/* Whether it is time to save. */
bool checkpoint_due(const struct checkpoint *checkpoint);
/* Writes the file, unless it holds state that has not been read back yet. A failure is reported as
 * a notice, and the run continues. */
void checkpoint_save(struct checkpoint *checkpoint);
/* The same after STATUS_INTERRUPTED; *err then says what was done, and that the same command resumes. */
void checkpoint_save_interrupted(struct checkpoint *checkpoint, struct error *err);
/* The same for a run that ended before checkpoint_open: leaves the file as it is. */
void checkpoint_untouched(const struct checkpoint_config *config, struct error *err);

#endif
