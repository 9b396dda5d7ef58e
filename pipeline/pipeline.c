/* pipeline.c: wires the stages of ingest. The only file that knows all of them.
 *
 *   calling thread: monitor - progress, stop requests, the first error
 *
 *   walk ──(lock: serial)──> decode 1..N ──> staging ──> lane 1..D ──(queue)──> store ──> F.h5
 *   spool file               read, decode     slots       one thread   finished  reorders, logs
 *                            into slots                   a device     pictures  one thread
 *
 * What bounds memory: pictures between walk and log are at most `window`; slots are allocated once;
 * what codecs need beyond the slot is admitted through a budget of bytes.
 *
 * A picture is one or several parts (strips of rows, each in some slot). Its counters are the sum
 * of its parts'. It is finished when the decode thread has let go of it and all its parts have been
 * delivered, whoever comes last sends it to the store. Failures and pictures known from an earlier
 * run take the same way without parts. Every item that leaves the walk reaches the store exactly
 * once, whatever happens to it; only a run's error cuts that short.
 *
 * How it ends: a stop request ends the walk's handing out, and all that is under way is finished
 * and sealed. An error aborts staging, budget and queue, which wakes everyone; all threads are
 * joined in the order of the flow.
 */
#include "pipeline.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/path.h"
#include "base/queue.h"
#include "staging/staging.h"
#include "walk/walk.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_MIN  (16ull << 20)
#define WINDOW_MAX  4096u
#define PROGRESS_NS (100 * 1000000ll)

struct worker {
    struct pipeline *pipeline;
    unsigned number;
    pthread_t thread;
    double busy, starved, blocked;
};

struct pipeline {
    const struct ingest_config *config;
    struct ingest_report *report;
    struct walk *walk;
    struct store *store;
    struct staging *staging;
    struct budget *budget;
    struct queue *finished; /* of struct picture * */
    struct worker *worker;
    unsigned workers; /* started */
    pthread_t store_thread;
    bool store_started;
    uint64_t window;

    pthread_mutex_t walk_lock; /* guards walk, store_prior and handed_out */
    pthread_cond_t window_moved;
    uint64_t handed_out;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    unsigned working; /* decode threads that have not ended */
    uint64_t stored;
    struct error error; /* of the run: the first */
    struct ingest_progress progress;
    double store_busy;

    struct stop own_stop;
    struct stop *stop;
};

/* One item on its way from walk to store. */
struct picture {
    struct pipeline *pipeline;
    struct store_record record;
    char *path;
    uint32_t *counters; /* NULL until the first part */
    bool resumed, unchanged;
    uint64_t pixels, bytes_read;
    atomic_uint holders;  /* the decode thread and each part under way */
    pthread_mutex_t lock; /* guards counters: several lanes may deliver parts of it */
};

static void picture_free(struct picture *picture)
{
    if (!picture)
        return;
    pthread_mutex_destroy(&picture->lock);
    free(picture->path);
    free(picture->counters);
    free(picture);
}

static void drop_finished(void *item, void *context)
{
    (void)context;
    picture_free(*(struct picture **)item);
}

/* Ends the run with an error: the first wins, everybody is woken. Any thread. */
static void fail(struct pipeline *pipeline, const struct error *err)
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
    if (pipeline->finished)
        queue_abort(pipeline->finished);
    pthread_mutex_lock(&pipeline->walk_lock);
    pthread_cond_broadcast(&pipeline->window_moved);
    pthread_mutex_unlock(&pipeline->walk_lock);
}

static bool failed(struct pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    bool yes = pipeline->error.status != STATUS_OK;
    pthread_mutex_unlock(&pipeline->lock);
    return yes;
}

static double seconds_since(int64_t start)
{
    return (double)(clock_now() - start) * 1e-9;
}

/* --- pictures -------------------------------------------------------------------------------- */

