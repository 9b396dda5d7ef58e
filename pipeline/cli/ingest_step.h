/* ingest_step.h: from options to ingest_run, for `ingest` and `run`. */
#ifndef CLPIPE_CLI_INGEST_STEP_H
#define CLPIPE_CLI_INGEST_STEP_H

#include "cli/compute.h"
#include "cli/ingest_options.h"
#include "cli/progress.h"
#include "cli/takeover.h"
#include "ingest/ingest.h"

struct ingest_ranks;

/* What is looked at before a device is needed: feature specs, sources, output. */
struct ingest_plan {
    enum histogram_variant variant;
    struct feature_set features;
    char *parameters; /* canonical JSON of the options that shape the content */
    char *preset;     /* how the features are joined, or NULL */
    bool has_few;
    struct ingest_few few;        /* of a preset that learns; it owns its texts */
    char first[FEATURE_NAME_MAX]; /* the first feature that the command names, or the file's */
    const char *remade;           /* a clustering that is made anew afterwards, or NULL */
    uint64_t most_clusters;       /* that are asked for; 0: none */
    bool keeps_few;  /* a preset is asked for, and the file has the features of few images */
    bool thumbnails; /* of a new file, where they are not asked for */
    bool redo;       /* features are added, or learned anew: every image is decoded again */
    struct takeover takeover;
};

enum status ingest_plan_open(struct ingest_plan *out, const struct options *options,
                             struct error *err);
/* Frees what it holds; after a failed ingest_plan_open, too. */
void ingest_plan_close(struct ingest_plan *plan);

/* --isolate: starts what decodes; to be called before there are threads, with the options of the
 * plan. *out is NULL without it. */
enum status ingest_isolate(struct isolate **out, const struct options *options, struct error *err);

/* Runs, with others where there are `ranks`; returns what ingest_run returns. */
enum status ingest_step(struct ingest_report *report, const struct ingest_plan *plan,
                        struct isolate *isolate, struct ingest_ranks *ranks, struct error *err);

/* Learns codebooks alone from so many images, as the options of the images say: codebook_job_run. */
enum status ingest_learn(struct codebooks *codebooks, struct feature_set *features,
                         uint32_t *pictures, const struct feature_set *given, uint32_t sample,
                         const struct options *options, struct isolate *isolate, struct error *err);

/* Sources that are not there are a mistyped command line. What else may be wrong with one, the walk
 * says. */
enum status ingest_look_for_sources(const struct options *options, struct error *err);
/* The operands as sources, and how they are walked. */
struct walk_options ingest_walk_options(const struct options *options,
                                        const struct walk_given *given);
/* Notices of what a walk has passed over. */
void ingest_tell_passed(struct walk_passed passed);

/* The exit code of an ingest that went through: 1 if more files failed, in this run or an earlier
 * one, than --allow-failures allows. */
enum status ingest_verdict(const struct ingest_report *report, const struct options *options);

#endif
