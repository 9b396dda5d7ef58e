/* redecode.c: decodes pictures again on all threads, in batches whose files the calling thread has
 * looked up. */
#include "duplicates/redecode.h"

#include "base/budget.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "decode/decode.h"
#include "file/locate.h"
#include "file/parameters.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BATCH       64u /* pictures that are looked up at a time */
#define SCALES      4u  /* 1, 2, 4, 8 */
#define STRIP_BYTES (256u << 10)

struct task {
    char *path;
    uint64_t bytes;
    int64_t mtime_ns;
    unsigned scale;                /* index: 1 << scale */
    struct alignment_plane *plane; /* or NULL, */
    uint64_t *digest;              /* then this */
};

struct bench {
    struct decode *decode[SCALES];
    struct bench *next;
};

struct redecode {
    struct result *result;
    struct workers *workers;
    struct stop *stop;
    struct budget *budget;
    struct decode_options options;
    struct locator locator;
    struct task task[BATCH];
    pthread_mutex_t lock;
    struct bench *idle; /* under the lock */
};

/* --- means over areas ------------------------------------------------------------------------ */

/* A plane in stored coordinates that is summed up row by row. A source pixel covers `out` units of an
 * axis, a plane's pixel `in` units, so a source pixel has part in at most two of them. */
struct shrink {
    uint32_t in_width, in_height, width, height, y;
    uint64_t row[ALIGNMENT_SIDE], sum[ALIGNMENT_SIDE][ALIGNMENT_SIDE];
};

static void shrink_begin(struct shrink *shrink, uint32_t width, uint32_t height)
{
    const uint32_t longer = max_u32(width, height);
    memset(shrink, 0, sizeof *shrink);
    shrink->in_width = shrink->width = width;
    shrink->in_height = shrink->height = height;
    if (longer > ALIGNMENT_SIDE) {
        shrink->width = (uint32_t)(((uint64_t)width * ALIGNMENT_SIDE + longer / 2) / longer);
        shrink->height = (uint32_t)(((uint64_t)height * ALIGNMENT_SIDE + longer / 2) / longer);
        shrink->width = max_u32(shrink->width, 1);
        shrink->height = max_u32(shrink->height, 1);
    }
}

/* How much of source pixel i falls into *first of the plane's; the rest falls into the next. */
static uint32_t split(uint32_t *first, uint32_t i, uint32_t in, uint32_t out)
{
    const uint64_t from = (uint64_t)i * out;
    *first = (uint32_t)(from / in);
    const uint64_t edge = ((uint64_t)*first + 1) * in;
    return edge - from < out ? (uint32_t)(edge - from) : out;
}

static void shrink_row(struct shrink *shrink, const uint8_t *pixels)
{
    uint32_t at;
    memset(shrink->row, 0, sizeof shrink->row);
    for (uint32_t x = 0; x < shrink->in_width; x++) {
        const uint8_t *p = pixels + 3 * (size_t)x;
        const uint64_t grey = 77u * p[0] + 150u * p[1] + 29u * p[2];
        const uint32_t part = split(&at, x, shrink->in_width, shrink->width);
        shrink->row[at] += grey * part;
        if (part < shrink->width)
            shrink->row[at + 1] += grey * (shrink->width - part);
    }
    const uint32_t part = split(&at, shrink->y++, shrink->in_height, shrink->height);
    for (uint32_t x = 0; x < shrink->width; x++) {
        shrink->sum[at][x] += shrink->row[x] * part;
        if (part < shrink->height)
            shrink->sum[at + 1][x] += shrink->row[x] * (shrink->height - part);
    }
}

/* The stored pixel that upright pixel (x, y) is. */
static void turn_back(uint32_t *sx, uint32_t *sy, uint32_t x, uint32_t y, uint32_t width,
                      uint32_t height, uint8_t orientation)
{
    *sx = orientation >= 5 ? y : x;
    *sy = orientation >= 5 ? x : y;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        *sx = width - 1 - *sx;
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        *sy = height - 1 - *sy;
}

static void shrink_finish(struct alignment_plane *plane, const struct shrink *shrink,
                          uint8_t orientation)
{
    const uint64_t area = (uint64_t)shrink->in_width * shrink->in_height * 256;
    plane->width = orientation >= 5 ? shrink->height : shrink->width;
    plane->height = orientation >= 5 ? shrink->width : shrink->height;
    for (uint32_t y = 0; y < plane->height; y++) {
        for (uint32_t x = 0; x < plane->width; x++) {
            uint32_t sx, sy;
            turn_back(&sx, &sy, x, y, shrink->width, shrink->height, orientation);
            plane->pixel[y * plane->width + x] = (uint8_t)((shrink->sum[sy][sx] + area / 2) / area);
        }
    }
}

