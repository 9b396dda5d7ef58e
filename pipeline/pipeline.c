/* pipeline.c: wires the stages of ingest. With ingest_take.c, ingest_decode.c and ingest_store.c,
 * which hold what its threads run, the only place that knows all of them.
 *
 *   calling thread: opens the devices while a thread walks; then monitor - progress, stop requests,
 *   the first error
 *
 *   walk ──(lock)──> readers ──> decode 1..N ──> staging ──> lane 1..D ──(queue)──> store ──> F.h5
 *   spool file       open         read, decode     slots       one thread   finished  reorders,
 * logs ahead        into slots                   a device     pictures  one thread
 *
 * What bounds memory: pictures between walk and log are at most `window`; slots are allocated once;
 * what codecs need beyond the slot is admitted through a budget of bytes.
 *
 * A picture is one or several parts (strips of rows, each in some slot). Its counters are the sum
 * of its parts'. It is finished when the decode thread has let go of it and all its parts have been
 * delivered, whoever comes last sends it to the store. Failures and pictures known from an earlier
 * run take the same way without parts. One of which a failed device had parts is decoded again for
 * the devices that are left. Every item that leaves the walk reaches the store exactly once,
 * whatever happens to it; only a run's early end cuts that short.
 *
 * How it ends: a stop request ends the walk's handing out, and what is under way is finished and
 * sealed; pictures that take longer than a second from then on are dropped. An error aborts
 * staging, budget and queue, which wakes everyone; all threads are joined in the order of the flow.
 */
#include "pipeline.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "ingest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MEMORY_MIN  (16ull << 20)
#define WINDOW_MAX  4096u
#define PROGRESS_NS (100 * 1000000ll)

static void drop_finished(void *item, void *context)
{
    (void)context;
    picture_free(*(struct picture **)item);
}

/* Ends the run with an error: the first wins, everybody is woken. Any thread. */
void ingest_fail(struct pipeline *pipeline, const struct error *err)
{
    pthread_mutex_lock(&pipeline->lock);
    if (pipeline->error.status == STATUS_OK)
        pipeline->error = *err;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
    stop_request(pipeline->stop, STOP_ERROR);
    if (pipeline->staging)
        staging_abort(pipeline->staging);
    if (pipeline->budget)
        budget_abort(pipeline->budget);
    if (pipeline->ahead)
        ahead_abort(pipeline->ahead);
    if (pipeline->finished)
        queue_abort(pipeline->finished);
    pthread_mutex_lock(&pipeline->walk_lock);
    pthread_cond_broadcast(&pipeline->window_moved);
    pthread_mutex_unlock(&pipeline->walk_lock);
}

static double seconds_since(int64_t start)
{
    return (double)(clock_now() - start) * 1e-9;
}

static void lane_failed(void *context, const struct error *err, unsigned alive)
{
    char line[1024];
    if (alive == 0)
        ingest_fail(context, err);
    else
        log_message(LOG_NOTICE, "notice: %s; going on without it",
                    error_line(line, sizeof line, err));
}

static void show(struct pipeline *pipeline, int64_t phase_start)
{
    const struct ingest_config *config = pipeline->config;
    if (!config->progress)
        return;
    pthread_mutex_lock(&pipeline->lock);
    pipeline->progress.seconds = seconds_since(phase_start);
    struct ingest_progress progress = pipeline->progress;
    pthread_mutex_unlock(&pipeline->lock);
    config->progress(config->progress_context, &progress);
}

static void show_walk(void *context, uint64_t found)
{
    struct pipeline *pipeline = context;
    pthread_mutex_lock(&pipeline->lock);
    pipeline->progress.done = found;
    pthread_mutex_unlock(&pipeline->lock);
    show(pipeline, clock_process_start());
}

