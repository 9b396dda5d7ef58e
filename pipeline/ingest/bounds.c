/* bounds.c: divides an ingest's memory: slots 3/8, codecs 1/2, pictures in flight 1/8. The walk is
 * sorted before there are pictures. */
#include "ingest/bounds.h"

#include "base/minmax.h"

#include <limits.h>

/* Default memory per thread: more threads hold more images at a time. */
#define THREAD_BYTES        (16ull << 20)
#define THREAD_BYTES_STREAM (64ull << 20)
/* With streams: an absolute limit, and a divisor of the memory that the process may use. */
#define STREAMS_MOST  (1ull << 30)
#define STREAMS_SHARE 16u

#define WINDOW_MAX       32768u
#define ISOLATE_SLOT_MAX (4ull << 20)
/* Bytes per picture, without its counters. */
#define PICTURE_BYTES 512u
/* Pixels per byte of a square thumbnail: a typical JPEG file is smaller. */
#define THUMBNAIL_PIXELS_A_BYTE 4u

uint64_t bounds_default(uint64_t least, unsigned threads, bool streams, uint64_t available)
{
    const uint64_t usual = max_u64(least, threads * THREAD_BYTES);
    const uint64_t most = min_u64(STREAMS_MOST, available / STREAMS_SHARE);
    return streams ? max_u64(usual, min_u64(threads * THREAD_BYTES_STREAM, most)) : usual;
}

uint64_t bounds_slots(uint64_t memory)
{
    return memory * 3 / 8;
}

uint64_t bounds_sorting(uint64_t memory)
{
    return memory / 8;
}

uint64_t bounds_codecs(uint64_t memory)
{
    return memory / 2;
}

uint64_t bounds_isolate_slot(uint64_t memory, unsigned threads)
{
    const uint64_t bytes = memory / 16 / threads;
    return bytes < ISOLATE_SLOT_MAX ? bytes : ISOLATE_SLOT_MAX;
}

uint64_t bounds_window(uint64_t memory, uint32_t counters, uint32_t thumbnail_size,
                       bool from_devices, unsigned threads)
{
    const uint64_t pixels = (uint64_t)thumbnail_size * thumbnail_size;
    /* Counted twice: in flight, and in the store's reorder buffer. */
    const uint64_t picture =
        2 * (4ull * counters + PICTURE_BYTES + pixels / THUMBNAIL_PIXELS_A_BYTE) +
        (from_devices ? 3 * pixels : 0);
    const uint64_t window = memory / 8 / picture, least = 2ull * threads + 2;
    return window < least ? least : window > WINDOW_MAX ? WINDOW_MAX : window;
}

unsigned bounds_open_files(uint64_t most, unsigned threads)
{
    if (most / 4 >= UINT_MAX)
        return UINT_MAX;
    const unsigned each = (unsigned)(most / 4) / threads;
    return each > 0 ? each : 1;
}
