/* hdf5_chunks.c: a cache of inflated chunks that the threads which read them fill.
 *
 * Chunks are numbered row by row of the grid that they make. Those that have the same rows of the
 * matrix are a band; rows are read band by band. */
#include "matrix/hdf5_chunks.h"
#include "base/minmax.h"
#include "matrix/chunk_filters.h"
#include "matrix/h5_driver.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Of chunks that are kept, of all datasets together; of each dataset, whatever the others keep; and of a
 * band: two of them fit. */
#define CACHE_BYTES  (128u << 20)
#define LEAST_BYTES  (8u << 20)
#define BAND_BYTES   (CACHE_BYTES / 2)
#define MOST_ENTRIES 1024
#define MOST_ACROSS  (MOST_ENTRIES / 2)
/* What tells where a chunk lies is in HDF5 since 1.10.5. */
#define CAN_LOCATE H5_VERSION_GE(1, 10, 5)
/* How far a thread that would have to wait looks for something to inflate. */
#define AHEAD 64

enum entry_state { ENTRY_EMPTY, ENTRY_LOADING, ENTRY_READY };

struct entry {
    enum entry_state state;
    uint64_t chunk;
    uint64_t used;  /* when it was used last */
    uint64_t left;  /* rows that have not been read yet */
    unsigned users; /* threads that copy from it */
    unsigned char *values;
};

struct hdf5_chunks {
    hid_t dataset;
    struct file_rows file;
    struct chunk_filters filters;
    uint64_t rows, chunk_rows, down; /* down, across: chunks of the grid */
    uint32_t chunk_columns, across;
    size_t room;           /* of a buffer */
    unsigned char fill[8]; /* a value that was never written */
    unsigned most, least;  /* entries; least: whatever other datasets keep */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an entry's state, or that it has no users */
    /* Under `lock`; the values of an entry that is loading are its thread's, and those of one that
     * is ready do not change. */
    struct entry *entries;
    unsigned opened; /* entries that have been used */
    unsigned char **spare;
    unsigned spares;
    uint64_t clock;
};

/* Bytes of the entries of all datasets: joined features and the parts of a merged file are many. */
static _Atomic uint64_t kept;

/* --- opening ----------------------------------------------------------------------------------- */

static bool find_filters(struct chunk_filters *out, hid_t list)
{
    const int count = H5Pget_nfilters(list);
    unsigned seen = 0;
    if (count < 0 || count > CHUNK_FILTERS)
        return false;
    for (int i = 0; i < count; i++) {
        unsigned flags, value[4] = {0};
        size_t values = 4;
        const H5Z_filter_t id =
            H5Pget_filter2(list, (unsigned)i, &flags, &values, value, 0, NULL, NULL);
        const enum chunk_filter filter = id == H5Z_FILTER_SHUFFLE      ? CHUNK_SHUFFLE
                                         : id == H5Z_FILTER_DEFLATE    ? CHUNK_DEFLATE
                                         : id == H5Z_FILTER_FLETCHER32 ? CHUNK_FLETCHER32
                                                                       : CHUNK_FILTERS;
        if (filter == CHUNK_FILTERS || (seen >> filter & 1))
            return false;
        seen |= 1u << filter;
        if (filter == CHUNK_SHUFFLE)
            out->element = value[0];
        out->filter[out->count++] = filter;
    }
    return true;
}

/* The grid, and whether it is one that can be kept. */
static bool find_grid(struct hdf5_chunks *c, hid_t list)
{
    hsize_t extent[2] = {0, 1}, chunk[2] = {0, 1};
    hid_t space = H5Dget_space(c->dataset);
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    const bool found = (rank == 1 || rank == 2) &&
                       H5Sget_simple_extent_dims(space, extent, NULL) == rank &&
                       H5Pget_chunk(list, rank, chunk) == rank && extent[1] == c->file.dimension;
    if (space >= 0)
        H5Sclose(space);
    if (!found || chunk[0] == 0 || chunk[1] == 0 || chunk[0] > BAND_BYTES || chunk[1] > BAND_BYTES)
        return false;
    const uint64_t bytes = chunk[0] * chunk[1] * c->file.format.bytes;
    const uint64_t across = (extent[1] + chunk[1] - 1) / chunk[1];
    if (bytes > BAND_BYTES || across > MOST_ACROSS || bytes * across > BAND_BYTES)
        return false;
    c->rows = extent[0];
    c->chunk_rows = chunk[0];
    c->chunk_columns = (uint32_t)chunk[1];
    c->across = (uint32_t)across;
    c->down = extent[0] / chunk[0] + (extent[0] % chunk[0] > 0);
    c->filters.bytes = (size_t)bytes;
    return true;
}