/* --- one picture ----------------------------------------------------------------------------- */

static void hash_upright(struct murmur3 *hash, uint8_t *row, const uint8_t *pixels,
                         const struct image_info *info)
{
    const bool swapped = info->orientation >= 5;
    const uint32_t width = swapped ? info->out_height : info->out_width;
    const uint32_t height = swapped ? info->out_width : info->out_height;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            uint32_t sx, sy;
            turn_back(&sx, &sy, x, y, info->out_width, info->out_height, info->orientation);
            memcpy(row + 3 * (size_t)x, pixels + 3 * ((size_t)sy * info->out_width + sx), 3);
        }
        murmur3_update(hash, row, 3 * (size_t)width);
    }
}

/* Rows of a picture whose header has been read: to the task's plane or digest. */
static bool take_rows(struct redecode *pictures, struct decode *decode, const struct task *task,
                      const struct image_info *info)
{
    const size_t stride = 3 * (size_t)info->out_width;
    const bool whole = task->digest && info->orientation > 1;
    const uint32_t strip = min_u32((uint32_t)max_u64(STRIP_BYTES / stride, 1), info->out_height);
    const uint32_t room = whole ? info->out_height : strip;
    struct failure failure = {.reason = REASON_NONE};
    struct murmur3 hash;
    struct shrink *shrink = task->plane ? malloc(sizeof *shrink) : NULL;
    uint8_t *rows = malloc(stride * room + (whole ? 3 * (size_t)info->out_height : 0));
    bool good = rows && (shrink || !task->plane);
    murmur3_init(&hash);
    if (good && shrink)
        shrink_begin(shrink, info->out_width, info->out_height);
    for (uint32_t y = 0; y < info->out_height && good; y += strip) {
        const uint32_t count = min_u32(strip, info->out_height - y);
        uint8_t *to = rows + (whole ? y * stride : 0);
        good = !stop_overdue(pictures->stop) &&
               decode_rows(decode, to, stride, count, &failure) == REASON_NONE;
        for (uint32_t r = 0; r < count && good && shrink; r++)
            shrink_row(shrink, to + r * stride);
        if (good && task->digest && !whole)
            murmur3_update(&hash, to, stride * count);
    }
    if (good && shrink)
        shrink_finish(task->plane, shrink, info->orientation);
    if (good && task->digest) {
        if (whole)
            hash_upright(&hash, rows + stride * room, rows, info);
        murmur3_final(&hash, task->digest);
    }
    free(rows);
    free(shrink);
    return good;
}

static void forget(const struct task *task)
{
    if (task->plane)
        task->plane->width = 0;
    if (task->digest)
        task->digest[0] = task->digest[1] = 0;
}

static bool decode_picture(struct redecode *pictures, const struct task *task, struct bench *bench,
                           const struct blob *blob)
{
    struct decode **decode = &bench->decode[task->scale];
    struct decode_options options = pictures->options;
    struct failure failure = {.reason = REASON_NONE};
    struct image_info info;
    uint64_t digest[2];
    options.scale = 1u << task->scale;
    if ((!*decode && decode_open(decode, &options, NULL) != STATUS_OK) ||
        decode_begin(*decode, blob, task->path, &info, &failure) != REASON_NONE)
        return false;
    uint64_t memory = info.memory + max_u64(STRIP_BYTES, (uint64_t)info.out_width * 3);
    if (task->digest && info.orientation > 1)
        memory += 3ull * info.out_width * info.out_height;
    bool good = budget_take(pictures->budget, memory);
    if (good) {
        good = take_rows(pictures, *decode, task, &info);
        budget_give(pictures->budget, memory);
    }
    if (good && decode_end(*decode, digest, &failure) == REASON_NONE)
        return true;
    decode_abort(*decode);
    return false;
}

static struct bench *take_bench(struct redecode *pictures)
{
    pthread_mutex_lock(&pictures->lock);
    struct bench *bench = pictures->idle;
    if (bench)
        pictures->idle = bench->next;
    pthread_mutex_unlock(&pictures->lock);
    return bench ? bench : calloc(1, sizeof *bench);
}

