/* raw_chunks.c: chunked values. HDF5 finds the chunks and reads them as stored, one at a time; each
 * thread undoes the filters. With other filters, or if it does not find a chunk, HDF5 reads the
 * values.
 *
 * Chunks with the same rows form a band. Inflated bands are kept until all of their rows have been
 * read, since reads seldom end at their borders: at most 128 MiB over all open datasets. A thread
 * that needs a band inflates one of its chunks; if other threads have taken all of them, it
 * inflates what will be needed next instead of waiting. */
#include "base/avx2.h"
#include "base/minmax.h"
#include "matrix/h5_driver.h"
#include "matrix/raw_internal.h"
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES   (128u << 20)
#define BAND_BYTES   (KEPT_BYTES / 2)
#define MOST_BANDS   512
#define MOST_FILTERS 3
#define SUM_BYTES    4 /* of fletcher32 */
/* How many bands ahead of the needed one a thread inflates that would otherwise wait. */
#define AHEAD 64

struct raw_chunks {
    uint64_t columns;   /* per chunk */
    uint32_t across;    /* chunks per band */
    size_t bytes, room; /* of a chunk's values; the largest accepted size of a stored chunk */
    bool known;         /* all filters are supported: */
    unsigned filters;
    H5Z_filter_t filter[MOST_FILTERS]; /* in the order of application, each once */
    struct buffer *spare;              /* guarded by `lock` */
};

/* Scratch memory of an inflating thread. */
struct buffer {
    struct buffer *next;
    unsigned char bytes[];
};

static struct band {
    const struct raw *raw; /* NULL: none */
    uint64_t number;
    unsigned char *values; /* chunk by chunk */
    uint64_t used, left;   /* time of last use; rows not yet read */
    uint32_t next, done;   /* chunks taken, and inflated */
    unsigned users;        /* threads; data inflated by others does not change */
    struct error error;
} bands[MOST_BANDS];
static uint64_t kept, clock_ticks; /* bytes of them */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* --- opening --------------------------------------------------------------------------------- */

static bool find_filters(struct raw_chunks *c, const struct raw *raw, hid_t list)
{
    const int count = H5Pget_nfilters(list);
    unsigned options, flags;
    if (count < 0 || count > MOST_FILTERS)
        return false;
    for (int i = 0; i < count; i++) {
        unsigned value = 0;
        size_t values = 1;
        const H5Z_filter_t id =
            H5Pget_filter2(list, (unsigned)i, &flags, &values, &value, 0, NULL, NULL);
        if (id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_FLETCHER32)
            return false;
        for (unsigned j = 0; j < c->filters; j++)
            if (c->filter[j] == id)
                return false;
        if (id == H5Z_FILTER_SHUFFLE && value != raw->element)
            return false;
        c->filter[c->filters++] = id;
    }
    /* Edge chunks have the same filters as the others. */
    return H5Pget_chunk_opts(list, &options) >= 0 && options == 0;
}

static bool find_grid(struct raw_chunks *c, struct raw *raw, hid_t list)
{
    hsize_t chunk[2] = {0, 1};
    const int rank = H5Pget_chunk(list, 2, chunk);
    if (rank < 1 || rank > 2 || chunk[0] == 0 || chunk[1] == 0 || raw->row_bytes == 0 ||
        chunk[0] > BAND_BYTES / raw->row_bytes || chunk[1] > BAND_BYTES / raw->element / chunk[0])
        return false;
    raw->chunk_rows = chunk[0];
    c->columns = chunk[1];
    c->bytes = (size_t)(chunk[0] * chunk[1]) * raw->element;
    c->across = (uint32_t)((raw->columns + chunk[1] - 1) / chunk[1]);
    /* zlib enlarges incompressible data by less than a thousandth. */
    c->room = c->bytes + c->bytes / 64 + 1024;
    return true;
}

enum status raw_chunks_open(struct raw *raw, hid_t list, struct error *err)
{
    struct raw_chunks *c = calloc(1, sizeof *c);
    if (!c)
        return error_memory(err, sizeof *c, "a chunked dataset");
    c->known = find_filters(c, raw, list);
    if (find_grid(c, raw, list))
        raw->chunks = c;
    else
        free(c);
    return STATUS_OK;
}

bool raw_chunks_shuffled(const struct raw *raw)
{
    return raw->chunks->filters > 0 && raw->chunks->filter[0] == H5Z_FILTER_SHUFFLE;
}

/* Size of the chunks of a band. */
static uint64_t room_of(const struct raw *raw)
{
    return raw->chunks->across * (uint64_t)raw->chunks->bytes;
}

