/* features.c: features of the caller's pictures. */
#include "base/cpus.h"
#include "base/minmax.h"
#include "features/preset.h"
#include "ingest/bounds.h"
#include "ingest/describing.h"
#include "library/library.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY (256u << 20) /* as in an ingest */

/* A call. */
struct call {
    struct clpipe_picture *pictures;
    size_t size; /* size of each picture struct, as set by the caller */
    struct describing describing;
};

/* --- which features ---------------------------------------------------------------------------- */

static bool choose(struct call *call, const struct clpipe_features *given, struct error *err)
{
    struct clpipe_features wanted;
    if (!library_take(&wanted, sizeof wanted, given, "clpipe_features", err) ||
        !REQUIRE(wanted.preset ? wanted.count == 0
                               : wanted.count >= 1 && wanted.count <= FEATURE_MAX && wanted.specs,
                 err, "features need either a preset or 1 to %u specs", FEATURE_MAX))
        return false;
    const struct preset *preset = wanted.preset ? preset_find(wanted.preset) : NULL;
    if (!REQUIRE(preset || !wanted.preset, err, "there is no preset '%s'", wanted.preset))
        return false;
    const unsigned count = preset ? preset_count(preset) : wanted.count;
    for (unsigned i = 0; i < count; i++) {
        const char *spec = preset ? preset->feature[i].spec : wanted.specs[i];
        const double weight = preset ? preset->feature[i].weight : 1;
        if (!REQUIRE(spec, err, "spec %u is NULL", i) ||
            describing_add(&call->describing, spec, weight, err) != STATUS_OK ||
            !REQUIRE(!feature_lacks_codebook(&call->describing.config.features.feature[i]), err,
                     "feature '%s' learns a codebook from images, which only clpipe ingest does: "
                     "choose other features, or the preset few",
                     spec))
            return false;
    }
    call->describing.join.unit = preset;
    return true;
}

/* --- pictures ---------------------------------------------------------------------------------- */

static struct clpipe_picture *picture_at(const struct call *call, uint64_t i)
{
    return (struct clpipe_picture *)((char *)call->pictures + i * call->size);
}

static bool check_picture(const struct call *call, uint64_t i, struct error *err)
{
    const unsigned long long number = i;
    struct clpipe_picture one;
    return library_take(&one, sizeof one, picture_at(call, i), "clpipe_picture", err) &&
           REQUIRE(one.size == call->size && one.size >= sizeof one, err,
                   "struct clpipe_picture %llu has a different size", number) &&
           REQUIRE(!one.path + !one.bytes + !one.pixels == 2, err,
                   "picture %llu needs one of path, bytes and pixels", number) &&
           REQUIRE(!one.pixels || (one.width > 0 && one.height > 0 &&
                                   (one.channels == 1 || one.channels == 3)),
                   err, "picture %llu is %u x %u pixels of %u channels: it needs pixels, of 1 or 3",
                   number, one.width, one.height, one.channels) &&
           REQUIRE(!one.pixels ||
                       library_strides_fit(
                           (int64_t[]){one.row_stride, one.column_stride, one.channel_stride},
                           (uint64_t[]){one.height, one.width, one.channels}, 3, 1),
                   err, "picture %llu has invalid strides", number);
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

static const char *open_picture(void *context, uint64_t i, struct blob *blob,
                                struct failure *failure)
{
    const struct clpipe_picture *given = picture_at(context, i);
    if (given->pixels)
        open_pixels(blob, given, failure);
    else if (given->bytes)
        *blob = (struct blob){.fd = -1, .bytes = given->length, .memory = given->bytes};
    else
        blob_open_file(blob, given->path, failure);
    return given->path ? given->path : ".pnm";
}

static void end_picture(void *context, uint64_t i, const struct failure *failure)
{
    struct clpipe_picture *out = picture_at(context, i);
    const bool made = failure->reason == REASON_NONE;
    out->status = made                                      ? CLPIPE_OK
                  : failure->reason == REASON_OUT_OF_MEMORY ? CLPIPE_MEMORY
                                                            : CLPIPE_DATA;
    snprintf(out->reason, sizeof out->reason, "%s", made ? "" : reason_name(failure->reason));
    snprintf(out->message, sizeof out->message, "%s", made ? "" : failure->message);
}

/* --- the call ---------------------------------------------------------------------------------- */

static void show(void *context, const struct ingest_progress *progress)
{
    library_phase(context, progress->phase, progress->done, progress->total);
}

/* Uses the options of an ingest for which none are given. */
static void configure(struct describing *out, const struct library *library)
{
    const struct clustering_machine *machine = &library->machine;
    const uint64_t given = library->memory;
    struct ingest_config *config = &out->config;
    decode_options_default(&config->decode);
    config->threads = (unsigned)min_u64(out->count, machine->threads);
    config->memory = given ? given : bounds_default(MEMORY, machine->threads, false, 0);
    config->memory_streams =
        given ? given : bounds_default(MEMORY, machine->threads, true, memory_available());
    config->device_memory = machine->device_memory;
    config->stop = machine->watch.stop;
    config->progress = show;
    config->progress_context = machine->watch.context;
    out->devices = machine->found;
}

int clpipe_features(float *values, uint32_t *columns, struct clpipe *clpipe,
                    struct clpipe_picture *pictures, uint64_t count,
                    const struct clpipe_features *wanted, const struct clpipe_watch *watch,
                    struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct call call = {.pictures = pictures,
                        .describing = {.count = count,
                                       .values = values,
                                       .open = open_picture,
                                       .done = end_picture,
                                       .context = &call}};
    struct library *library = library_begin(clpipe, watch, &why);
    if (!library || !choose(&call, wanted, &why))
        return library_end(library, &why, err);
    if (columns)
        *columns = call.describing.columns;
    if (values && count > 0 && REQUIRE(pictures, &why, "pictures are NULL")) {
        uint64_t good = 0;
        memcpy(&call.size, pictures, sizeof call.size);
        while (good < count && check_picture(&call, good, &why))
            good++;
        configure(&call.describing, library);
        if (good == count)
            describing_run(&call.describing, &why);
    }
    return library_end(library, &why, err);
}
