/* bench.h: measures the histogram kernels of a device on synthetic pictures that fill a slot. */
#ifndef CLPIPE_DEVICE_BENCH_H
#define CLPIPE_DEVICE_BENCH_H

#include "device/histogram.h"

enum bench_fill {
    BENCH_CONSTANT,
    BENCH_TWO,
    BENCH_NATURAL,
    BENCH_RANDOM,
    BENCH_SORTED,
    BENCH_FILLS,
    BENCH_GRADIENT = BENCH_FILLS, /* for the self-test */
};

/* Fills rows of `width` pixels. */
void bench_pixels(uint8_t *pixels, size_t bytes, uint32_t width, enum bench_fill fill);

/* "constant", "two", "natural", "random", "sorted"; NULL past the last. */
const char *bench_fill_name(unsigned fill);

/* The slot holds one picture with rows of 4,096 pixels, or as many pictures of one size as fit. */
enum bench_shape { BENCH_LARGE, BENCH_512X384, BENCH_224X224, BENCH_SHAPES };

/* "large", "512x384", "224x224"; NULL past the last. */
const char *bench_shape_name(unsigned shape);

struct bench_config {
    uint64_t bytes;         /* upper bound on bytes of pixels; 0: chosen for the device */
    uint64_t device_memory; /* upper bound on the device's buffers; 0: all of its memory */
    unsigned rounds;        /* rounds, at least 1; slow kernels get fewer; the median is reported */
    unsigned threads;       /* of the plain C loop; 0: no comparison with it */
};

/* Medians: device time from events (kernels only), wall-clock time for the plain C loop. */
struct bench_result {
    uint64_t bytes; /* of the pixels counted */
    uint64_t pictures;
    double seconds;
    double plain_ratio; /* the plain loop's time divided by the kernel's; 0: not compared */
    uint64_t wrong;     /* counters that differ from the C reference */
};

struct bench;

/* Allocates the buffers on the context's device and on the host. */
enum status bench_open(struct bench **out, struct ocl_context *context,
                       const struct bench_config *config, struct error *err);
/* Frees the buffers; *bench may be NULL. */
void bench_close(struct bench **bench);
/* The most bytes of pixels in a launch. */
uint64_t bench_bytes(const struct bench *bench);

/* Generates the pictures of the next measurements, on the host and on the device. */
enum status bench_fill(struct bench *bench, enum bench_shape shape, enum bench_fill fill,
                       struct error *err);

/* Times a kernel that only reads the pixels. */
enum status bench_read(struct bench_result *result, struct bench *bench, struct error *err);

/* Times the upload from pinned host memory; bytes is 0 if the device shares the host's memory. */
enum status bench_upload(struct bench_result *result, struct bench *bench, struct error *err);

/* Times counting `spec` with `variant` in `shape` (NULL: the default); on CPU devices rgb:bins=256
 * alternates with the plain C loop. STATUS_USAGE: the variant cannot count the feature on this
 * device. */
enum status bench_histogram(struct bench_result *result, struct bench *bench,
                            enum histogram_variant variant, const struct histogram_shape *shape,
                            const char *spec, struct error *err);

/* Times rgb:bins=256 in a plain C loop with four sub-tables on config.threads host threads, at
 * least 1. */
enum status bench_plain(struct bench_result *result, struct bench *bench, struct error *err);

#endif
