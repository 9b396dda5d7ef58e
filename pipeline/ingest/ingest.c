/* ingest.c: connects the stages of an ingest; the only file that depends on all of them.
 *
 *   calling thread: opens the devices while a thread walks; then shows progress until the
 *   decode threads have ended
 *
 *   walk ──lock──> readers ──queue─> decoders ──> staging ──> rings ──queue──> recorder ──> F.h5
 *   spool          threads:          threads:     slots       a thread         store threads:
 *   file           open files        read, decode             a device         values, log in
 *                     ▲              into slots                  │             walk order
 *                     └───────── again, if a device has failed ──┘
 *
 * Memory is bounded: at most `window` pictures are between walk and log; slots are allocated once;
 * a budget limits the memory that codecs use beyond the slots.
 *
 * A picture has one or more parts (strips of rows, each in some slot). Its counters are the sum of
 * its parts'. It is finished when the decode thread has released it and all its parts have been
 * delivered; the last of these passes it to the recorder. Failures and pictures of an earlier run
 * take the same path, without parts. A picture with parts on a device that failed is decoded again
 * for the remaining devices. Every item of the walk reaches the store exactly once, failed or not,
 * unless the run ends early.
 *
 * Missing codebooks of features are learned from a sample of the images (learning.h) after the walk
 * and before any image is processed; the log stores them.
 *
 * Shutdown: after a stop request no new items are taken from the walk; pictures in flight are
 * finished and sealed, and those that take more than a second longer are dropped. An error aborts
 * staging, budget, readers and recorder, which wakes every thread; all threads are joined in the
 * order of the flow. */
#include "ingest/ingest.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "base/text.h"
#include "decode/thumbnail.h"
#include "features/code.h"
#include "ingest/beside.h"
#include "ingest/bounds.h"
#include "ingest/decoder.h"
#include "ingest/device_side.h"
#include "ingest/learning.h"
#include "ingest/losses.h"
#include "ingest/readers.h"
#include "ingest/recorder.h"
#include "kmeans/label_rows.h"
#include "result/codebooks.h"
#include "result/journal.h"
#include "result/prior.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define PROGRESS_NS (100 * 1000000ll)
/* Upper bound on the average row without features and thumbnail; from this size on, the disk space
 * needed is always reported. */
#define ROW_BYTES  512u
#define SPACE_TOLD (UINT64_C(1) << 30)
/* Larger thumbnails are made on the host: too few of them would fit into a slot's values. */
#define DEVICE_THUMBNAIL_MOST 256u
/* The assumed number of images in a stream, which determines the size of thumbnails. */
#define MANY 20000u

struct ingest {
    struct ingest_job job;
    const struct ingest_config *config;
    struct ingest_report *report;
    struct ocl_selection devices; /* count 0 in a dry run */
    struct picture_sink sink;
    struct feature_set features; /* from the configuration, bound to codebooks; or those of `few` */
    struct codebooks codebooks;  /* learned in this run */
    struct sidecars *sidecars;   /* NULL: not stored */
    uint32_t thumbnail_size;     /* 0: no thumbnails */

    /* In the order of the flow. The lock guards what wake_all reads: a device may fail while it is
     * being opened. */
    pthread_mutex_t lock;
    struct walk *walk;
    bool counted; /* these are all of its files: */
    uint64_t files, bytes;
    struct readers *readers;
    struct decoders *decoders;
    struct device_side device_side;
    struct recorder *recorder;
    struct store *store;
};

/* Wakes the threads that wait for readers or the recorder. Any thread. */
static void wake_all(void *context)
{
    struct ingest *ingest = context;
    pthread_mutex_lock(&ingest->lock);
    if (ingest->readers)
        readers_abort(ingest->readers);
    if (ingest->recorder)
        recorder_abort(ingest->recorder);
    pthread_mutex_unlock(&ingest->lock);
}

static void send_finished(void *context, struct picture *picture)
{
    struct ingest *ingest = context;
    recorder_put(ingest->recorder, picture);
}

