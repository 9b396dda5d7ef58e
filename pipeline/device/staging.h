/* staging.h: the rings of slots between the decode threads and the devices.
 *
 *   decode threads ── acquire, fill, submit ─> slot ─> upload ─> kernels ─> read back ─> deliver
 *                                               ▲                                           │
 *                                               └─────────────────── free ──────────────────┘
 *
 * A slot is host memory with fast device access (pinned, or shared with the device), its
 * counterpart on the device, and the values of its parts. Decode threads write parts of images into
 * the slot that is filling; when nothing more fits, or when the device is idle, the slot is sealed
 * and, once its last part has been submitted or cancelled, passed to the device's ring thread. It
 * uploads, computes and reads back on three queues chained by events, so that successive slots
 * overlap; on a device that shares memory with the host a slot is unmapped and mapped instead of
 * copied. Results are delivered on the ring thread.
 *
 * Each device has a ring of its own; a part goes to the ring that is expected to count it
 * first (share.c). A device that fails is no longer used, and images with parts on it are reported
 * as lost. */
#ifndef CLPIPE_DEVICE_STAGING_H
#define CLPIPE_DEVICE_STAGING_H

#include "device/chain.h"
#include "device/staging_config.h"
#include "ocl/ocl.h"
#include <stdint.h>

struct staging;
struct slot;

/* Space for one part. The caller owns it between acquire and submit or cancel, and writes the data
 * that `shape` describes to `bytes`. */
struct staging_part {
    uint8_t *bytes;
    struct part_shape shape;
    struct slot *slot; /* this and the following: internal to staging */
    uint32_t index, offset;
    uint64_t cost; /* as in share.c */
    struct chain_part chain;
};

/* Opens a context and queues, allocates slots (fewer or smaller ones, with a notice, if memory is
 * short) and starts the ring threads, which first build the kernels. With several devices, one is
 * opened here and, while it works, the others by their threads; devices that cannot be opened are
 * skipped with a notice. */
enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err);

/* The largest size of a part, in bytes. */
uint64_t staging_part_bytes(const struct staging *staging);

/* Columns and rows that neighbouring parts of an image must share. */
uint32_t staging_overlap(const struct staging *staging);

/* The goals to which steps scale whole images. If there are any, parts are granted whole if they
 * fit. If an image is not granted whole, the caller scales its pixels to each goal (decode/scale.h)
 * and submits these as separate parts with shape.scaled, which are granted whole. */
unsigned staging_goals(scale_goal goals[STEP_NODES_MAX], const struct staging *staging);

/* Will the device accept parts with that payload, unless memory is short or its kernels fail? Opens
 * nothing. */
bool staging_would_take(const struct step_plan *plan, const struct ocl_device *device,
                        enum payload payload);

/* Does any ring accept parts with that payload? */
bool staging_takes(const struct staging *staging, enum payload payload);

/* For callers that can do other work while all slots are full. */
struct staging_else {
    double rate;      /* bytes of pixels per second that all callers together would process
                       * instead of waiting; if the devices process many times as much, acquire
                       * waits nevertheless */
    int64_t patience; /* nanoseconds: if slots usually become free sooner, acquire waits
                       * nevertheless, at most twice as long */
    bool full;        /* result: all slots are full */
};

/* Acquires space for the pixels of pixels->rect, whose orientation, width and height are those of
 * the image. Blocks until a slot has space; false: the run is over (aborted, or every ring has
 * failed). If the rect has more than staging_part_bytes, needs more table entries than a slot has,
 * or has more pixels than the device should get now, fewer rows are granted: part->shape.rect is
 * the granted rect, never less than one row and the overlap. coded: shapes of the whole image in
 * `coded_count` other payloads of at most staging_part_bytes, in order of preference. part->shape
 * is set to the first one that the ring accepts, if the rect is the whole image. otherwise: if not
 * NULL, acquire sets `full` and returns false instead of waiting for a slot. */
bool staging_acquire(struct staging *staging, struct staging_part *part,
                     const struct part_shape *pixels, const struct part_shape *coded,
                     unsigned coded_count, struct staging_else *otherwise);

/* Submits a part whose bytes are written; its result is delivered for `picture`. Any thread, like
 * acquire and cancel. */
void staging_submit(struct staging *staging, struct staging_part *part, void *picture);

/* Frees the part's space. */
void staging_cancel(struct staging *staging, struct staging_part *part);

/* Wakes all threads blocked in acquire, whose calls return false, as do all later ones. */
void staging_abort(struct staging *staging);

/* Seconds of device work. */
struct staging_times {
    double upload, compute, read_back;
    unsigned rings;
};
/* The work so far, summed over rings, from event timestamps. Any thread. */
void staging_times(struct staging *staging, struct staging_times *times);

/* Waits until every submitted part is delivered or lost, or the run is aborted. No part may be
 * outstanding. */
void staging_settle(struct staging *staging);

/* Waits until every submitted part is delivered (unless aborted or failed) and ends the ring
 * threads, except those that are still opening their device: staging_close waits for them. No part
 * may be outstanding. */
void staging_drain(struct staging *staging);

/* Drains and frees. Accepts NULL; sets *staging to NULL. */
void staging_close(struct staging **staging);

#endif
