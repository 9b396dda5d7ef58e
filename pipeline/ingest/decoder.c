/* decoder.c: the decode threads: each decodes one file after another, in strips, into slots. */
#include "ingest/decoder.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/path.h"
#include "base/process.h"
#include "decode/isolate.h"
#include "decode/scale.h"
#include "decode/thumbnail.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Total file size of pictures decoded together: for larger ones the round trip to a decoder process
 * does not matter. */
#define AHEAD_BYTES (32u << 10)
/* Pixels of a picture decoded while all slots are full, in bytes. */
#define SPARE_BYTES (4u << 20)
/* Rows decoded at a time without devices. */
#define HOST_ROWS 16u
/* Memory for decoding, without the pixels. */
#define USUAL_MEMORY (16u << 20)
/* The assumed decoding time per pixel before any is measured, and its weight, in pixels. */
#define PIXEL_NS      5.0
#define PIXELS_BEFORE 262144.0

struct decoder {
    struct decoders *decoders;
    unsigned number;
    pthread_t thread;
    struct stage_times times;
    double spare_ns, spare_pixels;     /* of pictures decoded while all slots were full */
    struct thumbnail_maker *thumbnail; /* NULL: no thumbnails */
};

struct decoders {
    struct decoders_config config;
    struct decoder *decoder;
    unsigned started;

    pthread_mutex_t lock; /* guards the following */
    pthread_cond_t ended;
    unsigned running;
};

/* --- one picture ----------------------------------------------------------------------------- */

/* State of one picture, shared by its parts. */
struct strips {
    struct decoder *decoder;
    struct staging *staging; /* NULL: no devices */
    struct decode *decode;
    struct picture *picture;
    const struct image_info *info;
    uint32_t overlap; /* rows, and columns, that a part shares with the next */
    uint8_t *kept;    /* the last `overlap` rows of the previous part; NULL until needed */
    /* For the goals: the host scales a picture that is split, and without devices every one. */
    const scale_goal *goal;
    struct scaler scaler[STEP_NODES_MAX];
    unsigned goals, scalers; /* scalers: 0 until the picture turns out to be split */
    bool again;              /* start the file again, without streams */
};

/* Starts to scale the picture, before its first row is decoded. */
static enum reason begin_scaling(struct strips *strips)
{
    const struct image_info *info = strips->info;
    for (; strips->scalers < strips->goals; strips->scalers++) {
        if (!scaler_begin(&strips->scaler[strips->scalers], info->out_width, info->out_height,
                          info->orientation, strips->goal[strips->scalers]))
            return failure_set(&strips->picture->record.failure, REASON_OUT_OF_MEMORY,
                               "no memory to scale rows of %u pixels", info->out_width);
    }
    return REASON_NONE;
}

/* Passes rows to scalers and thumbnail on the host. */
static void use_rows(struct strips *strips, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    thumbnail_rows(strips->decoder->thumbnail, rgb, stride, rows);
    for (unsigned i = 0; i < strips->scalers; i++)
        scaler_rows(&strips->scaler[i], rgb, stride, rows);
}

/* Decodes the rows of a part that the previous part did not, and keeps the last ones for the next
 * part. */
static enum reason fill_part(struct strips *strips, const struct staging_part *part)
{
    const struct cell_rect rect = part->shape.rect;
    const size_t stride = part->shape.stride, kept = strips->overlap * stride;
    const uint32_t rows = rect.y1 - rect.y0, have = rect.y0 > 0 ? strips->overlap : 0;
    struct failure *failure = &strips->picture->record.failure;
    if (have > 0)
        memcpy(part->bytes, strips->kept, kept);
    enum reason reason =
        decode_rows(strips->decode, part->bytes + have * stride, stride, rows - have, failure);
    if (reason == REASON_NONE)
        use_rows(strips, part->bytes + have * stride, stride, rows - have);
    if (reason != REASON_NONE || kept == 0 || rect.y1 == strips->info->out_height)
        return reason;
    if (!strips->kept)
        strips->kept = malloc(kept);
    if (!strips->kept)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for rows of %u pixels",
                           strips->info->out_width);
    memcpy(strips->kept, part->bytes + (rows - strips->overlap) * stride, kept);
    return REASON_NONE;
}

