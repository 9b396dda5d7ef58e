/* run.c: checks requests, runs ranks, and continues without a device that failed. */
#include "kmeans/run.h"
#include "base/log.h"
#include "kmeans/method.h"
#include "ranks/comm_processes.h"
#include "ranks/comm_threads.h"
#include "ranks/processes.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
                          uint32_t k, struct error *err)
{
    if (k < 1)
        return error_set(err, STATUS_USAGE, "k must be at least 1");
    if (k > INT32_MAX)
        return error_set(err, STATUS_USAGE, "k can be at most %d", INT32_MAX);
    if (source->rows == 0)
        return error_set(err, STATUS_FAILED, "there are no rows to cluster");
    if (source->dimension == 0)
        return error_set(err, STATUS_FAILED, "the rows to cluster have no columns");
    const struct kmeans_method *method = method_of(config);
    if (!method)
        return error_set(err, STATUS_USAGE, "k-means has no method named \"%s\"", config->method);
    if (config->mini_batch > 0 && !method->samples)
        return error_set(err, STATUS_USAGE, "the method %s takes no mini-batches", method->name);
    return method->check ? method->check(config, err) : STATUS_OK;
}

bool cluster_device_failed(const struct error *err)
{
    return err->cause == CAUSE_OPENCL;
}

/* --- ranks ----------------------------------------------------------------------------------- */

/* A source that only one thread at a time may read; each rank has a reader. */
struct locked_source {
    pthread_mutex_t mutex;
    const struct matrix_source *inner;
};

static enum status read_locked(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    struct locked_source *locked = context;
    pthread_mutex_lock(&locked->mutex);
    enum status status = locked->inner->read(locked->inner->context, first, count, rows, err);
    pthread_mutex_unlock(&locked->mutex);
    return status;
}

struct ranks {
    const struct run_job *job;
    struct ocl_context **contexts;
    struct matrix_source source;
};

static enum status run_rank_on(struct ocl_context *ocl, struct ranks *ranks, struct comm *comm,
                               struct error *err)
{
    const struct run_job *job = ranks->job;
    struct lane lane = {0};
    struct workers *workers = NULL;
    const struct rank rank = {comm, &lane, &ranks->source};
    /* The same number of threads for each rank of a process: apart from reading, they work only
     * briefly. */
    enum status status = workers_open(&workers, job->config->threads, err);
    if (status == STATUS_OK)
        status = lane_open(&lane, ocl, workers, job->config->watch.stop, job->config->choice, err);
    if (status == STATUS_OK)
        status = job->main(job->context, &rank, err);
    lane_close(&lane);
    workers_close(&workers);
    return status;
}

static enum status run_rank(void *context, struct comm *comm, struct error *err)
{
    struct ranks *ranks = context;
    return run_rank_on(ranks->contexts[comm->rank], ranks, comm, err);
}

/* *failed: the rank whose device caused an error; UINT32_MAX: none. */
static enum status run_once(uint32_t *failed, struct ranks *ranks, uint32_t count,
                            struct error *err)
{
    struct locked_source locked = {.inner = ranks->job->source};
    ranks->source = *ranks->job->source;
    if (count > 1 && !ranks->source.concurrent) {
        ranks->source.read = read_locked;
        ranks->source.context = &locked;
    }
    pthread_mutex_init(&locked.mutex, NULL);
    enum status status = comm_run_threads(failed, count, run_rank, ranks, err);
    pthread_mutex_destroy(&locked.mutex);
    if (status != STATUS_FAILED || !cluster_device_failed(err)) {
        *failed = UINT32_MAX;
    } else if (count > 1) {
        const struct ocl_device *device = ocl_context_device(ranks->contexts[*failed]);
        char subject[200];
        snprintf(subject, sizeof subject, "device %u (%s)", device->index, device->name);
        error_subject(err, subject);
    }
    return status;
}

