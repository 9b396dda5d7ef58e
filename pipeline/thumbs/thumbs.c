/* thumbs.c: collects the thumbnails of a result in a temporary file.
 *
 *   result ── rows that have one ──────────────────────────────────────> spool
 *          └─ the others, a batch at a time ──> workers decode pictures ──┘
 *
 * Only the calling thread uses the result. A batch is written when all of it has been decoded. */
#include "thumbs/thumbs.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/unnamed_file.h"
#include "decode/decode.h"
#include "file/locate.h"
#include "file/parameters.h"
#include "thumbs/thumbnail.h"
#include "thumbs/thumbs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_A_THREAD 32u          /* pictures */
#define STRIP_BYTES    (256u << 10) /* of rows decoded at a time */
#define SCALES         4u           /* 1, 2, 4, 8 */
#define PROGRESS_NS    100000000ll

/* One picture that is to be decoded. */
struct task {
    char *path;
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t row;
    unsigned scale; /* index: 1 << scale */
    uint8_t *jpeg;  /* the outcome, or NULL */
    uint32_t length;
};

/* What a thread decodes with; made when first needed. */
struct bench {
    struct decode *decode[SCALES];
    struct thumbnail_maker *maker;
    struct bench *next;
};

struct making {
    struct thumbs *thumbs;
    struct decode_options options;
    struct locator locator;
    struct budget *budget;
    struct task *task;
    unsigned tasks, room;
    pthread_mutex_t lock;
    struct bench *idle; /* under the lock */
    uint64_t done, total;
    int64_t shown;
};

/* --- one picture ----------------------------------------------------------------------------- */

static struct bench *take_bench(struct making *making)
{
    pthread_mutex_lock(&making->lock);
    struct bench *bench = making->idle;
    if (bench)
        making->idle = bench->next;
    pthread_mutex_unlock(&making->lock);
    if (bench)
        return bench;
    bench = calloc(1, sizeof *bench);
    if (bench)
        bench->maker = thumbnail_maker_new(making->thumbs->size);
    return bench;
}

static void give_bench(struct making *making, struct bench *bench)
{
    pthread_mutex_lock(&making->lock);
    bench->next = making->idle;
    making->idle = bench;
    pthread_mutex_unlock(&making->lock);
}

static void free_benches(struct making *making)
{
    for (struct bench *bench = making->idle, *next; bench; bench = next) {
        next = bench->next;
        for (unsigned s = 0; s < SCALES; s++)
            decode_close(&bench->decode[s]);
        thumbnail_maker_free(bench->maker);
        free(bench);
    }
}

/* All rows of a picture whose header has been read. */
static enum reason pass_rows(struct making *making, struct decode *decode,
                             struct thumbnail_maker *maker, const struct image_info *info,
                             struct failure *failure)
{
    const size_t stride = (size_t)info->out_width * 3;
    const uint32_t at_once = min_u32((uint32_t)max_u64(STRIP_BYTES / stride, 1), info->out_height);
    uint8_t *rows = malloc(stride * at_once);
    if (!rows)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for rows");
    enum reason reason = REASON_NONE;
    thumbnail_begin(maker, info->out_width, info->out_height, info->orientation);
    for (uint32_t y = 0; y < info->out_height && reason == REASON_NONE; y += at_once) {
        const uint32_t count = min_u32(at_once, info->out_height - y);
        if (stop_overdue(making->thumbs->config.stop))
            reason = failure_set(failure, REASON_TIMEOUT, "the run ended");
        else
            reason = decode_rows(decode, rows, stride, count, failure);
        if (reason == REASON_NONE)
            thumbnail_rows(maker, rows, stride, count);
    }
    free(rows);
    return reason;
}

static void decode_file(struct making *making, struct task *task, struct bench *bench,
                        const struct blob *blob)
{
    struct decode **decode = &bench->decode[task->scale];
    struct decode_options options = making->options;
    struct image_info info;
    struct failure failure = {.reason = REASON_NONE};
    uint64_t digest[2];
    options.scale = 1u << task->scale;
    if (!*decode && decode_open(decode, &options, NULL) != STATUS_OK)
        return;
    if (decode_begin(*decode, blob, task->path, &info, &failure) != REASON_NONE)
        return;
    const uint64_t memory = info.memory + max_u64(STRIP_BYTES, (uint64_t)info.out_width * 3);
    if (!budget_take(making->budget, memory)) {
        decode_abort(*decode);
        return;
    }
    if (pass_rows(making, *decode, bench->maker, &info, &failure) != REASON_NONE ||
        decode_end(*decode, digest, &failure) != REASON_NONE)
        decode_abort(*decode);
    else
        task->jpeg = thumbnail_finish(bench->maker, &task->length);
    budget_give(making->budget, memory);
}