/* Size of the picture's stream in bytes; 0: not available or not accepted by staging. */
static uint64_t bytes_of_stream(const struct strips *strips)
{
    const uint64_t most = staging_part_bytes(strips->staging);
    const uint64_t bytes = strips->info->stream_bytes;
    return strips->picture->host_only || strips->picture->no_stream || bytes > most ? 0 : bytes;
}

/* Sets the shapes of the picture's stream and coefficients, if they fit into a slot; returns how
 * many. */
static unsigned offer_coded(struct part_shape coded[2], const struct strips *strips,
                            const struct part_shape *pixels)
{
    const struct dct_layout *dct = &strips->info->dct;
    const uint64_t most = staging_part_bytes(strips->staging);
    const uint64_t stream = bytes_of_stream(strips);
    unsigned count = 0;
    for (unsigned i = 0; i < 2; i++) {
        coded[i] = *pixels;
        coded[i].dct = *dct;
    }
    if (stream > 0) {
        coded[count].payload = PAYLOAD_STREAM;
        coded[count++].bytes = stream;
    }
    if (dct->colour != DCT_NONE && !strips->picture->host_only && dct_bytes(dct) <= most) {
        coded[count].payload = PAYLOAD_DCT;
        coded[count++].bytes = dct_bytes(dct);
    }
    return count;
}

/* Memory for decoding a picture on the host while slots for its stream are full; 0: it waits. */
static uint64_t spare_memory(const struct strips *strips)
{
    const uint64_t bytes = 3ull * strips->info->out_width * strips->info->out_height;
    return bytes <= SPARE_BYTES && strips->goals == 0 && bytes_of_stream(strips) > 0 ? bytes : 0;
}

/* What the part contains of a JPEG picture. */
static enum jpeg_way way_of(const struct picture *picture, const struct part_shape *shape)
{
    return strcmp(picture->record.image.format, "jpeg") != 0 ? JPEG_NOT_DECODED
           : shape->payload == PAYLOAD_STREAM                ? JPEG_STREAM
           : shape->payload == PAYLOAD_DCT                   ? JPEG_COEFFICIENTS
                                                             : JPEG_PIXELS;
}

static bool do_spare(struct strips *strips, uint32_t *bottom);

/* Acquires space for a rectangle of pixels and decodes rows into it, or copies them from `window`;
 * or writes the stream or coefficients if the device accepts them. false: the run is over. Failures
 * are stored in the picture's record. *bottom: end of the part. */