/* Lets go of a picture; the last holder sends it on. */
static void picture_release(struct picture *picture)
{
    if (atomic_fetch_sub(&picture->holders, 1) != 1)
        return;
    if (queue_send(picture->pipeline->finished, &picture) != QUEUE_OK)
        picture_free(picture);
}

/* staging's deliver: one part's counters. */
static void deliver(void *context, void *item, const uint32_t *counters)
{
    (void)context;
    struct picture *picture = item;
    uint32_t count = picture->pipeline->config->features.counters;
    pthread_mutex_lock(&picture->lock);
    for (uint32_t i = 0; i < count; i++)
        picture->counters[i] += counters[i];
    pthread_mutex_unlock(&picture->lock);
    picture_release(picture);
}

static void lane_failed(void *context, const struct error *err)
{
    fail(context, err);
}

static struct picture *picture_new(struct pipeline *pipeline, const struct walk_item *item)
{
    struct picture *picture = calloc(1, sizeof *picture);
    char *path = malloc((size_t)item->path_length + 1);
    if (!picture || !path) {
        free(picture);
        free(path);
        return NULL;
    }
    memcpy(path, item->path, (size_t)item->path_length + 1);
    picture->pipeline = pipeline;
    picture->path = path;
    pthread_mutex_init(&picture->lock, NULL);
    atomic_init(&picture->holders, 1);
    picture->record = (struct store_record){
        .sequence = item->sequence,
        .source = item->source,
        .path = path,
        .path_length = item->path_length,
        .bytes = item->bytes,
        .mtime_ns = item->mtime_ns,
        .failure = item->failure,
        .orientation = 1,
    };
    return picture;
}

/* The next picture, or NULL at the end, on a stop and on an error. */
static struct picture *next_picture(struct worker *worker)
{
    struct pipeline *pipeline = worker->pipeline;
    struct error err = ERROR_INIT;
    struct walk_item item;
    struct picture *picture = NULL;
    int64_t start = clock_now();
    pthread_mutex_lock(&pipeline->walk_lock);
    while (stop_requested(pipeline->stop) == STOP_NONE && pipeline->store &&
           pipeline->handed_out >= store_written(pipeline->store) + pipeline->window)
        pthread_cond_wait(&pipeline->window_moved, &pipeline->walk_lock);
    worker->blocked += seconds_since(start);
    start = clock_now();
    enum status status = stop_requested(pipeline->stop) != STOP_NONE
                             ? STATUS_END
                             : walk_next(pipeline->walk, &item, &err);
    if (status == STATUS_OK) {
        picture = picture_new(pipeline, &item);
        if (!picture)
            status = error_memory(&err, sizeof *picture, "a picture");
    }
    if (status == STATUS_OK) {
        pipeline->handed_out++;
        struct store_record prior;
        bool resumed = false;
        if (pipeline->store && item.failure.reason == REASON_NONE &&
            store_prior(pipeline->store, item.source, item.path, item.path_length, item.bytes,
                        item.mtime_ns, &prior, &resumed)) {
            prior.sequence = item.sequence;
            prior.path = picture->path;
            picture->record = prior;
            picture->pixels = (uint64_t)prior.width * prior.height;
            picture->resumed = resumed;
            picture->unchanged = !resumed;
        }
    }
    pthread_mutex_unlock(&pipeline->walk_lock);
    worker->starved += seconds_since(start);
    if (status == STATUS_OK)
        return picture;
    picture_free(picture);
    if (status != STATUS_END)
        fail(pipeline, &err);
    return NULL;
}

/* --- decoding -------------------------------------------------------------------------------- */

/* Rows at a time, so that a strip is at most `bytes`. At least 1. */
static uint32_t strip_rows(uint32_t width, uint32_t height, uint64_t bytes)
{
    uint64_t row = (uint64_t)width * 3;
    if (row * height <= bytes)
        return height;
    uint64_t rows = bytes / 2 / row;
    return rows ? (uint32_t)rows : 1;
}

/* What every part of one picture shares. */
struct strips {
    struct worker *worker;
    struct decode *decode;
    struct picture *picture;
    const struct image_info *info;
};