static enum status open_walk(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    const char *temporary = getenv("TMPDIR");
    char *resolved = NULL;
    if (config->output && output_resolve(&resolved, config->output, err))
        return STATUS_FAILED;
    const char *skip[] = {config->output, resolved};
    struct walk_config walk = {
        .sources = config->sources,
        .source_count = config->source_count,
        .include = config->include,
        .include_count = config->include_count,
        .exclude = config->exclude,
        .exclude_count = config->exclude_count,
        .follow_symlinks = config->follow_symlinks,
        .hidden = config->hidden,
        .limit = config->limit,
        .spool_directory = pipeline->store           ? store_work_directory(pipeline->store)
                           : temporary && *temporary ? temporary
                                                     : "/tmp",
        .memory = config->memory / 8,
        .skip_paths = skip,
        .skip_count = config->output ? 2 : 0,
        .stop = pipeline->stop,
        .progress = show_walk,
        .progress_context = pipeline,
    };
    unsigned track = trace_track(config->trace, "host", "walk");
    int64_t start = clock_now();
    enum status status = walk_open(&pipeline->walk, &walk, err);
    free(resolved);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->progress.done = 0; /* of the images from now on */
    pthread_mutex_unlock(&pipeline->lock);
    pipeline->report->stage[0].busy = seconds_since(start);
    trace_span(config->trace, track, "walk", start, clock_now(), NULL);
    return status;
}

struct walking {
    struct pipeline *pipeline;
    enum status status;
    struct error error;
};

static void *walk_main(void *argument)
{
    struct walking *walking = argument;
    walking->status = open_walk(walking->pipeline, &walking->error);
    return NULL;
}

static enum status open_device(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    struct ingest_devices *devices = &pipeline->devices;
    enum status status = config->find_devices(config->find_devices_context, devices, err);
    if (status != STATUS_OK)
        return status;
    struct staging_config staging = {
        .devices = devices->devices,
        .chosen = devices->chosen,
        .chosen_count = devices->count,
        .features = &config->features,
        .variant = config->variant,
        .jpeg = config->isolate || config->decode.scale != 1 ? STAGING_JPEG_HOST : config->jpeg,
        .trace = config->trace,
        .host_memory = ingest_slot_memory(config->memory),
        .device_memory = config->device_memory,
        .slot_bytes = config->slot_bytes,
        .slot_count = config->slot_count,
        .deliver = picture_deliver,
        .failed = lane_failed,
        .lost = picture_lost,
        .context = pipeline,
    };
    status = staging_open(&pipeline->staging, &staging, err);
    if (status != STATUS_OK)
        return status;
    const bool taken = staging_takes_coefficients(pipeline->staging);
    pipeline->coefficients = taken && decode_coefficients_agree();
    if (taken && !pipeline->coefficients)
        log_message(LOG_DEBUG, "this JPEG library computes pixels in a way of its own: they are "
                               "made on the host");
    char text[1024];
    staging_describe(pipeline->staging, text, sizeof text);
    log_message(LOG_DEBUG, "%s", text);
    size_t used = 0;
    for (unsigned i = 0; i < devices->count && used < sizeof pipeline->report->device; i++)
        used += (size_t)snprintf(pipeline->report->device + used,
                                 sizeof pipeline->report->device - used, "%s%s", i ? " + " : "",
                                 devices->devices->device[devices->chosen[i]].name);
    return budget_open(&pipeline->budget, config->memory / 2, err);
}

/* Room for pictures on their way: an eighth of the memory, each with its counters twice (here and
 * in the store's reorder buffer). */
static uint64_t choose_window(const struct ingest_config *config)
{
    uint64_t picture = 2 * (4ull * config->features.counters + 512);
    uint64_t window = config->memory / 8 / picture;
    uint64_t least = 2ull * config->threads + 2;
    return window < least ? least : window > WINDOW_MAX ? WINDOW_MAX : window;
}

/* Files that a decode thread may have open at once: all of them a quarter of what the process may.
 */
static unsigned choose_open_files(const struct ingest_config *config)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) || most.rlim_cur / 4 >= UINT_MAX)
        return UINT_MAX;
    unsigned each = (unsigned)(most.rlim_cur / 4) / config->threads;
    return each > 0 ? each : 1;
}