/* What goes wrong leaves the row without a thumbnail. */
static void do_task(void *context, uint64_t i)
{
    struct making *making = context;
    struct task *task = &making->task[i];
    struct stop *stop = making->thumbs->config.stop;
    if (stop && stop_requested(stop) != STOP_NONE)
        return;
    const int fd = open(task->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    struct stat st;
    struct blob blob = blob_of_file(fd, task->bytes, task->mtime_ns);
    struct bench *bench = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? take_bench(making) : NULL;
    /* Of rows of other data only the path is known: the file counts as it is. */
    if (bench && task->bytes == 0)
        blob = blob_of_file(fd, (uint64_t)st.st_size,
                            (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    if (bench) {
        decode_file(making, task, bench, &blob);
        give_bench(making, bench);
    }
    blob_close(&blob);
}

/* --- the spool ------------------------------------------------------------------------------- */

static enum status open_spool(struct thumbs *thumbs, struct error *err)
{
    const char *directory = thumbs->config.directory;
    thumbs->spool = unnamed_file(directory);
    if (thumbs->spool < 0)
        return error_errno(err, STATUS_FAILED, errno, "open",
                           "cannot create a temporary file for thumbnails in %s", directory);
    return STATUS_OK;
}

static enum status put(struct thumbs *thumbs, uint64_t row, const uint8_t *jpeg, uint32_t length,
                       struct error *err)
{
    if (write_all(thumbs->spool, jpeg, length, "the temporary file of thumbnails", err))
        return STATUS_FAILED;
    thumbs->at[row] = thumbs->used;
    thumbs->length[row] = length;
    thumbs->used += length;
    return STATUS_OK;
}

/* --- all rows -------------------------------------------------------------------------------- */

static void show(struct making *making, bool last)
{
    const struct thumbs_config *config = &making->thumbs->config;
    const int64_t now = clock_now();
    if (!config->progress || (!last && now - making->shown < PROGRESS_NS))
        return;
    making->shown = now;
    config->progress(config->progress_context, making->done, making->total);
}

static enum status do_batch(struct making *making, struct error *err)
{
    enum status status = STATUS_OK;
    workers_run(making->thumbs->workers, do_task, making, making->tasks);
    for (unsigned i = 0; i < making->tasks; i++) {
        struct task *task = &making->task[i];
        if (status == STATUS_OK && task->jpeg)
            status = put(making->thumbs, task->row, task->jpeg, task->length, err);
        free(task->jpeg);
        free(task->path);
    }
    making->done += making->tasks;
    making->tasks = 0;
    if (status == STATUS_OK)
        status = stop_check(making->thumbs->config.stop, "thumbnails were made", err);
    show(making, false);
    return status;
}

/* The largest scale that leaves the thumbnail's size. */
static unsigned choose_scale(const struct result_image *image, uint32_t size)
{
    unsigned scale = SCALES - 1;
    while (scale > 0 && max_u32(image->width, image->height) >> scale < size)
        scale--;
    return scale;
}

static enum status add_task(struct making *making, uint64_t row, struct error *err)
{
    struct thumbs *thumbs = making->thumbs;
    struct result_image image;
    const char *path;
    enum status status = result_image_at(thumbs->config.result, row, &image, err);
    if (status == STATUS_OK)
        status = locate_image(&making->locator, &path, thumbs->config.result, image.source,
                              image.path_raw, err);
    if (status != STATUS_OK)
        return status;
    making->task[making->tasks] = (struct task){.path = strdup(path),
                                                .bytes = image.bytes,
                                                .mtime_ns = image.mtime_ns,
                                                .row = row,
                                                .scale = choose_scale(&image, thumbs->size)};
    if (!making->task[making->tasks].path)
        return error_memory(err, strlen(path) + 1, "a file name");
    making->tasks++;
    return STATUS_OK;
}

/* Pixels as the file's own were made. */
static enum status read_options(struct decode_options *out, struct result *result,
                                struct error *err)
{
    struct parameters *parameters;
    enum status status = parameters_open(&parameters, result_parameters(result), err);
    if (status != STATUS_OK)
        return status;
    decode_options_again(out, parameters_member(parameters, "alpha"),
                         parameters_member(parameters, "icc"));
    parameters_close(&parameters);
    return STATUS_OK;
}

static enum status make_missing(struct thumbs *thumbs, uint64_t missing, struct error *err)
{
    struct making making = {.thumbs = thumbs, .total = missing};
    making.room = BATCH_A_THREAD * thumbs->config.threads;
    making.task = calloc(making.room, sizeof *making.task);
    pthread_mutex_init(&making.lock, NULL);
    enum status status = making.task
                             ? STATUS_OK
                             : error_memory(err, making.room * sizeof *making.task, "thumbnails");
    if (status == STATUS_OK)
        status = read_options(&making.options, thumbs->config.result, err);
    if (status == STATUS_OK)
        status = budget_open(&making.budget, thumbs->config.memory, err);
    making.options.stop = thumbs->config.stop;
    for (uint64_t row = 0; row < thumbs->rows && status == STATUS_OK; row++) {
        if (thumbs->length[row] > 0)
            continue;
        status = add_task(&making, row, err);
        if (status == STATUS_OK && making.tasks == making.room)
            status = do_batch(&making, err);
    }
    if (status == STATUS_OK && making.tasks > 0)
        status = do_batch(&making, err);
    for (unsigned i = 0; i < making.tasks; i++)
        free(making.task[i].path);
    if (status == STATUS_OK)
        show(&making, true);
    free_benches(&making);
    budget_close(&making.budget);
    locator_clear(&making.locator);
    pthread_mutex_destroy(&making.lock);
    free(making.task);
    return status;
}

/* Copies those that the file has. */
static enum status copy_stored(struct thumbs *thumbs, uint64_t *missing, struct error *err)
{
    struct result *result = thumbs->config.result;
    for (uint64_t row = 0; row < thumbs->rows; row++) {
        const uint8_t *jpeg = NULL;
        uint64_t length = 0;
        enum status status = result_thumbnail_read(result, row, &jpeg, &length, err);
        if (status == STATUS_OK && length > 0)
            status = put(thumbs, row, jpeg, (uint32_t)length, err);
        if (status == STATUS_OK && row % 1024 == 0)
            status = stop_check(thumbs->config.stop, "thumbnails were read", err);
        if (status != STATUS_OK)
            return status;
        *missing += length == 0;
    }
    return STATUS_OK;
}

enum status thumbs_open(struct thumbs **out, const struct thumbs_config *config, struct error *err)
{
    const uint64_t rows = result_images(config->result);
    const uint32_t stored = result_thumbnail_size(config->result);
    uint64_t missing = 0;
    enum status status = STATUS_FAILED;
    struct thumbs *thumbs = *out = calloc(1, sizeof *thumbs);
    if (!thumbs)
        return error_memory(err, sizeof *thumbs, "thumbnails");
    thumbs->config = *config;
    thumbs->rows = rows;
    thumbs->spool = -1;
    thumbs->size = stored         ? min_u32(stored, THUMBNAIL_MOST)
                   : config->size ? config->size
                                  : thumbnail_suitable_size(rows);
    thumbs->at = calloc(rows + 1, sizeof *thumbs->at);
    thumbs->length = calloc(rows + 1, sizeof *thumbs->length);
    if (!thumbs->at || !thumbs->length)
        status = error_memory(err, (rows + 1) * 12, "thumbnails");
    else
        status = workers_open(&thumbs->workers, config->threads, err);
    if (status == STATUS_OK)
        status = open_spool(thumbs, err);
    if (status == STATUS_OK)
        status = copy_stored(thumbs, &missing, err);
    thumbs->decoded = missing > 0;
    if (status == STATUS_OK && missing > 0)
        status = make_missing(thumbs, missing, err);
    for (uint64_t row = 0; row < rows && status == STATUS_OK; row++)
        thumbs->missing += thumbs->length[row] == 0;
    if (status != STATUS_OK)
        thumbs_close(out);
    return status;
}

void thumbs_close(struct thumbs **out)
{
    struct thumbs *thumbs = out ? *out : NULL;
    if (!thumbs)
        return;
    workers_close(&thumbs->workers);
    if (thumbs->spool >= 0)
        close(thumbs->spool);
    free(thumbs->at);
    free(thumbs->length);
    free(thumbs->buffer);
    free(thumbs);
    *out = NULL;
}

uint32_t thumbs_size(const struct thumbs *thumbs)
{
    return thumbs->size;
}

bool thumbs_decoded(const struct thumbs *thumbs)
{
    return thumbs->decoded;
}

uint64_t thumbs_missing(const struct thumbs *thumbs)
{
    return thumbs->missing;
}

enum status thumbs_fetch(uint8_t **buffer, size_t *room, const struct thumbs *thumbs, uint64_t row,
                         struct error *err)
{
    const uint32_t length = thumbs->length[row];
    if (length > *room) {
        free(*buffer);
        *buffer = malloc(length);
        *room = *buffer ? length : 0;
        if (!*buffer)
            return error_memory(err, length, "a thumbnail");
    }
    for (uint32_t done = 0; done < length;) {
        const ssize_t got =
            pread(thumbs->spool, *buffer + done, length - done, (off_t)(thumbs->at[row] + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_errno(err, STATUS_FAILED, got < 0 ? errno : EIO, "pread",
                               "cannot read the temporary file of thumbnails");
        done += (uint32_t)got;
    }
    return STATUS_OK;
}

enum status thumbs_read(struct thumbs *thumbs, uint64_t row, const uint8_t **data, uint32_t *bytes,
                        struct error *err)
{
    enum status status = thumbs_fetch(&thumbs->buffer, &thumbs->room, thumbs, row, err);
    *data = thumbs->buffer;
    *bytes = status == STATUS_OK ? thumbs->length[row] : 0;
    return status;
}
