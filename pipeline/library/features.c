/* features.c: features of the caller's pictures: an ingest without walk and file. */
#include "base/clock.h"
#include "base/cpus.h"
#include "base/minmax.h"
#include "features/preset.h"
#include "ingest/bounds.h"
#include "ingest/decoder.h"
#include "ingest/lanes.h"
#include "library/library.h"
#include "matrix/joined.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY      (256u << 20) /* as in an ingest */
#define PROGRESS_NS (100 * 1000000ll)

/* A call. */
struct describing {
    struct clpipe_picture *pictures;
    size_t size; /* size of each picture struct, as set by the caller */
    uint64_t count;
    float *values;
    uint32_t columns;
    struct joined_unit unit; /* of a preset; 0 parts: none */

    struct ingest_config config; /* with the features */
    struct ingest_job job;       /* its lock also guards: */
    uint64_t next;               /* picture to open */
    struct picture *again;       /* to be decoded again */

    struct picture_sink sink;
    struct lanes lanes;
    struct decoders *decoders;
};

/* --- which features ---------------------------------------------------------------------------- */

static enum status choose(struct describing *call, const struct clpipe_features *given,
                          struct error *err)
{
    struct feature_set *set = &call->config.features;
    struct clpipe_features wanted;
    if (library_take(&wanted, sizeof wanted, given, "clpipe_features", err) != STATUS_OK)
        return err->status;
    if (!wanted.preset == !wanted.count || (wanted.count && !wanted.specs) ||
        wanted.count > FEATURE_MAX)
        return error_set(err, STATUS_USAGE, "features need either a preset or 1 to %u specs",
                         FEATURE_MAX);
    const struct preset *preset = wanted.preset ? preset_find(wanted.preset) : NULL;
    if (wanted.preset && !preset)
        return error_set(err, STATUS_USAGE, "there is no preset '%s'", wanted.preset);
    const unsigned count = preset ? preset_count(preset) : wanted.count;
    for (unsigned i = 0; i < count; i++) {
        const char *spec = preset ? preset->feature[i].spec : wanted.specs[i];
        if (!spec)
            return error_set(err, STATUS_USAGE, "spec %u is NULL", i);
        if (feature_set_add(set, spec, NORMALIZE_L1, err) != STATUS_OK ||
            feature_bind_model(&set->feature[i], err) != STATUS_OK)
            return err->status;
        const struct feature *feature = &set->feature[i];
        if (feature_lacks_codebook(feature))
            return error_set(err, STATUS_USAGE,
                             "feature '%s' learns a codebook from images, which only clpipe ingest "
                             "does: choose others, or preset few",
                             spec);
        call->columns += feature->dimension;
        if (preset) {
            call->unit.columns[i] = feature->dimension;
            call->unit.weight[i] = preset->feature[i].weight;
            call->unit.roots[i] = feature->normalize == NORMALIZE_L1;
            call->unit.parts = i + 1;
        }
    }
    return STATUS_OK;
}

/* --- pictures ---------------------------------------------------------------------------------- */

static struct clpipe_picture *picture_at(const struct describing *call, uint64_t i)
{
    return (struct clpipe_picture *)((char *)call->pictures + i * call->size);
}

static enum status check_picture(const struct describing *call, uint64_t i, struct error *err)
{
    struct clpipe_picture one;
    if (library_take(&one, sizeof one, picture_at(call, i), "clpipe_picture", err) != STATUS_OK)
        return err->status;
    if (one.size != call->size || one.size < sizeof one)
        return error_set(err, STATUS_USAGE, "picture %llu has another size", (unsigned long long)i);
    if (!one.path + !one.bytes + !one.pixels != 2)
        return error_set(err, STATUS_USAGE, "picture %llu needs one of path, bytes and pixels",
                         (unsigned long long)i);
    if (one.pixels && (one.width < 1 || one.height < 1 || (one.channels != 1 && one.channels != 3)))
        return error_set(err, STATUS_USAGE,
                         "picture %llu is %u x %u pixels of %u bytes; they have 1 or 3",
                         (unsigned long long)i, one.width, one.height, one.channels);
    if (one.pixels &&
        !library_strides_fit((int64_t[]){one.row_stride, one.column_stride, one.channel_stride},
                             (uint64_t[]){one.height, one.width, one.channels}, 3, 1))
        return error_set(err, STATUS_USAGE, "picture %llu has strides that cannot be",
                         (unsigned long long)i);
    return STATUS_OK;
}

