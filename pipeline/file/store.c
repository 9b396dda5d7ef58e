/* store.c: the order of the records, the log, and what becomes of both.
 *
 *   store_put: encode (any thread) ─> waiting, until its turn ─> log (appender's thread)
 *                                                            └─> order: 8 bytes, where it lies
 *   store_finish: order ─> feed (log, finished file) ─> build ─> OUT.h5
 *
 * Why nothing sealed is ever lost: there is one log, and it only grows. A resumed run reads it,
 * cuts off at most a frame that is not whole, and appends behind it; what it takes over from
 * earlier it does not write again, it only notes in the order - a file without a name, made anew by
 * each run - where it lies. So a whole frame is never written over or moved, whatever is killed
 * when and how often; the log is removed only after the finished file has been renamed into place.
 * Items of a log that the walk does not ask for any more are never referred to. */
#include "file/store.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "file/build.h"
#include "file/signature.h"
#include "log/appender.h"
#include "log/workdir.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORDER_BLOCK 4096

/* A record that waits for those before it: a frame, or where it lies already. */
struct waiting {
    bool there;
    struct records_frame frame;
    uint64_t origin;
};

struct store {
    struct store_config config; /* with copies of everything */
    struct feature_set features;
    char *log_path;
    struct workdir *work;
    int log, order;
    struct appender *appender;
    struct stretches stretches; /* of the log before this run */
    struct result *replaced;    /* the file under the final name, or NULL */
    struct prior *prior;
    bool keep; /* the work directory holds records */
    bool done; /* the finished file has taken over */

    _Atomic uint64_t next; /* sequence of the next record to be logged */
    pthread_mutex_t lock;  /* guards what follows */
    struct waiting *ring;  /* of a power of two; the record `sequence` is at sequence % size */
    uint64_t ring_size;
    uint64_t order_buffer[ORDER_BLOCK];
    unsigned order_filled;
    struct store_summary tally;
    struct raw_tally raw_images, raw_failures;
    struct error error; /* the first; every later put fails with it */
};

/* --- opening --------------------------------------------------------------------------------- */

static enum status copy_config(struct store *store, const struct store_config *config,
                               struct error *err)
{
    store->config = *config;
    store->features = *config->features;
    store->config.features = &store->features;
    char **sources = calloc(config->source_count + 1, sizeof *sources);
    store->config.sources = (const char *const *)sources;
    store->config.output = strdup(config->output);
    store->config.parameters = strdup(config->parameters);
    bool ok = sources && store->config.output && store->config.parameters;
    for (unsigned i = 0; ok && i < config->source_count; i++)
        ok = (sources[i] = strdup(config->sources[i])) != NULL;
    return ok ? STATUS_OK : error_memory(err, strlen(config->parameters), "the options");
}

/* Refuses an output that cannot be written, or that must not be replaced. */
static enum status check_output(struct store *store, struct error *err)
{
    const struct store_config *config = &store->config;
    char shown[256], difference[512];
    struct stat st;
    path_for_message(shown, sizeof shown, config->output);
    if (stat(config->output, &st) && errno == ENOENT)
        return STATUS_OK;
    struct error why = ERROR_INIT;
    if (result_open(&store->replaced, config->output, &why)) {
        char line[1024];
        return error_set(err, STATUS_FAILED,
                         "%s is there and is not overwritten: move it away or name another output "
                         "(%s)",
                         shown, error_line(line, sizeof line, &why));
    }
    if (config->fresh)
        return STATUS_OK;
    struct store_config old = *config;
    if (config->old_parameters) {
        old.features = config->old_features;
        old.parameters = config->old_parameters;
    }
    if (!store->replaced->has_images)
        return error_set(err, STATUS_USAGE,
                         "%s holds clusters of other data: name another output, or replace it with "
                         "--fresh",
                         shown);
    char *theirs = signature_of_result(store->replaced, &old, err);
    char *mine = theirs ? signature_of_config(&old, err) : NULL;
    bool differs = mine && signature_difference(difference, sizeof difference, theirs, mine);
    free(theirs);
    if (!mine)
        return STATUS_FAILED;
    free(mine);
    if (!differs)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s was made with other parameters: %s; name another output, or replace it "
                     "with --fresh",
                     shown, difference);
}