static void send_again(void *context, struct picture *picture)
{
    struct ingest *ingest = context;
    readers_again(ingest->readers, picture);
}

/* --- opening --------------------------------------------------------------------------------- */

static enum status add_stored(void *context, const struct store_record *record, struct error *err)
{
    struct source_listing *listing = context;
    struct entry entry = {
        .bytes = record->image.bytes, .mtime_ns = record->image.mtime_ns, .where = record->origin};
    listing->found(listing);
    return listing->add(listing, record->path, record->path_length, &entry, err);
}

/* Lists the existing file's images of an unread source. */
static enum status list_unread(void *context, uint16_t source, struct source_listing *listing,
                               struct error *err)
{
    struct ingest *ingest = context;
    if (!ingest->store) /* dry run */
        return STATUS_OK;
    return prior_list(store_prior(ingest->store), source, add_stored, listing, err);
}

static enum status open_walk(struct ingest *ingest, struct error *err)
{
    const struct ingest_config *config = ingest->config;
    char *resolved = NULL;
    if (config->store.output && output_resolve(&resolved, config->store.output, err))
        return err->status;
    const char *skip[4];
    unsigned skipped = 0;
    if (config->store.output) {
        skip[skipped++] = config->store.output;
        skip[skipped++] = resolved;
    }
    for (unsigned i = 0; i < 2 && config->also_skipped[i]; i++)
        skip[skipped++] = config->also_skipped[i];
    struct walk_config walk = {
        .options = config->walk,
        .spool_directory =
            ingest->store ? store_work_directory(ingest->store) : process_temporary_directory(),
        .memory = bounds_sorting(config->memory),
        .skip_paths = skip,
        .skip_count = skipped,
        .promises_image = format_promised,
        .again =
            config->sidecars ? "--sidecar reads its files after all images"
            : feature_set_lacks_codebooks(&ingest->features)
                ? "codebooks are learned from a sample before all images are read: give --codebook "
                  "C.h5 (clpipe codebook learns them from images that are files), or --preset color"
                : NULL,
        .list_unread = list_unread,
        .list_unread_context = ingest,
        .watch = {ingest->job.stop, ingest_job_walked, &ingest->job},
    };
    /* Images that the file already has do not count towards the limit, which the readers check. */
    if (ingest->store && store_updates(ingest->store))
        walk.options.limit = 0;
    unsigned track = trace_track(config->trace, "host", "walk");
    int64_t start = clock_now();
    enum status status = config->open_walk
                             ? config->open_walk(config->ranks, &ingest->walk, &walk, err)
                             : walk_open(&ingest->walk, &walk, err);
    free(resolved);
    if (status == STATUS_OK) {
        ingest->counted = walk_is_counted(ingest->walk);
        ingest->files = walk_count(ingest->walk);
        ingest->bytes = ingest->counted ? walk_bytes(ingest->walk) : 0;
        ingest->report->share = *walk_share(ingest->walk);
    }
    ingest->report->stage[STAGE_WALK].busy = clock_seconds_since(start);
    trace_span(config->trace, track, "walk", start, clock_now(), NULL);
    return status;
}

static enum status open_devices(struct ingest *ingest, struct error *err)
{
    const struct ingest_config *config = ingest->config;
    struct ocl_selection *devices = &ingest->devices;
    ingest->sink.thumbnail_size =
        ingest->thumbnail_size <= DEVICE_THUMBNAIL_MOST && device_side_makes_pixels(config, devices)
            ? ingest->thumbnail_size
            : 0;
    const struct plan_config plan = {
        .features = &ingest->features,
        .streams = ingest->sink.thumbnail_size == ingest->thumbnail_size,
        .thumbnail_size = ingest->sink.thumbnail_size,
        .codes = true,
    };
    const enum status status =
        device_side_open(&ingest->device_side, &ingest->job, devices, &plan, err);
    if (status != STATUS_OK)
        return status;
    ingest->report->memory = ingest->device_side.memory;
    for (unsigned i = 0; i < devices->count; i++)
        text_add(ingest->report->device, sizeof ingest->report->device, " + ", "%s",
                 devices->devices->device[devices->chosen[i]].name);
    return STATUS_OK;
}

