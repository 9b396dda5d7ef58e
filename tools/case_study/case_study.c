/* case_study.c: descriptors of pictures to visual words and their histograms, in plain C, by kernels as a
 * textbook writes them, and by clpipe's own engine. docs/case-study.md explains the results.
 *
 *     case_study [-d DEVICE] [-n DESCRIPTORS] [-D COLUMNS] [-k WORDS] [-r ROUNDS] [-t THREADS]
 *                [-1 SHARE] [FILE.jpg...]
 *
 * A descriptor is a patch of COLUMNS / 8 rows of 8 grey values less their mean, plus 128, from 1 to
 * 255; patches are taken all over the files' pictures, or over a synthetic one. The words are
 * clpipe's k-means of a sample, rounded. Descriptors and words are on the device before the clock
 * starts, and labels and counts stay there. Every way runs once in each of ROUNDS rounds; medians
 * are printed, with the ratio to `naive`. Plain C on one core labels one descriptor in SHARE and is
 * multiplied. Labels and counts of all ways must be equal. Exit status 1: they differ.
 */
#include "base/clock.h"
#include "base/random.h"
#include "descriptor_part.h"
#include "kmeans/cluster.h"
#include "kmeans/shard.h"
#include "ocl/ocl.h"
#include "ocl/ocl_ndrange.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#define PICTURE     1000u /* descriptors of a picture */
#define PATCH_WIDTH 8u
#define ITEMS       64u
#define SYNTHETIC   1024u /* pixels on a side */
#define SAMPLE      32u   /* descriptors of a word, for the codebook */
#define ROUNDS_MOST 32u
#define FLOOR_ITEMS (1u << 17)

enum how {
    ON_ONE_CORE,
    ON_ALL_CORES,
    BY_KERNEL,
    BY_ENGINE,
    BY_STEP,
    FLOOR_MEMORY,
    FLOOR_ARITHMETIC
};

static const struct way {
    const char *name;
    enum how how;
    bool transposed; /* takes the descriptors column by column */
    const char *what;
} ways[] = {
    {"one_core", ON_ONE_CORE, false, "plain C, one core"},
    {"all_cores", ON_ALL_CORES, false, "plain C, all cores"},
    {"naive", BY_KERNEL, false, "one work-item per descriptor"},
    {"coalesced", BY_KERNEL, true, "transposed descriptors"},
    {"vectors", BY_KERNEL, false, "four values at a time"},
    {"in_local", BY_KERNEL, false, "descriptors in local memory"},
    {"in_constant", BY_KERNEL, true, "transposed, words in constant memory"},
    {"clpipe", BY_ENGINE, false, "the engine of clpipe cluster and assign"},
    {"ingest", BY_STEP, false, "the step of clpipe ingest, from bytes"},
    {"read_once", FLOOR_MEMORY, false, "floor: each value is read once"},
    {"arithmetic", FLOOR_ARITHMETIC, false,
     "floor: subtract and multiply-add in float32, in registers"},
};
enum { WAYS = sizeof ways / sizeof *ways };

struct study {
    uint32_t count, columns, words, pictures, share, rounds;
    unsigned threads;
    const char *device;
    float *rows, *transposed, *codebook;
    uint32_t *labels, *counts; /* what is right */
    struct workers *workers;
    struct ocl_context *context;
    struct ocl_queue *queue;
    cl_program program;
    cl_program step_program;
    cl_kernel kernel[WAYS], count_labels; /* NULL: the way is not possible */
    cl_mem step_rows, step_parts, step_codebook;
    cl_mem device_rows, device_transposed, device_words, device_labels, device_counts, device_out;
    struct lane lane;
    struct comm comm;
    struct shard shard;
    float *centroids; /* words x stride, for the engine */
    double seconds[WAYS][ROUNDS_MOST];
};

/* --- descriptors ------------------------------------------------------------------------------ */

