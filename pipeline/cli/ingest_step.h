/* ingest_step.h: from options to ingest_run, for `ingest` and `run`. */
#ifndef CLPIPE_CLI_INGEST_STEP_H
#define CLPIPE_CLI_INGEST_STEP_H

#include "cli/ingest_options.h"
#include "cli/takeover.h"
#include "ingest/ingest.h"

struct ingest_ranks;

/* Checked before a device is needed: feature specs, sources, output. */
struct ingest_plan {
    enum histogram_variant variant;
    struct feature_set features;
    char *parameters; /* canonical JSON of the options that affect the content */
    char *preset;     /* how the features are joined, or NULL */
    bool has_few;
    struct ingest_few few;        /* of a preset that learns; it owns its texts */
    char first[FEATURE_NAME_MAX]; /* the first feature of the command line, else of the file */
    const char *remade;           /* a clustering that will be recomputed afterwards, or NULL */
    uint64_t most_clusters;       /* as requested; 0: none */
    bool keeps_few;  /* a preset is requested, but the file has the features for few images */
    bool thumbnails; /* for a new file, if not requested */
    bool redo;       /* features are added or relearned: every image is decoded again */
    struct takeover takeover;
};

enum status ingest_plan_open(struct ingest_plan *out, const struct ingest_options *given,
                             struct error *err);
/* Frees what it holds; after a failed ingest_plan_open, too. */
void ingest_plan_close(struct ingest_plan *plan);

/* Starts the decoder processes of --isolate with the options of the plan; *out is NULL without it.
 * Call it before other threads start. */
enum status ingest_isolate(struct isolate **out, const struct image_options *image,
                           struct error *err);

/* Runs the ingest, together with the other ranks if `ranks` is set; returns like ingest_run. */
enum status ingest_step(struct ingest_report *report, const struct ingest_plan *plan,
                        struct isolate *isolate, struct ingest_ranks *ranks, struct error *err);

/* Learns codebooks from at most `sample` images: codebook_job_run. */
enum status ingest_learn(struct codebooks *codebooks, struct feature_set *features,
                         uint32_t *pictures, uint32_t *unread, const struct feature_set *given,
                         uint32_t sample, const struct image_options *image,
                         struct isolate *isolate, struct error *err);

/* STATUS_USAGE: a source does not exist. The walk reports other problems. */
enum status ingest_look_for_sources(const struct options *options, struct error *err);
/* Sets the sources and the options of the walk from the command line. */
struct walk_options ingest_walk_options(const struct options *options,
                                        const struct walk_given *given);
/* Prints notices of what a walk has skipped. */
void ingest_tell_passed(struct walk_passed passed);

/* The exit code of a completed ingest: 1 if more files failed, in this run or an earlier one, than
 * --allow-failures permits. */
enum status ingest_verdict(const struct ingest_report *report,
                           const struct ingest_options *options);

#endif