/* Wraps pixels as a PNM file, so that they are decoded like all pictures. */
static void open_pixels(struct blob *blob, const struct clpipe_picture *given,
                        struct failure *failure)
{
    const uint32_t channels = given->channels, width = given->width;
    const int64_t channel = given->channel_stride ? given->channel_stride : 1;
    const int64_t column = given->column_stride ? given->column_stride : channels;
    const int64_t row = given->row_stride ? given->row_stride : (int64_t)width * channels;
    const uint64_t bytes = (uint64_t)width * given->height * channels;
    char head[48];
    const size_t begin = (size_t)snprintf(head, sizeof head, "P%d\n%u %u\n255\n",
                                          channels == 1 ? 5 : 6, width, given->height);
    uint8_t *file = bytes / channels / width == given->height ? malloc(begin + bytes) : NULL;
    if (!file) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u x %u pixels", width,
                    given->height);
        return;
    }
    memcpy(file, head, begin);
    uint8_t *to = file + begin;
    for (uint32_t y = 0; y < given->height; y++) {
        const uint8_t *from = given->pixels + (int64_t)y * row;
        if (channel == 1 && column == channels) {
            memcpy(to, from, (size_t)width * channels);
            to += (size_t)width * channels;
            continue;
        }
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < channels; c++)
                *to++ = from[(int64_t)x * column + (int64_t)c * channel];
    }
    *blob = blob_of_memory(file, begin + bytes);
}

static void open_file(struct blob *blob, const char *path, struct failure *failure)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        failure_errno(failure,
                      errno == ENOENT || errno == ENOTDIR ? REASON_VANISHED : REASON_UNREADABLE,
                      errno, "cannot open");
    else if (!S_ISREG(st.st_mode))
        failure_set(failure, REASON_UNREADABLE, "no regular file");
    else
        *blob = blob_of_file(fd, (uint64_t)st.st_size, clock_file_time(&st.st_mtim));
    if (fd >= 0 && !blob_is_open(blob))
        close(fd);
}

/* Opens the next picture for a decode thread, first those lost by a device that failed. */
static struct picture *take_picture(void *context, struct picture_waits *waits, bool wait)
{
    struct describing *call = context;
    (void)waits, (void)wait;
    if (stop_requested(call->job.stop) != STOP_NONE)
        return NULL;
    pthread_mutex_lock(&call->job.lock);
    struct picture *picture = call->again;
    const uint64_t i = picture ? picture->record.sequence : call->next;
    if (picture)
        call->again = picture->next;
    else if (i < call->count)
        call->next++;
    pthread_mutex_unlock(&call->job.lock);
    if (i == call->count)
        return NULL;
    const struct clpipe_picture *given = picture_at(call, i);
    const char *path = given->path ? given->path : ".pnm"; /* a name with an image extension */
    const struct walk_item item = {
        .sequence = i, .path = path, .path_length = (uint32_t)strlen(path)};
    if (!picture)
        picture = picture_new(&call->sink, &item);
    if (!picture) {
        struct error err = ERROR_INIT;
        error_memory(&err, sizeof *picture, "a picture");
        ingest_job_fail(&call->job, &err);
        return NULL;
    }
    if (given->pixels)
        open_pixels(&picture->blob, given, &picture->record.failure);
    else if (given->bytes)
        picture->blob = (struct blob){.fd = -1, .bytes = given->length, .memory = given->bytes};
    else
        open_file(&picture->blob, path, &picture->record.failure);
    picture->record.bytes = picture->blob.bytes;
    return picture;
}

/* As float32, as when read from a file. */
static bool put_values(float *to, const struct feature *feature, const uint32_t *words)
{
    uint32_t *stored = malloc((size_t)feature_row_words(feature) * sizeof *stored);
    const bool made = stored && feature_store_values(stored, feature, words + feature->offset);
    for (uint32_t i = 0; made && feature->normalize == NORMALIZE_NONE && i < feature->dimension;
         i++)
        to[i] = (float)stored[i];
    if (made && feature->normalize != NORMALIZE_NONE)
        stored_decode(to, feature->store, feature->normalize == NORMALIZE_UNIT, stored,
                      feature->dimension);
    free(stored);
    return made;
}

static void send_finished(void *context, struct picture *picture)
{
    struct describing *call = context;
    struct failure *failure = &picture->record.failure;
    struct clpipe_picture *out = picture_at(call, picture->record.sequence);
    float *row = call->values + picture->record.sequence * call->columns, *to = row;
    for (unsigned f = 0; failure->reason == REASON_NONE && f < call->config.features.count; f++) {
        const struct feature *feature = &call->config.features.feature[f];
        if (!put_values(to, feature, picture->counters))
            failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for values");
        to += feature->dimension;
    }
    const bool made = failure->reason == REASON_NONE;
    if (made && call->unit.parts)
        joined_unit_row(row, &call->unit);
    for (uint32_t j = 0; !made && j < call->columns; j++)
        row[j] = NAN;
    out->status = made                                      ? CLPIPE_OK
                  : failure->reason == REASON_OUT_OF_MEMORY ? CLPIPE_MEMORY
                                                            : CLPIPE_DATA;
    snprintf(out->reason, sizeof out->reason, "%s", made ? "" : reason_name(failure->reason));
    snprintf(out->message, sizeof out->message, "%s", made ? "" : failure->message);
    picture_free(picture);
    pthread_mutex_lock(&call->job.lock);
    call->job.progress.done++;
    pthread_mutex_unlock(&call->job.lock);
}

