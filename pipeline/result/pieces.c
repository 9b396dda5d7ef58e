/* pieces.c: digests pieces with several threads (raw.h). */
#include "result/pieces.h"
#include "base/cpus.h"
#include "base/threads.h"
#include <pthread.h>
#include <stdatomic.h>
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

struct parallel {
    const struct raw *raw;
    struct pieces *pieces;
    _Atomic uint64_t next; /* piece */
    _Atomic bool failed;   /* the error is the system's, not the file's */
    pthread_mutex_t lock;
    struct error error; /* guarded by it: the first error, or the system's */
};

/* Bytes of a whole piece. */
static size_t piece_bytes(const struct parallel *p)
{
    const uint64_t rows = p->pieces->rows, most = p->pieces->piece_rows;
    return (size_t)((rows < most ? rows : most) * p->raw->row_bytes);
}

/* A piece that cannot be read has a digest of zeros. */
static void digest_piece(struct parallel *p, uint64_t piece, uint8_t *buffer)
{
    uint64_t first, last;
    struct error error = ERROR_INIT;
    pieces_rows(p->pieces, piece, &first, &last);
    if (!buffer)
        error_memory(&error, piece_bytes(p), "checksums");
    else if (raw_read(p->raw, first, last - first + 1, buffer, &error) == STATUS_OK) {
        sha256_of(p->pieces->digest[piece], buffer, (last - first + 1) * p->raw->row_bytes);
        return;
    }
    memset(p->pieces->digest[piece], 0, PIECE_DIGEST);
    pthread_mutex_lock(&p->lock);
    if (!p->error.status || error.native)
        p->error = error;
    if (error.native)
        atomic_store(&p->failed, true);
    pthread_mutex_unlock(&p->lock);
}

static void *digest_pieces(void *context)
{
    struct parallel *p = context;
    uint8_t *buffer = malloc(piece_bytes(p));
    uint64_t piece;
    while (!atomic_load(&p->failed) && (piece = atomic_fetch_add(&p->next, 1)) < p->pieces->count)
        digest_piece(p, piece, buffer);
    free(buffer);
    return NULL;
}

static enum status digest_raw(struct pieces *pieces, const struct raw *raw, struct error *err)
{
    struct parallel p = {.raw = raw, .pieces = pieces};
    unsigned wanted = cpus_available();
    while (2 * pieces->piece_rows * raw->row_bytes <= PIECE_BYTES)
        pieces->piece_rows *= 2;
    pieces->count = (pieces->rows - 1) / pieces->piece_rows + 1;
    pieces->digest = malloc(pieces->count * PIECE_DIGEST);
    if (!pieces->digest)
        return error_memory(err, pieces->count * PIECE_DIGEST, "checksums");
    if (wanted > (pieces->count + GROUP - 1) / GROUP)
        wanted = (unsigned)((pieces->count + GROUP - 1) / GROUP);
    pthread_mutex_init(&p.lock, NULL);
    threads_run(digest_pieces, &p, wanted);
    pthread_mutex_destroy(&p.lock);
    /* After damage, the other pieces' digests are valid; after a system error, some are missing. */
    if (p.failed)
        pieces_clear(pieces);
    if (p.error.status && err)
        *err = p.error;
    return p.error.status;
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
