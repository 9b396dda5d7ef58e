/* machine.h: what jobs that compare rows get from their caller: devices, limits, progress callbacks; how
 * rows are projected. */
#ifndef CLPIPE_JOBS_MACHINE_H
#define CLPIPE_JOBS_MACHINE_H

#include "base/watch.h"
#include "kmeans/cluster.h"
#include "neighbours/neighbour_types.h"
#include "ocl/ocl.h"

#define CLUSTERING_DEVICES 64

/* Progress for the user in addition to that of the watch, whose context it gets; called on the
 * calling thread. `step` is never NULL. */
struct clustering_progress {
    void (*step)(void *context, const char *text); /* a step without progress: "reading rows" */
    /* Before each value of k, if there are several. */
    void (*value)(void *context, uint32_t k, uint32_t done, uint32_t count);
    /* As in struct cluster_config. */
    void (*iteration)(void *context, uint32_t iteration, double inertia, uint64_t moved,
                      double pruned, double seconds);
};

/* How rows are projected before they are compared. */
struct clustering_projection {
    uint64_t pca;  /* number of principal components; 0: none */
    double whiten; /* they are divided by their variance to the power of whiten / 2 */
    bool center;   /* subtract the mean and scale to unit length; with components anyway */
};

struct clustering_machine {
    /* Finds the devices, on the calling thread; not called if the result already exists. The
     * devices must outlive the run. NULL: `found` has them. */
    enum status (*find_devices)(void *context, struct ocl_selection *found, struct error *err);
    void *find_devices_context;
    struct ocl_selection found;
    unsigned threads;
    uint64_t memory, device_memory; /* bytes; device_memory 0: all of the device's memory */
    struct watch watch;
    struct processes *processes; /* processes that share the job; NULL: only this one */
    struct clustering_progress progress;
};

/* What a job that stores clusters of rows is given, whether it finds them or, as labelling.c, knows
 * their centroids. */
struct cluster_job_config {
    const char *input, *feature; /* as matrix_input_open takes them */
    const char *output;          /* a separate file, or NULL: the input */
    const char *paths;           /* list of the rows' paths (path_list.h); NULL: none */
    const char *name;            /* of the result: /clusters/NAME */
    bool replace;                /* replace a result of that name made with other parameters */
    bool verify_input;           /* read all rows before trusting a stored result */
    struct clustering_machine machine;
};

/* Contexts on the devices that share a job, or on this process's device. */
struct clustering_contexts {
    struct ocl_context *context[CLUSTERING_DEVICES];
    struct cluster_devices devices; /* those of `context`; the struct must not be moved */
    char names[256]; /* joined by " + "; for several processes, the first one's device and their
                      * number */
};

/* Finds the machine's devices and opens contexts on at most `most` of the first one's type. Skips
 * those that cannot be opened. Notices name the devices left out. */
enum status clustering_contexts_open(struct clustering_contexts *out,
                                     const struct clustering_machine *machine, unsigned most,
                                     struct error *err);
/* Closes the open ones; accepts a zeroed struct. */
void clustering_contexts_close(struct clustering_contexts *contexts);

/* A configuration with the limits and callbacks of the machine, and defaults for the rest. */
void clustering_config_of(struct cluster_config *config, const struct clustering_machine *machine);
/* The same for a search, without devices. */
struct neighbours_config clustering_search(const struct clustering_machine *machine,
                                           enum cluster_metric metric, uint32_t n);

#endif