struct walking {
    struct ingest *ingest;
    enum status status;
    struct error error;
};

static void *walk_main(void *argument)
{
    struct walking *walking = argument;
    walking->status = open_walk(walking->ingest, &walking->error);
    return NULL;
}

/* Not before the walk: the default size depends on the number of files. */
static void choose_thumbnails(struct ingest *ingest)
{
    const struct ingest_config *config = ingest->config;
    bool file;
    const struct list_share *share = walk_share(ingest->walk);
    uint32_t size = ingest->store ? store_thumbnail_size(ingest->store, &file) : 0;
    if (!ingest->store)
        return;
    if (config->thumbnails == THUMBNAILS_WANTED && config->thumbnail_size > 0)
        size = config->thumbnail_size;
    else if (size == 0 && (config->thumbnails == THUMBNAILS_WANTED ||
                           (config->thumbnails == THUMBNAILS_NEW_FILES && !file)))
        size = thumbnail_suitable_size(share->count > 0  ? share->list_count
                                       : ingest->counted ? ingest->files
                                                         : MANY);
    ingest->thumbnail_size = size;
    store_make_thumbnails(ingest->store, size, config->thumbnails == THUMBNAILS_WANTED);
}

/* Must devices be opened after the walk? They need codebooks learned from the files, or a thumbnail
 * size that depends on their number. */
static bool open_later(const struct ingest *ingest)
{
    bool file;
    const bool thumbnails = ingest->config->thumbnails != THUMBNAILS_KEPT ||
                            store_thumbnail_size(ingest->store, &file) > 0;
    return feature_set_lacks_codebooks(&ingest->features) ||
           (thumbnails && device_side_makes_pixels(ingest->config, &ingest->devices));
}

/* Opens the context of the first device, which learns codebooks and then belongs to the rings. */
static enum status open_context(struct ingest *ingest, struct error *err)
{
    struct ocl_selection *devices = &ingest->devices;
    return devices->context
               ? STATUS_OK
               : ocl_context_open(&devices->context, &devices->devices->device[devices->chosen[0]],
                                  ingest->config->trace, err);
}

/* Opening a device takes tenths of a second and walking a large tree even longer, so both run in
 * parallel. Devices are found first, since drivers then change the environment, which the walk
 * reads. */
static enum status open_walk_and_devices(struct ingest *ingest, struct error *err)
{
    const struct ingest_config *config = ingest->config;
    struct walking walking = {.ingest = ingest, .error = ERROR_INIT};
    struct error ignored = ERROR_INIT;
    pthread_t thread;
    if (config->dry_run)
        return open_walk(ingest, err);
    enum status status = config->find_devices(config->find_devices_context, &ingest->devices, err);
    if (status != STATUS_OK)
        return status;
    const bool apart =
        !config->open_walk && pthread_create(&thread, NULL, walk_main, &walking) == 0;
    if (!open_later(ingest))
        status = open_devices(ingest, err);
    else if (open_context(ingest, &ignored) != STATUS_OK)
        log_message(LOG_DEBUG, "%s", ignored.sentence); /* tried again later */
    if (!apart)
        return status == STATUS_OK ? open_walk(ingest, err) : status;
    if (status != STATUS_OK)
        stop_request(ingest->job.stop, STOP_ERROR); /* the walk is no longer needed */
    pthread_join(thread, NULL);
    if (status == STATUS_OK && walking.status != STATUS_OK) {
        status = walking.status;
        if (err)
            *err = walking.error;
    }
    return status;
}

/* --- codebooks ------------------------------------------------------------------------------- */

