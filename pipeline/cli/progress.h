/* progress.h: what a person sees while a command works.
 *
 * On a terminal one live line: a bar, how much of how much, rates, the time left, failures. It is
 * laid out anew for the terminal's width at every redraw: parts fall away, least important first,
 * before anything could wrap. Elsewhere a plain line every ten seconds or ten per cent. */
#ifndef CLPIPE_CLI_PROGRESS_H
#define CLPIPE_CLI_PROGRESS_H

#include "cli/options.h"
#include "ingest/ingest_config.h"

#define STAGES_MOST 24

/* What the command has been at since the process began: the rest, then stages in the order of their beginnings. */
struct stages {
    struct {
        char name[40];
        int64_t spent; /* ns, until `since` */
    } stage[STAGES_MOST];
    unsigned count, at; /* at: the one at work since then */
    int64_t since;
};

struct progress {
    struct stages stages;
    bool live, plain, forced; /* forced: --progress always */
    const char *phase;        /* of the last report; rates start anew with each */
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
    int64_t sweep_shown; /* when a plain line last told that */
};

/* Nothing is shown yet. `options` say whether and how; they are not kept. */
void progress_init(struct progress *progress, const struct options *options);
/* For struct ingest_config; context is a struct progress. */
void progress_ingest(void *context, const struct ingest_progress *report);
/* For struct cluster_config. */
void progress_cluster(void *context, uint32_t iteration, double inertia, uint64_t moved,
                      double pruned, double seconds);
/* The same: what comes before the iterations, drawn as ingest's line is. */
void progress_phase(void *context, const char *phase, uint64_t done, uint64_t total);
/* For struct cluster_sweep_config. */
void progress_sweep(void *context, uint32_t k, uint32_t done, uint32_t count);
/* A step without a measure: "reading rows". */
void progress_step(void *context, const char *text);
/* From now on the command is at this stage; so it is, too, from each report of a phase or step on. NULL: at
 * the rest. */
void progress_stage(struct progress *progress, const char *name);
/* Takes the live line away; what follows belongs to the rest. */
void progress_end(struct progress *progress);

#endif