static bool do_part(struct strips *strips, struct cell_rect rect, const uint8_t *window,
                    uint32_t *bottom)
{
    struct picture *picture = strips->picture;
    const struct image_info *info = strips->info;
    const struct part_shape pixels = {.width = info->out_width,
                                      .height = info->out_height,
                                      .orientation = info->orientation,
                                      .rect = rect};
    struct part_shape coded[2];
    struct staging_part part;
    const unsigned count = window ? 0 : offer_coded(coded, strips, &pixels);
    const bool spare = !window && part_is_whole(&pixels) && spare_memory(strips) > 0;
    const double pixel_ns = strips->decoder->spare_ns / strips->decoder->spare_pixels;
    struct staging_else other = {
        .rate = 3e9 / pixel_ns * strips->decoder->decoders->config.job->config->threads,
        .patience = (int64_t)(pixel_ns * (double)info->out_width * info->out_height)};
    int64_t start = clock_now();
    if (!staging_acquire(strips->staging, &part, &pixels, coded, count, spare ? &other : NULL)) {
        strips->decoder->times.blocked += clock_seconds_since(start);
        return other.full && do_spare(strips, bottom);
    }
    strips->decoder->times.blocked += clock_seconds_since(start);
    start = clock_now();
    enum reason reason = REASON_NONE;
    if (strips->scalers == 0 && !part_is_whole(&part.shape))
        reason = begin_scaling(strips);
    if (reason != REASON_NONE) {
        /* The part is cancelled below. */
    } else if (window) {
        for (uint32_t y = 0; y < part.shape.rect.y1 - rect.y0; y++)
            memcpy(part.bytes + (size_t)y * part.shape.stride,
                   window + ((size_t)y * info->out_width + rect.x0) * 3, part.shape.stride);
    } else if (part.shape.payload == PAYLOAD_STREAM) {
        strips->again = picture->no_stream = !decode_stream(strips->decode, part.bytes);
    } else if (part.shape.payload == PAYLOAD_DCT) {
        reason = decode_coefficients(strips->decode, part.bytes, &picture->record.failure);
        if (reason == REASON_NONE && picture->sink->thumbnail_size == 0)
            thumbnail_coefficients(strips->decoder->thumbnail, part.bytes, &part.shape.dct);
    } else {
        reason = fill_part(strips, &part);
    }
    strips->decoder->times.busy += clock_seconds_since(start);
    if (reason != REASON_NONE || strips->again) {
        staging_cancel(strips->staging, &part);
        return true;
    }
    *bottom = part.shape.rect.y1;
    if (rect.x0 == 0 && rect.y0 == 0) /* before submit makes the record visible to others */
        picture->way = way_of(picture, &part.shape);
    picture_hold(picture);
    staging_submit(strips->staging, &part, picture);
    return true;
}

/* All slots are full: decodes the picture on the host and then waits for space, so the threads add
 * to the devices' throughput. */
static bool do_spare(struct strips *strips, uint32_t *bottom)
{
    const struct image_info *info = strips->info;
    const size_t row = (size_t)info->out_width * 3;
    struct failure *failure = &strips->picture->record.failure;
    uint8_t *rows = malloc(row * info->out_height);
    if (!rows) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u rows of %u pixels",
                    info->out_height, info->out_width);
        return true;
    }
    const int64_t start = clock_now();
    if (decode_rows(strips->decode, rows, row, info->out_height, failure) == REASON_NONE)
        use_rows(strips, rows, row, info->out_height);
    const double seconds = clock_seconds_since(start);
    strips->decoder->times.busy += seconds;
    strips->decoder->spare_ns += seconds * 1e9;
    strips->decoder->spare_pixels += (double)info->out_width * info->out_height;
    bool going = true;
    uint32_t y = 0;
    for (*bottom = 0; *bottom < info->out_height && failure->reason == REASON_NONE && going;) {
        going = do_part(strips, (struct cell_rect){0, y, info->out_width, info->out_height},
                        rows + y * row, bottom);
        y = *bottom - strips->overlap;
    }
    free(rows);
    return going;
}

/* A picture whose rows, with the overlap, do not fit into a slot: decodes rows into a buffer and
 * submits them in segments. */
static bool do_wide(struct strips *strips, uint64_t part_bytes)
{
    const struct image_info *info = strips->info;
    const uint32_t overlap = strips->overlap, width = info->out_width;
    const uint32_t rows = min_u32(overlap + 1, info->out_height); /* per segment */
    const uint32_t columns = (uint32_t)(part_bytes / 3 / (overlap + 1));
    const size_t row = (size_t)width * 3;
    if (begin_scaling(strips) != REASON_NONE)
        return true;
    uint8_t *window = malloc(rows * row);
    if (!window) {
        failure_set(&strips->picture->record.failure, REASON_OUT_OF_MEMORY,
                    "no memory for rows of %u pixels", width);
        return true;
    }
    bool going = true;
    for (uint32_t y = 0; y < info->out_height && going; y++) {
        if (y > 0 && stop_overdue(strips->decoder->decoders->config.job->stop)) {
            going = false;
            break;
        }
        int64_t start = clock_now();
        uint8_t *last = window + min_u32(y, rows - 1) * row;
        enum reason reason =
            decode_rows(strips->decode, last, row, 1, &strips->picture->record.failure);
        if (reason == REASON_NONE)
            use_rows(strips, last, row, 1);
        strips->decoder->times.busy += clock_seconds_since(start);
        if (reason != REASON_NONE)
            break;
        if (y + 1 < rows)
            continue;
        for (uint32_t x = 0, end = 0; end < width && going; x = end - overlap) {
            uint32_t bottom;
            end = width - x > columns ? x + columns : width;
            going =
                do_part(strips, (struct cell_rect){x, y + 1 - rows, end, y + 1}, window, &bottom);
        }
        memmove(window, window + row, (rows - 1) * row);
    }
    free(window);
    return going;
}

