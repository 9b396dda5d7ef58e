/* bench.c: measures histogram kernels on a full slot.
 *
 * The pixels of every shape repeat after PERIOD_BYTES, so the expected counts of a gigabyte
 * follow from those of a few megabytes by the C reference: a picture consists of whole periods and
 * a remainder. */
#include "device/bench.h"

#include "base/clock.h"
#include "base/held.h"
#include "base/random.h"
#include "base/workers.h"
#include "features/kind.h"

#include <stdlib.h>
#include <string.h>

#define LARGE_WIDTH  4096u
#define PERIOD_BYTES (LARGE_WIDTH * 3 * 96u)
#define ALIGNMENT    128u /* of pictures, as in a slot */
#define ROUNDS_MAX   1000u
#define ROUNDS_LEAST 3u
#define SECONDS_MOST 2
#define BYTES_SHARED (64ull << 20)
#define BYTES_COPIED (1ull << 30)
#define BYTES_MIN    (1ull << 20)
#define TABLES       4 /* of a thread of the plain loop */

struct bench {
    struct bench_config config;
    struct ocl_context *context;
    struct ocl_queue *queue;
    uint64_t capacity; /* bytes of the pixel buffer */
    cl_mem pixels, pinned, sink;
    uint8_t *host; /* `capacity` bytes; pinned if the device copies */
    cl_kernel read_kernel;
    /* The pictures made by bench_fill: */
    uint32_t width, height, pictures;
    uint64_t stride;                 /* bytes from picture to picture */
    struct workers *workers;         /* of the plain loop */
    double *seconds, *ratio;         /* per round; ratio: the plain loop's time over the kernel's */
    uint32_t (*tables)[TABLES][768]; /* per thread of the plain loop */
    struct held held;                /* these arrays */
    unsigned done, compared;         /* rounds done, rounds compared */
    int64_t started;
};

const char *bench_fill_name(unsigned fill)
{
    static const char *const name[] = {"constant", "two", "natural", "random", "sorted"};
    return fill < BENCH_FILLS ? name[fill] : NULL;
}

static const struct {
    const char *name;
    uint32_t width, height; /* height 0: as many rows as fit */
} shapes[] = {{"large", LARGE_WIDTH, 0}, {"512x384", 512, 384}, {"224x224", 224, 224}};

const char *bench_shape_name(unsigned shape)
{
    return shape < BENCH_SHAPES ? shapes[shape].name : NULL;
}

/* --- pixels ---------------------------------------------------------------------------------- */

/* Smooth surfaces with a little noise, like a photograph: waves of 40 to 200 pixels. */
static uint8_t natural(uint32_t x, uint32_t y, uint32_t channel, uint32_t noise)
{
    uint32_t a = (x * (5 + channel) + y * 3) / 4 % 512, b = (x + y * (7 - channel)) / 3 % 512;
    uint32_t wave = (a < 256 ? a : 511 - a) + (b < 256 ? b : 511 - b);
    uint32_t value = wave / 2 * 7 / 8 + 8 + (noise & 7);
    return (uint8_t)(value < 255 ? value : 255);
}

void bench_pixels(uint8_t *pixels, size_t bytes, uint32_t width, enum bench_fill fill)
{
    uint32_t state = RANDOM_START;
    for (size_t i = 0; i < bytes; i++) {
        random_next(&state);
        uint32_t pixel = (uint32_t)(i / 3), channel = (uint32_t)(i % 3);
        switch (fill) {
        case BENCH_CONSTANT:
            pixels[i] = 255;
            break;
        case BENCH_TWO:
            pixels[i] = state >> 31 ? 254 : 1;
            break;
        case BENCH_NATURAL:
            pixels[i] = natural(pixel % width, pixel / width, channel, state >> 24);
            break;
        case BENCH_SORTED:
            pixels[i] = (uint8_t)(i * 256 / bytes);
            break;
        case BENCH_GRADIENT:
            pixels[i] = (uint8_t)(i / 3 + i % 3 * 40);
            break;
        default:
            pixels[i] = (uint8_t)(state >> 24);
        }
    }
}

