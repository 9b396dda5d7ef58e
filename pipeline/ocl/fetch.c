/* fetch.c: two pinned pieces used in turn.
 *
 * The next piece is read by one of the threads that process slices, with a blocking read: NVIDIA's
 * driver reports the end of an event late. Pinning takes 0.4 ms per MiB, so the pieces are small
 * and live as long as the rows. */
#include "ocl/fetch.h"
#include "kmeans.h"
#include <string.h>

#define PIECE_BYTES (2u << 20)
#define UNIT_BYTES  (KMEANS_BLOCK_ROWS * sizeof(double))

/* The least bytes for which waking a thread is worthwhile. */
#define COPY_BYTES (64u << 10)

static size_t units_of(size_t bytes)
{
    return (bytes + UNIT_BYTES - 1) / UNIT_BYTES;
}

enum status fetch_open(struct fetch *fetch, struct lane_held **held, struct lane *lane,
                       size_t usual, struct error *err)
{
    const size_t whole = units_of(usual) * UNIT_BYTES;
    *fetch = (struct fetch){.lane = lane, .piece_bytes = whole < PIECE_BYTES ? whole : PIECE_BYTES};
    const struct lane_wanted wanted[] = {PINNED(fetch->host[0], fetch->piece_bytes),
                                         PINNED(fetch->host[1], fetch->piece_bytes)};
    return lane_hold(held, lane, wanted, COUNT_OF(wanted), "values on the host", err);
}

uint32_t fetch_takers(const struct lane *lane)
{
    const unsigned threads = workers_count(lane->workers);
    return threads > 2 ? threads - 1 : threads;
}

/* --- slices ---------------------------------------------------------------------------------- */

struct slices {
    void (*take)(void *context, const struct fetch_slice *slice);
    void *context;
    uint32_t count;
    /* What is cut into slices: */
    const void *values;
    size_t offset, bytes; /* offset: in the buffer */
};

static void take_slice(const struct slices *slices, uint32_t number)
{
    const size_t units = units_of(slices->bytes);
    const size_t each = (units + slices->count - 1) / slices->count * UNIT_BYTES;
    const size_t from = number * each, left = slices->bytes - from;
    if (from >= slices->bytes)
        return;
    const struct fetch_slice slice = {.offset = slices->offset + from,
                                      .bytes = left < each ? left : each,
                                      .values = (const char *)slices->values + from,
                                      .number = number};
    slices->take(slices->context, &slice);
}

static void take_part(void *context, uint64_t part)
{
    take_slice(context, (uint32_t)part);
}

void fetch_slices_of(struct workers *workers, const void *values, size_t bytes, uint32_t slices,
                     void (*take)(void *context, const struct fetch_slice *slice), void *context)
{
    struct slices job = {take, context, slices, values, 0, bytes};
    workers_run(workers, take_part, &job, slices);
}

/* --- pieces ---------------------------------------------------------------------------------- */

struct pieces {
    struct fetch *fetch;
    const char *tag;
    cl_mem buffer;
    size_t bytes;
    uint64_t next; /* index of the piece to read */
    enum status status;
    struct error *err;
    struct slices slices; /* of the previous piece */
};

static void read_next(struct pieces *pieces)
{
    const struct fetch *fetch = pieces->fetch;
    const size_t from = pieces->next * fetch->piece_bytes, left = pieces->bytes - from;
    pieces->status = lane_read(fetch->lane, pieces->tag, pieces->buffer, from,
                               left < fetch->piece_bytes ? left : fetch->piece_bytes,
                               fetch->host[pieces->next % 2], pieces->err);
}

/* Parts are given out in order, so the read begins first. */
static void read_or_take(void *context, uint64_t part)
{
    struct pieces *pieces = context;
    if (part == 0)
        read_next(pieces);
    else
        take_slice(&pieces->slices, (uint32_t)part - 1);
}

enum status fetch_slices(struct fetch *fetch, const char *tag, cl_mem buffer, size_t bytes,
                         uint32_t slices,
                         void (*take)(void *context, const struct fetch_slice *slice),
                         void *context, struct error *err)
{
    struct pieces pieces = {.fetch = fetch,
                            .tag = tag,
                            .buffer = buffer,
                            .bytes = bytes,
                            .err = err,
                            .slices = {.take = take, .context = context, .count = slices}};
    struct workers *workers = fetch->lane->workers;
    const size_t each = fetch->piece_bytes;
    read_next(&pieces);
    while (pieces.status == STATUS_OK) {
        const size_t from = pieces.next * each, left = bytes - from;
        pieces.slices.values = fetch->host[pieces.next++ % 2];
        pieces.slices.offset = from;
        pieces.slices.bytes = left < each ? left : each;
        if (left <= each) {
            workers_run(workers, take_part, &pieces.slices, slices);
            return STATUS_OK;
        }
        workers_run(workers, read_or_take, &pieces, slices + 1);
    }
    return pieces.status;
}

uint32_t fetch_copiers(const struct fetch *fetch, size_t bytes)
{
    const size_t piece = bytes < fetch->piece_bytes ? bytes : fetch->piece_bytes;
    const uint32_t most = (uint32_t)(piece / COPY_BYTES) + 1, takers = fetch_takers(fetch->lane);
    return most < takers ? most : takers;
}

void fetch_copy_slice(void *context, const struct fetch_slice *slice)
{
    memcpy((char *)context + slice->offset, slice->values, slice->bytes);
}

enum status fetch_copy(struct fetch *fetch, const char *tag, cl_mem buffer, size_t bytes,
                       void *host, struct error *err)
{
    return fetch_slices(fetch, tag, buffer, bytes, fetch_copiers(fetch, bytes), fetch_copy_slice,
                        host, err);
}