struct picture {
    uint32_t width, height;
    uint8_t *gray;
};

static bool read_jpeg(struct picture *picture, const char *path)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_stdio_src(&info, file);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_GRAYSCALE;
    jpeg_start_decompress(&info);
    picture->width = info.output_width;
    picture->height = info.output_height;
    picture->gray = malloc((size_t)picture->width * picture->height);
    while (picture->gray && info.output_scanline < info.output_height) {
        JSAMPROW row = picture->gray + (size_t)info.output_scanline * picture->width;
        jpeg_read_scanlines(&info, &row, 1);
    }
    if (picture->gray)
        jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    fclose(file);
    return picture->gray;
}

/* Random values on grids whose spacing halves, interpolated linearly: edges and texture of all
 * sizes. */
static bool synthesize(struct picture *picture)
{
    uint32_t random = RANDOM_START;
    float *sum = calloc((size_t)SYNTHETIC * SYNTHETIC, sizeof *sum);
    *picture = (struct picture){SYNTHETIC, SYNTHETIC, malloc((size_t)SYNTHETIC * SYNTHETIC)};
    for (uint32_t cell = 256; cell >= 2 && sum && picture->gray; cell /= 2) {
        const uint32_t side = SYNTHETIC / cell + 1;
        float *grid = malloc((size_t)side * side * sizeof *grid);
        for (uint32_t i = 0; grid && i < side * side; i++)
            grid[i] = (float)(random_next(&random) >> 8) * 0x1p-24f * sqrtf((float)cell);
        for (uint32_t i = 0; grid && i < SYNTHETIC * SYNTHETIC; i++) {
            const uint32_t x = i % SYNTHETIC, y = i / SYNTHETIC;
            const float fx = (float)(x % cell) / (float)cell, fy = (float)(y % cell) / (float)cell;
            const float *at = grid + y / cell * side + x / cell;
            sum[i] += (at[0] * (1 - fx) + at[1] * fx) * (1 - fy) +
                      (at[side] * (1 - fx) + at[side + 1] * fx) * fy;
        }
        free(grid);
    }
    for (uint32_t i = 0; sum && picture->gray && i < SYNTHETIC * SYNTHETIC; i++)
        picture->gray[i] = (uint8_t)fminf(sum[i] * 4.5f, 255);
    free(sum);
    return picture->gray;
}

static void describe(float *out, const struct picture *picture, uint32_t x, uint32_t y,
                     uint32_t columns)
{
    int sum = 0;
    for (uint32_t j = 0; j < columns; j++) {
        const int value =
            picture->gray[(size_t)(y + j / PATCH_WIDTH) * picture->width + x + j % PATCH_WIDTH];
        out[j] = (float)value;
        sum += value;
    }
    const int mean = sum / (int)columns;
    for (uint32_t j = 0; j < columns; j++)
        out[j] = fminf(fmaxf(out[j] - (float)(mean - 128), 1), 255);
}

static bool make_descriptors(struct study *study, char **files, uint32_t file_count)
{
    const uint32_t pictures = file_count ? file_count : 1, columns = study->columns;
    struct picture *picture = calloc(pictures, sizeof *picture);
    bool ok = picture;
    uint32_t random = RANDOM_START;
    for (uint32_t p = 0; p < pictures && ok; p++)
        ok = file_count ? read_jpeg(&picture[p], files[p]) : synthesize(&picture[p]);
    for (uint32_t i = 0; i < study->count && ok; i++) {
        const struct picture *from = &picture[(uint64_t)i / PICTURE % pictures];
        ok = from->width >= PATCH_WIDTH && from->height >= columns / PATCH_WIDTH;
        if (!ok)
            fprintf(stderr, "case_study: a picture is smaller than a patch\n");
        else
            describe(study->rows + (size_t)i * columns, from,
                     (random_next(&random) >> 4) % (from->width - PATCH_WIDTH + 1),
                     (random_next(&random) >> 4) % (from->height - columns / PATCH_WIDTH + 1),
                     columns);
    }
    for (uint32_t p = 0; p < pictures && picture; p++)
        free(picture[p].gray);
    free(picture);
    for (uint32_t j = 0; j < columns && ok; j++)
        for (uint32_t i = 0; i < study->count; i++)
            study->transposed[(size_t)j * study->count + i] = study->rows[(size_t)i * columns + j];
    return ok;
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    const struct study *study = context;
    (void)err;
    memcpy(rows, study->rows + first * study->columns,
           (size_t)count * study->columns * sizeof *rows);
    return STATUS_OK;
}

