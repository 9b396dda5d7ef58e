/* staging.h: the rings of slots between the decode threads and the devices.
 *
 *     decode threads ── acquire, fill, submit ──> slot ──> upload ──> kernels ──> read back ──>
 * deliver └──────────────── free <──────────────────────┘
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

#include "part/dct.h"
#include "base/error.h"
#include "features/feature.h"
#include "histogram/histogram.h"
#include "ocl/ocl.h"
#include <stdint.h>

struct staging;
struct slot;

/* Where the pixels of JPEG pictures are made of their coefficients. */
enum staging_jpeg {
    STAGING_JPEG_AUTO, /* on devices that are no CPU */
    STAGING_JPEG_HOST,
    STAGING_JPEG_DEVICE,
};

struct staging_config {
    const struct ocl_devices *devices;
    const unsigned *chosen; /* indices into devices */
    unsigned chosen_count;
    const struct feature_set *features;
    enum histogram_variant variant;
    enum staging_jpeg jpeg;
    struct trace *trace;    /* may be NULL */
    uint64_t host_memory;   /* for the slots of all lanes, bytes */
    uint64_t device_memory; /* of each device, 0: what it has */
    uint64_t slot_bytes;    /* 0: chosen for the device */
    unsigned slot_count;    /* 0: chosen */

    /* The counters of one submitted part (feature_set.counters of them): to be added to those of
     * the picture's other parts. On a lane thread; several lanes may call at a time. */
    void (*deliver)(void *context, void *picture, const uint32_t *counters);
    /* A device has failed for good; `alive` others go on. On its lane thread, once. */
    void (*failed)(void *context, const struct error *err, unsigned alive);
    /* One submitted part of the picture will not be delivered: its device has failed. After
     * `failed`, on a lane thread. */
    void (*lost)(void *context, void *picture);
    void *context;
};

/* Room for one part, between acquire and submit or cancel owned by the caller. */
struct staging_part {
    uint8_t *pixels;   /* `rows` rows of `stride` bytes, packed */
    bool coefficients; /* not those are wanted, but the picture's DCT coefficients */
    size_t stride;
    uint32_t rows;
    struct slot *slot;
    uint32_t index; /* in the slot */
    uint32_t first_tile[HISTOGRAM_PASSES_MAX], tiles[HISTOGRAM_PASSES_MAX];
    struct histogram_part geometry;
};

/* Opens contexts and queues, allocates slots (fewer or smaller ones, with a notice, where the
 * device cannot) and starts the lane threads, which build the kernels first. Of several devices
 * those that cannot be opened are passed over with a notice. */
enum status staging_open(struct staging **out, const struct staging_config *config,
                         struct error *err);

/* Bytes of a slot of the device where nothing but host_memory is told. */
uint64_t staging_slot_bytes(const struct ocl_device *device, uint64_t host_memory);

/* The most bytes that one part may have (rows of 3 bytes a pixel, or coefficients). */
uint64_t staging_part_bytes(const struct staging *staging);

/* May any lane take coefficients? */
bool staging_takes_coefficients(const struct staging *staging);

/* Room for the pixels of `rect` of a picture of width x height. Where features are of the blurred
 * picture, all these are the blurred ones': part->pixels has BLUR_BORDER columns and rows more.
 * Blocks until a slot has room; false: the run is over (aborted, or every lane has failed). bytes
 * of the pixels <= staging_part_bytes. Where the rect has more tiles than a slot's table, or more
 * pixels than the device should have now, its rows are cut short: part->geometry.rect says what was
 * granted, never less than one row.
 * dct: the whole picture's coefficients are to be had, and dct_bytes <= staging_part_bytes (NULL:
 * not). part->coefficients says whether they are wanted: where the lane takes them and the rect
 * is the whole picture. */
bool staging_acquire(struct staging *staging, struct staging_part *part, uint32_t width,
                     uint32_t height, uint8_t orientation, struct cell_rect rect,
                     const struct dct_layout *dct);

/* The pixels are in place: they will be counted and delivered for `picture`. */
void staging_submit(struct staging *staging, struct staging_part *part, void *picture);

/* Gives the room back uncounted. */
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