/* How many of `count` ranks have work. */
static uint32_t useful_ranks(const struct run_job *job, uint32_t count)
{
    const struct kmeans_method *method = method_of(job->config);
    const uint64_t rows = job->source->rows, chunk = rows > 0 ? column_stats_chunk(rows) : 1;
    const uint64_t chunks = (rows + chunk - 1) / chunk;
    if (method && method->one_device && !job->all_ranks)
        count = 1;
    return chunks >= count ? count : chunks > 0 ? (uint32_t)chunks : 1;
}

/* Runs this process as one of the ranks, or idle if there is no work for it. */
static enum status run_process(const struct run_job *job, struct ocl_context *ocl,
                               struct error *err)
{
    struct processes *processes = job->config->processes;
    const uint32_t used = useful_ranks(job, processes_comm(processes)->size);
    struct ranks ranks = {.job = job, .source = *job->source};
    const struct kmeans_method *method = method_of(job->config);
    struct stop *stop = method && method->one_device ? job->config->watch.stop : NULL;
    struct comm *comm;
    /* Where rank 0 may work alone for long, the others' stops reach it (processes_watch). */
    comm_processes_share_stop(processes_comm(processes), stop);
    enum status status = processes_part(&comm, processes, used, err);
    if (status != STATUS_OK || !comm)
        return status;
    comm_processes_share_stop(comm, stop);
    status = run_rank_on(ocl, &ranks, comm, err);
    /* A rank may have failed in what it did alone, after the others had finished. */
    if (status == STATUS_OK)
        status = comm_processes_meet(comm, err);
    if (status != STATUS_OK) {
        comm_fail(comm, err);
        /* Rank 0's result applies to all. */
        if (comm->rank > 0)
            comm_processes_error(comm, err);
    }
    processes_leave_part(&comm, processes);
    return status == STATUS_OK ? STATUS_OK : err->status;
}

enum status cluster_run_ranks(const struct run_job *job, const struct cluster_devices *devices,
                              struct error *err)
{
    struct ranks ranks = {.job = job};
    uint32_t count = devices->count;
    if (job->config->processes)
        return run_process(job, devices->contexts[0], err);
    uint32_t failed;
    ranks.contexts = malloc(count * sizeof *ranks.contexts);
    if (!ranks.contexts)
        return error_memory(err, count * sizeof *ranks.contexts, "devices");
    memcpy(ranks.contexts, devices->contexts, count * sizeof *ranks.contexts);
    enum status status = STATUS_FAILED;
    while (count > 0) {
        uint32_t left = 0;
        status = run_once(&failed, &ranks, useful_ranks(job, count), err);
        if (failed == UINT32_MAX)
            break;
        const struct ocl_context *gone = ranks.contexts[failed];
        for (uint32_t i = 0; i < count; i++)
            if (ranks.contexts[i] != gone)
                ranks.contexts[left++] = ranks.contexts[i];
        count = left;
        if (count == 0)
            break;
        log_message(LOG_NOTICE, "notice: %s; the other devices continue", ERROR_LINE(err));
        *err = (struct error)ERROR_INIT;
    }
    free(ranks.contexts);
    return status;
}

enum status cluster_hand_over(struct cluster_outcome *all, struct cluster_outcome *own,
                              const struct shard *shard, struct error *err)
{
    const struct data *data = &shard->data;
    const size_t rows = (size_t)data->rows;
    int32_t *labels = own->labels;
    float *distances = own->distances;
    if (shard->comm->size == 1) {
        *all = *own;
        *own = (struct cluster_outcome){0};
        return STATUS_OK;
    }
    if (shard->comm->rank == 0) {
        *all = *own;
        *own = (struct cluster_outcome){.labels = labels, .distances = distances};
        all->rows = rows;
        all->labels = labels = malloc(rows * sizeof *all->labels);
        all->distances = distances = malloc(rows * sizeof *all->distances);
        if (!all->labels || !all->distances)
            return error_memory(err, rows * 8, "the outcome");
    }
    enum status status = shard_collect(shard, labels, own->labels, sizeof *labels, err);
    if (status == STATUS_OK)
        status = shard_collect(shard, distances, own->distances, sizeof *distances, err);
    cluster_outcome_clear(own);
    return status;
}
