/* ingest_job.h: what the threads of one ingest share: its configuration, the stop word, the first
 * error and the progress. Inside ingest. */
#ifndef CLPIPE_INGEST_JOB_H
#define CLPIPE_INGEST_JOB_H

#include "ingest/ingest_config.h"
#include "ingest/status_file.h"
#include <pthread.h>

struct ingest_job {
    const struct ingest_config *config;
    struct stop *stop;
    void (*wake)(void *context); /* ends every wait of the run, now and later; any thread */
    void *context;

    pthread_mutex_t lock; /* guards what follows */
    struct error error;   /* the first */
    struct ingest_progress progress;

    struct status_file status; /* of who calls ingest_job_show */
};

void ingest_job_init(struct ingest_job *job, const struct ingest_config *config, struct stop *stop,
                     void (*wake)(void *context), void *context);
void ingest_job_clear(struct ingest_job *job);

/* Ends the run with an error: the first wins, every thread is woken. Any thread. */
void ingest_job_fail(struct ingest_job *job, const struct error *err);

/* Calls config->progress with the progress as it is, and notes it; `start`: of the phase. One thread at a
 * time. */
void ingest_job_show(struct ingest_job *job, int64_t start);

#endif