/* Cuts the log back to `size`, where it is to go on. */
static enum status cut_log(struct store *store, uint64_t size, struct error *err)
{
    if (ftruncate(store->log, (off_t)size) == 0 &&
        lseek(store->log, (off_t)size, SEEK_SET) == (off_t)size)
        return STATUS_OK;
    char shown[256];
    return error_errno(err, STATUS_FAILED, errno, "ftruncate", "cannot write %s",
                       path_for_message(shown, sizeof shown, store->log_path));
}

static enum status resume_log(struct store *store, const char *signature, bool *resumed,
                              struct error *err)
{
    char *theirs, shown[256], difference[512];
    uint64_t start;
    *resumed = false;
    enum status status = records_read_header(&theirs, &start, store->log, store->log_path, err);
    if (status)
        return status == STATUS_END ? STATUS_OK : status;
    path_for_message(shown, sizeof shown, workdir_path(store->work));
    if (signature_difference(difference, sizeof difference, theirs, signature))
        status = error_set(err, STATUS_USAGE,
                           "%s holds the unfinished work of another command: %s; finish "
                           "that one, name another output, or start over with --fresh",
                           shown, difference);
    free(theirs);
    if (!status)
        status = stretches_scan(&store->stretches, store->log, store->log_path,
                                store->features.counters, start, store->config.stop, err);
    if (!status)
        status = cut_log(store, store->stretches.end, err);
    if (status)
        return status;
    if (store->stretches.damaged > 0)
        log_message(LOG_NOTICE,
                    "%s: %llu bytes in the middle are damaged; what they held is done again",
                    path_for_message(shown, sizeof shown, store->log_path),
                    (unsigned long long)store->stretches.damaged);
    store->keep = store->stretches.records > 0;
    *resumed = true;
    return STATUS_OK;
}

