/* bounds.h: divides the memory and the open files available to an ingest. */
#ifndef CLPIPE_INGEST_BOUNDS_H
#define CLPIPE_INGEST_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest memory for which an ingest is planned. */
#define INGEST_MEMORY_MIN (16ull << 20)

/* The default memory for `threads` decode threads, at least `least`. streams: a device decodes JPEG
 * streams, which is faster in larger slots. `available`: memory that the process may use; 0:
 * unknown. */
uint64_t bounds_default(uint64_t least, unsigned threads, bool streams, uint64_t available);

/* Shares of `memory`, in bytes: for slots of all devices; for sorting the walk; for codecs, beyond
 * the slots. */
uint64_t bounds_slots(uint64_t memory);
uint64_t bounds_sorting(uint64_t memory);
uint64_t bounds_codecs(uint64_t memory);

/* Shared memory of one isolated decoder; all of them together get 1/16 of the memory. */
uint64_t bounds_isolate_slot(uint64_t memory, unsigned threads);

/* How many pictures with `counters` counters may be in flight between walk and log, with `threads`
 * decode threads. from_devices: thumbnails arrive as pixels. */
uint64_t bounds_window(uint64_t memory, uint32_t counters, uint32_t thumbnail_size,
                       bool from_devices, unsigned threads);

/* How many files each of `threads` decode threads may have open if the process may have `most`
 * open. */
unsigned bounds_open_files(uint64_t most, unsigned threads);

#endif
