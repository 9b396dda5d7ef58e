/* ingest_job.h: state shared by the threads of an ingest: configuration, stop flag, first error and
 * progress. Internal to ingest. */
#ifndef CLPIPE_INGEST_JOB_H
#define CLPIPE_INGEST_JOB_H

#include "ingest/ingest_config.h"
#include "ingest/status_file.h"
#include <pthread.h>

struct ingest_job {
    const struct ingest_config *config;
    struct stop *stop;
    void (*wake)(void *context); /* wakes all waiting threads, now and later; any thread */
    void *context;

    pthread_mutex_t lock; /* guards the following */
    struct error error;   /* the first */
    struct ingest_progress progress;

    struct status_file status; /* used by the thread that calls ingest_job_show */
};

void ingest_job_init(struct ingest_job *job, const struct ingest_config *config, struct stop *stop,
                     void (*wake)(void *context), void *context);
void ingest_job_clear(struct ingest_job *job);

/* Ends the run with an error: the first one is kept, and all threads are woken. Any thread. */
void ingest_job_fail(struct ingest_job *job, const struct error *err);

/* Passes the progress to config->progress and the status file; `start`: of the phase. One thread at
 * a time. */
void ingest_job_show(struct ingest_job *job, int64_t start);

#endif
