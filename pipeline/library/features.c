/* features.c: features of the caller's pictures. */
#include "base/clock.h"
#include "base/cpus.h"
#include "features/preset.h"
#include "ingest/bounds.h"
#include "ingest/values_job.h"
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

#define MEMORY (256u << 20) /* as for an ingest */

/* A call. */
struct describing {
    struct library *library;
    struct clpipe_picture *pictures;
    size_t size; /* of each, as the caller has it */
    float *values;
    uint32_t columns;
    const struct feature_set *features;
    struct joined_unit unit; /* of a preset; 0 parts: none */
};

/* --- which features ---------------------------------------------------------------------------- */

static enum status choose(struct feature_set *set, struct describing *call,
                          const struct clpipe_features *given, struct error *err)
{
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

/* As a file of the format PNM, so that pixels take the way of all. */
static void open_pixels(struct blob *blob, const struct clpipe_picture *picture,
                        struct failure *failure)
{
    const uint32_t channels = picture->channels, width = picture->width;
    const int64_t channel = picture->channel_stride ? picture->channel_stride : 1;
    const int64_t column = picture->column_stride ? picture->column_stride : channels;
    const int64_t row = picture->row_stride ? picture->row_stride : (int64_t)width * channels;
    const uint64_t bytes = (uint64_t)width * picture->height * channels;
    char head[48];
    const size_t begin = (size_t)snprintf(head, sizeof head, "P%d\n%u %u\n255\n",
                                          channels == 1 ? 5 : 6, width, picture->height);
    uint8_t *file = bytes / channels / width == picture->height ? malloc(begin + bytes) : NULL;
    if (!file) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u x %u pixels", width,
                    picture->height);
        return;
    }
    memcpy(file, head, begin);
    uint8_t *to = file + begin;
    for (uint32_t y = 0; y < picture->height; y++) {
        const uint8_t *from = picture->pixels + (int64_t)y * row;
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

static void open_picture(void *context, uint64_t i, struct blob *blob, const char **path,
                         struct failure *failure)
{
    const struct clpipe_picture *picture = picture_at(context, i);
    struct stat st;
    *path = picture->path ? picture->path : ".pnm"; /* whose name promises an image */
    if (picture->pixels) {
        open_pixels(blob, picture, failure);
    } else if (picture->bytes) {
        *blob = (struct blob){.fd = -1, .bytes = picture->length, .memory = picture->bytes};
    } else {
        const int fd = open(picture->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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
}

/* As float32, as they are read from a file. */
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

static void take_picture(void *context, uint64_t i, const uint32_t *words,
                         const struct failure *failure)
{
    const struct describing *call = context;
    struct clpipe_picture *picture = picture_at(call, i);
    float *row = call->values + i * call->columns, *to = row;
    struct failure why = *failure;
    for (unsigned f = 0; words && f < call->features->count; f++) {
        const struct feature *feature = &call->features->feature[f];
        if (!put_values(to, feature, words)) {
            failure_set(&why, REASON_OUT_OF_MEMORY, "no memory for values");
            words = NULL;
        }
        to += feature->dimension;
    }
    if (words && call->unit.parts)
        joined_unit_row(row, &call->unit);
    for (uint32_t j = 0; !words && j < call->columns; j++)
        row[j] = NAN;
    picture->status = words                                ? CLPIPE_OK
                      : why.reason == REASON_OUT_OF_MEMORY ? CLPIPE_MEMORY
                                                           : CLPIPE_DATA;
    snprintf(picture->reason, sizeof picture->reason, "%s", words ? "" : reason_name(why.reason));
    snprintf(picture->message, sizeof picture->message, "%s", words ? "" : why.message);
}

static void show(void *context, const struct ingest_progress *progress)
{
    library_phase(context, "images", progress->done, progress->total);
}

int clpipe_features(float *values, uint32_t *columns, struct clpipe *clpipe,
                    struct clpipe_picture *pictures, uint64_t count,
                    const struct clpipe_features *wanted, const struct clpipe_watch *watch,
                    struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct describing call = {.pictures = pictures, .values = values};
    struct values_job job = {
        .count = count, .open = open_picture, .take = take_picture, .context = &call};
    int code;
    struct library *library = library_begin(clpipe, watch, err, &code);
    if (!library)
        return code;
    const struct clustering_machine *machine = &library->machine;
    call.library = library;
    call.features = &job.config.features;
    enum status status = choose(&job.config.features, &call, wanted, &why);
    if (status == STATUS_OK && columns)
        *columns = call.columns;
    if (status == STATUS_OK && values && count > 0 && !pictures)
        status = error_set(&why, STATUS_USAGE, "pictures are NULL");
    if (pictures && count > 0)
        memcpy(&call.size, pictures, sizeof call.size);
    for (uint64_t i = 0; values && i < count && status == STATUS_OK; i++)
        status = check_picture(&call, i, &why);
    if (status == STATUS_OK && values && count > 0) {
        decode_options_default(&job.config.decode);
        job.config.threads = (unsigned)(count < machine->threads ? count : machine->threads);
        job.config.memory =
            library->memory ? library->memory : bounds_default(MEMORY, machine->threads, false, 0);
        job.config.memory_streams =
            library->memory ? library->memory
                            : bounds_default(MEMORY, machine->threads, true, memory_available());
        job.config.device_memory = machine->device_memory;
        job.config.stop = machine->stop;
        job.config.progress = show;
        job.config.progress_context = library;
        job.devices = (struct ingest_devices){&library->devices, library->chosen, library->count};
        status = values_job_run(&job, &why);
    }
    return library_end(library, status, &why, err);
}
