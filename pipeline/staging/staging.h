/* staging.h: the rings of slots between the decode threads and the devices.
 *
 *   decode threads ── acquire, fill, submit ─> slot ─> upload ─> kernels ─> read back ─> deliver
 *                                               ▲                                           │
 *                                               └─────────────────── free ──────────────────┘
 *
 * A slot is host memory that the device accesses fast (pinned, or shared with it), its counterpart
 * on the device, and the values of its parts. Decode threads pack parts of images into the slot
 * that is filling; when nothing more fits, or when the device is idle, the slot is sealed and, once
 * its last part has been submitted or cancelled, passed to the device's lane thread. It uploads,
 * computes and reads back on three queues chained by events, so that successive slots overlap; on a
 * device that shares memory with the host a slot is unmapped and mapped instead of copied. Results
 * are delivered on the lane thread.
 *
 * Each device is a lane with its own ring; a part goes to the lane that is expected to count it
 * first (share.c). A device that fails is skipped from then on, and the images that had parts on it
 * are given back.
 */
#ifndef CLPIPE_STAGING_STAGING_H
#define CLPIPE_STAGING_STAGING_H

#include "ocl/ocl.h"
#include "staging/chain.h"
#include "staging/staging_config.h"
#include <stdint.h>

struct staging;
struct slot;

/* Space for one part. The caller owns it between acquire and submit or cancel, and writes the data
 * that `shape` describes to `bytes`. */
struct staging_part {
    uint8_t *bytes;
    struct part_shape shape;
    struct slot *slot; /* this and the rest: internal to staging */
    uint32_t index, offset;
    uint64_t cost; /* as share.c counts it */
    struct chain_part chain;
};

/* Opens a context and queues, allocates slots (fewer or smaller ones, with a notice, if the device lacks the
 * memory) and starts the lane threads, which build the kernels first. If there are several devices, the
 * others are opened by their threads while the first one works already; those that cannot be opened are
 * skipped with a notice. */
enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err);

/* The largest size of a part, in bytes. */
uint64_t staging_part_bytes(const struct staging *staging);

/* Columns and rows by which the parts of an image must overlap. */
uint32_t staging_overlap(const struct staging *staging);

/* The goals to which steps scale whole images. If there are any, parts are granted whole, as far as
 * they fit; of an image that is not granted whole, the caller scales the pixels to each side
 * (part/scale.h) and submits them as parts of their own, with shape.scaled. Those are granted whole. */
unsigned staging_goals(scale_goal goals[STEP_NODES_MAX], const struct staging *staging);

/* Will the device accept parts with that payload, unless memory is short or its kernels are wrong? Opens
 * nothing. */
bool staging_would_take(const struct step_plan *plan, const struct ocl_device *device,
                        enum payload payload);

/* Does any lane accept parts with that payload? */
bool staging_takes(const struct staging *staging, enum payload payload);

/* A caller that can do something else while all slots are full. */
struct staging_else {
    int64_t patience; /* nanoseconds: if a slot is usually free sooner, it waits nevertheless, up to twice
                         as long */
    bool full;        /* set: all slots are full */
};

/* Acquires space for the pixels of pixels->rect, whose orientation, width and height are those of
 * the image. Blocks until a slot has space; false: the run is over (aborted, or every lane has
 * failed). If the rect has more than staging_part_bytes, needs more table entries than a slot has,
 * or has more pixels than the device should get now, fewer rows are granted: part->shape.rect is
 * the granted rect, never less than one row and the overlap. coded: the whole image in `coded_count`
 * other payloads of at most staging_part_bytes, the best one first. part->shape says which one to
 * write: the first one that the lane accepts, if the rect is the whole image. otherwise: NULL, or full is
 * set instead of waiting for a slot; then the result is false. */
bool staging_acquire(struct staging *staging, struct staging_part *part,
                     const struct part_shape *pixels, const struct part_shape *coded,
                     unsigned coded_count, struct staging_else *otherwise);

/* Submits a part whose bytes are written: it will be delivered for `picture`. */
void staging_submit(struct staging *staging, struct staging_part *part, void *picture);

/* Gives the space back. */
void staging_cancel(struct staging *staging, struct staging_part *part);

/* Wakes all threads blocked in acquire; these and all later calls return false. */
void staging_abort(struct staging *staging);

/* Seconds of device work so far, summed over lanes, from event timestamps. */
struct staging_times {
    double upload, compute, read_back;
    unsigned lanes;
};
void staging_times(struct staging *staging, struct staging_times *times);

/* Waits until every submitted part has been delivered or lost, or the run is aborted. All parts
 * must have been submitted or cancelled. */
void staging_settle(struct staging *staging);

/* Waits until every submitted part has been delivered (unless aborted or failed) and ends the lane
 * threads, but for those that still open their device: staging_close waits for them. All parts must have
 * been submitted or cancelled. */
void staging_drain(struct staging *staging);

/* Drains and frees. Accepts NULL; sets *staging to NULL. */
void staging_close(struct staging **staging);

#endif