static void send_again(void *context, struct picture *picture)
{
    struct describing *call = context;
    pthread_mutex_lock(&call->job.lock);
    picture->next = call->again;
    call->again = picture;
    pthread_mutex_unlock(&call->job.lock);
}

/* --- the call ---------------------------------------------------------------------------------- */

static void show(void *context, const struct ingest_progress *progress)
{
    library_phase(context, progress->phase, progress->done, progress->total);
}

static void configure(struct describing *call, struct library *library)
{
    const struct clustering_machine *machine = &library->machine;
    struct ingest_config *config = &call->config;
    decode_options_default(&config->decode);
    config->threads = (unsigned)min_u64(call->count, machine->threads);
    config->memory =
        library->memory ? library->memory : bounds_default(MEMORY, machine->threads, false, 0);
    config->memory_streams =
        library->memory ? library->memory
                        : bounds_default(MEMORY, machine->threads, true, memory_available());
    config->device_memory = machine->device_memory;
    config->stop = machine->stop;
    config->progress = show;
    config->progress_context = library;
    call->sink = (struct picture_sink){.counters = config->features.counters,
                                       .finished = send_finished,
                                       .again = send_again,
                                       .context = call};
    ingest_job_init(&call->job, config, NULL, NULL);
    call->job.progress = (struct ingest_progress){.phase = "images", .total = call->count};
}

static enum status open_all(struct describing *call, const struct library *library,
                            struct error *err)
{
    const struct ingest_devices devices = {&library->devices, library->chosen, library->count};
    const struct plan_config plan = {.features = &call->config.features, .streams = true};
    enum status status = lanes_open(&call->lanes, &call->job, &devices, &plan, err);
    const struct decoders_config decoders = {.job = &call->job,
                                             .take = take_picture,
                                             .context = call,
                                             .lanes = &call->lanes,
                                             .open_files = 1};
    return status == STATUS_OK ? decoders_open(&call->decoders, &decoders, err) : status;
}

/* Waits until all pictures are done; those of a device that failed at the end are decoded here. */
static void finish(struct describing *call, struct error *err)
{
    for (bool ended = false; !ended;) {
        ended = decoders_wait(call->decoders, clock_now() + PROGRESS_NS);
        ingest_job_show(&call->job, clock_now());
    }
    decoders_join(call->decoders);
    staging_settle(call->job.staging);
    while (call->again && stop_requested(call->job.stop) == STOP_NONE) {
        decoders_run(call->decoders);
        staging_settle(call->job.staging);
    }
    staging_drain(call->job.staging);
    ingest_job_show(&call->job, clock_now());
    if (call->job.error.status != STATUS_OK)
        *err = call->job.error;
    else
        stop_check(call->job.stop, "describing images", err);
}

static void describe(struct describing *call, struct library *library, struct error *err)
{
    if (!call->pictures) {
        error_set(err, STATUS_USAGE, "pictures are NULL");
        return;
    }
    memcpy(&call->size, call->pictures, sizeof call->size);
    for (uint64_t i = 0; i < call->count; i++)
        if (check_picture(call, i, err) != STATUS_OK)
            return;
    configure(call, library);
    if (open_all(call, library, err) == STATUS_OK)
        finish(call, err);
    for (struct picture *picture; (picture = call->again);) {
        call->again = picture->next;
        picture_free(picture);
    }
    decoders_close(&call->decoders);
    ingest_job_clear(&call->job);
}

int clpipe_features(float *values, uint32_t *columns, struct clpipe *clpipe,
                    struct clpipe_picture *pictures, uint64_t count,
                    const struct clpipe_features *wanted, const struct clpipe_watch *watch,
                    struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct describing call = {.pictures = pictures, .count = count, .values = values};
    struct library *library = library_begin(clpipe, watch, &why);
    if (library && choose(&call, wanted, &why) == STATUS_OK) {
        if (columns)
            *columns = call.columns;
        if (values && count > 0)
            describe(&call, library, &why);
    }
    return library_end(library, &why, err);
}