static void drop(struct band *band)
{
    if (band->values)
        kept -= room_of(band->raw);
    free(band->values);
    *band = (struct band){.raw = NULL};
}

void raw_chunks_close(struct raw *raw)
{
    if (!raw->chunks)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MOST_BANDS; i++)
        if (bands[i].raw == raw)
            drop(&bands[i]);
    pthread_mutex_unlock(&lock);
    for (struct buffer *next, *spare = raw->chunks->spare; spare; spare = next) {
        next = spare->next;
        free(spare);
    }
    free(raw->chunks);
}

/* --- one chunk ------------------------------------------------------------------------------- */

/* The first bytes of all elements, then the second ones, ... */
ALWAYS_INLINE void gather_bytes(unsigned char *restrict out, const unsigned char *restrict in,
                                size_t elements, size_t element)
{
    for (size_t i = 0; i < elements; i++)
        for (size_t j = 0; j < element; j++)
            out[i * element + j] = in[j * elements + i];
}

/* The usual sizes have an inner loop of constant length. */
AVX2_TOO static void gather(unsigned char *out, const unsigned char *in, size_t elements,
                            size_t element)
{
    if (element == 2)
        gather_bytes(out, in, elements, 2);
    else if (element == 4)
        gather_bytes(out, in, elements, 4);
    else if (element == 8)
        gather_bytes(out, in, elements, 8);
    else
        gather_bytes(out, in, elements, element);
}

static void unshuffle(unsigned char *out, const unsigned char *in, size_t size, size_t element)
{
    const size_t elements = size / element, whole = elements * element;
    gather(out, in, elements, element);
    memcpy(out + whole, in + whole, size - whole);
}

static const char no_memory[] = "there is no memory to inflate it";

static const char *inflate_all(unsigned char *out, size_t expected, const unsigned char *in,
                               size_t size)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor)
        return no_memory;
    const enum libdeflate_result result =
        libdeflate_zlib_decompress(decompressor, in, size, out, expected, NULL);
    libdeflate_free_decompressor(decompressor);
    return result == LIBDEFLATE_SUCCESS              ? NULL
           : result == LIBDEFLATE_SHORT_OUTPUT       ? "it has fewer values than its shape"
           : result == LIBDEFLATE_INSUFFICIENT_SPACE ? "it has more values than its shape"
                                                     : "its deflate stream is damaged";
}