/* Gets room for a rectangle and decodes rows into it, or copies from `wide_row`. false: the run is
 * over. A failure goes into the picture's record. *bottom is where the next part begins. */
static bool do_part(struct strips *strips, struct cell_rect rect, const uint8_t *wide_row,
                    uint32_t *bottom)
{
    struct staging *staging = strips->worker->pipeline->staging;
    struct picture *picture = strips->picture;
    struct staging_part part;
    int64_t start = clock_now();
    if (!staging_acquire(staging, &part, strips->info->out_width, strips->info->out_height,
                         strips->info->orientation, rect))
        return false;
    strips->worker->blocked += seconds_since(start);
    start = clock_now();
    const struct histogram_part *geometry = &part.geometry;
    enum reason reason = REASON_NONE;
    if (wide_row)
        memcpy(part.pixels, wide_row + (size_t)rect.x0 * 3, geometry->stride);
    else
        reason = decode_rows(strips->decode, part.pixels, geometry->stride,
                             geometry->rect.y1 - geometry->rect.y0, &picture->record.failure);
    strips->worker->busy += seconds_since(start);
    if (reason != REASON_NONE) {
        staging_cancel(staging, &part);
        return true;
    }
    *bottom = geometry->rect.y1;
    atomic_fetch_add(&picture->holders, 1);
    staging_submit(staging, &part, picture);
    return true;
}

/* A picture whose single rows do not fit into a slot: each row is decoded into memory of its own
 * and counted in pieces. */
static bool do_wide(struct strips *strips, uint64_t part_bytes)
{
    const struct image_info *info = strips->info;
    uint32_t piece = (uint32_t)(part_bytes / 3);
    uint8_t *row = malloc((size_t)info->out_width * 3);
    if (!row) {
        failure_set(&strips->picture->record.failure, REASON_OUT_OF_MEMORY,
                    "no memory for a row of %u pixels", info->out_width);
        return true;
    }
    bool going = true;
    for (uint32_t y = 0; y < info->out_height && going; y++) {
        int64_t start = clock_now();
        enum reason reason = decode_rows(strips->decode, row, (size_t)info->out_width * 3, 1,
                                         &strips->picture->record.failure);
        strips->worker->busy += seconds_since(start);
        if (reason != REASON_NONE)
            break;
        for (uint32_t x = 0; x < info->out_width && going; x += piece) {
            uint32_t end = info->out_width - x > piece ? x + piece : info->out_width, bottom;
            going = do_part(strips, (struct cell_rect){x, y, end, y + 1}, row, &bottom);
        }
    }
    free(row);
    return going;
}

/* Decodes a picture whose header has been read into slots. false: the run is over. */
static bool do_rows(struct strips *strips)
{
    const struct image_info *info = strips->info;
    struct picture *picture = strips->picture;
    uint64_t part_bytes = staging_part_bytes(strips->worker->pipeline->staging);
    if ((uint64_t)info->out_width * 3 > part_bytes)
        return do_wide(strips, part_bytes);
    uint32_t step = strip_rows(info->out_width, info->out_height, part_bytes), y = 0;
    while (y < info->out_height && picture->record.failure.reason == REASON_NONE) {
        uint32_t bottom = info->out_height - y > step ? y + step : info->out_height;
        if (!do_part(strips, (struct cell_rect){0, y, info->out_width, bottom}, NULL, &y))
            return false;
    }
    return true;
}

static void take_info(struct picture *picture, const struct image_info *info)
{
    struct store_record *record = &picture->record;
    bool swapped = info->orientation >= 5;
    memcpy(record->format, info->format, sizeof record->format);
    record->width = swapped ? info->height : info->width;
    record->height = swapped ? info->width : info->height;
    record->orientation = info->orientation;
    record->channels = info->channels;
    picture->pixels = (uint64_t)info->out_width * info->out_height;
}