static enum status start_threads(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    pipeline->worker = calloc(config->threads, sizeof *pipeline->worker);
    if (!pipeline->worker)
        return error_memory(err, config->threads * sizeof *pipeline->worker, "decode threads");
    int code = pthread_create(&pipeline->store_thread, NULL, ingest_store_main, pipeline);
    pipeline->store_started = code == 0;
    while (code == 0 && pipeline->workers < config->threads) {
        struct worker *worker = &pipeline->worker[pipeline->workers];
        *worker = (struct worker){.pipeline = pipeline, .number = pipeline->workers};
        pthread_mutex_lock(&pipeline->lock);
        pipeline->working++;
        pthread_mutex_unlock(&pipeline->lock);
        code = pthread_create(&worker->thread, NULL, ingest_decode_main, worker);
        if (code == 0) {
            pipeline->workers++;
        } else {
            pthread_mutex_lock(&pipeline->lock);
            pipeline->working--;
            pthread_mutex_unlock(&pipeline->lock);
        }
    }
    ahead_start(pipeline->ahead);
    if (code == 0)
        return STATUS_OK;
    if (pipeline->workers > 0) {
        log_message(LOG_NOTICE, "notice: only %u of %u decode threads could be started: %s",
                    pipeline->workers, config->threads, strerror(code));
        return STATUS_OK;
    }
    return error_errno(err, STATUS_FAILED, code, "pthread_create", "cannot start a thread");
}