/* Continues with the features that need no codebook. */
static void take_few(struct ingest *ingest, uint32_t pictures)
{
    const struct ingest_few *few = ingest->config->few;
    char names[512] = "", why[96] = "the images are too small or too much alike";
    ingest->features = few->features;
    ingest->report->few = true;
    if (pictures == 0) /* the end of the run reports that there are none */
        return;
    if (pictures == 1)
        snprintf(why, sizeof why, "1 image is too few");
    else if (pictures < INGEST_FEW)
        snprintf(why, sizeof why, "%u images are too few", pictures);
    for (unsigned i = 0; i < few->features.count; i++)
        text_add_name(names, sizeof names, few->features.feature[i].name);
    log_message(LOG_NOTICE, "notice: %s to learn codebooks from: the features are %s instead", why,
                names);
}

static enum status learn_from_sample(struct ingest *ingest, struct error *err)
{
    const struct ingest_config *config = ingest->config;
    struct learning *learning = NULL;
    struct error why = ERROR_INIT;
    enum status status = learning_sample(&learning, &ingest->job, ingest->walk, &ingest->features,
                                         LEARNING_PICTURES, err);
    if (status != STATUS_OK)
        return status;
    const uint32_t pictures = learning_pictures(learning);
    if (config->few && pictures < INGEST_FEW) {
        take_few(ingest, pictures);
        goto out;
    }
    status = pictures > 0 ? open_context(ingest, &why) : STATUS_OK;
    if (status == STATUS_OK)
        status = learning_train(learning, &ingest->codebooks, &ingest->features,
                                ingest->devices.context, &why);
    if (status == STATUS_USAGE && config->few) {
        take_few(ingest, pictures);
        status = STATUS_OK;
    } else if (status == STATUS_OK) {
        ingest->report->sample = pictures;
    } else if (err) {
        *err = why;
    }
out:
    learning_close(&learning);
    return status;
}

/* Binds the features' codebooks and starts the log. */
static enum status learn(struct ingest *ingest, const struct content *content, struct error *err)
{
    struct content learned = *content;
    bool all = false;
    unsigned track = trace_track(ingest->config->trace, "host", "learn");
    const int64_t start = clock_now();
    enum status status = store_learned(ingest->store, &ingest->features, &all, err);
    if (status == STATUS_OK && !all)
        status = learn_from_sample(ingest, err);
    trace_span(ingest->config->trace, track, "learn codebooks", start, clock_now(), NULL);
    if (status != STATUS_OK)
        return status;
    if (ingest->report->few) {
        learned.parameters = ingest->config->few->parameters;
        learned.preset = ingest->config->few->preset;
    }
    return store_begin(ingest->store, &learned, err);
}

/* Opens the stages between walk and store, except devices. */
static enum status open_flow(struct ingest *ingest, unsigned open_files, struct error *err)
{
    const struct ingest_config *config = ingest->config;
    const uint64_t window =
        bounds_window(ingest->device_side.memory, ingest->sink.counters, ingest->thumbnail_size,
                      ingest->sink.thumbnail_size > 0, config->threads);
    ingest->job.progress.done = 0; /* counts images from now on */
    pthread_mutex_lock(&ingest->lock);
    enum status status = readers_open(&ingest->readers, &ingest->job, ingest->walk, ingest->store,
                                      &ingest->sink, window, open_files, err);
    if (status == STATUS_OK)
        status = recorder_open(&ingest->recorder, &ingest->job, ingest->store, ingest->readers,
                               ingest->report, ingest->sink.thumbnail_size, err);
    pthread_mutex_unlock(&ingest->lock);
    return status;
}

static enum status may_go(void *context, struct result *old, const int *now, const uint8_t *there,
                          struct error *err)
{
    const struct ingest *ingest = context;
    return losses_judge(ingest->report, ingest->config, old, now, there, err);
}