static bool find_fill(struct hdf5_chunks *c, hid_t list)
{
    H5D_fill_value_t defined;
    hid_t type = H5Dget_type(c->dataset);
    bool known = type >= 0 && H5Pfill_value_defined(list, &defined) >= 0;
    if (known && defined != H5D_FILL_VALUE_UNDEFINED)
        known = H5Pget_fill_value(list, type, c->fill) >= 0;
    if (type >= 0)
        H5Tclose(type);
    return known;
}

/* Whether chunks at the edges have the filters that the others have. */
static bool is_uniform(hid_t list)
{
    unsigned options;
    return H5Pget_chunk_opts(list, &options) >= 0 && options == 0;
}

enum status hdf5_chunks_open(struct hdf5_chunks **out, hid_t dataset, const struct file_rows *file,
                             struct error *err)
{
    *out = NULL;
    struct hdf5_chunks *c = calloc(1, sizeof *c);
    if (!c)
        return error_memory(err, sizeof *c, "a chunked dataset");
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->dataset = dataset;
    c->file = *file;
    hid_t list = H5Dget_create_plist(dataset);
    const bool good = CAN_LOCATE && list >= 0 && H5Pget_layout(list) == H5D_CHUNKED &&
                      find_filters(&c->filters, list) && find_grid(c, list) && find_fill(c, list) &&
                      is_uniform(list);
    if (list >= 0)
        H5Pclose(list);
    if (!good) {
        hdf5_chunks_close(&c);
        return STATUS_OK;
    }
    c->room = chunk_filters_room(&c->filters);
    c->most = (unsigned)min_u64(CACHE_BYTES / c->filters.bytes, MOST_ENTRIES);
    c->least = max_u32((unsigned)min_u64(LEAST_BYTES / c->filters.bytes, c->most), c->across);
    c->entries = calloc(c->most, sizeof *c->entries);
    c->spare = calloc(c->most, sizeof *c->spare);
    if (!c->entries || !c->spare) {
        error_memory(err, c->most * sizeof *c->entries, "a chunked dataset");
        hdf5_chunks_close(&c);
        return STATUS_FAILED;
    }
    *out = c;
    return STATUS_OK;
}

void hdf5_chunks_trim(struct hdf5_chunks *c)
{
    pthread_mutex_lock(&c->lock);
    for (struct entry *last; c->opened > 0; c->opened--) {
        last = &c->entries[c->opened - 1];
        if (last->state == ENTRY_LOADING || last->users > 0)
            break;
        free(last->values);
        *last = (struct entry){.state = ENTRY_EMPTY};
        atomic_fetch_sub(&kept, c->filters.bytes);
    }
    while (c->spares > 0)
        free(c->spare[--c->spares]);
    pthread_mutex_unlock(&c->lock);
}

void hdf5_chunks_close(struct hdf5_chunks **chunks)
{
    struct hdf5_chunks *c = *chunks;
    if (!c)
        return;
    hdf5_chunks_trim(c);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->entries);
    free(c->spare);
    free(c);
    *chunks = NULL;
}

/* --- inflating --------------------------------------------------------------------------------- */

static enum status refuse(const struct hdf5_chunks *c, uint64_t chunk, const char *what,
                          struct error *err)
{
    const uint64_t row = chunk / c->across * c->chunk_rows;
    const uint32_t column = (uint32_t)(chunk % c->across) * c->chunk_columns;
    return error_set(err, STATUS_FAILED,
                     "%s is damaged: the chunk of row %llu and column %u cannot be read: %s",
                     c->file.path, (unsigned long long)row, column, what);
}

/* bytes 0: it was never written. HDF5 is called by one thread at a time, whatever it was built for. */
static bool locate(struct h5_extent *found, uint32_t *skipped, const struct hdf5_chunks *c,
                   uint64_t chunk)
{
    const hsize_t at[2] = {chunk / c->across * c->chunk_rows, chunk % c->across * c->chunk_columns};
    bool good = false;
    *found = (struct h5_extent){0, 0};
    *skipped = 0;
    h5_driver_lock();
#if CAN_LOCATE
    unsigned char nothing[1];
    unsigned ignored;
    haddr_t address = 0;
    hsize_t size;
    H5E_BEGIN_TRY
    {
        h5_driver_locate(found);
        good =
            H5Dread_chunk(c->dataset, H5P_DEFAULT, at, skipped, nothing) >= 0 && found->bytes > 0;
        h5_driver_locate(NULL);
        /* There is no quicker way to tell one that was not written from one that cannot be found. */
        if (!good) {
            good = H5Dget_chunk_info_by_coord(c->dataset, at, &ignored, &address, &size) >= 0 &&
                   address == HADDR_UNDEF;
            found->bytes = 0;
        }
    }
    H5E_END_TRY
#endif
    h5_driver_unlock();
    return good;
}