static void do_task(void *context, uint64_t i)
{
    struct redecode *pictures = context;
    const struct task *task = &pictures->task[i];
    struct stat st;
    bool good = false;
    forget(task);
    if (pictures->stop && stop_requested(pictures->stop) != STOP_NONE)
        return;
    const int fd = open(task->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    struct blob blob = blob_of_file(fd, task->bytes, task->mtime_ns);
    struct bench *bench = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? take_bench(pictures) : NULL;
    if (bench) {
        good = decode_picture(pictures, task, bench, &blob);
        pthread_mutex_lock(&pictures->lock);
        bench->next = pictures->idle;
        pictures->idle = bench;
        pthread_mutex_unlock(&pictures->lock);
    }
    blob_close(&blob);
    if (!good)
        forget(task);
}

/* --- batches --------------------------------------------------------------------------------- */

static enum status look_up(struct redecode *pictures, struct task *task, uint64_t row,
                           struct error *err)
{
    struct result_image image;
    const char *path;
    enum status status = result_image_at(pictures->result, row, &image, err);
    if (status == STATUS_OK)
        status = locate_image(&pictures->locator, &path, pictures->result, image.source,
                              image.path_raw, err);
    if (status != STATUS_OK)
        return status;
    /* The largest scale that leaves twice the plane's size. */
    unsigned scale = task->plane ? SCALES - 1 : 0;
    while (scale > 0 && max_u32(image.width, image.height) >> scale < 2 * ALIGNMENT_SIDE)
        scale--;
    task->scale = scale;
    task->bytes = image.bytes;
    task->mtime_ns = image.mtime_ns;
    task->path = strdup(path);
    return task->path ? STATUS_OK : error_memory(err, strlen(path) + 1, "a file name");
}

enum status redecode_read(struct redecode *pictures, const uint64_t *rows, uint64_t count,
                          struct alignment_plane *const *planes, uint64_t (*digests)[2],
                          struct error *err)
{
    enum status status = STATUS_OK;
    for (uint64_t first = 0; first < count && status == STATUS_OK; first += BATCH) {
        const uint64_t batch = count - first < BATCH ? count - first : BATCH;
        uint64_t ready = 0;
        while (ready < batch && status == STATUS_OK) {
            struct task *task = &pictures->task[ready];
            *task = (struct task){.plane = planes ? planes[first + ready] : NULL,
                                  .digest = digests ? digests[first + ready] : NULL};
            status = look_up(pictures, task, rows[first + ready], err);
            ready++;
        }
        if (status == STATUS_OK)
            workers_run(pictures->workers, do_task, pictures, batch);
        for (uint64_t i = 0; i < ready; i++)
            free(pictures->task[i].path);
        if (status == STATUS_OK)
            status = stop_check(pictures->stop, "pictures were compared", err);
    }
    return status;
}

/* Pixels as the file's own were made. */
static enum status read_options(struct decode_options *out, struct result *result,
                                struct error *err)
{
    struct parameters *parameters;
    const enum status status = parameters_open(&parameters, result_parameters(result), err);
    if (status != STATUS_OK)
        return status;
    decode_options_again(out, parameters_member(parameters, "alpha"),
                         parameters_member(parameters, "icc"));
    parameters_close(&parameters);
    return STATUS_OK;
}

enum status redecode_open(struct redecode **out, struct result *result, struct workers *workers,
                          uint64_t memory, struct stop *stop, struct error *err)
{
    struct redecode *pictures = *out = calloc(1, sizeof *pictures);
    if (!pictures)
        return error_memory(err, sizeof *pictures, "pictures");
    pictures->result = result;
    pictures->workers = workers;
    pictures->stop = stop;
    pthread_mutex_init(&pictures->lock, NULL);
    enum status status = read_options(&pictures->options, result, err);
    pictures->options.stop = stop;
    if (status == STATUS_OK)
        status = budget_open(&pictures->budget, memory, err);
    if (status != STATUS_OK)
        redecode_close(out);
    return status;
}

void redecode_close(struct redecode **out)
{
    struct redecode *pictures = out ? *out : NULL;
    if (!pictures)
        return;
    for (struct bench *bench = pictures->idle, *next; bench; bench = next) {
        next = bench->next;
        for (unsigned s = 0; s < SCALES; s++)
            decode_close(&bench->decode[s]);
        free(bench);
    }
    budget_close(&pictures->budget);
    locator_clear(&pictures->locator);
    pthread_mutex_destroy(&pictures->lock);
    free(pictures);
    *out = NULL;
}