static enum status open_all(struct ingest *ingest, struct error *err)
{
    struct rlimit files;
    const uint64_t most = getrlimit(RLIMIT_NOFILE, &files) ? RLIM_INFINITY : files.rlim_cur;
    const struct ingest_config *config = ingest->config;
    const unsigned open_files = bounds_open_files(most, config->threads);
    struct store_config store = config->store;
    store.command = config->command_line;
    if (!store.content.sources) {
        store.content.sources = config->walk.sources;
        store.content.source_count = config->walk.source_count;
    }
    store.content.features = &ingest->features;
    store.content.decode_scale = config->decode.scale;
    store.stop = ingest->job.stop;
    store.label = label_rows;
    store.may_go = may_go;
    store.may_go_context = ingest;
    store.threads = config->threads;
    enum status status = config->dry_run ? STATUS_OK : store_open(&ingest->store, &store, err);
    if (status != STATUS_OK)
        return status;
    ingest->job.status.directory = ingest->store ? store_work_directory(ingest->store) : NULL;
    const bool learns = ingest->store && feature_set_lacks_codebooks(&ingest->features);
    status = open_walk_and_devices(ingest, err);
    if (status == STATUS_OK && config->check_count && ingest->counted)
        status = config->check_count(config->check_context, ingest->files, err);
    if (status == STATUS_OK && learns)
        status = learn(ingest, &store.content, err);
    if (status != STATUS_OK)
        return status;
    choose_thumbnails(ingest);
    if (!config->dry_run && !ingest->job.staging)
        status = open_devices(ingest, err);
    if (status != STATUS_OK)
        return status;
    ingest->sink.counters = ingest->features.counters + CODE_WORDS;
    ingest->sink.code = ingest->features.counters;
    status = open_flow(ingest, open_files, err);
    if (status != STATUS_OK)
        return status;
    const struct decoders_config decoders = {
        .job = &ingest->job,
        .take = readers_take,
        .context = ingest->readers,
        .coefficients = ingest->device_side.coefficients,
        .streams = ingest->device_side.streams,
        .open_files = open_files,
        .thumbnail_size = ingest->thumbnail_size,
    };
    status = decoders_open(&ingest->decoders, &decoders, err);
    if (status == STATUS_OK)
        readers_start(ingest->readers);
    return status;
}

/* --- running --------------------------------------------------------------------------------- */

/* Reports the most disk space that log and result may need, if it is large or not available. */
static void tell_space(const struct ingest *ingest)
{
    uint64_t row = ROW_BYTES + (uint64_t)ingest->thumbnail_size * ingest->thumbnail_size;
    for (unsigned i = 0; i < ingest->features.count; i++)
        row += feature_row_bytes(&ingest->features.feature[i]);
    const uint64_t needed = 2 * row * ingest->files;
    struct statvfs disk;
    if (!ingest->store || statvfs(store_work_directory(ingest->store), &disk) != 0)
        return;
    const uint64_t available = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (needed > available || needed >= SPACE_TOLD)
        log_message(
            LOG_NOTICE,
            "%s: until the result is complete, its log and the result need up to %s of disk; "
            "%s are free",
            needed > available ? "notice" : "disk", BYTES_TEXT(needed), BYTES_TEXT(available));
}

/* Shows progress until the decode threads have ended. */
static void monitor(struct ingest *ingest)
{
    struct ingest_job *job = &ingest->job;
    int64_t start = clock_now();
    pthread_mutex_lock(&job->lock);
    job->progress.phase = "images";
    job->progress.total = ingest->counted ? ingest->files : 0;
    job->progress.bytes_total = ingest->bytes;
    pthread_mutex_unlock(&job->lock);
    tell_space(ingest);
    bool ended = false;
    while (!ended) {
        ended = decoders_wait(ingest->decoders, clock_now() + PROGRESS_NS);
        ingest_job_show(job, start);
        /* A stop may come while all threads wait for the window. */
        if (stop_requested(job->stop) != STOP_NONE)
            readers_wake(ingest->readers);
    }
}