static bool is_wide(uint64_t width, uint32_t overlap, uint64_t part_bytes)
{
    return width * 3 * (overlap + 1) > part_bytes;
}

/* Memory for rows outside of slots. */
static uint64_t rows_memory(const struct strips *strips)
{
    const struct image_info *info = strips->info;
    const uint64_t row = (uint64_t)info->out_width * 3;
    uint64_t bytes = 0, rows = HOST_ROWS;
    if (strips->staging) {
        const uint64_t part_bytes = staging_part_bytes(strips->staging);
        const bool wide = is_wide(info->out_width, strips->overlap, part_bytes);
        bytes = spare_memory(strips);
        if (row * info->out_height <= part_bytes && !wide)
            return bytes;
        rows = strips->overlap + wide;
    }
    for (unsigned i = 0; i < strips->goals; i++)
        bytes +=
            scaler_bytes(info->out_width, info->out_height, info->orientation, strips->goal[i]);
    return bytes + row * rows;
}

/* Without devices: decodes a picture for the scalers. */
static void do_host(struct strips *strips)
{
    const struct image_info *info = strips->info;
    const size_t row = (size_t)info->out_width * 3;
    struct failure *failure = &strips->picture->record.failure;
    uint8_t *rows = malloc(row * HOST_ROWS);
    if (!rows)
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for rows of %u pixels",
                    info->out_width);
    else
        begin_scaling(strips);
    for (uint32_t y = 0; y < info->out_height && failure->reason == REASON_NONE; y += HOST_ROWS) {
        const uint32_t count = min_u32(HOST_ROWS, info->out_height - y);
        if (decode_rows(strips->decode, rows, row, count, failure) == REASON_NONE)
            use_rows(strips, rows, row, count);
    }
    free(rows);
}

/* Submits or describes the picture as scaled by the host. false: the run is over. */
static bool give_scaled(struct strips *strips)
{
    const struct decoders_config *config = &strips->decoder->decoders->config;
    for (unsigned i = 0; i < strips->scalers; i++) {
        const struct scaler *scaler = &strips->scaler[i];
        const bool swapped = strips->info->orientation >= 5;
        const struct scale_window *window = &scaler->window;
        const uint32_t width = swapped ? window->height : window->width;
        const uint32_t height = swapped ? window->width : window->height;
        if (!strips->staging) {
            config->describe(
                strips->picture, strips->goal[i],
                &(struct descriptor_picture){scaler->pixels, (size_t)3 * width, width, height});
            continue;
        }
        const struct part_shape shape = {.width = width,
                                         .height = height,
                                         .orientation = 1,
                                         .rect = {0, 0, width, height},
                                         .scaled = strips->goal[i]};
        struct staging_part part;
        const int64_t start = clock_now();
        if (!staging_acquire(strips->staging, &part, &shape, NULL, 0, NULL))
            return false;
        strips->decoder->times.blocked += clock_seconds_since(start);
        assert(part_is_whole(&part.shape));
        memcpy(part.bytes, scaler->pixels, part.shape.bytes);
        picture_hold(strips->picture);
        staging_submit(strips->staging, &part, strips->picture);
    }
    return true;
}

