/* stages.c: the times of the stages, and which stage limits the speed of the run. */
#include "ingest/stages.h"

void stages_init(struct stage_times stage[INGEST_STAGES])
{
    static const char *const name[INGEST_STAGES] = {"walk", "decode", "upload", "histogram",
                                                    "store"};
    for (unsigned i = 0; i < INGEST_STAGES; i++) {
        stage[i].name = name[i];
        stage[i].threads = 1;
    }
}

void stages_add_devices(struct stage_times stage[INGEST_STAGES], const struct staging_times *times,
                        double wall)
{
    const double all = times->rings * wall;
    stage[STAGE_UPLOAD].busy = times->upload;
    stage[STAGE_HISTOGRAM].busy = times->compute + times->read_back;
    for (unsigned i = STAGE_UPLOAD; i <= STAGE_HISTOGRAM; i++) {
        stage[i].threads = times->rings;
        stage[i].starved = all > stage[i].busy ? all - stage[i].busy : 0;
    }
}

/* Busy seconds per thread. */
static double load(const struct stage_times *stage)
{
    return stage->threads ? stage->busy / stage->threads : 0;
}

unsigned stages_bottleneck(const struct stage_times stage[INGEST_STAGES])
{
    unsigned most = STAGE_DECODE;
    for (unsigned i = STAGE_DECODE; i < INGEST_STAGES; i++) {
        if (load(&stage[i]) > load(&stage[most]))
            most = i;
    }
    return most;
}