/* Everything behind an open file. false: the run is over. */
static bool do_file(struct worker *worker, struct decode *decode, struct picture *picture, int fd)
{
    struct pipeline *pipeline = worker->pipeline;
    struct failure *failure = &picture->record.failure;
    struct image_info info;
    int64_t start = clock_now();
    enum reason reason = decode_begin(decode, fd, picture->path, picture->record.bytes,
                                      picture->record.mtime_ns, &info, failure);
    worker->busy += seconds_since(start);
    if (reason != REASON_NONE)
        return true;
    take_info(picture, &info);
    if (pipeline->config->dry_run) {
        decode_abort(decode);
        return true;
    }
    picture->counters = calloc(pipeline->config->features.counters, sizeof *picture->counters);
    if (!picture->counters) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for the counters");
        decode_abort(decode);
        return true;
    }
    uint64_t memory = info.memory;
    if ((uint64_t)info.out_width * 3 > staging_part_bytes(pipeline->staging))
        memory += (uint64_t)info.out_width * 3;
    start = clock_now();
    if (!budget_take(pipeline->budget, memory)) {
        decode_abort(decode);
        return false;
    }
    worker->blocked += seconds_since(start);
    struct strips strips = {worker, decode, picture, &info};
    bool going = do_rows(&strips);
    start = clock_now();
    if (going && failure->reason == REASON_NONE)
        decode_end(decode, picture->record.digest, failure);
    if (!going || failure->reason != REASON_NONE)
        decode_abort(decode);
    budget_give(pipeline->budget, memory);
    picture->bytes_read = decode_bytes_read(decode);
    worker->busy += seconds_since(start);
    return going;
}

static bool do_picture(struct worker *worker, struct decode *decode, struct picture *picture)
{
    struct pipeline *pipeline = worker->pipeline;
    if (picture->record.failure.reason != REASON_NONE || picture->resumed || picture->unchanged)
        return true;
    unsigned track = trace_track(pipeline->config->trace, "host", "");
    if (pipeline->config->trace) {
        char name[32];
        snprintf(name, sizeof name, "decode %u", worker->number + 1);
        track = trace_track(pipeline->config->trace, "host", name);
    }
    int64_t start = clock_now();
    int fd = walk_open_file(pipeline->walk, picture->record.source, picture->path);
    if (fd < 0) {
        int code = errno;
        failure_errno(&picture->record.failure,
                      code == ENOENT || code == ENOTDIR ? REASON_VANISHED : REASON_UNREADABLE, code,
                      "cannot open");
        return true;
    }
    bool going = do_file(worker, decode, picture, fd);
    close(fd);
    trace_span(pipeline->config->trace, track, "decode", start, clock_now(), picture->path);
    return going;
}

static void *decode_main(void *argument)
{
    struct worker *worker = argument;
    struct pipeline *pipeline = worker->pipeline;
    struct decode *decode = NULL;
    struct error err = ERROR_INIT;
    if (decode_open(&decode, &pipeline->config->decode, &err) != STATUS_OK)
        fail(pipeline, &err);
    struct picture *picture;
    while (decode && (picture = next_picture(worker))) {
        bool going = do_picture(worker, decode, picture);
        if (!going) {
            /* The run is over: parts already submitted still hold the picture. */
            if (atomic_fetch_sub(&picture->holders, 1) == 1)
                picture_free(picture);
            break;
        }
        picture_release(picture);
    }
    decode_close(&decode);
    pthread_mutex_lock(&pipeline->lock);
    pipeline->working--;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
    return NULL;
}

/* --- storing --------------------------------------------------------------------------------- */

