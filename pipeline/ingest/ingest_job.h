/* ingest_job.h: state shared by the threads of an ingest: configuration, stop flag, staging, first error
 * and progress. Internal to ingest. */
#ifndef CLPIPE_INGEST_JOB_H
#define CLPIPE_INGEST_JOB_H

#include "base/budget.h"
#include "ingest/ingest_config.h"
#include "ingest/status_file.h"
#include <pthread.h>

struct ingest_job {
    const struct ingest_config *config;
    struct stop *stop;
    struct ingest_config bounded; /* what `config` points to: at least the necessary memory, and
                                   * one thread */
    struct stop own_stop;         /* what `stop` points to if none was given */
    /* Ends all waits, now and later, for anything but the two members below; any thread; NULL:
     * there are no such waits. */
    void (*wake)(void *context);
    void *context;

    /* Set by device_side_open; NULL before, and in a dry run. */
    struct staging *staging;
    struct budget *budget; /* for the memory that codecs use beyond the slots */

    pthread_mutex_t lock; /* guards the members below, and the setting of those above */
    struct error error;   /* the first */
    struct ingest_progress progress;

    struct status_file status; /* used by the thread that calls ingest_job_show */
};

/* The job must not be moved afterwards. */
void ingest_job_init(struct ingest_job *job, const struct ingest_config *config,
                     void (*wake)(void *context), void *context);
/* Closes its staging and budget. */
void ingest_job_clear(struct ingest_job *job);

/* Ends the run with an error: the first one is kept, and all threads are woken. Any thread, even
 * while the devices are being opened. */
void ingest_job_fail(struct ingest_job *job, const struct error *err);

/* Passes the progress to config->progress and the status file; `start`: of the phase. One thread at
 * a time. */
void ingest_job_show(struct ingest_job *job, int64_t start);
/* The same with how far the phase is. */
void ingest_job_phase(struct ingest_job *job, const char *phase, uint64_t done, uint64_t total,
                      int64_t start);
/* For the watch of a walk, whose context is the job. */
void ingest_job_walked(void *job, const char *phase, uint64_t done, uint64_t total);

#endif
