/* cluster_job.h: common parts of the jobs that store clusters of rows: clustering.h, which finds
 * them, and labelling.c, which uses given centroids.
 *
 *   cluster_job_open ──> the job's own parameters ──> cluster_job_claim ──> cluster_job_run
 *                                                                           │
 *   all processes compute what the first has not found; it stores it <──────┘ */
#ifndef CLPIPE_JOBS_CLUSTER_JOB_H
#define CLPIPE_JOBS_CLUSTER_JOB_H

#include "jobs/machine.h"
#include "jobs/matrix_input.h"
#include "jobs/path_list.h"
#include "kmeans/levels.h"
#include "matrix/projected.h"
#include "result/words.h"

/* The outcome, for summaries and reports. */
struct clustering_report {
    uint32_t mini_batch, n_init;
    bool found; /* the result already existed: nothing was computed */
    double seconds;
    char device[256];
    struct result_clusters clusters; /* of rows: name, feature, metric and agreement */
    char *output;                    /* the file that contains it */
    bool in_input;                   /* it is the input */
    struct result *images;           /* the open clpipe file whose images the rows are; or NULL */
    unsigned level_count;            /* 1: it has no levels */
    struct cluster_level level[CLUSTER_LEVELS]; /* that of the rows, and those above: when done,
                                                 * without centroids, labels and distances */
    char level_name[CLUSTER_LEVELS][FEATURE_NAME_MAX];
    struct cluster_sweep sweep; /* values NULL: k was given */
    struct words *words;        /* for its clusters, or NULL */
};
/* Frees its texts, arrays and files and zeroes it. */
void clustering_report_clear(struct clustering_report *report);

struct cluster_job {
    const struct cluster_job_config *config;
    struct matrix_input input;
    struct path_list paths;       /* of the rows, if given (else count is 0), */
    struct result_names names;    /* and for storing */
    char *source;                 /* the list as a SOURCE */
    struct matrix_source rows;    /* those of `input`, projected if `projected` is set, */
    struct projection projection; /* by this */
    bool projected;
    char *parameters;                 /* canonical JSON */
    char content[65];                 /* identity of the rows; "" until known */
    struct clustering_report *report; /* its levels get the outcome, for comparable rows */
    bool words;                       /* look for words for the clusters */
    /* Where they are stored: */
    const char *output;    /* the file written: the one requested, or the input */
    const char *base;      /* the clpipe file to copy with the clusters, or NULL */
    struct result *holder; /* the requested file, if it has earlier clusters */
    struct workdir *lock;  /* keeps others from writing the output */
    bool replaces;         /* clusters of that name exist and are replaced */
    bool found;            /* the same clusters already exist */
    /* Other values to store: name, metric, init (for levels above: init_above), seed, by_run,
     * weights, agreement with folders; the sweep comes from the report. */
    struct result_clustering about;
    const char *init_above;
};

/* Whether this process stores, locks and reports: the only one, or the first of several. */
bool cluster_job_is_first(const struct cluster_job *job);

/* Opens INPUT as matrix_input_open does, the list of its rows' paths, and the requested file. usual: the
 * feature if none is given, or NULL. STATUS_USAGE: the file contains images or clusters of rows with other
 * paths, or none is requested and INPUT is not a clpipe file. Close the job even after a failure. */
enum status cluster_job_open(struct cluster_job *job, const char *usual, struct error *err);
/* Frees what the job holds; accepts a zeroed struct. */
void cluster_job_close(struct cluster_job *job);

/* Opens job->rows; if `projected` is set, job->rows takes ownership of the arrays of `projection`,
 * whose pointers stay valid. */
enum status cluster_job_project(struct cluster_job *job, struct error *err);

/* The file with earlier clusters: the requested one or the input; NULL: neither has any. */
struct result *cluster_job_holder(const struct cluster_job *job);

/* Looks for the clusters in the output, or locks it. remedy: what to do if others of that name must
 * not be replaced. All processes must have the same rows and parameters, and get the result of the
 * first process's search. */
enum status cluster_job_claim(struct cluster_job *job, const char *parameters, enum remedy remedy,
                              struct error *err);

/* Computes and stores levels, or finds existing ones, and fills the report. make: computes its levels
 * on at most `devices` devices; not called if the clusters exist. reading: set to the digest of rows
 * that processes read together, for `make` to pass on. */
enum status cluster_job_run(struct cluster_job *job, unsigned devices, struct row_tree **reading,
                            enum status (*make)(struct cluster_job *job,
                                                const struct cluster_devices *devices,
                                                struct error *err),
                            struct error *err);

#endif