static enum status open_log(struct store *store, const char *signature, struct error *err)
{
    const char *directory = workdir_path(store->work);
    size_t size = strlen(directory) + sizeof "/records";
    store->log_path = malloc(size);
    if (!store->log_path)
        return error_memory(err, size, "a file name");
    snprintf(store->log_path, size, "%s/records", directory);
    store->log = openat(workdir_descriptor(store->work), "records",
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    store->order = openat(workdir_descriptor(store->work), "order",
                          O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (store->log < 0 || store->order < 0) {
        char shown[256];
        return error_errno(err, STATUS_FAILED, errno, "openat", "cannot write in %s",
                           path_for_message(shown, sizeof shown, directory));
    }
    unlinkat(workdir_descriptor(store->work), "order", 0);
    bool resumed = false;
    enum status status = STATUS_OK;
    if (!store->config.fresh)
        status = resume_log(store, signature, &resumed, err);
    if (!status && !resumed) {
        store->keep = false;
        status = cut_log(store, 0, err);
        if (!status)
            status = records_write_header(store->log, signature, store->log_path, err);
        off_t at = lseek(store->log, 0, SEEK_CUR);
        store->stretches.end = at > 0 ? (uint64_t)at : 0;
        if (!status)
            status = workdir_sync(store->work, err);
    }
    if (!status)
        status =
            appender_open(&store->appender, store->log, store->stretches.end, store->log_path, err);
    struct records_frame start;
    uint64_t offset;
    if (!status)
        status = records_encode_start(&start, err);
    if (!status) {
        status = appender_add(store->appender, start.data, start.size, &offset, err);
        free(start.data);
    }
    return status;
}

/* Makes the work directory, and sure that the output can be written: better known now than at the
 * end. */
static enum status claim_output(struct store *store, struct error *err)
{
    struct output *probe = NULL;
    struct error why = ERROR_INIT;
    enum status status = workdir_open(&store->work, store->config.output, store->config.stop, &why);
    /* What keeps the directory from being made is better said of the output. */
    if (!status || why.native != EWOULDBLOCK) {
        enum status writable = output_open(&probe, store->config.output, err);
        output_close(&probe);
        if (writable)
            return writable;
    }
    if (status && err)
        *err = why;
    return status;
}

/* The file under the final name, if its rows can be taken over. */
static struct result *usable(const struct store *store)
{
    return store->config.fresh || store->config.old_parameters ? NULL : store->replaced;
}

static enum status open_prior(struct store *store, struct error *err)
{
    struct prior_config config = {.sources = store->config.sources,
                                  .source_count = store->config.source_count,
                                  .retry_failed = store->config.retry_failed,
                                  .finished = usable(store),
                                  .log = store->log,
                                  .log_path = store->log_path,
                                  .counters = store->features.counters,
                                  .stretches = &store->stretches,
                                  .directory = workdir_descriptor(store->work)};
    return prior_open(&store->prior, &config, err);
}

enum status store_open(struct store **out, const struct store_config *config, struct error *err)
{
    *out = NULL;
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return error_memory(err, sizeof *store, "the store");
    store->log = store->order = -1;
    pthread_mutex_init(&store->lock, NULL);
    enum status status = copy_config(store, config, err);
    char *signature = status ? NULL : signature_of_config(&store->config, err);
    if (!status && !signature)
        status = STATUS_FAILED;
    if (!status)
        status = claim_output(store, err);
    struct stat st;
    /* Until it is known what the log holds. */
    store->keep =
        !status && !fstatat(workdir_descriptor(store->work), "records", &st, 0) && st.st_size > 0;
    if (!status)
        status = check_output(store, err);
    if (!status)
        status = open_log(store, signature, err);
    if (!status)
        status = open_prior(store, err);
    free(signature);
    if (status)
        store_close(&store);
    *out = store;
    return status;
}

const char *store_work_directory(const struct store *store)
{
    return workdir_path(store->work);
}

bool store_prior(struct store *store, uint16_t source, const char *path, uint32_t path_length,
                 uint64_t bytes, int64_t mtime_ns, struct store_record *record, bool *resumed)
{
    assert(source < store->config.source_count);
    if (!prior_find(store->prior, source, path, path_length, bytes, mtime_ns, record))
        return false;
    *resumed = location_kind(record->origin) == LOCATION_LOG;
    return true;
}

/* --- putting --------------------------------------------------------------------------------- */

/* Makes place for `sequence` among the waiting. */
static enum status grow_ring(struct store *store, uint64_t sequence, struct error *err)
{
    uint64_t next = atomic_load_explicit(&store->next, memory_order_relaxed);
    uint64_t size = store->ring_size ? store->ring_size : 256;
    assert(sequence >= next);
    while (sequence - next >= size)
        size *= 2;
    if (size == store->ring_size)
        return STATUS_OK;
    struct waiting *ring = calloc(size, sizeof *ring);
    if (!ring)
        return error_memory(err, size * sizeof *ring, "records out of order");
    for (uint64_t i = 0; i < store->ring_size; i++)
        ring[(next + i) % size] = store->ring[(next + i) % store->ring_size];
    free(store->ring);
    store->ring = ring;
    store->ring_size = size;
    return STATUS_OK;
}

static enum status flush_order(struct store *store, struct error *err)
{
    enum status status =
        write_all(store->order, store->order_buffer,
                  store->order_filled * sizeof store->order_buffer[0], store->log_path, err);
    store->order_filled = 0;
    return status;
}

/* Logs every waiting record whose turn it is. */
static enum status drain(struct store *store, struct error *err)
{
    enum status status = STATUS_OK;
    uint64_t next = atomic_load_explicit(&store->next, memory_order_relaxed);
    struct waiting *waiting;
    while (!status && (waiting = &store->ring[next % store->ring_size])->there) {
        uint64_t location = waiting->origin;
        if (!location) {
            uint64_t offset;
            status = appender_add(store->appender, waiting->frame.data, waiting->frame.size,
                                  &offset, err);
            location = location_of(LOCATION_LOG, offset);
            store->keep = true;
        }
        free(waiting->frame.data);
        *waiting = (struct waiting){.there = false};
        store->order_buffer[store->order_filled++] = location;
        if (!status && store->order_filled == ORDER_BLOCK)
            status = flush_order(store, err);
        atomic_store_explicit(&store->next, ++next, memory_order_release);
    }
    return status;
}

static void count(struct store *store, const struct store_record *record)
{
    bool image = record->failure.reason == REASON_NONE;
    struct store_summary *tally = &store->tally;
    tally->images += image;
    tally->not_images += record->failure.reason == REASON_NOT_AN_IMAGE;
    tally->failures += !image && record->failure.reason != REASON_NOT_AN_IMAGE;
    tally->by_reason[record->failure.reason]++;
    tally->bytes += record->bytes;
    if (image)
        tally->pixels += (uint64_t)record->width * record->height;
    if (!utf8_valid(record->path, record->path_length)) {
        struct raw_tally *raw = image ? &store->raw_images : &store->raw_failures;
        raw->rows++;
        raw->bytes += record->path_length;
    }
}

/* The record as it will be logged: its values by the contract's formulas. */
static enum status encode(struct store *store, struct records_frame *frame,
                          const struct store_record *record, struct error *err)
{
    if (record->failure.reason != REASON_NONE)
        return records_encode(frame, record, NULL, 0, err);
    assert(record->counters);
    size_t bytes = 4 * (size_t)store->features.counters;
    uint8_t *values = malloc(bytes);
    if (!values)
        return error_memory(err, bytes, "an image's values");
    for (unsigned i = 0; i < store->features.count; i++) {
        const struct feature *feature = &store->features.feature[i];
        feature_store_values(values + 4 * (size_t)feature->offset, feature,
                             record->counters + feature->offset);
    }
    enum status status = records_encode(frame, record, values, store->features.counters, err);
    free(values);
    return status;
}

enum status store_put(struct store *store, const struct store_record *record, struct error *err)
{
    struct waiting waiting = {.there = true, .origin = record->origin};
    struct error error = ERROR_INIT;
    enum status status = record->origin ? STATUS_OK : encode(store, &waiting.frame, record, &error);
    pthread_mutex_lock(&store->lock);
    if (store->error.status) {
        status = store->error.status;
    } else {
        if (!status)
            status = grow_ring(store, record->sequence, &error);
        if (!status) {
            struct waiting *place = &store->ring[record->sequence % store->ring_size];
            assert(!place->there);
            *place = waiting;
            waiting.frame.data = NULL;
            count(store, record);
            status = drain(store, &error);
        }
        store->error = error;
    }
    if (status && err)
        *err = store->error;
    pthread_mutex_unlock(&store->lock);
    free(waiting.frame.data);
    return status;
}

uint64_t store_written(struct store *store)
{
    return atomic_load_explicit(&store->next, memory_order_acquire);
}

enum status store_seal(struct store *store, struct error *err)
{
    return appender_sync(store->appender, err);
}

/* What is in the log after it begins to have gaps is as good as what lies before: it is in order.
 */
enum status store_stop(struct store *store, uint64_t *kept, struct error *err)
{
    pthread_mutex_lock(&store->lock);
    uint64_t next = atomic_load_explicit(&store->next, memory_order_relaxed);
    enum status status = store->error.status;
    if (status && err)
        *err = store->error;
    *kept = next;
    for (uint64_t i = 0; !status && i < store->ring_size; i++) {
        struct waiting *waiting = &store->ring[(next + i) % store->ring_size];
        uint64_t offset;
        if (!waiting->there)
            continue;
        ++*kept;
        if (waiting->origin)
            continue;
        status =
            appender_add(store->appender, waiting->frame.data, waiting->frame.size, &offset, err);
        store->keep = true;
    }
    pthread_mutex_unlock(&store->lock);
    return status ? status : appender_sync(store->appender, err);
}

/* --- finishing ------------------------------------------------------------------------------- */

static void tell_dropped(const struct store *store, struct store_summary *summary)
{
    const struct result *old = store->replaced;
    for (unsigned i = 0; old && i < old->clusters_count; i++) {
        const struct result_clusters *c = &old->clusters[i].clusters;
        char shown[256];
        summary->clusters_dropped = true;
        log_message(LOG_NOTICE,
                    "clusters '%s' belonged to other rows and are gone; to make them again: clpipe "
                    "cluster %s -k %u --feature %s --name %s --metric %s --init %s --seed %lld",
                    c->name, path_for_message(shown, sizeof shown, store->config.output), c->k,
                    c->feature, c->name, c->metric, c->init, (long long)c->seed);
    }
}

enum status store_finish(struct store *store, const struct store_run *run,
                         struct store_summary *summary, struct error *err)
{
    pthread_mutex_lock(&store->lock);
    uint64_t records = atomic_load_explicit(&store->next, memory_order_relaxed);
    enum status status = store->error.status;
    if (status && err)
        *err = store->error;
    if (!status)
        status = flush_order(store, err);
    for (uint64_t i = 0; i < store->ring_size; i++)
        assert(!store->ring[i].there);
    *summary = store->tally;
    pthread_mutex_unlock(&store->lock);
    if (!status)
        status = appender_sync(store->appender, err);
    off_t log_end = lseek(store->log, 0, SEEK_END);
    struct build_config build = {.output = store->config.output,
                                 .config = &store->config,
                                 .feed = {.order = store->order,
                                          .records = records,
                                          .log = store->log,
                                          .log_path = store->log_path,
                                          .log_end = log_end > 0 ? (uint64_t)log_end : 0,
                                          .features = &store->features,
                                          .finished = usable(store),
                                          .stop = store->config.stop},
                                 .replaced = store->replaced,
                                 .run = run,
                                 .images = summary->images,
                                 .failures = summary->failures + summary->not_images,
                                 .raw_images = store->raw_images,
                                 .raw_failures = store->raw_failures};
    struct build_difference difference = {false, false};
    if (!status)
        status = store->config.old_parameters && store->replaced
                     ? build_compare_images(&difference.same_rows, &build, err)
                     : build_compare(&difference, &build, err);
    if (!status && !difference.same_all)
        status = build_file(&build, difference.same_rows, err);
    if (status)
        return status;
    summary->unchanged = difference.same_all;
    if (!difference.same_rows)
        tell_dropped(store, summary);
    store->done = true;
    return STATUS_OK;
}

void store_discard(struct store *store)
{
    store->keep = false;
}

void store_close(struct store **store)
{
    if (!store || !*store)
        return;
    struct store *s = *store;
    *store = NULL;
    appender_close(&s->appender);
    prior_close(&s->prior);
    result_close(&s->replaced);
    stretches_clear(&s->stretches);
    for (uint64_t i = 0; i < s->ring_size; i++)
        free(s->ring[i].frame.data);
    free(s->ring);
    if (s->log >= 0)
        close(s->log);
    if (s->order >= 0)
        close(s->order);
    workdir_close(&s->work, s->keep && !s->done);
    pthread_mutex_destroy(&s->lock);
    free(s->log_path);
    char **sources = (char **)(uintptr_t)s->config.sources;
    for (unsigned i = 0; sources && i < s->config.source_count; i++)
        free(sources[i]);
    free(sources);
    free((char *)(uintptr_t)s->config.output);
    free((char *)(uintptr_t)s->config.parameters);
    free(s);
}