static enum status make_codebook(struct study *study, struct error *err)
{
    struct cluster_config config;
    struct cluster_outcome outcome = {0};
    const uint64_t most = (uint64_t)study->words * SAMPLE;
    const struct matrix_source source = {.rows = most < study->count ? most : study->count,
                                         .dimension = study->columns,
                                         .read = read_rows,
                                         .context = study};
    const struct cluster_devices devices = {&study->context, 1};
    cluster_config_default(&config);
    config.k = study->words;
    config.threads = study->threads;
    config.max_iter = 5;
    const enum status status = cluster_run(&outcome, &devices, &source, &config, err);
    for (size_t v = 0; status == STATUS_OK && v < (size_t)study->words * study->columns; v++)
        study->codebook[v] = rintf(outcome.centroids[v]);
    cluster_outcome_clear(&outcome);
    return status;
}

/* --- plain C ---------------------------------------------------------------------------------- */

struct c_job {
    const struct study *study;
    uint32_t *labels, *counts;
    uint32_t step; /* one descriptor in so many */
};

static void label_picture(void *context, uint64_t picture)
{
    const struct c_job *job = context;
    const struct study *study = job->study;
    const uint32_t columns = study->columns, words = study->words;
    for (uint32_t p = 0; p < PICTURE; p += job->step) {
        const uint32_t i = (uint32_t)picture * PICTURE + p;
        if (i >= study->count)
            return;
        const float *row = study->rows + (size_t)i * columns;
        float least = INFINITY;
        uint32_t label = 0;
        for (uint32_t w = 0; w < words; w++) {
            const float *word = study->codebook + (size_t)w * columns;
            float sum = 0;
            for (uint32_t j = 0; j < columns; j++) {
                const float t = row[j] - word[j];
                sum += t * t;
            }
            if (sum < least) {
                least = sum;
                label = w;
            }
        }
        job->labels[i] = label;
        job->counts[picture * words + label]++;
    }
}

