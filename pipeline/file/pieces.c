/* pieces.c: numbers and texts of fixed length by several threads (raw.h); other texts one after the
 * other. */
#include "file/pieces.h"
#include "base/cpus.h"
#include "base/path.h"
#include "base/threads.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thread for fewer pieces costs more than it saves. */
#define GROUP 16

void pieces_clear(struct pieces *pieces)
{
    free(pieces->digest);
    free(pieces->row);
    *pieces = (struct pieces){0};
}

void pieces_rows(const struct pieces *pieces, uint64_t i, uint64_t *first, uint64_t *last)
{
    if (pieces->row_bytes == 0) {
        *first = pieces->row[i];
        *last = i + 1 < pieces->count ? pieces->row[i + 1] : pieces->rows - 1;
        return;
    }
    *first = i * PIECE_BYTES / pieces->row_bytes;
    *last = ((i + 1) * PIECE_BYTES - 1) / pieces->row_bytes;
    if (*last >= pieces->rows)
        *last = pieces->rows - 1;
}

/* --- values of a fixed size ------------------------------------------------------------------ */

struct parallel {
    const struct raw *raw;
    uint64_t bytes;
    struct pieces *pieces;
    _Atomic uint64_t next; /* piece */
    _Atomic bool failed;   /* the system, not the file */
    pthread_mutex_t lock;
    struct error error; /* under it: the first, or the system's */
};

/* A piece that cannot be read has a digest of zeros. */
static void digest_piece(struct parallel *p, uint64_t piece, uint8_t *buffer)
{
    const uint64_t start = piece * PIECE_BYTES, left = p->bytes - start;
    const size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    struct error error = ERROR_INIT;
    if (!buffer)
        error_memory(&error, size, "checksums");
    else if (raw_read_bytes(p->raw, start, size, buffer, &error) == STATUS_OK) {
        sha256_of(p->pieces->digest[piece], buffer, size);
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
    uint8_t *buffer = malloc(p->bytes < PIECE_BYTES ? (size_t)p->bytes : PIECE_BYTES);
    uint64_t piece;
    while (!atomic_load(&p->failed) && (piece = atomic_fetch_add(&p->next, 1)) < p->pieces->count)
        digest_piece(p, piece, buffer);
    free(buffer);
    return NULL;
}

static enum status digest_raw(struct pieces *pieces, const struct raw *raw, struct error *err)
{
    struct parallel p = {.raw = raw, .bytes = raw->rows * raw->row_bytes, .pieces = pieces};
    unsigned wanted = cpus_available();
    pieces->count = (p.bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    pieces->digest = malloc(pieces->count * PIECE_DIGEST);
    if (!pieces->digest)
        return error_memory(err, pieces->count * PIECE_DIGEST, "checksums");
    if (wanted > (pieces->count + GROUP - 1) / GROUP)
        wanted = (unsigned)((pieces->count + GROUP - 1) / GROUP);
    pthread_mutex_init(&p.lock, NULL);
    threads_run(digest_pieces, &p, wanted);
    pthread_mutex_destroy(&p.lock);
    /* Damage leaves the other pieces' digests; where the system fails, not all were looked at. */
    if (p.failed)
        pieces_clear(pieces);
    if (p.error.status && err)
        *err = p.error;
    return p.error.status;
}

/* --- texts of any length --------------------------------------------------------------------- */

/* A stream that is cut into pieces. */
struct stream {
    struct pieces *pieces;
    uint64_t room; /* for digests */
    struct sha256 sha;
    size_t filled; /* bytes of the last piece; 0: none has begun */
};

static enum status make_room(struct stream *s, uint64_t pieces, struct error *err)
{
    if (pieces <= s->room)
        return STATUS_OK;
    const uint64_t room = pieces + pieces / 2;
    void *digests = realloc(s->pieces->digest, room * PIECE_DIGEST);
    if (digests)
        s->pieces->digest = digests;
    uint64_t *rows = realloc(s->pieces->row, room * sizeof *rows);
    if (rows)
        s->pieces->row = rows;
    if (!digests || !rows)
        return error_memory(err, room * PIECE_DIGEST, "checksums");
    s->room = room;
    return STATUS_OK;
}

static void end_piece(struct stream *s)
{
    if (s->filled > 0)
        sha256_final(&s->sha, s->pieces->digest[s->pieces->count - 1]);
    s->filled = 0;
}

/* Adds bytes of row `row`. */
static enum status feed(struct stream *s, const void *bytes, size_t size, uint64_t row,
                        struct error *err)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        if (s->filled == 0) {
            if (make_room(s, s->pieces->count + 1, err))
                return STATUS_FAILED;
            s->pieces->row[s->pieces->count++] = row;
            sha256_init(&s->sha);
        }
        const size_t left = PIECE_BYTES - s->filled, part = size < left ? size : left;
        sha256_update(&s->sha, at, part);
        s->filled += part;
        at += part;
        size -= part;
        if (s->filled == PIECE_BYTES)
            end_piece(s);
    }
    return STATUS_OK;
}

static enum status feed_text(struct stream *s, const struct serial *serial,
                             const uint8_t *descriptor, const char *name, uint64_t row,
                             struct error *err)
{
    struct error why = ERROR_INIT;
    const uint8_t *bytes;
    uint32_t length;
    if (vlen_element(serial->vlen, descriptor, 1, &bytes, &length, &why)) {
        char shown[256];
        return error_set(err, STATUS_FAILED, "%s: %s: row %llu: the text is damaged",
                         path_for_message(shown, sizeof shown, serial->path), name,
                         (unsigned long long)row);
    }
    const uint64_t bytes8 = length;
    if (feed(s, &bytes8, sizeof bytes8, row, err))
        return STATUS_FAILED;
    return feed(s, bytes, length, row, err);
}

static enum status digest_texts(struct pieces *pieces, const struct serial *serial, hid_t dataset,
                                const char *name, const struct serial_values *values,
                                struct error *err)
{
    const uint64_t columns = values->dimensions[1], rows = values->dimensions[0];
    const uint64_t row = VLEN_DESCRIPTOR * columns, block = row < PIECE_BYTES ? PIECE_BYTES / row : 1;
    struct stream s = {.pieces = pieces};
    enum status status = STATUS_OK;
    uint8_t *data = malloc((rows < block ? rows : block) * row);
    if (!data)
        return error_memory(err, block * row, "checksums");
    for (uint64_t first = 0; first < rows && status == STATUS_OK; first += block) {
        const uint64_t count = rows - first < block ? rows - first : block;
        status = vlen_descriptors(serial->vlen, dataset, first, count * columns, data, err);
        for (uint64_t i = 0; i < count * columns && status == STATUS_OK; i++)
            status = feed_text(&s, serial, data + i * VLEN_DESCRIPTOR, name, first + i / columns, err);
    }
    if (status == STATUS_OK)
        end_piece(&s);
    else
        pieces_clear(pieces);
    free(data);
    return status;
}

enum status pieces_digest(struct pieces *pieces, const struct serial *serial, hid_t dataset,
                          const char *name, const struct serial_values *values, struct error *err)
{
    const uint64_t row = values->size * values->dimensions[1];
    struct raw *raw;
    *pieces = (struct pieces){.rows = values->dimensions[0], .row_bytes = values->text ? 0 : row};
    if (row * pieces->rows == 0)
        return STATUS_OK;
    if (values->text)
        return digest_texts(pieces, serial, dataset, name, values, err);
    enum status status = h5_open_raw(&raw, dataset, serial->path, err);
    if (status == STATUS_OK)
        status = digest_raw(pieces, raw, err);
    raw_close(&raw);
    return status;
}