/* As in HDF5: over big-endian 16-bit words, an odd last byte being the upper half of one. */
static uint32_t fletcher32(const unsigned char *data, size_t size)
{
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < size; i += 2) {
        low += (uint32_t)data[i] << 8 | (i + 1 < size ? data[i + 1] : 0);
        low = (low & 0xffff) + (low >> 16);
        high += low;
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

/* The checksum follows the data, little-endian; HDF5 before 1.6.3 swapped bytes in both halves. */
static bool sum_is_right(const unsigned char *data, size_t size)
{
    const uint32_t sum = fletcher32(data, size);
    const unsigned char *at = data + size;
    const uint32_t is =
        (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
    return sum == is || sum == ((is & 0xff00ff) << 8 | (is >> 8 & 0xff00ff));
}

/* The size that inflating filter i must produce: values, and checksums of earlier filters. */
static size_t expected_before(const struct raw_chunks *c, unsigned i, uint32_t skipped)
{
    size_t bytes = c->bytes;
    while (i-- > 0)
        if (c->filter[i] == H5Z_FILTER_FLETCHER32 && !(skipped >> i & 1))
            bytes += SUM_BYTES;
    return bytes;
}

/* Reads a chunk as stored, at most c->room bytes; false: HDF5 does not find it. */
static bool read_stored(size_t *size, uint32_t *skipped, const struct raw *raw, const hsize_t at[2],
                        unsigned char *stored)
{
    hsize_t bytes = 0;
    *size = raw->chunks->room;
    h5_driver_lock();
    bool found = H5Dget_chunk_storage_size(raw->dataset, at, &bytes) >= 0 && bytes > 0;
    if (found && bytes <= *size)
#if H5_VERSION_GE(2, 0, 0)
        found = H5Dread_chunk2(raw->dataset, H5P_DEFAULT, at, skipped, stored, size) >= 0;
#else
        found = H5Dread_chunk(raw->dataset, H5P_DEFAULT, at, skipped, stored) >= 0;
#endif
    h5_driver_unlock();
    *size = (size_t)bytes;
    return found;
}

/* Undoes the filters of a chunk and stores its values in `to`; bit i of `skipped`: filter i was not
 * applied. stored, other: c->room bytes. Returns what is wrong, or NULL. */
static const char *undo_filters(unsigned char *to, const struct raw *raw, uint32_t skipped,
                                unsigned char *stored, size_t size, unsigned char *other)
{
    static const char other_size[] = "its size is not that of its values";
    const struct raw_chunks *c = raw->chunks;
    for (unsigned i = c->filters; i-- > 0;) {
        unsigned char *next = i == 0 ? to : other;
        if (skipped >> i & 1)
            continue;
        if (c->filter[i] == H5Z_FILTER_FLETCHER32) {
            if (size < SUM_BYTES || !sum_is_right(stored, size - SUM_BYTES))
                return "its checksum is wrong";
            size -= SUM_BYTES;
            continue;
        }
        if (c->filter[i] == H5Z_FILTER_DEFLATE) {
            const size_t expected = expected_before(c, i, skipped);
            const char *wrong = inflate_all(next, expected, stored, size);
            if (wrong)
                return wrong;
            size = expected;
        } else {
            if (i == 0 && size != c->bytes)
                return other_size;
            unshuffle(next, stored, size, raw->element);
        }
        other = stored;
        stored = next;
    }
    if (size != c->bytes)
        return other_size;
    if (stored != to)
        memcpy(to, stored, size);
    return NULL;
}

/* Inflates chunk `i` of a band. */
static enum status inflate(const struct raw *raw, const struct band *band, uint32_t i,
                           struct buffer *buffer, struct error *err)
{
    const struct raw_chunks *c = raw->chunks;
    const hsize_t at[2] = {band->number * raw->chunk_rows, i * c->columns};
    const hsize_t extent[2] = {min_u64(raw->chunk_rows, raw->rows - at[0]),
                               min_u64(c->columns, raw->columns - at[1])};
    const size_t width = extent[1] * raw->element;
    unsigned char *stored = buffer->bytes, *other = stored + c->room;
    unsigned char *to = band->values + i * c->bytes;
    const char *wrong = NULL;
    enum status status = STATUS_OK;
    uint32_t skipped = 0;
    size_t size;
    if (c->known && read_stored(&size, &skipped, raw, at, stored)) {
        wrong = size > c->room ? "it is larger than its values"
                               : undo_filters(to, raw, skipped, stored, size, other);
        if (wrong == no_memory)
            return error_memory(err, c->room, "a chunk of a dataset");
        status = raw_check_length(raw, err);
    } else {
        status = raw_read_block(raw, H5I_INVALID_HID, at, extent, other, err);
        for (uint64_t row = 0; row < extent[0] && status == STATUS_OK; row++)
            memcpy(to + row * c->columns * raw->element, other + row * width, width);
        if (status != STATUS_OK && c->known && !err->native)
            wrong = "it is not in its place in the file";
    }
    if (wrong)
        return error_set(err, STATUS_FAILED,
                         "%s is damaged: the chunk of row %llu and column %llu cannot be read: %s",
                         raw->shown, (unsigned long long)at[0], (unsigned long long)at[1], wrong);
    return status;
}

/* --- bands; under the lock ------------------------------------------------------------------- */

static struct band *find_band(const struct raw *raw, uint64_t number)
{
    for (unsigned i = 0; i < MOST_BANDS; i++)
        if (bands[i].raw == raw && bands[i].number == number)
            return &bands[i];
    return NULL;
}

/* Reuses an unused band for another number, preferably one that was read; `gently`: only such a
 * one, or a new one. NULL: there is none. */
static struct band *take_band(const struct raw *raw, uint64_t number, bool gently)
{
    const uint64_t bytes = room_of(raw), rows = raw->chunk_rows;
    struct band *oldest, *empty;
    for (;;) {
        oldest = empty = NULL;
        for (unsigned i = 0; i < MOST_BANDS; i++) {
            struct band *band = &bands[i];
            if (!band->raw)
                empty = empty ? empty : band;
            else if (band->users == 0 && (band->left == 0 || !gently) &&
                     (!oldest || band->used < oldest->used))
                oldest = band;
        }
        if (oldest && oldest->left == 0 && room_of(oldest->raw) == bytes) {
            empty = oldest;
            break;
        }
        if (empty && kept + bytes <= KEPT_BYTES && (!oldest || oldest->left > 0))
            break;
        if (!oldest)
            return NULL;
        drop(oldest);
    }
    unsigned char *values = empty->raw ? empty->values : malloc(bytes);
    kept += empty->raw || !values ? 0 : bytes;
    *empty = (struct band){.raw = raw,
                           .number = number,
                           .values = values,
                           .left = min_u64(rows, raw->rows - number * rows)};
    if (!values)
        error_memory(&empty->error, bytes, "a chunk of a dataset");
    return empty;
}

/* Inflates the next chunk of a band that has one, and releases the lock meanwhile. */
static void inflate_next(struct band *band)
{
    const struct raw *raw = band->raw;
    struct raw_chunks *c = raw->chunks;
    const uint32_t i = band->next++;
    struct buffer *buffer = c->spare;
    struct error why = ERROR_INIT;
    if (buffer)
        c->spare = buffer->next;
    pthread_mutex_unlock(&lock);
    const size_t size = sizeof *buffer + 2 * c->room;
    if (!buffer)
        buffer = malloc(size);
    if (buffer)
        inflate(raw, band, i, buffer, &why);
    else
        error_memory(&why, size, "a chunk of a dataset");
    pthread_mutex_lock(&lock);
    if (buffer) {
        buffer->next = c->spare;
        c->spare = buffer;
    }
    if (why.status && !band->error.status)
        band->error = why;
    band->done++;
    pthread_cond_broadcast(&changed);
}

/* A band that could not be read is not kept. */
static void leave(struct band *band)
{
    if (--band->users > 0)
        return;
    band->used = band->left > 0 ? ++clock_ticks : 0;
    if (band->error.status)
        drop(band);
    pthread_cond_broadcast(&changed);
}

/* Inflates an untaken chunk after band `number`; false: there is none, or no memory, or it is
 * unreadable, which the thread that needs it will report. */
static bool inflate_ahead(const struct raw *raw, uint64_t number)
{
    const uint64_t rows = raw->chunk_rows,
                   end = min_u64(number + AHEAD, (raw->rows - 1) / rows + 1);
    while (++number < end) {
        struct band *band = find_band(raw, number);
        if (band && band->next == raw->chunks->across)
            continue;
        if (!band && !(band = take_band(raw, number, true)))
            return false;
        band->users++;
        if (!band->error.status)
            inflate_next(band);
        const bool good = !band->error.status;
        leave(band);
        return good;
    }
    return false;
}

/* Copies rows [first, first + count) of a band from its chunks. */
static void copy(const struct raw *raw, const unsigned char *band, uint64_t first, uint64_t count,
                 unsigned char *out, bool values)
{
    const struct raw_chunks *c = raw->chunks;
    const size_t size = values ? sizeof(float) : raw->element;
    /* Rows of one chunk that are also contiguous in the result are copied at once. */
    const uint64_t step = c->columns == raw->columns ? count : 1;
    for (uint64_t i = 0; i < c->across; i++)
        for (uint64_t row = 0; row < count; row += step) {
            const uint64_t column = i * c->columns;
            const size_t some = (size_t)(step * min_u64(c->columns, raw->columns - column));
            const unsigned char *from =
                band + i * c->bytes + (first + row) * c->columns * raw->element;
            unsigned char *to = out + (row * raw->columns + column) * size;
            if (values)
                values_convert((float *)(void *)to, from, some, raw->format);
            else
                memcpy(to, from, some * size);
        }
}

/* The same after inflating them. */
static enum status read_band(const struct raw *raw, uint64_t number, uint64_t first, uint64_t count,
                             void *out, bool values, struct error *err)
{
    const uint32_t across = raw->chunks->across;
    struct band *band;
    bool helps = true;
    pthread_mutex_lock(&lock);
    while (!(band = find_band(raw, number)) && !(band = take_band(raw, number, false)))
        pthread_cond_wait(&changed, &lock);
    band->users++;
    while (band->done < across && !band->error.status)
        if (band->next < across)
            inflate_next(band);
        else if (!helps || !(helps = inflate_ahead(raw, number)))
            pthread_cond_wait(&changed, &lock);
    const enum status status = band->error.status;
    if (status == STATUS_OK) {
        pthread_mutex_unlock(&lock);
        copy(raw, band->values, first, count, out, values);
        pthread_mutex_lock(&lock);
        band->left -= min_u64(band->left, count);
    } else if (err) {
        *err = band->error;
    }
    leave(band);
    pthread_mutex_unlock(&lock);
    return status;
}

enum status raw_chunks_read(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                            bool values, struct error *err)
{
    const uint64_t rows = raw->chunk_rows;
    unsigned char *to = out;
    enum status status = STATUS_OK;
    while (count > 0 && status == STATUS_OK) {
        const uint64_t begin = first % rows, part = min_u64(count, rows - begin);
        status = read_band(raw, first / rows, begin, part, to, values, err);
        to += part * raw_row_size(raw, values);
        first += part;
        count -= part;
    }
    return status;
}