static void label_in_c(struct study *study, bool all_cores, uint32_t *labels, uint32_t *counts)
{
    struct c_job job = {study, labels, counts, all_cores ? 1 : study->share};
    memset(counts, 0, (size_t)study->pictures * study->words * sizeof *counts);
    if (all_cores)
        workers_run(study->workers, label_picture, &job, study->pictures);
    for (uint64_t p = 0; p < study->pictures && !all_cores; p++)
        label_picture(&job, p);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static enum status open_device(struct study *study, struct error *err)
{
    char options[160];
    const struct ocl_device *device = ocl_context_device(study->context);
    const size_t values = (size_t)study->count * study->columns,
                 word_bytes = (size_t)study->words * study->columns * sizeof(float);
    const bool constant = word_bytes <= device->max_constant;
    const size_t local = (size_t)study->columns * (ITEMS + 1) * sizeof(float);
    const cl_mem_flags from = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    snprintf(options, sizeof options, "-DCOLUMNS=%u -DWORDS=%u -DPICTURE=%u -DITEMS=%u%s",
             study->columns, study->words, PICTURE, ITEMS, constant ? " -DCONSTANT" : "");
    if (ocl_queue_open(&study->queue, study->context, "case study", err) != STATUS_OK ||
        ocl_program_build(&study->program, study->context, "visual_words", NULL, options, err) !=
            STATUS_OK ||
        ocl_buffer(&study->device_rows, study->context, from, values * 4, study->rows,
                   "descriptors", err) != STATUS_OK ||
        ocl_buffer(&study->device_transposed, study->context, from, values * 4, study->transposed,
                   "descriptors", err) != STATUS_OK ||
        ocl_buffer(&study->device_words, study->context, from, word_bytes, study->codebook, "words",
                   err) != STATUS_OK ||
        ocl_buffer(&study->device_labels, study->context, CL_MEM_READ_WRITE,
                   (size_t)study->count * 4, NULL, "labels", err) != STATUS_OK ||
        ocl_buffer(&study->device_counts, study->context, CL_MEM_READ_WRITE,
                   (size_t)study->pictures * study->words * 4, NULL, "counts", err) != STATUS_OK ||
        ocl_buffer(&study->device_out, study->context, CL_MEM_READ_WRITE, FLOOR_ITEMS * 4, NULL,
                   "sums", err) != STATUS_OK ||
        ocl_kernel(&study->count_labels, study->program, "count_labels", err) != STATUS_OK)
        return err->status;
    for (unsigned w = 0; w < WAYS; w++) {
        const bool possible = strcmp(ways[w].name, "in_local") == 0 ? local <= device->local_memory
                              : strcmp(ways[w].name, "in_constant") == 0
                                  ? constant
                                  : ways[w].how != BY_ENGINE && ways[w].how != BY_STEP;
        if (ways[w].how >= BY_KERNEL && possible &&
            ocl_kernel(&study->kernel[w], study->program, ways[w].name, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

static enum status launch(struct study *study, const char *name, cl_kernel kernel, uint64_t items,
                          struct error *err)
{
    const size_t group = ITEMS, global = (items + ITEMS - 1) / ITEMS * ITEMS;
    if (ocl_enqueue_kernel(study->queue, name, kernel, 1, &global, &group, OCL_NO_WAITS, NULL,
                           err) != STATUS_OK)
        return err->status;
    ocl_finish(study->queue);
    return STATUS_OK;
}

static enum status run_kernel(struct study *study, unsigned w, struct error *err)
{
    const cl_uint count = study->count;
    const struct way *way = &ways[w];
    if (ocl_args(study->kernel[w], err, sizeof(cl_mem),
                 way->transposed ? &study->device_transposed : &study->device_rows, sizeof(cl_mem),
                 &study->device_words, sizeof(cl_mem), &study->device_labels, sizeof(cl_mem),
                 &study->device_counts, sizeof count, &count, OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return launch(study, way->name, study->kernel[w], count, err);
}

static enum status run_floor(struct study *study, unsigned w, struct error *err)
{
    const uint64_t values = (uint64_t)study->count * study->columns;
    const bool memory = ways[w].how == FLOOR_MEMORY;
    const cl_uint fours = (cl_uint)(values / 4),
                  turns = (cl_uint)(values * study->words / 64 / FLOOR_ITEMS + 1);
    if ((memory ? ocl_args(study->kernel[w], err, sizeof(cl_mem), &study->device_rows,
                           sizeof(cl_mem), &study->device_out, sizeof fours, &fours, OCL_ARGS_END)
                : ocl_args(study->kernel[w], err, sizeof(cl_mem), &study->device_out, sizeof turns,
                           &turns, OCL_ARGS_END)) != STATUS_OK)
        return err->status;
    return launch(study, ways[w].name, study->kernel[w], FLOOR_ITEMS, err);
}

/* --- clpipe's own ----------------------------------------------------------------------------- */

static enum status open_engine(struct study *study, struct error *err)
{
    struct cluster_config config;
    struct matrix_source *source = malloc(sizeof *source);
    if (!source)
        return error_memory(err, sizeof *source, "the descriptors");
    *source = (struct matrix_source){
        .rows = study->count, .dimension = study->columns, .read = read_rows, .context = study};
    study->comm.size = 1;
    const struct rank rank = {&study->comm, &study->lane, source};
    cluster_config_default(&config);
    config.k = study->words;
    config.threads = study->threads;
    config.memory = 4 * (uint64_t)study->count * study->columns * sizeof(float) + (256u << 20);
    enum status status = lane_open(&study->lane, study->context, study->workers, NULL, NULL, err);
    if (status == STATUS_OK)
        status = shard_open(&study->shard, &rank, &config, err);
    if (status == STATUS_OK) {
        const uint32_t stride = study->shard.data.stride;
        study->centroids = calloc((size_t)study->words * stride, sizeof(float));
        if (!study->centroids)
            status = error_memory(err, (size_t)study->words * stride * 4, "words");
        for (uint32_t w = 0; w < study->words && study->centroids; w++)
            memcpy(study->centroids + (size_t)w * stride,
                   study->codebook + (size_t)w * study->columns, study->columns * sizeof(float));
    }
    free(source);
    return status;
}

/* Everything that depends on words and descriptors is computed again, as for new ones. */
static enum status run_engine(struct study *study, struct error *err)
{
    struct assign *assign = &study->shard.assign;
    struct data *data = &study->shard.data;
    struct tile *tile;
    bool incremental = false;
    for (uint32_t t = 0; t < data->tile_count; t++)
        data->tiles[t].has_norms = data->tiles[t].has_float16 = false;
    if (assign_centroids(assign, &incremental, study->centroids, study->words, NULL, err) !=
        STATUS_OK)
        return err->status;
    enum status status = data_begin(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK) {
        const cl_uint rows = tile->rows;
        status = assign_tile(assign, tile, false, err);
        if (status == STATUS_OK)
            status =
                ocl_args(study->count_labels, err, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                         &study->device_counts, sizeof rows, &rows, OCL_ARGS_END);
        if (status == STATUS_OK)
            status = launch(study, "count_labels", study->count_labels, rows, err);
    }
    return data_end(data, status);
}

/* The step's kernel projects first: here by the identity, which takes 128 off. It reads bytes, counts, and
 * keeps no labels. */
static enum status open_step(struct study *study, unsigned w, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(study->context);
    const uint32_t columns = study->columns, wide = (study->words + 15) / 16;
    const uint32_t block = wide < 4 ? wide : 4, padded = (wide + block - 1) / block * block * 16;
    const uint32_t rows = device->type == CL_DEVICE_TYPE_CPU ? 4 : 1; /* as words_step.c has them */
    const size_t values = (size_t)study->count * columns,
                 count = columns + (size_t)columns * columns + (size_t)padded * (1 + columns);
    const cl_mem_flags from = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    char options[200];
    if (columns % 16 != 0 || (columns > 64 && columns % 64 != 0))
        return STATUS_OK;
    snprintf(options, sizeof options,
             "%s -DCOLUMNS=%u -DPROJECTED=%u -DWORDS=%u -DSHIFT=0 -DROWS=%u -DCHUNK=0",
             ocl_range_option(device), columns, columns, study->words, rows);
    uint8_t *bytes = malloc(values);
    float *codebook = calloc(count, sizeof *codebook);
    struct words_part *parts = calloc(study->pictures, sizeof *parts);
    enum status status = STATUS_OK;
    if (!bytes || !codebook || !parts)
        status = error_memory(err, values, "descriptors");
    for (size_t v = 0; v < values && bytes; v++)
        bytes[v] = (uint8_t)study->rows[v];
    for (uint32_t p = 0; p < study->pictures && parts; p++) {
        const uint32_t left = study->count - p * PICTURE, items = (PICTURE + rows - 1) / rows;
        parts[p] = (struct words_part){.offset = p * PICTURE * columns,
                                       .number = left < PICTURE ? left : PICTURE,
                                       .words = p * study->words,
                                       .first = {p * items, 0}};
    }
    if (codebook) {
        float *matrix = codebook + columns, *lengths = matrix + (size_t)columns * columns;
        for (uint32_t j = 0; j < columns; j++) {
            codebook[j] = -128;
            matrix[(size_t)j * columns + j] = 1;
        }
        for (uint32_t i = 0; i < padded; i++) {
            lengths[i] = i < study->words ? 0 : FLT_MAX;
            for (uint32_t j = 0; j < columns && i < study->words; j++) {
                const float value = study->codebook[(size_t)i * columns + j] - 128;
                lengths[i] += value * value;
                lengths[padded * (1 + j) + i] = -2 * value;
            }
        }
    }
    if (status == STATUS_OK)
        status = ocl_program_build(&study->step_program, study->context, "words_assign", NULL,
                                   options, err);
    if (status == STATUS_OK)
        status = ocl_kernel(&study->kernel[w], study->step_program, "words_assign", err);
    if (status == STATUS_OK)
        status =
            ocl_buffer(&study->step_rows, study->context, from, values, bytes, "descriptors", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&study->step_parts, study->context, from,
                            study->pictures * sizeof *parts, parts, "pictures", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&study->step_codebook, study->context, from, count * sizeof *codebook,
                            codebook, "words", err);
    free(bytes);
    free(codebook);
    free(parts);
    return status;
}

static enum status run_step(struct study *study, unsigned w, struct error *err)
{
    const uint32_t rows = ocl_context_device(study->context)->type == CL_DEVICE_TYPE_CPU ? 4 : 1;
    const cl_uint pictures = study->pictures, all = pictures * ((PICTURE + rows - 1) / rows);
    if (ocl_args(study->kernel[w], err, sizeof(cl_mem), &study->step_rows, sizeof(cl_mem),
                 &study->step_parts, sizeof pictures, &pictures, sizeof all, &all, sizeof(cl_mem),
                 &study->step_codebook, sizeof(cl_mem), &study->device_counts, sizeof(cl_mem),
                 &study->device_labels, OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return launch(study, ways[w].name, study->kernel[w], all, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Whether labels and counts on the device are right; labels: those in the kernels' buffer. */
static enum status check(struct study *study, unsigned w, uint32_t *labels, uint32_t *counts,
                         struct error *err)
{
    const size_t bytes = (size_t)study->count * 4,
                 count_bytes = (size_t)study->pictures * study->words * 4;
    cl_mem from =
        ways[w].how == BY_ENGINE ? study->shard.data.tiles[0].labels : study->device_labels;
    if (ways[w].how == BY_STEP)
        memcpy(labels, study->labels, bytes);
    if (ways[w].how >= BY_KERNEL &&
        ((ways[w].how != BY_STEP &&
          ocl_enqueue_read(study->queue, "labels", from, true, 0, bytes, labels, OCL_NO_WAITS, NULL,
                           err) != STATUS_OK) ||
         ocl_enqueue_read(study->queue, "counts", study->device_counts, true, 0, count_bytes,
                          counts, OCL_NO_WAITS, NULL, err) != STATUS_OK))
        return err->status;
    if (memcmp(labels, study->labels, bytes) != 0 ||
        memcmp(counts, study->counts, count_bytes) != 0)
        return error_set(err, STATUS_FAILED, "%s gives other words or counts than plain C",
                         ways[w].name);
    return STATUS_OK;
}

static enum status measure(struct study *study, unsigned w, uint32_t round, uint32_t *labels,
                           uint32_t *counts, struct error *err)
{
    const enum how how = ways[w].how;
    const size_t count_bytes = (size_t)study->pictures * study->words * 4;
    enum status status = STATUS_OK;
    if ((how == BY_KERNEL || how == BY_STEP) && !study->kernel[w])
        return STATUS_OK;
    if (how >= BY_KERNEL) {
        status = ocl_enqueue_fill(study->queue, "zero", study->device_counts, 0, 0, count_bytes,
                                  OCL_NO_WAITS, NULL, err);
        ocl_finish(study->queue);
    }
    if (status != STATUS_OK)
        return status;
    const int64_t begun = clock_now();
    if (how == ON_ONE_CORE || how == ON_ALL_CORES)
        label_in_c(study, how == ON_ALL_CORES, labels, counts);
    else
        status = how == BY_KERNEL   ? run_kernel(study, w, err)
                 : how == BY_ENGINE ? run_engine(study, err)
                 : how == BY_STEP   ? run_step(study, w, err)
                                    : run_floor(study, w, err);
    study->seconds[w][round] = clock_seconds_since(begun) * (how == ON_ONE_CORE ? study->share : 1);
    const bool whole =
        how == ON_ALL_CORES || how == BY_KERNEL || how == BY_ENGINE || how == BY_STEP;
    return status == STATUS_OK && whole ? check(study, w, labels, counts, err) : status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(struct study *study)
{
    double median[WAYS], naive = 0;
    for (unsigned w = 0; w < WAYS; w++) {
        qsort(study->seconds[w], study->rounds, sizeof(double), ascending);
        median[w] = study->seconds[w][study->rounds / 2];
        if (strcmp(ways[w].name, "naive") == 0)
            naive = median[w];
    }
    printf("%u descriptors, %u values, %u words, %u threads, %s, medians of %u\n", study->count,
           study->columns, study->words, study->threads, ocl_context_device(study->context)->name,
           study->rounds);
    printf("%-12s %12s %9s %12s\n", "", "ms", "x naive", "G products/s");
    const double products = (double)study->count * study->columns * study->words;
    for (unsigned w = 0; w < WAYS; w++)
        if (median[w] > 0)
            printf("%-12s %12.3f %9.4f %12.1f  %s\n", ways[w].name, median[w] * 1e3,
                   median[w] / naive, ways[w].how == FLOOR_MEMORY ? 0 : products / median[w] * 1e-9,
                   ways[w].what);
        else
            printf("%-12s %12s %9s %12s  %s\n", ways[w].name, "-", "-", "-", "does not fit");
    fflush(stdout);
}

static enum status run(struct study *study, struct error *err)
{
    uint32_t *labels = malloc((size_t)study->count * 4);
    uint32_t *counts = malloc((size_t)study->pictures * study->words * 4);
    enum status status = STATUS_OK;
    if (!labels || !counts)
        status = error_memory(err, (size_t)study->pictures * study->words * 4, "counts");
    if (status == STATUS_OK) {
        label_in_c(study, true, study->labels, study->counts);
        status = open_device(study, err);
    }
    if (status == STATUS_OK)
        status = open_engine(study, err);
    for (unsigned w = 0; w < WAYS && status == STATUS_OK; w++)
        if (ways[w].how == BY_STEP)
            status = open_step(study, w, err);
    /* Once before, except for plain C: the first launch of a kernel costs more. */
    for (unsigned w = 0; w < WAYS && status == STATUS_OK; w++)
        if (ways[w].how >= BY_KERNEL)
            status = measure(study, w, 0, labels, counts, err);
    for (uint32_t round = 0; round < study->rounds && status == STATUS_OK; round++)
        for (unsigned w = 0; w < WAYS && status == STATUS_OK; w++)
            status = measure(study, w, round, labels, counts, err);
    if (status == STATUS_OK)
        print(study);
    free(labels);
    free(counts);
    return status;
}

static void close_study(struct study *study)
{
    shard_close(&study->shard);
    lane_close(&study->lane);
    for (unsigned w = 0; w < WAYS; w++)
        if (study->kernel[w])
            clReleaseKernel(study->kernel[w]);
    if (study->count_labels)
        clReleaseKernel(study->count_labels);
    if (study->program)
        clReleaseProgram(study->program);
    if (study->step_program)
        clReleaseProgram(study->step_program);
    cl_mem *const buffers[] = {
        &study->step_rows,     &study->step_parts,        &study->step_codebook,
        &study->device_rows,   &study->device_transposed, &study->device_words,
        &study->device_labels, &study->device_counts,     &study->device_out};
    for (size_t i = 0; i < COUNT_OF(buffers); i++)
        ocl_buffer_release(buffers[i]);
    ocl_queue_close(&study->queue);
    ocl_context_close(&study->context);
    workers_close(&study->workers);
    free(study->rows);
    free(study->transposed);
    free(study->codebook);
    free(study->labels);
    free(study->counts);
    free(study->centroids);
}

static bool parse(struct study *study, int argc, char **argv)
{
    for (int c; (c = getopt(argc, argv, "d:n:D:k:r:t:1:")) != -1;) {
        if (c == 'd')
            study->device = optarg;
        else if (c == '?')
            return false;
        else
            *(c == 'n'   ? &study->count
              : c == 'D' ? &study->columns
              : c == 'k' ? &study->words
              : c == 'r' ? &study->rounds
              : c == '1' ? &study->share
                         : &study->threads) = (uint32_t)strtoul(optarg, NULL, 10);
    }
    study->pictures = (study->count + PICTURE - 1) / PICTURE;
    /* Squared distances stay below 2^24, where float32 is exact. */
    return study->columns % PATCH_WIDTH == 0 && study->columns > 0 && study->columns <= 256 &&
           study->words > 0 && study->words <= study->count && study->rounds > 0 &&
           study->rounds <= ROUNDS_MOST && study->threads > 0 && study->share > 0 &&
           study->share <= PICTURE;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct ocl_devices devices = {0};
    struct study study = {.count = 20000,
                          .columns = 64,
                          .words = 64,
                          .share = 1,
                          .rounds = 3,
                          .threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
                          .device = "cpu"};
    if (!parse(&study, argc, argv)) {
        fprintf(stderr,
                "usage: case_study [-d DEVICE] [-n DESCRIPTORS] [-D COLUMNS (8 to 256)] "
                "[-k WORDS] [-r ROUNDS (up to 32)] [-t THREADS] [-1 SHARE] [FILE.jpg...]\n");
        return 2;
    }
    const size_t values = (size_t)study.count * study.columns;
    unsigned chosen[1], found;
    study.rows = malloc(values * sizeof(float));
    study.transposed = malloc(values * sizeof(float));
    study.codebook = malloc((size_t)study.words * study.columns * sizeof(float));
    study.labels = malloc((size_t)study.count * 4);
    study.counts = malloc((size_t)study.pictures * study.words * 4);
    if (!study.rows || !study.transposed || !study.codebook || !study.labels || !study.counts) {
        fprintf(stderr, "case_study: no memory for %zu values\n", values);
        return 3;
    }
    if (!make_descriptors(&study, argv + optind, (uint32_t)(argc - optind)))
        return 3;
    enum status status = workers_open(&study.workers, study.threads, &err);
    if (status == STATUS_OK)
        status = ocl_devices_open(&devices, study.threads, &err);
    if (status == STATUS_OK)
        status = ocl_devices_select(chosen, &found, 1, &devices, study.device, &err);
    if (status == STATUS_OK)
        status = ocl_context_open(&study.context, &devices.device[chosen[0]], NULL, &err);
    if (status == STATUS_OK)
        status = make_codebook(&study, &err);
    if (status == STATUS_OK)
        status = run(&study, &err);
    char line[1200];
    if (status != STATUS_OK)
        fprintf(stderr, "case_study: %s\n", error_line(line, sizeof line, &err));
    close_study(&study);
    ocl_devices_close(&devices);
    return status == STATUS_OK ? 0 : 1;
}
