/* progress.h: shows the progress of a command.
 *
 * On a terminal, one live line: a bar, the amounts done and in total, rates, the time left,
 * failures. Each redraw fits it to the terminal's width by leaving out the least important parts.
 * Elsewhere, a plain line every ten seconds or ten per cent. */
#ifndef CLPIPE_CLI_PROGRESS_H
#define CLPIPE_CLI_PROGRESS_H

#include "cli/options.h"
#include "ingest/ingest_config.h"

#define STAGES_MOST 24

/* The stages of the command since the process began: "other", then the stages in the order of their start. */
struct stages {
    struct {
        char name[40];
        int64_t spent; /* ns, until `since` */
    } stage[STAGES_MOST];
    unsigned count, at; /* at: the current stage, since then */
    int64_t since;
    int64_t compiled; /* ocl_program_compiled then */
};

struct progress {
    struct stages stages;
    bool live, plain, forced; /* forced: --progress always */
    const char *phase;        /* phase of the last report; rates are reset when it changes */
    double last_seconds;      /* of the phase: when rates were last updated, */
    double shown_seconds;     /* and when something was last shown */
    uint64_t last_items, last_bytes;
    double items_rate, bytes_rate; /* smoothed, per second */
    bool has_rate;
    uint64_t shown_tenth;
    int64_t step_start;  /* of the last progress_step, or phase of k-means */
    int64_t phase_drawn; /* when progress_phase last did */
    uint32_t max_iter;
    char sweep[48];      /* "k = 12 (3 of 15), ", or "" */
    int64_t sweep_shown; /* time of the last plain line about the phase */
};

/* Shows nothing yet. `options`, which are not kept, determine whether and how progress is shown. */
void progress_init(struct progress *progress, const struct options *options);
/* For struct ingest_config; context is a struct progress. */
void progress_ingest(void *context, const struct ingest_progress *report);
/* For struct cluster_config. */
void progress_cluster(void *context, uint32_t iteration, double inertia, uint64_t moved,
                      double pruned, double seconds);
/* The same, for the phases before the iterations, drawn like ingest's line. */
void progress_phase(void *context, const char *phase, uint64_t done, uint64_t total);
/* For struct cluster_sweep_config. */
void progress_sweep(void *context, uint32_t k, uint32_t done, uint32_t count);
/* A step whose progress is not measured: "reading rows". */
void progress_step(void *context, const char *text);
/* Starts a stage; NULL: "other". Reports of a phase or step also start their stage. Time in which kernels
 * were compiled is a stage of its own. */
void progress_stage(struct progress *progress, const char *name);
/* Removes the live line; the following time counts as "other". */
void progress_end(struct progress *progress);

#endif
