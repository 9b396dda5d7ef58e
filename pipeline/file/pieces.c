/* pieces.c: three ways to the bytes: past HDF5 where they lie in the file as they are, or in chunks
 * that hdf5_chunks.h reads, by several threads; else through it, one block after the other. */
#include "file/pieces.h"
#include "base/cpus.h"
#include "base/path.h"
#include "base/threads.h"
#include "matrix/hdf5_direct.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP       16u /* pieces of chunked values that are read at once */
#define GROUP_BYTES ((uint64_t)GROUP * PIECE_BYTES)
#define MOST_GROUPS 16 /* of chunked values that are in memory: one for each thread */

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

/* --- past HDF5 ------------------------------------------------------------------------------- */

struct parallel {
    int fd;
    uint64_t start, bytes;      /* of the values in the file; start: not of chunks */
    struct hdf5_chunks *chunks; /* NULL: they lie there as they are */
    struct pieces *pieces;
    _Atomic uint64_t next; /* group of pieces */
    _Atomic int failed;    /* errno of the first failure; EIO where the file ends */
    pthread_mutex_t lock;
    struct error error; /* under it: of chunks, the first */
};

static bool read_exactly(struct parallel *p, uint64_t at, uint8_t *data, size_t size)
{
    while (size > 0) {
        const ssize_t n = pread(p->fd, data, size, (off_t)(p->start + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            atomic_store(&p->failed, n < 0 ? errno : EIO);
            return false;
        }
        data += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

static void *digest_pieces(void *context)
{
    struct parallel *p = context;
    uint8_t *buffer = malloc(p->bytes < PIECE_BYTES ? (size_t)p->bytes : PIECE_BYTES);
    uint64_t piece;
    if (!buffer)
        atomic_store(&p->failed, ENOMEM);
    while (buffer && !atomic_load(&p->failed) &&
           (piece = atomic_fetch_add(&p->next, 1)) < p->pieces->count) {
        const uint64_t start = piece * PIECE_BYTES, left = p->bytes - start;
        const size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        posix_fadvise(p->fd, (off_t)(p->start + start + size), PIECE_BYTES, POSIX_FADV_WILLNEED);
        if (!read_exactly(p, start, buffer, size))
            break;
        sha256_of(p->pieces->digest[piece], buffer, size);
    }
    free(buffer);
    return NULL;
}

/* Pieces of rows that chunks have, whose bytes are in `buffer` then; a piece that cannot be read has
 * a digest of zeros. */
static void digest_rows(struct parallel *p, uint64_t first, uint64_t count, uint8_t *buffer)
{
    const uint64_t row = p->pieces->row_bytes, start = first * PIECE_BYTES;
    const uint64_t left = p->bytes - start, most = count * PIECE_BYTES;
    const uint64_t size = left < most ? left : most;
    const uint64_t row_first = start / row, row_end = (start + size + row - 1) / row;
    struct error error = ERROR_INIT;
    if (hdf5_chunks_read_stored(p->chunks, row_first, row_end - row_first, buffer, &error) ==
        STATUS_OK) {
        const uint8_t *at = buffer + (start - row_first * row);
        for (uint64_t i = 0; i * PIECE_BYTES < size; i++)
            sha256_of(p->pieces->digest[first + i], at + i * PIECE_BYTES,
                      size - i * PIECE_BYTES < PIECE_BYTES ? size - i * PIECE_BYTES : PIECE_BYTES);
        return;
    }
    /* The system has failed, not the file. */
    if (error.native) {
        atomic_store(&p->failed, error.native);
        return;
    }
    for (uint64_t i = first; count > 1 && i < first + (size + PIECE_BYTES - 1) / PIECE_BYTES; i++)
        digest_rows(p, i, 1, buffer);
    if (count > 1)
        return;
    memset(p->pieces->digest[first], 0, PIECE_DIGEST);
    pthread_mutex_lock(&p->lock);
    if (!p->error.status)
        p->error = error;
    pthread_mutex_unlock(&p->lock);
}

static void *digest_chunks(void *context)
{
    struct parallel *p = context;
    const uint64_t room = p->bytes < GROUP_BYTES ? p->bytes : GROUP_BYTES;
    uint8_t *buffer = malloc(room + 2 * p->pieces->row_bytes);
    uint64_t first;
    if (!buffer)
        atomic_store(&p->failed, ENOMEM);
    while (buffer && !atomic_load(&p->failed) &&
           (first = atomic_fetch_add(&p->next, 1) * GROUP) < p->pieces->count)
        digest_rows(p, first, GROUP, buffer);
    free(buffer);
    return NULL;
}

static enum status digest_in_parallel(struct parallel *p, const char *path, struct error *err)
{
    void *(*const digest)(void *context) = p->chunks ? digest_chunks : digest_pieces;
    unsigned wanted = cpus_available();
    const unsigned most = p->chunks ? MOST_GROUPS : THREADS_MOST;
    /* A thread for less than a group costs more than it saves. */
    const uint64_t groups = (p->pieces->count + GROUP - 1) / GROUP;
    if (wanted > most)
        wanted = most;
    if (wanted > groups)
        wanted = (unsigned)groups;
    pthread_mutex_init(&p->lock, NULL);
    threads_run(digest, p, wanted);
    pthread_mutex_destroy(&p->lock);
    const int failed = atomic_load(&p->failed);
    char shown[256];
    if (!failed && p->error.status && err)
        *err = p->error;
    if (!failed)
        return p->error.status;
    return error_errno(err, STATUS_FAILED, failed, "pread", "cannot read %s",
                       path_for_message(shown, sizeof shown, path));
}

/* Where the values lie as they are; false: nowhere. */
static bool find_bytes(hid_t dataset, const struct serial_values *values, int *fd, uint64_t *start)
{
    int *descriptor = NULL;
    hid_t list = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
    hid_t file = H5Iget_file_id(dataset);
    const haddr_t at = H5Dget_offset(dataset);
    const bool plain = !values->text && H5Pget_layout(list) == H5D_CONTIGUOUS &&
                       at != HADDR_UNDEF && H5Tequal(type, values->memory) > 0 &&
                       H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&descriptor) >= 0 &&
                       descriptor;
    if (plain) {
        *fd = *descriptor;
        *start = at;
    }
    h5_close(&file);
    h5_close(&type);
    h5_close(&list);
    return plain;
}

/* Numbers in chunks that threads can read; direct->chunks is NULL where they are not. */
static enum status find_chunks(struct hdf5_direct *direct, hid_t dataset,
                               const struct serial_values *values, const char *path,
                               struct error *err)
{
    hid_t type = H5Dget_type(dataset);
    const bool numbers = !values->text && H5Tequal(type, values->memory) > 0;
    h5_close(&type);
    return numbers && h5_is_compressed(dataset)
               ? hdf5_direct_open(direct, dataset, (uint32_t)values->dimensions[1], path, err)
               : STATUS_OK;
}

/* --- through HDF5 ---------------------------------------------------------------------------- */

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

static enum status digest_stream(struct pieces *pieces, const struct serial *serial, hid_t dataset,
                                 const char *name, const struct serial_values *values,
                                 struct error *err)
{
    const uint64_t row = values->size * values->dimensions[1], rows = values->dimensions[0];
    const uint64_t block = row < PIECE_BYTES ? PIECE_BYTES / row : 1;
    struct stream s = {.pieces = pieces};
    enum status status = STATUS_OK;
    uint8_t *data = malloc((rows < block ? rows : block) * row);
    if (!data)
        return error_memory(err, block * row, "checksums");
    for (uint64_t first = 0; first < rows && status == STATUS_OK; first += block) {
        const uint64_t count = rows - first < block ? rows - first : block;
        if (values->text) {
            status = vlen_descriptors(serial->vlen, dataset, first, count * values->dimensions[1],
                                      data, err);
            for (uint64_t i = 0; i < count * values->dimensions[1] && status == STATUS_OK; i++)
                status = feed_text(&s, serial, data + i * VLEN_DESCRIPTOR, name,
                                   first + i / values->dimensions[1], err);
            continue;
        }
        status = serial_read(serial, dataset, values, first, count, data, err);
        if (status == STATUS_OK)
            status = feed(&s, data, count * row, first, err);
    }
    if (status == STATUS_OK)
        end_piece(&s);
    free(data);
    return status;
}

enum status pieces_digest(struct pieces *pieces, const struct serial *serial, hid_t dataset,
                          const char *name, const struct serial_values *values, struct error *err)
{
    const uint64_t row = values->size * values->dimensions[1], bytes = row * values->dimensions[0];
    struct parallel p = {.fd = -1, .bytes = bytes, .pieces = pieces};
    struct hdf5_direct direct = {.chunks = NULL};
    enum status status = STATUS_OK;
    char shown[256];
    *pieces = (struct pieces){.rows = values->dimensions[0], .row_bytes = values->text ? 0 : row};
    if (bytes == 0)
        return STATUS_OK;
    path_for_message(shown, sizeof shown, serial->path);
    if (!find_bytes(dataset, values, &p.fd, &p.start)) {
        status = find_chunks(&direct, dataset, values, shown, err);
        p.chunks = direct.chunks;
    }
    if (!status && (p.fd >= 0 || p.chunks)) {
        pieces->count = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
        pieces->digest = malloc(pieces->count * PIECE_DIGEST);
        status = pieces->digest ? digest_in_parallel(&p, serial->path, err)
                                : error_memory(err, pieces->count * PIECE_DIGEST, "checksums");
    } else if (!status) {
        status = digest_stream(pieces, serial, dataset, name, values, err);
    }
    hdf5_direct_close(&direct);
    /* Chunks that are damaged leave the others' digests; where the system fails, not all were looked at. */
    if (status && (atomic_load(&p.failed) || !p.error.status))
        pieces_clear(pieces);
    return status;
}