/* Joins all threads in the order of the flow; afterwards the store's log is complete. */
static void join_all(struct ingest *ingest, int64_t start)
{
    struct stage_times *stage = ingest->report->stage;
    if (ingest->decoders)
        decoders_join(ingest->decoders);
    if (ingest->readers)
        readers_join(ingest->readers);
    if (ingest->job.staging && ingest->decoders) {
        /* Pictures lost by a device that failed after the end of the walk (at most those in its
         * slots) are decoded here. Another device may fail in the meantime. */
        staging_settle(ingest->job.staging);
        while (readers_have_again(ingest->readers)) {
            decoders_run(ingest->decoders);
            staging_settle(ingest->job.staging);
        }
    }
    if (ingest->job.staging)
        staging_drain(ingest->job.staging);
    const double wall = clock_seconds_since(start);
    stages_init(stage);
    if (ingest->decoders)
        decoders_times(ingest->decoders, &stage[STAGE_DECODE]);
    if (ingest->job.staging) {
        struct staging_times times;
        staging_times(ingest->job.staging, &times);
        stages_add_devices(stage, &times, wall);
    }
    if (ingest->recorder)
        stage[STAGE_STORE].busy = recorder_finish(ingest->recorder);
    stage[STAGE_STORE].starved =
        wall > stage[STAGE_STORE].busy ? wall - stage[STAGE_STORE].busy : 0;
}

/* --- conclusion ------------------------------------------------------------------------------ */

static enum status nothing_found(const struct ingest *ingest, struct error *err)
{
    const struct ingest_report *report = ingest->report;
    const struct ingest_config *config = ingest->config;
    char reasons[256] = "";
    unsigned first = 0;
    while (first + 1 < config->walk.source_count && !config->walk.sources[first])
        first++;
    if (!config->walk.sources[first])
        return error_set(err, STATUS_FAILED,
                         "no image is left in the other sources; nothing is written");
    const char *source = PATH_TEXT(config->walk.sources[first]);
    const char *more = config->walk.source_count > 1 ? " and the other sources" : "";
    if (failures_counted(report->by_reason) == 0)
        return error_set(err, STATUS_FAILED, "no image under %s%s (%s); nothing is written", source,
                         more, NUMBER_OF(report->by_reason[REASON_NOT_AN_IMAGE], "other file"));
    for (int r = 1; r < REASON_COUNT; r++)
        if (report->by_reason[r] && r != REASON_NOT_AN_IMAGE)
            text_add(reasons, sizeof reasons, ", ", "%s %llu", reason_name((enum reason)r),
                     (unsigned long long)report->by_reason[r]);
    return error_set(err, STATUS_FAILED,
                     "no image under %s%s could be decoded (%s); nothing is written", source, more,
                     reasons);
}

/* Reports rows kept because their files could not be examined. */
static void tell_kept(const struct ingest *ingest)
{
    const uint64_t kept = readers_kept(ingest->readers);
    if (kept > 0)
        log_message(LOG_NOTICE,
                    "notice: %s of %s could not be examined (unreadable) and %s as before",
                    NUMBER_OF(kept, "image"), PATH_TEXT(ingest->config->store.output),
                    kept == 1 ? "stays" : "stay");
}

/* Writes the file once everything is in the log. */
static enum status write_file(struct ingest *ingest, struct error *err)
{
    const struct ingest_config *config = ingest->config;
    const struct ocl_selection *devices = &ingest->devices;
    struct ingest_report *report = ingest->report;
    store_set_share(ingest->store, &report->share);
    if (config->sidecars) {
        enum status read =
            sidecars_open(&ingest->sidecars, store_work_directory(ingest->store), err);
        if (read == STATUS_OK)
            read = beside_read(ingest->sidecars, ingest->walk, ingest->job.stop, err);
        if (read != STATUS_OK)
            return read;
        store_set_sidecars(ingest->store, ingest->sidecars);
    }
    /* Its spool is in the work directory, which is removed when the file is written. */
    walk_close(&ingest->walk);
    ingest_job_phase(&ingest->job, "writing", ingest->job.progress.done, ingest->job.progress.total,
                     clock_now());
    struct store_run run = {
        .command = config->command_line,
        .json = config->store.content.parameters,
        .device = report->device,
        .driver = devices->devices->device[devices->chosen[0]].driver,
        .seconds = clock_seconds_since(clock_process_start()),
    };
    unsigned track = trace_track(config->trace, "host", "store");
    int64_t start = clock_now();
    enum status status = store_finish(ingest->store, &run, &report->summary, err);
    report->stage[STAGE_STORE].busy += clock_seconds_since(start);
    trace_span(config->trace, track, "write file", start, clock_now(), NULL);
    if (status == STATUS_INTERRUPTED)
        report->sealed = journal_count(store_journal(ingest->store));
    return status;
}