/* With the lock: counts a picture that has reached the store. */
static void count(struct pipeline *pipeline, const struct picture *picture)
{
    struct ingest_report *report = pipeline->report;
    enum reason reason = picture->record.failure.reason;
    pipeline->progress.done++;
    pipeline->progress.bytes_done += picture->record.bytes;
    report->bytes_read += picture->bytes_read;
    report->by_reason[reason]++;
    if (reason == REASON_NONE) {
        report->images_ok++;
        report->images_resumed += picture->resumed;
        report->images_unchanged += picture->unchanged;
        report->pixels += picture->pixels;
    } else if (reason == REASON_NOT_AN_IMAGE) {
        report->files_not_images++;
    } else {
        report->images_failed++;
    }
    pipeline->progress.images = report->images_ok;
    pipeline->progress.failed = report->images_failed;
    pipeline->progress.skipped = report->files_not_images;
    pipeline->progress.unchanged = report->images_unchanged;
}

/* Says which file was the first failure of a strict run, and asks for the end. */
static void stop_if_strict(struct pipeline *pipeline, const struct store_record *record)
{
    enum reason reason = record->failure.reason;
    if (!pipeline->config->strict || reason == REASON_NONE || reason == REASON_NOT_AN_IMAGE)
        return;
    if (stop_requested(pipeline->stop) == STOP_NONE) {
        char path[256];
        log_message(LOG_ERROR, "%s: %s: %s; stopping because of --strict",
                    path_for_message(path, sizeof path, record->path), reason_name(reason),
                    record->failure.message);
    }
    stop_request(pipeline->stop, STOP_STRICT);
}

static void *store_main(void *argument)
{
    struct pipeline *pipeline = argument;
    struct trace *trace = pipeline->config->trace;
    unsigned track = trace_track(trace, "host", "store");
    struct picture *picture;
    while (queue_receive(pipeline->finished, &picture) == QUEUE_OK) {
        struct error err = ERROR_INIT;
        int64_t start = clock_now();
        if (picture->record.failure.reason == REASON_NONE && picture->record.origin == 0)
            picture->record.counters = picture->counters;
        enum status status = STATUS_OK;
        if (pipeline->store)
            status = store_put(pipeline->store, &picture->record, &err);
        if (status == STATUS_OK)
            stop_if_strict(pipeline, &picture->record);
        pthread_mutex_lock(&pipeline->lock);
        if (status == STATUS_OK)
            count(pipeline, picture);
        pipeline->store_busy += seconds_since(start);
        pthread_mutex_unlock(&pipeline->lock);
        trace_span(trace, track, "put", start, clock_now(), NULL);
        picture_free(picture);
        if (status != STATUS_OK) {
            fail(pipeline, &err);
            break;
        }
        pthread_mutex_lock(&pipeline->walk_lock);
        pthread_cond_broadcast(&pipeline->window_moved);
        pthread_mutex_unlock(&pipeline->walk_lock);
    }
    return NULL;
}

/* --- wiring ---------------------------------------------------------------------------------- */

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

static enum status open_walk(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    const char *temporary = getenv("TMPDIR");
    const char *skip[] = {config->output};
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
        .skip_count = config->output ? 1 : 0,
        .stop = pipeline->stop,
    };
    unsigned track = trace_track(config->trace, "host", "walk");
    int64_t start = clock_now();
    enum status status = walk_open(&pipeline->walk, &walk, err);
    pipeline->report->stage[0].busy = seconds_since(start);
    trace_span(config->trace, track, "walk", start, clock_now(), NULL);
    return status;
}