/* Decodes a picture into slots once its header is read. false: the run is over. */
static bool do_strips(struct strips *strips)
{
    const uint32_t height = strips->info->out_height;
    struct picture *picture = strips->picture;
    const uint64_t part_bytes = staging_part_bytes(strips->staging);
    if (is_wide(strips->info->out_width, strips->overlap, part_bytes))
        return do_wide(strips, part_bytes);
    /* Rows of a part: all, or as many as fit into half a slot, but at least one and the overlap. */
    const uint64_t row = (uint64_t)strips->info->out_width * 3, rows = part_bytes / 2 / row;
    const uint32_t least = strips->overlap + 1;
    const uint32_t step = row * height <= part_bytes ? height
                          : rows > least             ? (uint32_t)rows
                                                     : least;
    /* A stream is smaller than its pixels. */
    const bool stream = bytes_of_stream(strips) > 0;
    uint32_t y = 0, bottom = 0;
    bool going = true;
    while (bottom < height && picture->record.failure.reason == REASON_NONE && going &&
           !strips->again) {
        if (y > 0 && stop_overdue(strips->decoder->decoders->config.job->stop)) {
            going = false;
            break;
        }
        going =
            do_part(strips,
                    (struct cell_rect){0, y, strips->info->out_width,
                                       height - y > step && (y > 0 || !stream) ? y + step : height},
                    NULL, &bottom);
        y = bottom - strips->overlap;
    }
    return going;
}

/* All parts of a picture; returns like do_strips. */
static bool do_rows(struct strips *strips)
{
    bool going = true;
    if (strips->staging)
        going = do_strips(strips);
    else
        do_host(strips);
    if (going && strips->picture->record.failure.reason == REASON_NONE)
        going = give_scaled(strips);
    for (unsigned i = 0; i < strips->scalers; i++)
        scaler_clear(&strips->scaler[i]);
    free(strips->kept);
    return going;
}

/* After decoding: stores the picture's thumbnail if there is one. A missing thumbnail is not a
 * failure. */
static void take_thumbnail(struct decoder *decoder, struct picture *picture)
{
    struct store_record *record = &picture->record;
    free(picture->thumbnail);
    picture->thumbnail = thumbnail_finish(decoder->thumbnail, &record->thumbnail_length);
    record->thumbnail = picture->thumbnail;
    record->thumbnail_size =
        picture->thumbnail ? (uint16_t)decoder->decoders->config.thumbnail_size : 0;
}

static bool is_ready(struct ingest_job *job, struct decode *decode)
{
    struct error err = ERROR_INIT;
    if (decode_ready(decode, &err) == STATUS_OK)
        return true;
    ingest_job_fail(job, &err);
    return false;
}

/* Features' pixels are not always suitable for display: with transparency or a profile, or scaled
 * below the thumbnail's size. */
static void plan_for_display(struct decoder *decoder, struct picture *picture,
                             const struct image_info *info)
{
    const uint32_t size = decoder->decoders->config.thumbnail_size;
    const uint32_t longest = max_u32(info->width, info->height);
    const bool alpha = info->channels % 2 == 0 && strcmp(info->format, "jpeg") != 0;
    const bool small = max_u32(info->out_width, info->out_height) < min_u32(size, longest);
    const bool profile = info->profile && decode_icc_library();
    picture->display_scale = decoder->thumbnail && (profile || alpha || small)
                                 ? decode_scale_for(info->width, info->height, size)
                                 : 0;
    picture->only_profile = !alpha && !small;
}

/* Decodes a picture again for a thumbnail for display; if that fails, keeps the thumbnail of the
 * features' pixels. false: the run is over. */
