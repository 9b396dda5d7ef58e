/* staging.h: the rings of slots between the decode threads and the devices.
 *
 *   decode threads ── acquire, fill, submit ─> slot ─> upload ─> kernels ─> read back ─> deliver
 *                                               ▲                                           │
 *                                               └─────────────────── free ──────────────────┘
 *
 * A slot is host memory that the device reaches fast (pinned, or shared with it), its device twin,
 * and the counters of what is inside. Decode threads pack parts of pictures into the slot that is
 * filling; when nothing more fits, or when the device has nothing to do, the slot is sealed and,
 * once the last part in it has been submitted or given up, handed to the device's lane thread. It
 * uploads, computes and reads back on three queues chained by events, so that successive slots
 * overlap; on a device that shares memory with the host a slot is unmapped and mapped instead of
 * copied. Results are delivered on the lane thread.
 *
 * Several devices are several lanes with rings of their own; a part goes to the one that will have
 * counted it first (share.c). A device that fails is passed over from then on, and the pictures of
 * which it had parts are given back.
 */
#ifndef CLPIPE_STAGING_STAGING_H
#define CLPIPE_STAGING_STAGING_H

#include "ocl/ocl.h"
#include "staging/chain.h"
#include "staging/staging_config.h"
#include <stdint.h>

struct staging;
struct slot;

/* Room for one part, between acquire and submit or cancel owned by the caller, who writes what
 * `shape` says to `bytes`. */
struct staging_part {
    uint8_t *bytes;
    struct part_shape shape;
    struct slot *slot; /* from here on staging's own */
    uint32_t index, offset;
    struct chain_part chain;
};

/* Opens contexts and queues, allocates slots (fewer or smaller ones, with a notice, where the
 * device cannot) and starts the lane threads, which build the kernels first. Of several devices
 * those that cannot be opened are passed over with a notice. */
enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err);

/* The most bytes that one part may have, as it comes. */
uint64_t staging_part_bytes(const struct staging *staging);

/* Columns and rows that a picture's parts must overlap. */
uint32_t staging_overlap(const struct staging *staging);

/* Does a step take whole pictures only? Parts are granted whole then, as far as they fit. */
bool staging_takes_whole(const struct staging *staging);

/* May any lane take parts of that payload? */
bool staging_takes(const struct staging *staging, enum payload payload);

/* Room for a part: for the pixels of pixels->rect, of which orientation, width and height are those
 * of the picture. Blocks until a slot has room; false: the run is over (aborted, or every lane has
 * failed). The rect has at most staging_part_bytes. Where its table entries are more than a slot
 * has, or its pixels more than the device should have now, its rows are cut short: part->shape.rect
 * says what was granted, never less than one row and the overlap.
 * coded: the whole picture in another payload of at most staging_part_bytes; NULL: not to be had.
 * part->shape says which is wanted: that one where the lane takes it and the rect is the whole
 * picture. */
bool staging_acquire(struct staging *staging, struct staging_part *part,
                     const struct part_shape *pixels, const struct part_shape *coded);

/* Its bytes are in place: the part will be delivered for `picture`. */
void staging_submit(struct staging *staging, struct staging_part *part, void *picture);

/* Gives the room back. */
void staging_cancel(struct staging *staging, struct staging_part *part);

/* Wakes everyone blocked in acquire with false, now and later. */
void staging_abort(struct staging *staging);

/* Seconds of device work so far, summed over lanes, from event timestamps. */
struct staging_times {
    double upload, compute, read_back;
    unsigned lanes;
};
void staging_times(struct staging *staging, struct staging_times *times);

/* One line on the slots for -v: "PoCL: 4 slots of 8 MiB, mapped; private". */
void staging_describe(const struct staging *staging, char *text, size_t size);

/* Waits until every part submitted has been delivered or lost, or the run is aborted. All parts
 * must have been submitted or cancelled. */
void staging_settle(struct staging *staging);

/* Waits until everything submitted has been delivered (unless aborted or failed) and ends the lane
 * threads. All parts must have been submitted or cancelled. */
void staging_drain(struct staging *staging);

/* Drains and frees. Accepts NULL and NULLs. */
void staging_close(struct staging **staging);

#endif