/* The values of a chunk, in `values` or `other`: *result is which. */
static enum status inflate_chunk(unsigned char **result, const struct hdf5_chunks *c,
                                 uint64_t chunk, unsigned char *values, unsigned char *other,
                                 struct error *err)
{
    struct h5_extent found;
    uint32_t skipped;
    *result = values;
    if (!locate(&found, &skipped, c, chunk))
        return refuse(c, chunk, "it is not where the file says", err);
    if (found.bytes == 0) {
        const size_t bytes = c->file.format.bytes;
        for (size_t i = 0; i < c->filters.bytes; i += bytes)
            memcpy(values + i, c->fill, bytes);
        return STATUS_OK;
    }
    if (found.bytes > c->room)
        return refuse(c, chunk, "it is larger than its values", err);
    const enum status status =
        file_rows_bytes(&c->file, values, (size_t)found.bytes, found.at, err);
    if (status != STATUS_OK)
        return status;
    const char *wrong =
        chunk_filters_undo(result, &c->filters, skipped, values, (size_t)found.bytes, other);
    if (wrong == chunk_filters_no_memory) /* no damage, for which rows would be given up */
        return error_memory(err, c->room, "a chunk of a dataset");
    return wrong ? refuse(c, chunk, wrong, err) : STATUS_OK;
}

/* Takes the lock away meanwhile. The entry belongs to this thread. */
static enum status load(struct hdf5_chunks *c, struct entry *entry, uint64_t chunk,
                        struct error *err)
{
    unsigned char *values = entry->values, *result = NULL;
    unsigned char *other = c->spares > 0 ? c->spare[--c->spares] : NULL;
    const uint64_t above = chunk / c->across * c->chunk_rows;
    enum status status = STATUS_OK;
    entry->state = ENTRY_LOADING;
    entry->chunk = chunk;
    pthread_mutex_unlock(&c->lock);
    if (!values)
        values = malloc(c->room);
    if (!other)
        other = malloc(c->room);
    result = values;
    status = values && other ? inflate_chunk(&result, c, chunk, values, other, err)
                             : error_memory(err, c->room, "a chunk of a dataset");
    pthread_mutex_lock(&c->lock);
    entry->values = result;
    other = result == values ? other : values;
    if (other)
        c->spare[c->spares++] = other;
    entry->left = min_u64(c->chunk_rows, c->rows - above);
    entry->used = ++c->clock;
    entry->state = status == STATUS_OK ? ENTRY_READY : ENTRY_EMPTY;
    pthread_cond_broadcast(&c->changed);
    return status;
}

/* --- the cache; under the lock ----------------------------------------------------------------- */

static struct entry *find_entry(struct hdf5_chunks *c, uint64_t chunk)
{
    for (unsigned i = 0; i < c->opened; i++)
        if (c->entries[i].chunk == chunk && c->entries[i].state != ENTRY_EMPTY)
            return &c->entries[i];
    return NULL;
}

/* Counts another entry where there is room for one. */
static bool may_open(struct hdf5_chunks *c)
{
    const uint64_t bytes = c->filters.bytes;
    if (c->opened == c->most)
        return false;
    if (atomic_fetch_add(&kept, bytes) + bytes <= CACHE_BYTES || c->opened < c->least)
        return true;
    atomic_fetch_sub(&kept, bytes);
    return false;
}

/* An entry for another chunk, first of all one that nobody needs any more. `gently`: none of which
 * something is left to be read. NULL: there is none. */
static struct entry *take_entry(struct hdf5_chunks *c, bool gently)
{
    struct entry *oldest = NULL;
    for (unsigned i = 0; i < c->opened; i++) {
        struct entry *entry = &c->entries[i];
        if (entry->state == ENTRY_EMPTY ||
            (entry->state == ENTRY_READY && entry->users == 0 && entry->left == 0))
            return entry;
        if (entry->state == ENTRY_READY && entry->users == 0 &&
            (!oldest || entry->used < oldest->used))
            oldest = entry;
    }
    if (may_open(c))
        return &c->entries[c->opened++];
    return gently ? NULL : oldest;
}

/* Inflates the next chunk that nobody has yet; false: there is none, or no room, and the lock was
 * not taken away. *good: it can be read; if not, the thread that needs it will say so. */