/* Until the decode threads have ended. */
static void monitor(struct pipeline *pipeline)
{
    int64_t start = clock_now();
    pthread_mutex_lock(&pipeline->lock);
    pipeline->progress.phase = "images";
    pipeline->progress.total = walk_count(pipeline->walk);
    pipeline->progress.bytes_total = walk_bytes(pipeline->walk);
    while (pipeline->working > 0) {
        cond_wait_until(&pipeline->changed, &pipeline->lock, clock_now() + PROGRESS_NS);
        pthread_mutex_unlock(&pipeline->lock);
        show(pipeline, start);
        /* A stop may come while everybody waits for the window. */
        if (stop_requested(pipeline->stop) != STOP_NONE) {
            pthread_mutex_lock(&pipeline->walk_lock);
            pthread_cond_broadcast(&pipeline->window_moved);
            pthread_mutex_unlock(&pipeline->walk_lock);
        }
        pthread_mutex_lock(&pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
}

static void fill_stages(struct pipeline *pipeline, double wall)
{
    static const char *const name[INGEST_STAGES] = {"walk", "decode", "upload", "histogram",
                                                    "store"};
    struct stage_times *stage = pipeline->report->stage;
    for (int i = 0; i < INGEST_STAGES; i++) {
        stage[i].name = name[i];
        stage[i].threads = 1;
    }
    stage[1].threads = pipeline->workers;
    for (unsigned i = 0; i < pipeline->workers; i++) {
        stage[1].busy += pipeline->worker[i].busy;
        stage[1].starved += pipeline->worker[i].starved;
        stage[1].blocked += pipeline->worker[i].blocked;
    }
    if (pipeline->staging) {
        struct staging_times times;
        staging_times(pipeline->staging, &times);
        stage[2].threads = stage[3].threads = times.lanes;
        stage[2].busy = times.upload;
        stage[3].busy = times.compute + times.read_back;
        for (int i = 2; i < 4; i++)
            stage[i].starved =
                times.lanes * wall > stage[i].busy ? times.lanes * wall - stage[i].busy : 0;
    }
}

/* The stage whose threads were the busiest. */
static unsigned bottleneck(const struct ingest_report *report)
{
    unsigned most = 1;
    for (unsigned i = 1; i < INGEST_STAGES; i++) {
        const struct stage_times *stage = &report->stage[i], *best = &report->stage[most];
        if (stage->threads && stage->busy / stage->threads > best->busy / best->threads)
            most = i;
    }
    return most;
}

static void *close_main(void *argument)
{
    struct pipeline *pipeline = argument;
    staging_close(&pipeline->staging);
    return NULL;
}

/* A driver takes about as long to give its memory back as the file takes to be written: at the same
 * time. Nobody else knows of staging any more. */
static void close_device(struct pipeline *pipeline)
{
    pipeline->closing = pipeline->staging &&
                        pthread_create(&pipeline->close_thread, NULL, close_main, pipeline) == 0;
    if (!pipeline->closing)
        staging_close(&pipeline->staging);
}

static bool has_lost_pictures(struct pipeline *pipeline)
{
    staging_settle(pipeline->staging);
    pthread_mutex_lock(&pipeline->walk_lock);
    const bool some = pipeline->again && stop_requested(pipeline->stop) != STOP_ERROR;
    pthread_mutex_unlock(&pipeline->walk_lock);
    return some;
}

/* Pictures that a device lost which failed after the walk had ended are at most what its slots
 * hold: decoded here. Another device may fail over them. */
static void decode_lost_pictures(struct pipeline *pipeline)
{
    while (has_lost_pictures(pipeline)) {
        pthread_mutex_lock(&pipeline->lock);
        pipeline->working++;
        pthread_mutex_unlock(&pipeline->lock);
        ingest_decode_main(&pipeline->worker[0]);
    }
}

/* Joins everything in flow order; the store's log is complete afterwards. */
static void join(struct pipeline *pipeline, int64_t start)
{
    for (unsigned i = 0; i < pipeline->workers; i++)
        pthread_join(pipeline->worker[i].thread, NULL);
    if (pipeline->ahead)
        ahead_join(pipeline->ahead);
    if (pipeline->staging) {
        decode_lost_pictures(pipeline);
        staging_drain(pipeline->staging);
    }
    double wall = seconds_since(start);
    fill_stages(pipeline, wall);
    if (pipeline->finished)
        queue_finish(pipeline->finished);
    if (pipeline->store_started)
        pthread_join(pipeline->store_thread, NULL);
    close_device(pipeline);
    struct stage_times *store = &pipeline->report->stage[4];
    store->busy = pipeline->store_busy;
    store->starved = wall > store->busy ? wall - store->busy : 0;
}

static void nothing_found(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_report *report = pipeline->report;
    const struct ingest_config *config = pipeline->config;
    char source[256];
    path_for_message(source, sizeof source, config->sources[0]);
    const char *more = config->source_count > 1 ? " and the other sources" : "";
    if (report->images_failed > 0) {
        char reasons[256] = "";
        size_t used = 0;
        for (int r = 1; r < REASON_COUNT && used < sizeof reasons; r++) {
            if (report->by_reason[r] && r != REASON_NOT_AN_IMAGE)
                used += (size_t)snprintf(reasons + used, sizeof reasons - used, "%s%s %llu",
                                         used ? ", " : "", reason_name((enum reason)r),
                                         (unsigned long long)report->by_reason[r]);
        }
        error_set(err, STATUS_FAILED,
                  "no image under %s%s could be decoded (%s); nothing is written", source, more,
                  reasons);
    } else {
        error_set(err, STATUS_FAILED, "no image under %s%s (%llu other files); nothing is written",
                  source, more, (unsigned long long)report->files_not_images);
    }
}

/* The file, once everything is in the log. */
static enum status finish(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    struct ingest_report *report = pipeline->report;
    /* Its spool lives in the work directory, which goes when the file is there. */
    walk_close(&pipeline->walk);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->progress.phase = "writing";
    pthread_mutex_unlock(&pipeline->lock);
    show(pipeline, clock_now());
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    struct store_run run = {
        .command = config->command_line,
        .json = config->parameters,
        .device = report->device,
        .driver = pipeline->devices.devices->device[pipeline->devices.chosen[0]].driver,
        .host = host,
        .seconds = seconds_since(clock_process_start()),
    };
    unsigned track = trace_track(config->trace, "host", "store");
    int64_t start = clock_now();
    enum status status = store_finish(pipeline->store, &run, &report->summary, err);
    report->stage[4].busy += seconds_since(start);
    trace_span(config->trace, track, "write file", start, clock_now(), NULL);
    report->file_written = status == STATUS_OK && !report->summary.unchanged;
    if (status == STATUS_INTERRUPTED)
        report->sealed = store_written(pipeline->store);
    return status;
}

/* How the run ended, after everything has been joined. */
static enum status conclude(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    struct ingest_report *report = pipeline->report;
    enum stop_cause cause = stop_requested(pipeline->stop);
    if (pipeline->error.status != STATUS_OK) {
        if (pipeline->store)
            store_stop(pipeline->store, &report->sealed, NULL);
        if (err)
            *err = pipeline->error;
        return pipeline->error.status;
    }
    if (cause != STOP_NONE) {
        enum status status =
            pipeline->store ? store_stop(pipeline->store, &report->sealed, err) : STATUS_OK;
        if (status != STATUS_OK)
            return status;
        if (cause == STOP_STRICT)
            return error_set(err, STATUS_PARTIAL, "stopped at the first failure (--strict)");
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    }
    if (report->images_ok == 0) {
        nothing_found(pipeline, err);
        if (pipeline->store)
            store_discard(pipeline->store);
        return STATUS_FAILED;
    }
    return config->dry_run ? STATUS_OK : finish(pipeline, err);
}

/* A driver takes tenths of a second to start, a walk of a large tree longer: at the same time. The
 * device's side stays here, since it may set the environment. */
static enum status open_walk_and_device(struct pipeline *pipeline, struct error *err)
{
    struct walking walking = {.pipeline = pipeline, .error = ERROR_INIT};
    pthread_t thread;
    bool apart = pthread_create(&thread, NULL, walk_main, &walking) == 0;
    enum status status = open_device(pipeline, err);
    if (!apart)
        return status == STATUS_OK ? open_walk(pipeline, err) : status;
    if (status != STATUS_OK)
        stop_request(pipeline->stop, STOP_ERROR); /* nobody needs the walk */
    pthread_join(thread, NULL);
    if (status == STATUS_OK && walking.status != STATUS_OK) {
        status = walking.status;
        if (err)
            *err = walking.error;
    }
    return status;
}

static enum status open_all(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    enum status status = STATUS_OK;
    if (!config->dry_run) {
        struct store_config store = {
            .output = config->output,
            .sources = config->sources,
            .source_count = config->source_count,
            .features = &config->features,
            .decode_scale = config->decode.scale,
            .parameters = config->parameters,
            .old_features = config->old_features,
            .old_parameters = config->old_parameters,
            .fresh = config->fresh,
            .retry_failed = config->retry_failed,
            .stop = pipeline->stop,
        };
        status = store_open(&pipeline->store, &store, err);
    }
    if (status == STATUS_OK)
        status = config->dry_run ? open_walk(pipeline, err) : open_walk_and_device(pipeline, err);
    if (status == STATUS_OK)
        status = queue_open(&pipeline->finished, 256, sizeof(struct picture *), drop_finished, NULL,
                            err);
    if (status == STATUS_OK)
        status = ahead_open(&pipeline->ahead, pipeline, err);
    if (status == STATUS_OK)
        status = start_threads(pipeline, err);
    return status;
}

enum status pipeline_ingest(struct ingest_report *report, const struct ingest_config *config,
                            struct error *err)
{
    struct ingest_config bounded = *config;
    bounded.memory = config->memory < MEMORY_MIN ? MEMORY_MIN : config->memory;
    bounded.threads = config->threads ? config->threads : 1;
    memset(report, 0, sizeof *report);
    struct pipeline pipeline = {.config = &bounded,
                                .report = report,
                                .error = ERROR_INIT,
                                .progress = {.phase = "walking"}};
    pipeline.stop = config->stop ? config->stop : &pipeline.own_stop;
    pipeline.window = choose_window(&bounded);
    pipeline.open_files = choose_open_files(&bounded);
    pthread_mutex_init(&pipeline.lock, NULL);
    pthread_mutex_init(&pipeline.walk_lock, NULL);
    pthread_cond_init(&pipeline.window_moved, NULL);
    cond_init_monotonic(&pipeline.changed);

    int64_t start = clock_now();
    show(&pipeline, start);
    enum status status = open_all(&pipeline, err);
    if (status == STATUS_OK) {
        monitor(&pipeline);
        join(&pipeline, start);
        status = conclude(&pipeline, err);
    } else {
        struct error none = {.status = status};
        ingest_fail(&pipeline, &none);
        join(&pipeline, start);
    }
    if (pipeline.closing)
        pthread_join(pipeline.close_thread, NULL);
    while (pipeline.again) {
        struct picture *picture = pipeline.again;
        pipeline.again = picture->next;
        picture_free(picture);
    }
    store_close(&pipeline.store);
    walk_close(&pipeline.walk);
    queue_close(&pipeline.finished);
    budget_close(&pipeline.budget);
    ahead_close(&pipeline.ahead);
    free(pipeline.worker);
    pthread_cond_destroy(&pipeline.changed);
    pthread_cond_destroy(&pipeline.window_moved);
    pthread_mutex_destroy(&pipeline.walk_lock);
    pthread_mutex_destroy(&pipeline.lock);
    report->bottleneck = bottleneck(report);
    report->peak_rss_bytes = peak_rss_bytes();
    report->seconds = seconds_since(clock_process_start());
    return status;
}