/* Rows per period in a picture of the current width. */
static uint32_t period_rows(const struct bench *bench)
{
    uint32_t rows = PERIOD_BYTES / (bench->width * 3);
    return rows < bench->height ? rows : bench->height;
}

enum status bench_fill(struct bench *bench, enum bench_shape shape, enum bench_fill fill,
                       struct error *err)
{
    bench->width = shapes[shape].width;
    bench->height = shapes[shape].height ? shapes[shape].height
                                         : (uint32_t)(bench->capacity / (LARGE_WIDTH * 3));
    const size_t row = (size_t)bench->width * 3, picture = row * bench->height;
    bench->stride = (picture + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    bench->pictures = (uint32_t)((bench->capacity - picture) / bench->stride + 1);
    const size_t period = row * period_rows(bench);
    bench_pixels(bench->host, period, bench->width, fill);
    for (size_t at = period; at < picture; at += period)
        memcpy(bench->host + at, bench->host, picture - at < period ? picture - at : period);
    for (uint32_t i = 1; i < bench->pictures; i++)
        memcpy(bench->host + i * bench->stride, bench->host, picture);
    return ocl_enqueue_write(bench->queue, "pixels", bench->pixels, true, 0,
                             (bench->pictures - 1) * bench->stride + picture, bench->host,
                             OCL_NO_WAITS, NULL, err);
}

/* --- opening --------------------------------------------------------------------------------- */

static uint64_t choose_capacity(const struct bench_config *config, const struct ocl_device *device)
{
    uint64_t bytes = config->bytes            ? config->bytes
                     : device->unified_memory ? BYTES_SHARED
                                              : BYTES_COPIED;
    uint64_t most = device->max_allocation;
    if (most > device->global_memory / 4)
        most = device->global_memory / 4;
    if (config->device_memory && most > config->device_memory / 2) /* rest: counters and tiles */
        most = config->device_memory / 2;
    if (most > (1ull << 32) - BYTES_MIN) /* offsets are 32 bits */
        most = (1ull << 32) - BYTES_MIN;
    bytes = bytes < most ? bytes : most;
    return bytes > BYTES_MIN ? bytes : BYTES_MIN;
}

static enum status open_host(struct bench *bench, struct error *err)
{
    if (ocl_context_device(bench->context)->unified_memory) {
        bench->host = malloc(bench->capacity);
        return bench->host ? STATUS_OK : error_memory(err, bench->capacity, "pictures");
    }
    void *mapped = NULL;
    enum status status =
        ocl_buffer(&bench->pinned, bench->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                   bench->capacity, NULL, "pinned pictures", err);
    if (status != STATUS_OK)
        return status;
    status = ocl_enqueue_map(&mapped, bench->queue, "map", bench->pinned, true, CL_MAP_WRITE, 0,
                             bench->capacity, OCL_NO_WAITS, NULL, err);
    bench->host = mapped;
    return status;
}

enum status bench_open(struct bench **out, struct ocl_context *context,
                       const struct bench_config *config, struct error *err)
{
    *out = NULL;
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return error_memory(err, sizeof *bench, "the benchmark");
    const struct ocl_device *device = ocl_context_device(context);
    bench->config = *config;
    bench->context = context;
    bench->capacity = choose_capacity(config, device);
    if (bench->config.rounds < 1 || bench->config.rounds > ROUNDS_MAX)
        bench->config.rounds = bench->config.rounds < 1 ? 1 : ROUNDS_MAX;
    bench->seconds = held_array(&bench->held, bench->config.rounds, sizeof *bench->seconds);
    bench->ratio = held_array(&bench->held, bench->config.rounds, sizeof *bench->ratio);
    bench->tables = held_array(&bench->held, config->threads, sizeof *bench->tables);
    enum status status = STATUS_FAILED;
    if (held_check(&bench->held, "the benchmark", err) != STATUS_OK ||
        workers_open(&bench->workers, config->threads, err) != STATUS_OK ||
        ocl_queue_open(&bench->queue, context, "bench", err) != STATUS_OK ||
        ocl_buffer(&bench->pixels, context, CL_MEM_READ_ONLY, bench->capacity, NULL, "pictures",
                   err) != STATUS_OK ||
        ocl_buffer(&bench->sink, context, CL_MEM_READ_WRITE, 16, NULL, "a sink", err) !=
            STATUS_OK ||
        open_host(bench, err) != STATUS_OK)
        goto out;
    status =
        ocl_context_kernel(&bench->read_kernel, context, "read_bandwidth", "read_bandwidth",
                           device->type & CL_DEVICE_TYPE_CPU ? "-cl-std=CL1.2 -DSPAN=256 -DFLIGHT=1"
                                                             : "-cl-std=CL1.2 -DSPAN=1 -DFLIGHT=8",
                           err);
out:
    if (status != STATUS_OK)
        bench_close(&bench);
    *out = bench;
    return status;
}

uint64_t bench_bytes(const struct bench *bench)
{
    return bench->capacity;
}

void bench_close(struct bench **out)
{
    struct bench *bench = *out;
    if (!bench)
        return;
    if (bench->pinned && bench->host)
        ocl_enqueue_unmap(bench->queue, "unmap", bench->pinned, bench->host, OCL_NO_WAITS, NULL,
                          NULL);
    else
        free(bench->host);
    if (bench->read_kernel)
        clReleaseKernel(bench->read_kernel);
    ocl_buffer_release(&bench->sink);
    ocl_buffer_release(&bench->pinned);
    ocl_buffer_release(&bench->pixels);
    ocl_queue_close(&bench->queue);
    workers_close(&bench->workers);
    held_free(&bench->held);
    free(bench);
    *out = NULL;
}

/* --- measuring ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Starts a measurement: the first round warms up and is not counted. */
static void begin(struct bench *bench)
{
    bench->done = 0;
    bench->compared = 0;
    bench->started = clock_now();
}

/* Is another round needed? Slow kernels get fewer rounds. */
static bool again(const struct bench *bench)
{
    return bench->done < bench->config.rounds &&
           (bench->done < ROUNDS_LEAST ||
            clock_now() - bench->started < SECONDS_MOST * 1000000000ll);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, by_value);
    return count ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

static void conclude(struct bench_result *result, struct bench *bench)
{
    result->seconds = median(bench->seconds, bench->done);
    result->plain_ratio = median(bench->ratio, bench->compared);
    result->bytes = (uint64_t)bench->width * 3 * bench->height * bench->pictures;
    result->pictures = bench->pictures;
}

/* Ends a round: waits for its events, the first of which ends last, and records their time unless
 * it was the warm-up. */
static enum status end_round(struct bench *bench, bool warm, cl_event *events, unsigned count,
                             struct error *err)
{
    enum status status = ocl_wait(bench->queue, events[0], err);
    double seconds = 0;
    for (unsigned e = 0; e < count; e++) {
        if (!events[e])
            continue;
        seconds += ocl_event_seconds(bench->context, events[e]);
        clReleaseEvent(events[e]);
    }
    if (warm && status == STATUS_OK)
        bench->seconds[bench->done++] = seconds;
    return status;
}

enum status bench_read(struct bench_result *result, struct bench *bench, struct error *err)
{
    *result = (struct bench_result){0};
    const struct ocl_device *device = ocl_context_device(bench->context);
    const bool cpu = device->type & CL_DEVICE_TYPE_CPU;
    cl_ulong vectors =
        ((bench->pictures - 1) * bench->stride + (uint64_t)bench->width * 3 * bench->height) / 16;
    cl_uint never = 0x9e3779b9u;
    enum status status =
        ocl_args(bench->read_kernel, err, sizeof bench->pixels, &bench->pixels, sizeof vectors,
                 &vectors, sizeof never, &never, sizeof bench->sink, &bench->sink, OCL_ARGS_END);
    size_t local = cpu || device->max_work_group < 256 ? 1 : 256;
    size_t global = device->compute_units * (cpu ? 4u : 2048u) / local * local;
    begin(bench);
    for (bool warm = false; status == STATUS_OK && again(bench); warm = true) {
        cl_event event = NULL;
        status = ocl_enqueue_kernel(bench->queue, "read", bench->read_kernel, 1, &global, &local,
                                    OCL_NO_WAITS, &event, err);
        if (status == STATUS_OK)
            status = end_round(bench, warm, &event, 1, err);
    }
    conclude(result, bench);
    return status;
}

enum status bench_upload(struct bench_result *result, struct bench *bench, struct error *err)
{
    *result = (struct bench_result){0};
    if (!bench->pinned)
        return STATUS_OK;
    enum status status = STATUS_OK;
    size_t bytes = (bench->pictures - 1) * bench->stride + (size_t)bench->width * 3 * bench->height;
    begin(bench);
    for (bool warm = false; status == STATUS_OK && again(bench); warm = true) {
        cl_event event = NULL;
        status = ocl_enqueue_write(bench->queue, "upload", bench->pixels, false, 0, bytes,
                                   bench->host, OCL_NO_WAITS, &event, err);
        if (status == STATUS_OK)
            status = end_round(bench, warm, &event, 1, err);
    }
    conclude(result, bench);
    return status;
}

/* --- the plain C loop ------------------------------------------------------------------------ */

/* Unrolled by hand: compilers do not unroll a loop over the tables at -O2. */
#define COUNT_PIXEL(t)                                                                             \
    tables[t][p[3 * (t)]]++;                                                                       \
    tables[t][256 + p[3 * (t) + 1]]++;                                                             \
    tables[t][512 + p[3 * (t) + 2]]++;

/* A thread's part of the rows of all pictures: the baseline for kernels on CPU devices, four
 * sub-tables used in turn and no further optimisation. */
static void count_rows(void *context, uint64_t part)
{
    const struct bench *bench = context;
    uint32_t(*tables)[768] = bench->tables[part];
    const uint64_t rows = (uint64_t)bench->pictures * bench->height, parts = bench->config.threads;
    const uint32_t width = bench->width, height = bench->height;
    memset(tables, 0, sizeof *bench->tables);
    for (uint64_t y = rows * part / parts; y < rows * (part + 1) / parts; y++) {
        const uint8_t *p =
            bench->host + y / height * bench->stride + y % height * (size_t)width * 3;
        for (uint32_t x = 0; x < width; x += TABLES, p += 3 * TABLES) {
            COUNT_PIXEL(0)
            COUNT_PIXEL(1)
            COUNT_PIXEL(2)
            COUNT_PIXEL(3)
        }
    }
}

/* Counts all pictures into one histogram, and returns the wall-clock time. */
static double count_plainly(struct bench *bench)
{
    const int64_t start = clock_now();
    workers_run(bench->workers, count_rows, bench, bench->config.threads);
    return clock_seconds_since(start);
}

/* --- histograms ------------------------------------------------------------------------------ */

/* The expected counters of one picture. */
static enum status count_picture(uint32_t *counters, const struct bench *bench,
                                 const struct feature *feature, struct error *err)
{
    const uint32_t rows = period_rows(bench), whole = bench->height / rows,
                   rest = bench->height % rows;
    const uint32_t border = feature->image.border;
    const size_t stride = (size_t)bench->width * 3;
    memset(counters, 0, feature->words * sizeof *counters);
    if (feature->grid_rows * feature->grid_columns > 1 || border > 0) {
        /* Counts that depend on cells or neighbours do not repeat with the period. */
        feature_count_reference(counters, feature, bench->host, stride, bench->width - border,
                                bench->height - border, 1);
        return STATUS_OK;
    }
    uint32_t *partial = calloc(feature->words, sizeof *partial);
    if (!partial)
        return error_memory(err, feature->words * sizeof *partial, "counters");
    feature_count_reference(partial, feature, bench->host, stride, bench->width, rows, 1);
    for (uint32_t i = 0; i < feature->words; i++)
        counters[i] = partial[i] * whole;
    memset(partial, 0, feature->words * sizeof *partial);
    if (rest)
        feature_count_reference(partial, feature, bench->host, stride, bench->width, rest, 1);
    for (uint32_t i = 0; i < feature->words; i++)
        counters[i] += partial[i];
    free(partial);
    return STATUS_OK;
}

static enum status count_wrong(uint64_t *wrong, struct bench *bench, const struct feature *feature,
                               cl_mem counters, struct error *err)
{
    const size_t bytes = feature->words * sizeof(uint32_t);
    uint32_t *want = malloc(bytes), *got = malloc(bytes * bench->pictures);
    enum status status = STATUS_FAILED;
    *wrong = 0;
    if (!want || !got) {
        error_memory(err, bytes * bench->pictures, "counters");
        goto out;
    }
    if (count_picture(want, bench, feature, err) != STATUS_OK ||
        ocl_enqueue_read(bench->queue, "counters", counters, true, 0, bytes * bench->pictures, got,
                         OCL_NO_WAITS, NULL, err) != STATUS_OK)
        goto out;
    status = STATUS_OK;
    for (uint32_t i = 0; i < bench->pictures; i++)
        for (uint32_t b = 0; b < feature->words; b++)
            *wrong += got[(size_t)i * feature->words + b] != want[b];
out:
    free(want);
    free(got);
    return status;
}

/* The tiles of all pictures; the caller frees them. */
static struct histogram_tile *make_tiles(uint32_t *count, const struct bench *bench,
                                         const struct histogram *histogram,
                                         const struct feature *feature, struct error *err)
{
    const uint32_t width = bench->width - feature->image.border;
    const uint32_t height = bench->height - feature->image.border;
    struct histogram_part part = {.width = width,
                                  .height = height,
                                  .orientation = 1,
                                  .rect = {0, 0, width, height},
                                  .stride = bench->width * 3};
    uint32_t each = histogram_tiles(NULL, histogram, 0, &part, 0);
    struct histogram_tile *tiles = calloc((size_t)each * bench->pictures, sizeof *tiles);
    if (!tiles) {
        error_memory(err, (size_t)each * bench->pictures * sizeof *tiles, "tiles");
        return NULL;
    }
    for (uint32_t i = 0; i < bench->pictures; i++) {
        part.offset = (uint32_t)(i * bench->stride);
        part.counters = i * feature->words;
        histogram_tiles(tiles + (size_t)i * each, histogram, 0, &part, 0);
    }
    *count = each * bench->pictures;
    return tiles;
}

/* With `plain`, each launch is followed by the plain loop, so both run under the same conditions:
 * other programs and the CPU's clock affect times more than the choice of a kernel does. */
static enum status time_launches(struct bench *bench, struct histogram *histogram, cl_mem tiles,
                                 uint32_t count, cl_mem counters, size_t counter_bytes, bool plain,
                                 struct error *err)
{
    begin(bench);
    for (bool warm = false; again(bench); warm = true) {
        cl_event events[HISTOGRAM_EVENTS] = {NULL};
        if (ocl_enqueue_fill(bench->queue, "zero", counters, 0, 0, counter_bytes, OCL_NO_WAITS,
                             NULL, err) != STATUS_OK ||
            histogram_enqueue(histogram, 0, bench->queue, bench->pixels, tiles, 0, count, counters,
                              OCL_NO_WAITS, events, err) != STATUS_OK ||
            end_round(bench, warm, events, HISTOGRAM_EVENTS, err) != STATUS_OK)
            return STATUS_FAILED;
        const double seconds = plain ? count_plainly(bench) : 0;
        if (warm && plain && bench->seconds[bench->done - 1] > 0)
            bench->ratio[bench->compared++] = seconds / bench->seconds[bench->done - 1];
    }
    return STATUS_OK;
}

enum status bench_histogram(struct bench_result *result, struct bench *bench,
                            enum histogram_variant variant, const struct histogram_shape *shape,
                            const char *spec, struct error *err)
{
    *result = (struct bench_result){0};
    struct feature_set features = {0};
    struct histogram *histogram = NULL;
    struct histogram_tile *tiles = NULL;
    cl_mem tile_buffer = NULL, counters = NULL;
    uint32_t count = 0;
    const struct histogram_config config = {
        .features = &features, .variant = variant, .shape = shape, .launch_bytes = bench->capacity};
    begin(bench);
    enum status status = feature_set_add(&features, spec, NORMALIZE_NONE, err);
    if (status != STATUS_OK)
        goto out;
    const struct feature *feature = &features.feature[0];
    const size_t counter_bytes = (size_t)feature->words * bench->pictures * sizeof(uint32_t);
    const bool plain = bench->config.threads > 0 &&
                       ocl_context_device(bench->context)->type & CL_DEVICE_TYPE_CPU &&
                       feature->kind == &feature_rgb && feature->words == 768;
    if ((uint64_t)feature->words * bench->pictures > UINT32_MAX) {
        error_set(err, STATUS_FAILED, "%u pictures with %u counters each are too many",
                  bench->pictures, feature->words);
        status = error_remedy(err, REMEDY_SMALLER_LAUNCHES);
        goto out;
    }
    if (histogram_open(&histogram, bench->context, &config, err) != STATUS_OK ||
        histogram_build(histogram, err) != STATUS_OK ||
        !(tiles = make_tiles(&count, bench, histogram, feature, err)) ||
        ocl_buffer(&tile_buffer, bench->context, CL_MEM_READ_ONLY, count * sizeof *tiles, NULL,
                   "tiles", err) != STATUS_OK ||
        ocl_enqueue_write(bench->queue, "tiles", tile_buffer, true, 0, count * sizeof *tiles, tiles,
                          OCL_NO_WAITS, NULL, err) != STATUS_OK ||
        ocl_buffer(&counters, bench->context, CL_MEM_READ_WRITE, counter_bytes, NULL, "counters",
                   err) != STATUS_OK) {
        status = err->status;
        goto out;
    }
    status =
        time_launches(bench, histogram, tile_buffer, count, counters, counter_bytes, plain, err);
    if (status == STATUS_OK)
        status = count_wrong(&result->wrong, bench, feature, counters, err);
out:
    conclude(result, bench);
    free(tiles);
    ocl_buffer_release(&counters);
    ocl_buffer_release(&tile_buffer);
    histogram_close(&histogram);
    return status;
}

enum status bench_plain(struct bench_result *result, struct bench *bench, struct error *err)
{
    *result = (struct bench_result){0};
    struct feature_set features = {0};
    uint32_t want[768], got[768] = {0};
    enum status status = feature_set_add(&features, "rgb:bins=256", NORMALIZE_NONE, err);
    if (status != STATUS_OK)
        return status;
    begin(bench);
    for (bool warm = false; again(bench); warm = true) {
        const double seconds = count_plainly(bench);
        if (warm)
            bench->seconds[bench->done++] = seconds;
    }
    conclude(result, bench);
    status = count_picture(want, bench, &features.feature[0], err);
    for (unsigned i = 0; i < bench->config.threads * TABLES; i++)
        for (unsigned b = 0; b < 768; b++)
            got[b] += bench->tables[i / TABLES][i % TABLES][b];
    for (unsigned b = 0; b < 768 && status == STATUS_OK; b++)
        result->wrong += got[b] != want[b] * bench->pictures;
    return status;
}