static bool do_for_display(struct decoder *decoder, struct decode *decode, struct picture *picture)
{
    const struct decoders_config *config = &decoder->decoders->config;
    struct stop *stop = config->job->stop;
    struct image_info info;
    struct failure failure;
    if (picture->display_scale == 0 || picture->record.failure.reason != REASON_NONE)
        return true;
    if (!is_ready(config->job, decode))
        return false;
    const int64_t start = clock_now();
    decode_for_display(decode, picture->display_scale);
    if (decode_begin(decode, &picture->blob, picture->path, &info, &failure) == REASON_NONE) {
        const uint64_t memory = info.memory + max_u64(THUMBNAIL_STRIP, 3ull * info.out_width);
        const bool wanted = info.profile || !picture->only_profile;
        const bool taken = wanted && budget_take(config->job->budget, memory);
        if (taken && thumbnail_decode(decoder->thumbnail, decode, &info, stop))
            take_thumbnail(decoder, picture);
        else
            decode_abort(decode);
        if (taken)
            budget_give(config->job->budget, memory);
    }
    decoder->times.busy += clock_seconds_since(start);
    return true;
}

/* Processes an open file. false: the run is over. */
static bool do_file(struct decoder *decoder, struct decode *decode, struct picture *picture)
{
    const struct decoders_config *config = &decoder->decoders->config;
    const struct ingest_config *ingest = config->job->config;
    struct failure *failure = &picture->record.failure;
    struct image_info info;
    int64_t start = clock_now();
    enum reason reason = decode_begin(decode, &picture->blob, picture->path, &info, failure);
    decoder->times.busy += clock_seconds_since(start);
    if (reason != REASON_NONE)
        return true;
    struct store_record *record = &picture->record;
    const bool swapped = info.orientation >= 5;
    memcpy(record->image.format, info.format, sizeof record->image.format);
    record->image.width = swapped ? info.height : info.width;
    record->image.height = swapped ? info.width : info.height;
    record->image.orientation = info.orientation;
    record->image.channels = info.channels;
    picture->progressive = info.progressive;
    plan_for_display(decoder, picture, &info);
    picture->pixels = (uint64_t)info.out_width * info.out_height;
    if (ingest->dry_run) {
        decode_abort(decode);
        return true;
    }
    if (!picture->counters)
        picture->counters =
            malloc(((size_t)picture->sink->counters + 1) * sizeof *picture->counters);
    if (!picture->counters) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for the counters");
        decode_abort(decode);
        return true;
    }
    struct staging *staging = config->job->staging;
    struct strips strips = {
        .decoder = decoder,
        .staging = staging,
        .decode = decode,
        .picture = picture,
        .info = &info,
        .overlap = staging ? staging_overlap(staging) : 0,
        .goal = config->goal,
        .goals = config->goals,
    };
    const uint64_t memory = info.memory + rows_memory(&strips);
    start = clock_now();
    if (!budget_take(config->job->budget, memory)) {
        decode_abort(decode);
        return false;
    }
    decoder->times.blocked += clock_seconds_since(start);
    thumbnail_begin(decoder->thumbnail, info.out_width, info.out_height, info.orientation);
    bool going = do_rows(&strips);
    if (strips.again) {
        decode_abort(decode);
        budget_give(config->job->budget, memory);
        return do_file(decoder, decode, picture);
    }
    start = clock_now();
    if (going && failure->reason == REASON_NONE)
        decode_end(decode, picture->record.image.digest, failure);
    if (!going || failure->reason != REASON_NONE)
        decode_abort(decode);
    else
        take_thumbnail(decoder, picture);
    budget_give(config->job->budget, memory);
    picture->bytes_read = decode_bytes_read(decode);
    decoder->times.busy += clock_seconds_since(start);
    return going;
}

/* false: the run is over. */
static bool do_picture(struct decoder *decoder, struct decode *decode, struct picture *picture)
{
    struct ingest_job *job = decoder->decoders->config.job;
    struct trace *trace = job->config->trace;
    if (!blob_is_open(&picture->blob))
        return true;
    unsigned track = 0;
    if (trace) {
        char name[32];
        snprintf(name, sizeof name, "decode %u", decoder->number + 1);
        track = trace_track(trace, "host", name);
    }
    if (!is_ready(job, decode))
        return false;
    int64_t start = clock_now();
    bool going = do_file(decoder, decode, picture);
    /* If no decoder can be started any more, the crash was not the file's fault. */
    if (picture->record.failure.reason == REASON_DECODER_CRASHED && !is_ready(job, decode))
        going = false;
    /* It may have failed because reading was stopped. */
    if (picture->record.failure.reason != REASON_NONE && stop_overdue(job->stop))
        going = false;
    trace_span(trace, track, "decode", start, clock_now(), picture->path);
    return going;
}

