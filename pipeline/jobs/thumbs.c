/* thumbs.c: collects the thumbnails of a result in a temporary file.
 *
 *   result ── rows with a thumbnail ───────────────────────────> spool
 *          └─ the others ──> workers decode pictures again ──────┘
 *
 * Only the calling thread uses the result. */
#include "jobs/thumbs.h"

#include "base/minmax.h"
#include "base/output.h"
#include "base/unnamed_file.h"
#include "decode/thumbnail.h"
#include "jobs/reopen.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct making {
    struct thumbs *thumbs;
    const uint64_t *rows; /* rows to decode */
    atomic_int status;    /* enum status: of the spool */
    pthread_mutex_t lock; /* guards the spool and the following */
    struct error err;
};

/* --- the spool ------------------------------------------------------------------------------- */

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

/* If a picture fails, the row has no thumbnail. */
static bool make_one(void *context, uint64_t index, struct decode *decode,
                     const struct image_info *info)
{
    struct making *making = context;
    if (making->status != STATUS_OK)
        return false;
    struct thumbnail_maker *maker = thumbnail_maker_new(making->thumbs->size, false);
    uint32_t length = 0;
    const bool good = thumbnail_decode(maker, decode, info, making->thumbs->machine->watch.stop);
    uint8_t *jpeg = good ? thumbnail_finish(maker, &length) : NULL;
    if (jpeg) {
        pthread_mutex_lock(&making->lock);
        if (making->status == STATUS_OK)
            making->status = put(making->thumbs, making->rows[index], jpeg, length, &making->err);
        pthread_mutex_unlock(&making->lock);
    }
    free(jpeg);
    thumbnail_maker_free(maker);
    return good;
}

static enum status make_missing(struct thumbs *thumbs, uint64_t missing, struct error *err)
{
    struct making making = {.thumbs = thumbs, .err = ERROR_INIT};
    const struct reopen_config config = {.result = thumbs->result,
                                         .workers = thumbs->workers,
                                         .memory = thumbs->machine->memory,
                                         .watch = thumbs->machine->watch};
    const struct reopen_use use = {.side = thumbs->size,
                                   .decode = make_one,
                                   .context = &making,
                                   .phase = "thumbnails",
                                   .failed = &making.status};
    struct reopen *reopen = NULL;
    uint64_t *rows = malloc(missing * sizeof *rows), count = 0;
    if (!rows)
        return error_memory(err, missing * sizeof *rows, "thumbnails");
    for (uint64_t row = 0; row < thumbs->rows; row++)
        if (thumbs->length[row] == 0)
            rows[count++] = row;
    making.rows = rows;
    pthread_mutex_init(&making.lock, NULL);
    enum status status = reopen_open(&reopen, &config, err);
    if (status == STATUS_OK)
        status = reopen_rows(reopen, rows, count, &use, err);
    if (status == STATUS_OK && making.status != STATUS_OK) {
        status = (enum status)making.status;
        *err = making.err;
    }
    reopen_close(&reopen);
    pthread_mutex_destroy(&making.lock);
    free(rows);
    return status;
}

/* Copies the thumbnails stored in the file. */
static enum status copy_stored(struct thumbs *thumbs, uint64_t *missing, struct error *err)
{
    for (uint64_t row = 0; row < thumbs->rows; row++) {
        const uint8_t *jpeg = NULL;
        uint64_t length = 0;
        enum status status = result_thumbnail_read(thumbs->result, row, &jpeg, &length, err);
        if (status == STATUS_OK && length > 0)
            status = put(thumbs, row, jpeg, (uint32_t)length, err);
        if (status == STATUS_OK && row % 1024 == 0)
            status = watch_check(&thumbs->machine->watch, "reading thumbnails", err);
        if (status != STATUS_OK)
            return status;
        *missing += length == 0;
    }
    return STATUS_OK;
}

enum status thumbs_open(struct thumbs **out, struct result *result, const char *directory,
                        const struct clustering_machine *machine, struct error *err)
{
    const uint64_t rows = result_images(result);
    const uint32_t stored = result->thumbnail_size;
    uint64_t missing = 0;
    struct thumbs *thumbs = *out = calloc(1, sizeof *thumbs);
    if (!thumbs)
        return error_memory(err, sizeof *thumbs, "thumbnails");
    thumbs->result = result;
    thumbs->machine = machine;
    thumbs->rows = rows;
    thumbs->spool = -1;
    thumbs->size = stored ? min_u32(stored, THUMBNAIL_MOST) : thumbnail_suitable_size(rows);
    thumbs->at = held_array(&thumbs->held, rows, sizeof *thumbs->at);
    thumbs->length = held_array(&thumbs->held, rows, sizeof *thumbs->length);
    enum status status = held_check(&thumbs->held, "thumbnails", err);
    if (status == STATUS_OK)
        status = workers_open(&thumbs->workers, machine->threads, err);
    if (status == STATUS_OK && (thumbs->spool = unnamed_file(directory)) < 0)
        status = error_errno(err, STATUS_FAILED, errno, "open",
                             "cannot create a temporary file for thumbnails in %s", directory);
    if (status == STATUS_OK)
        status = copy_stored(thumbs, &missing, err);
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
    held_free(&thumbs->held);
    free(thumbs);
    *out = NULL;
}

enum status thumbs_read(uint8_t **buffer, size_t *room, const struct thumbs *thumbs, uint64_t row,
                        struct error *err)
{
    const uint32_t length = thumbs->length[row];
    size_t got;
    if (length > *room) {
        free(*buffer);
        *buffer = malloc(length);
        *room = *buffer ? length : 0;
        if (!*buffer)
            return error_memory(err, length, "a thumbnail");
    }
    return read_at(thumbs->spool, *buffer, length, thumbs->at[row], &got,
                   "the temporary file of thumbnails", err);
}