/* The result of the run, once all threads are joined. */
static enum status conclude(struct ingest *ingest, struct error *err)
{
    struct ingest_report *report = ingest->report;
    enum stop_cause cause = stop_requested(ingest->job.stop);
    if (ingest->job.error.status != STATUS_OK) {
        if (ingest->store)
            journal_stop(store_journal(ingest->store), &report->sealed, NULL);
        if (err)
            *err = ingest->job.error;
        return ingest->job.error.status;
    }
    if (cause != STOP_NONE) {
        enum status status = ingest->store
                                 ? journal_stop(store_journal(ingest->store), &report->sealed, err)
                                 : STATUS_OK;
        if (status != STATUS_OK)
            return status;
        if (cause == STOP_STRICT)
            return error_set(err, STATUS_PARTIAL, "stopped at the first failure");
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    }
    if (report->images_ok == 0 && report->share.count <= 1) {
        const enum status status = ingest->store ? store_may_all_go(ingest->store, err) : STATUS_OK;
        if (ingest->store)
            store_discard(ingest->store);
        if (status != STATUS_OK)
            return status;
        return nothing_found(ingest, err);
    }
    if (ingest->config->dry_run)
        return STATUS_OK;
    tell_kept(ingest);
    return write_file(ingest, err);
}

static void *close_staging_main(void *argument)
{
    struct ingest *ingest = argument;
    staging_close(&ingest->job.staging);
    return NULL;
}

enum status ingest_run(struct ingest_report *report, const struct ingest_config *config,
                       struct error *err)
{
    struct ingest ingest = {
        .config = &ingest.job.bounded, .report = report, .features = config->features};
    ingest.sink =
        (struct picture_sink){.finished = send_finished, .again = send_again, .context = &ingest};
    pthread_mutex_init(&ingest.lock, NULL);
    ingest_job_init(&ingest.job, config, wake_all, &ingest);
    ingest.device_side.memory = ingest.config->memory;
    *report = (struct ingest_report){.memory = ingest.device_side.memory};

    const int64_t start = clock_now();
    ingest_job_show(&ingest.job, start);
    const enum status opened = open_all(&ingest, err);
    if (opened == STATUS_OK)
        monitor(&ingest);
    else
        ingest_job_fail(&ingest.job, &(struct error){.status = opened});
    join_all(&ingest, start);
    if (ingest.walk)
        report->passed = walk_passed(ingest.walk);
    /* Closes the devices in the meantime: for a driver, freeing its memory takes about as long as
     * writing the file does. No other thread uses staging any more. */
    pthread_t closing;
    const bool apart =
        ingest.job.staging && pthread_create(&closing, NULL, close_staging_main, &ingest) == 0;
    if (!apart)
        staging_close(&ingest.job.staging);
    const enum status status = opened == STATUS_OK ? conclude(&ingest, err) : opened;
    if (apart)
        pthread_join(closing, NULL);

    ocl_context_close(&ingest.devices.context);
    recorder_close(&ingest.recorder);
    decoders_close(&ingest.decoders);
    readers_close(&ingest.readers);
    store_close(&ingest.store);
    codebooks_clear(&ingest.codebooks);
    sidecars_close(&ingest.sidecars);
    walk_close(&ingest.walk);
    ingest_job_clear(&ingest.job);
    pthread_mutex_destroy(&ingest.lock);
    report->bottleneck = stages_bottleneck(report->stage);
    report->peak_rss_bytes = peak_rss_bytes();
    report->seconds = clock_seconds_since(clock_process_start());
    return status;
}