/* --- lack of resources ----------------------------------------------------------------------- */

/* The errno of a resource that the process lacked when the picture failed; 0: the failure is the
 * picture's own. A codec that got no memory may have asked for too much, unless even the memory for
 * decoding is not available. */
static int shortage_of(const struct decoder *decoder, const struct picture *picture)
{
    const struct failure *failure = &picture->record.failure;
    if (failure->reason == REASON_NONE || process_is_short(failure->error_number))
        return failure->error_number;
    if (failure->reason != REASON_OUT_OF_MEMORY || decoder->decoders->config.job->config->isolate)
        return 0;
    const size_t bytes = USUAL_MEMORY + picture->record.image.bytes + 8 * picture->pixels;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return ENOMEM;
    munmap(memory, bytes);
    return 0;
}

/* Retries, after a delay, a picture that failed for lack of resources; false: the run is over. */
static bool begin_again(struct decoder *decoder, struct picture *picture)
{
    struct ingest_job *job = decoder->decoders->config.job;
    struct failure *failure = &picture->record.failure;
    const int number = shortage_of(decoder, picture);
    struct error err = ERROR_INIT;
    if (number == 0)
        return true;
    if (process_wait_for(&picture->short_since, number, "what decoding needs")) {
        picture_begin_again(picture);
        return true;
    }
    error_set(&err, STATUS_FAILED, "%s: %s%s", PATH_TEXT(picture->path), failure->message,
              process_limits());
    error_remedy(&err, number == ENOMEM ? REMEDY_LESS_MEMORY : REMEDY_NONE);
    ingest_job_fail(job, &err);
    return false;
}

/* --- a thread -------------------------------------------------------------------------------- */

/* Takes one picture, or several small ones to decode together; returns how many, 0 at the end. */
static unsigned take_pictures(struct picture **pictures, struct decoder *decoder,
                              struct decode *decode)
{
    const struct decoders_config *config = &decoder->decoders->config;
    const unsigned ahead = decode_ahead(decode);
    const unsigned most = ahead < config->open_files ? ahead : config->open_files;
    struct decode_file file[DECODE_AHEAD_MAX];
    uint64_t bytes = 0;
    unsigned count = 0, files = 0;
    while (count < most && bytes < AHEAD_BYTES) {
        struct picture *picture = config->take(config->context, &decoder->times, count == 0);
        if (!picture)
            break;
        pictures[count++] = picture;
        if (!blob_is_open(&picture->blob))
            break;
        bytes += picture->record.image.bytes;
        file[files++] = (struct decode_file){&picture->blob, picture->path};
    }
    if (files > 0)
        decode_announce(decode, file, files);
    return count;
}

static void decode_pictures(struct decoder *decoder)
{
    const struct decoders_config *config = &decoder->decoders->config;
    const struct ingest_config *ingest = config->job->config;
    struct decode *decode = NULL;
    struct error err = ERROR_INIT;
    struct picture *pictures[DECODE_AHEAD_MAX];
    unsigned count;
    struct decode_options options = ingest->decode;
    options.coefficients = config->coefficients;
    options.streams = config->streams;
    options.stop = config->job->stop;
    bool going = (ingest->isolate ? decode_open_isolated(&decode, ingest->isolate, &err)
                                  : decode_open(&decode, &options, &err)) == STATUS_OK;
    if (!going)
        ingest_job_fail(config->job, &err);
    if (config->thumbnail_size > 0)
        decoder->thumbnail = thumbnail_maker_new(config->thumbnail_size, false);
    while (going && (count = take_pictures(pictures, decoder, decode)) > 0) {
        for (unsigned i = 0; i < count; i++) {
            going = going && do_picture(decoder, decode, pictures[i]) &&
                    begin_again(decoder, pictures[i]);
            /* Parts already submitted still hold it. */
            pictures[i]->dropped = !going;
        }
        /* Only now: not while files are announced (decode.h). */
        for (unsigned i = 0; i < count; i++) {
            going = going && do_for_display(decoder, decode, pictures[i]);
            if (!pictures[i]->once)
                blob_close(&pictures[i]->blob);
            picture_release(pictures[i]);
        }
    }
    decode_close(&decode);
    thumbnail_maker_free(decoder->thumbnail);
    decoder->thumbnail = NULL;
}

