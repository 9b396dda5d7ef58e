/* stages.h: how busy the stages of an ingest were. */
#ifndef CLPIPE_INGEST_STAGES_H
#define CLPIPE_INGEST_STAGES_H

#include "device/staging.h"

/* Seconds, summed over a stage's threads: busy, waiting for input (starved), and waiting for the
 * next stage (blocked). */
struct stage_times {
    const char *name; /* "walk" "decode" "upload" "histogram" "store" */
    unsigned threads;
    double busy, starved, blocked;
};

enum { STAGE_WALK, STAGE_DECODE, STAGE_UPLOAD, STAGE_HISTOGRAM, STAGE_STORE, INGEST_STAGES };

/* Names the stages and sets one thread each; keeps their times. */
void stages_init(struct stage_times stage[INGEST_STAGES]);

/* Sets the stages of the devices in a run of `wall` seconds: each ring is busy or starved. */
void stages_add_devices(struct stage_times stage[INGEST_STAGES], const struct staging_times *times,
                        double wall);

/* The stage with the busiest threads, except the walk, which runs before the others. */
unsigned stages_bottleneck(const struct stage_times stage[INGEST_STAGES]);

#endif
