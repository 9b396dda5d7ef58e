/* pieces.c: digests pieces with several threads (raw.h). */
#include "result/pieces.h"
#include "base/cpus.h"
#include "base/minmax.h"
#include "base/workers.h"
#include "matrix/row_tree.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* For fewer pieces, a thread costs more than it saves. */
#define GROUP 16

void pieces_clear(struct pieces *pieces)
{
    free(pieces->digest);
    *pieces = (struct pieces){0};
}

void pieces_rows(const struct pieces *pieces, uint64_t i, uint64_t *first, uint64_t *last)
{
    *first = i * pieces->piece_rows;
    *last = *first + pieces->piece_rows - 1;
    if (*last >= pieces->rows)
        *last = pieces->rows - 1;
}

struct digesting {
    const struct raw *raw;
    struct pieces *pieces;
    size_t piece_bytes;
    uint8_t **buffer;     /* of each thread: the values of a piece; NULL: not allocated yet */
    pthread_mutex_t lock; /* guards the first damaged piece, and what is wrong with it */
    uint64_t damaged;
    struct error damage;
};

/* A damaged piece has a digest of zeros. STATUS_FAILED: the error is the system's, not the file's. */
static enum status digest_piece(void *context, uint64_t piece, struct error *err)
{
    struct digesting *d = context;
    struct error why = ERROR_INIT;
    uint64_t first, last;
    pieces_rows(d->pieces, piece, &first, &last);
    const size_t bytes = (size_t)((last - first + 1) * d->raw->row_bytes);
    uint8_t *digest = d->pieces->digest[piece], **values = &d->buffer[workers_number()];
    if (!*values && !(*values = malloc(d->piece_bytes)))
        return error_memory(err, d->piece_bytes, "checksums");
    if (raw_read(d->raw, first, last - first + 1, *values, &why) == STATUS_OK)
        sha256_of(digest, *values, bytes);
    else
        memset(digest, 0, PIECE_DIGEST);
    if (why.native) {
        if (err)
            *err = why;
        return why.status;
    }
    pthread_mutex_lock(&d->lock);
    if (why.status && piece < d->damaged) {
        d->damaged = piece;
        d->damage = why;
    }
    pthread_mutex_unlock(&d->lock);
    return STATUS_OK;
}

static enum status digest_raw(struct pieces *pieces, const struct raw *raw, struct error *err)
{
    struct digesting d = {
        .raw = raw, .pieces = pieces, .lock = PTHREAD_MUTEX_INITIALIZER, .damaged = UINT64_MAX};
    struct workers *workers;
    pieces->piece_rows = row_tree_piece((size_t)raw->row_bytes);
    pieces->count = (pieces->rows - 1) / pieces->piece_rows + 1;
    d.piece_bytes = (size_t)(min_u64(pieces->rows, pieces->piece_rows) * raw->row_bytes);
    pieces->digest = malloc(pieces->count * PIECE_DIGEST);
    if (!pieces->digest)
        return error_memory(err, pieces->count * PIECE_DIGEST, "checksums");
    const uint64_t groups = (pieces->count + GROUP - 1) / GROUP;
    enum status status = workers_open(&workers, (unsigned)min_u64(cpus_available(), groups), err);
    const unsigned threads = status ? 0 : workers_count(workers);
    d.buffer = calloc(threads + 1, sizeof *d.buffer);
    if (!status && !d.buffer)
        status = error_memory(err, threads * sizeof *d.buffer, "checksums");
    if (!status)
        status = workers_try(workers, digest_piece, &d, pieces->count, err);
    workers_close(&workers);
    for (unsigned i = 0; d.buffer && i < threads; i++)
        free(d.buffer[i]);
    free(d.buffer);
    if (status)
        pieces_clear(pieces);
    else if (d.damage.status && err)
        *err = d.damage;
    return status ? status : d.damage.status;
}

enum status pieces_digest(struct pieces *pieces, hid_t dataset, struct error *err)
{
    struct raw *raw = NULL;
    H5_SCOPED hid_t space = H5Dget_space(dataset);
    const bool empty = H5Sget_simple_extent_npoints(space) == 0;
    *pieces = (struct pieces){.piece_rows = 1};
    if (empty)
        return STATUS_OK;
    enum status status = h5_open_raw(&raw, dataset, err);
    if (status == STATUS_OK) {
        pieces->rows = raw->rows;
        status = digest_raw(pieces, raw, err);
    }
    raw_close(&raw);
    return status;
}
