/* stages.h: how busy the stages of an ingest were. */
#ifndef CLPIPE_INGEST_STAGES_H
#define CLPIPE_INGEST_STAGES_H

#include "staging/staging.h"

/* Seconds a stage's threads were busy, waited for input (starved), and waited for room downstream
 * (blocked), summed over its threads. */
struct stage_times {
    const char *name; /* "walk" "decode" "upload" "histogram" "store" */
    unsigned threads;
    double busy, starved, blocked;
};

enum { STAGE_WALK, STAGE_DECODE, STAGE_UPLOAD, STAGE_HISTOGRAM, STAGE_STORE, INGEST_STAGES };

/* Names the stages, with a thread each; their times stay. */
void stages_init(struct stage_times stage[INGEST_STAGES]);

/* The stages of the devices, in a run of `wall` seconds: each lane is busy or starved. */
void stages_add_devices(struct stage_times stage[INGEST_STAGES], const struct staging_times *times,
                        double wall);

/* The stage whose threads were the busiest, of all but the walk, which comes before the others. */
unsigned stages_bottleneck(const struct stage_times stage[INGEST_STAGES]);

#endif