static enum status open_device(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    struct staging_config staging = {
        .devices = config->devices,
        .chosen = config->chosen,
        .chosen_count = config->chosen_count,
        .features = &config->features,
        .trace = config->trace,
        .host_memory = config->memory * 3 / 8,
        .device_memory = config->device_memory,
        .slot_bytes = config->slot_bytes,
        .slot_count = config->slot_count,
        .deliver = deliver,
        .failed = lane_failed,
        .context = pipeline,
    };
    enum status status = staging_open(&pipeline->staging, &staging, err);
    if (status != STATUS_OK)
        return status;
    char text[1024];
    staging_describe(pipeline->staging, text, sizeof text);
    log_message(LOG_DEBUG, "%s", text);
    size_t used = 0;
    for (unsigned i = 0; i < config->chosen_count && used < sizeof pipeline->report->device; i++)
        used += (size_t)snprintf(pipeline->report->device + used,
                                 sizeof pipeline->report->device - used, "%s%s", i ? " + " : "",
                                 config->devices->device[config->chosen[i]].name);
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

static enum status start_threads(struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    pipeline->worker = calloc(config->threads, sizeof *pipeline->worker);
    if (!pipeline->worker)
        return error_memory(err, config->threads * sizeof *pipeline->worker, "decode threads");
    int code = pthread_create(&pipeline->store_thread, NULL, store_main, pipeline);
    pipeline->store_started = code == 0;
    while (code == 0 && pipeline->workers < config->threads) {
        struct worker *worker = &pipeline->worker[pipeline->workers];
        *worker = (struct worker){.pipeline = pipeline, .number = pipeline->workers};
        pthread_mutex_lock(&pipeline->lock);
        pipeline->working++;
        pthread_mutex_unlock(&pipeline->lock);
        code = pthread_create(&worker->thread, NULL, decode_main, worker);
        if (code == 0) {
            pipeline->workers++;
        } else {
            pthread_mutex_lock(&pipeline->lock);
            pipeline->working--;
            pthread_mutex_unlock(&pipeline->lock);
        }
    }
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
    stage[4].busy = pipeline->store_busy;
    stage[4].starved = wall > stage[4].busy ? wall - stage[4].busy : 0;
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

/* Joins everything in flow order; the store's log is complete afterwards. */
static void join(struct pipeline *pipeline, int64_t start)
{
    for (unsigned i = 0; i < pipeline->workers; i++)
        pthread_join(pipeline->worker[i].thread, NULL);
    if (pipeline->staging && !failed(pipeline))
        staging_drain(pipeline->staging);
    fill_stages(pipeline, seconds_since(start));
    staging_close(&pipeline->staging);
    if (pipeline->finished)
        queue_finish(pipeline->finished);
    if (pipeline->store_started)
        pthread_join(pipeline->store_thread, NULL);
    pipeline->report->stage[4].busy = pipeline->store_busy;
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
        .driver = config->devices->device[config->chosen[0]].driver,
        .host = host,
        .seconds = seconds_since(clock_process_start()),
    };
    unsigned track = trace_track(config->trace, "host", "store");
    int64_t start = clock_now();
    enum status status = store_finish(pipeline->store, &run, &report->summary, err);
    report->stage[4].busy += seconds_since(start);
    trace_span(config->trace, track, "write file", start, clock_now(), NULL);
    report->file_written = status == STATUS_OK && !report->summary.unchanged;
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
            store_seal(pipeline->store, NULL);
        if (err)
            *err = pipeline->error;
        return pipeline->error.status;
    }
    if (cause != STOP_NONE) {
        enum status status = pipeline->store ? store_seal(pipeline->store, err) : STATUS_OK;
        if (pipeline->store)
            report->sealed = store_written(pipeline->store);
        if (status != STATUS_OK)
            return status;
        if (cause == STOP_STRICT)
            return error_set(err, STATUS_PARTIAL, "stopped at the first failure (--strict)");
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    }
    if (report->images_ok == 0) {
        nothing_found(pipeline, err);
        return STATUS_FAILED;
    }
    return config->dry_run ? STATUS_OK : finish(pipeline, err);
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
            .fresh = config->fresh,
            .retry_failed = config->retry_failed,
        };
        status = store_open(&pipeline->store, &store, err);
    }
    if (status == STATUS_OK)
        status = open_walk(pipeline, err);
    if (status == STATUS_OK && !config->dry_run)
        status = open_device(pipeline, err);
    if (status == STATUS_OK)
        status = queue_open(&pipeline->finished, 256, sizeof(struct picture *), drop_finished, NULL,
                            err);
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
        fail(&pipeline, &none);
        join(&pipeline, start);
    }
    store_close(&pipeline.store);
    walk_close(&pipeline.walk);
    queue_close(&pipeline.finished);
    budget_close(&pipeline.budget);
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
