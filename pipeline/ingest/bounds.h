/* bounds.h: how an ingest divides the memory and the open files that it may have. */
#ifndef CLPIPE_INGEST_BOUNDS_H
#define CLPIPE_INGEST_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* The least memory that an ingest is planned with. */
#define INGEST_MEMORY_MIN (16ull << 20)

/* The memory unless it is given, at least `least`, with `threads` decode threads. streams: a device
 * decodes the entropy code of JPEG images; with larger slots it is faster. `available`: what the
 * process may use, 0: unknown. */
uint64_t bounds_default(uint64_t least, unsigned threads, bool streams, uint64_t available);

/* Bytes of `memory` that the slots of all devices may take; that sorting the walk may take; that
 * codecs may hold beyond the slots. */
uint64_t bounds_slots(uint64_t memory);
uint64_t bounds_sorting(uint64_t memory);
uint64_t bounds_codecs(uint64_t memory);

/* Shared memory of one isolated decoder: all of them together have a sixteenth of the memory. */
uint64_t bounds_isolate_slot(uint64_t memory, unsigned threads);

/* Pictures of `counters` counters on their way from the walk to the log, with `threads` decode
 * threads. from_devices: thumbnails come as pixels. */
uint64_t bounds_window(uint64_t memory, uint32_t counters, uint32_t thumbnail_size,
                       bool from_devices, unsigned threads);

/* Files that each of `threads` decode threads may have open where the process may have `most`. */
unsigned bounds_open_files(uint64_t most, unsigned threads);

#endif