static bool load_ahead(struct hdf5_chunks *c, uint64_t from, bool *good)
{
    struct error ignored = ERROR_INIT;
    const uint64_t all = c->down * c->across, end = all - from < AHEAD ? all : from + AHEAD;
    while (from < end && find_entry(c, from))
        from++;
    struct entry *entry = from < end ? take_entry(c, true) : NULL;
    if (entry)
        *good = load(c, entry, from, &ignored) == STATUS_OK;
    return entry != NULL;
}

/* --- reading ----------------------------------------------------------------------------------- */

/* Rows of a band, from one of its chunks. */
struct part {
    uint64_t first, count; /* rows of the band */
    unsigned char *rows;
    bool stored; /* they are given as they are stored; else as float32 */
};

static void convert(unsigned char *out, const unsigned char *in, size_t values, bool stored,
                    struct value_format format)
{
    if (stored)
        memcpy(out, in, values * format.bytes);
    else
        values_convert((float *)(void *)out, in, values, format);
}

static void copy_values(const struct hdf5_chunks *c, const unsigned char *values, uint32_t number,
                        const struct part *part)
{
    const struct value_format format = c->file.format;
    const size_t stride = c->chunk_columns * (size_t)format.bytes;
    const size_t value = part->stored ? format.bytes : sizeof(float);
    const uint32_t from = number * c->chunk_columns;
    const uint32_t columns = min_u32(c->chunk_columns, c->file.dimension - from);
    const unsigned char *in = values + part->first * stride;
    unsigned char *out = part->rows + from * value;
    if (columns == c->chunk_columns && columns == c->file.dimension) {
        convert(out, in, (size_t)part->count * columns, part->stored, format);
        return;
    }
    for (uint64_t row = 0; row < part->count; row++)
        convert(out + row * c->file.dimension * value, in + row * stride, columns, part->stored,
                format);
}

/* What is there is copied, and what is not there is inflated, before anything is waited for. */
static enum status read_band(struct hdf5_chunks *c, uint64_t band, const struct part *part,
                             struct error *err)
{
    const uint64_t above = band * c->across;
    bool done[MOST_ACROSS] = {false}, helps = true;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&c->lock);
    for (uint32_t missing = c->across; missing > 0 && status == STATUS_OK;) {
        bool moved = false;
        for (uint32_t i = 0; i < c->across && status == STATUS_OK; i++) {
            struct entry *entry = done[i] ? NULL : find_entry(c, above + i);
            if (done[i] || (entry && entry->state == ENTRY_LOADING))
                continue;
            if (!entry && (entry = take_entry(c, false)))
                status = load(c, entry, above + i, err);
            if (!entry || status != STATUS_OK)
                continue;
            entry->users++;
            pthread_mutex_unlock(&c->lock);
            copy_values(c, entry->values, i, part);
            pthread_mutex_lock(&c->lock);
            entry->left -= min_u64(entry->left, part->count);
            entry->used = ++c->clock;
            if (--entry->users == 0)
                pthread_cond_broadcast(&c->changed);
            done[i] = moved = true;
            missing--;
        }
        if (!moved && status == STATUS_OK && !(helps && load_ahead(c, above + c->across, &helps)))
            pthread_cond_wait(&c->changed, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

static enum status read_rows(struct hdf5_chunks *c, uint64_t first, uint64_t count,
                             unsigned char *rows, bool stored, struct error *err)
{
    const size_t row_bytes = c->file.dimension * (stored ? c->file.format.bytes : sizeof(float));
    enum status status = STATUS_OK;
    if (first > c->rows || count > c->rows - first)
        return error_set(err, STATUS_FAILED, "%s has %llu rows; asked for %llu from %llu",
                         c->file.path, (unsigned long long)c->rows, (unsigned long long)count,
                         (unsigned long long)first);
    while (count > 0 && status == STATUS_OK) {
        const uint64_t band = first / c->chunk_rows, begin = first % c->chunk_rows;
        const struct part part = {begin, min_u64(count, c->chunk_rows - begin), rows,
                                  stored};
        status = read_band(c, band, &part, err);
        first += part.count;
        count -= part.count;
        rows += part.count * row_bytes;
    }
    return status;
}

enum status hdf5_chunks_read(struct hdf5_chunks *c, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    return read_rows(c, first, count, (unsigned char *)rows, false, err);
}

enum status hdf5_chunks_read_stored(struct hdf5_chunks *c, uint64_t first, uint64_t count,
                                    void *rows, struct error *err)
{
    return read_rows(c, first, count, rows, true, err);
}