static void *decoder_main(void *argument)
{
    struct decoder *decoder = argument;
    struct decoders *decoders = decoder->decoders;
    decode_pictures(decoder);
    pthread_mutex_lock(&decoders->lock);
    decoders->running--;
    pthread_cond_broadcast(&decoders->ended);
    pthread_mutex_unlock(&decoders->lock);
    return NULL;
}

/* --- all threads ----------------------------------------------------------------------------- */

enum status decoders_open(struct decoders **out, const struct decoders_config *config,
                          struct error *err)
{
    const unsigned threads = config->job->config->threads;
    struct decoders *decoders = *out = calloc(1, sizeof *decoders);
    if (!decoders)
        return error_memory(err, sizeof *decoders, "decode threads");
    decoders->config = *config;
    if (config->job->staging)
        decoders->config.goals = staging_goals(decoders->config.goal, config->job->staging);
    pthread_mutex_init(&decoders->lock, NULL);
    cond_init_monotonic(&decoders->ended);
    decoders->decoder = calloc(threads, sizeof *decoders->decoder);
    if (!decoders->decoder)
        return error_memory(err, threads * sizeof *decoders->decoder, "decode threads");
    int code = 0;
    while (code == 0 && decoders->started < threads) {
        struct decoder *decoder = &decoders->decoder[decoders->started];
        *decoder = (struct decoder){.decoders = decoders,
                                    .number = decoders->started,
                                    .spare_ns = PIXEL_NS * PIXELS_BEFORE,
                                    .spare_pixels = PIXELS_BEFORE};
        pthread_mutex_lock(&decoders->lock);
        code = pthread_create(&decoder->thread, NULL, decoder_main, decoder);
        decoders->running += code == 0;
        decoders->started += code == 0;
        pthread_mutex_unlock(&decoders->lock);
    }
    if (decoders->started == 0)
        return error_errno(err, STATUS_FAILED, code, "pthread_create", "cannot start a thread");
    if (code != 0)
        log_message(LOG_NOTICE, "notice: only %u of %u decode threads could be started: %s",
                    decoders->started, threads, strerror(code));
    return STATUS_OK;
}

bool decoders_wait(struct decoders *decoders, int64_t deadline)
{
    pthread_mutex_lock(&decoders->lock);
    if (decoders->running > 0)
        cond_wait_until(&decoders->ended, &decoders->lock, deadline);
    const bool ended = decoders->running == 0;
    pthread_mutex_unlock(&decoders->lock);
    return ended;
}

void decoders_join(struct decoders *decoders)
{
    for (unsigned i = 0; i < decoders->started; i++)
        pthread_join(decoders->decoder[i].thread, NULL);
}

void decoders_run(struct decoders *decoders)
{
    decode_pictures(&decoders->decoder[0]);
}

void decoders_times(const struct decoders *decoders, struct stage_times *times)
{
    times->threads = decoders->started;
    for (unsigned i = 0; i < decoders->started; i++) {
        const struct decoder *decoder = &decoders->decoder[i];
        times->busy += decoder->times.busy;
        times->starved += decoder->times.starved;
        times->blocked += decoder->times.blocked;
    }
}

void decoders_close(struct decoders **out)
{
    struct decoders *decoders = *out;
    if (!decoders)
        return;
    pthread_cond_destroy(&decoders->ended);
    pthread_mutex_destroy(&decoders->lock);
    free(decoders->decoder);
    free(decoders);
    *out = NULL;
}
