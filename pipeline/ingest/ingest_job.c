/* ingest_job.c: the first error of an ingest, which wakes its threads, and its progress. */
#include "ingest/ingest_job.h"

#include "base/clock.h"
#include "base/minmax.h"
#include "ingest/bounds.h"

void ingest_job_init(struct ingest_job *job, const struct ingest_config *config,
                     void (*wake)(void *context), void *context)
{
    *job = (struct ingest_job){.config = &job->bounded,
                               .bounded = *config,
                               .stop = config->stop ? config->stop : &job->own_stop,
                               .wake = wake,
                               .context = context,
                               .error = ERROR_INIT,
                               .progress = {.phase = "walking"}};
    job->bounded.memory = max_u64(config->memory, INGEST_MEMORY_MIN);
    job->bounded.memory_streams = max_u64(config->memory_streams, job->bounded.memory);
    job->bounded.threads = config->threads ? config->threads : 1;
    pthread_mutex_init(&job->lock, NULL);
}

void ingest_job_clear(struct ingest_job *job)
{
    staging_close(&job->staging);
    budget_close(&job->budget);
    pthread_mutex_destroy(&job->lock);
}

void ingest_job_fail(struct ingest_job *job, const struct error *err)
{
    pthread_mutex_lock(&job->lock);
    if (job->error.status == STATUS_OK)
        job->error = *err;
    stop_request(job->stop, STOP_ERROR);
    if (job->staging)
        staging_abort(job->staging);
    if (job->budget)
        budget_abort(job->budget);
    pthread_mutex_unlock(&job->lock);
    if (job->wake)
        job->wake(job->context);
}

void ingest_job_show(struct ingest_job *job, int64_t start)
{
    const struct ingest_config *config = job->config;
    pthread_mutex_lock(&job->lock);
    job->progress.seconds = clock_seconds_since(start);
    struct ingest_progress progress = job->progress;
    pthread_mutex_unlock(&job->lock);
    status_file_note(&job->status, &progress);
    if (config->progress)
        config->progress(config->progress_context, &progress);
}

void ingest_job_phase(struct ingest_job *job, const char *phase, uint64_t done, uint64_t total,
                      int64_t start)
{
    pthread_mutex_lock(&job->lock);
    job->progress.phase = phase;
    job->progress.done = done;
    job->progress.total = total;
    pthread_mutex_unlock(&job->lock);
    ingest_job_show(job, start);
}

void ingest_job_walked(void *job, const char *phase, uint64_t done, uint64_t total)
{
    ingest_job_phase(job, phase, done, total, clock_process_start());
}
