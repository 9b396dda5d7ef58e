/* bench.h: measures the histogram kernels of a device on made pictures that fill a slot. */
#ifndef CLPIPE_HISTOGRAM_BENCH_H
#define CLPIPE_HISTOGRAM_BENCH_H

#include "histogram/histogram.h"

enum bench_fill {
    BENCH_CONSTANT,
    BENCH_TWO,
    BENCH_NATURAL,
    BENCH_RANDOM,
    BENCH_SORTED,
    BENCH_FILLS
};

/* "constant", "two", "natural", "random", "sorted"; NULL past the last. */
const char *bench_fill_name(unsigned fill);

/* The slot is one picture of rows of 4,096 pixels, or full of pictures of a size. */
enum bench_shape { BENCH_LARGE, BENCH_512X384, BENCH_224X224, BENCH_SHAPES };

/* "large", "512x384", "224x224"; NULL past the last. */
const char *bench_shape_name(unsigned shape);

struct bench_config {
    uint64_t bytes;         /* of pixels at most, 0: chosen for the device */
    uint64_t device_memory; /* bound on the device's buffers, 0: what it has */
    unsigned rounds;  /* of which the median is taken, at least 1; fewer where they are slow */
    unsigned threads; /* of the plain C loop; 0: it is not compared with */
};

/* Device time by events (kernels only), the plain C loop by the clock; medians. */
struct bench_result {
    uint64_t bytes; /* of pixels counted */
    uint64_t pictures;
    double seconds;
    double
        plain_ratio; /* the plain loop's seconds to these, median of the rounds; 0: not compared */
    uint64_t wrong;  /* counters that differ from the C reference */
};

struct bench;

/* Allocates the buffers on the context's device and on the host. */
enum status bench_open(struct bench **out, struct ocl_context *context,
                       const struct bench_config *config, struct error *err);
void bench_close(struct bench **bench);
/* Of pixels, at most, in a launch. */
uint64_t bench_bytes(const struct bench *bench);

/* Makes the pictures of the next measurements, on the host and on the device. */
enum status bench_fill(struct bench *bench, enum bench_shape shape, enum bench_fill fill,
                       struct error *err);

/* Reading the same bytes without counting. */
enum status bench_read(struct bench_result *result, struct bench *bench, struct error *err);

/* Copying them from pinned host memory; bytes 0 on devices that share memory with the host. */
enum status bench_upload(struct bench_result *result, struct bench *bench, struct error *err);

/* Counting `spec` with `variant`, launched as `shape` says or, where that is NULL, as usual; on CPU
 * devices rgb:bins=256 in turn with the plain C loop. STATUS_USAGE: the variant cannot hold the
 * feature here. */
enum status bench_histogram(struct bench_result *result, struct bench *bench,
                            enum histogram_variant variant, const struct histogram_shape *shape,
                            const char *spec, struct error *err);

/* rgb:bins=256 by a plain C loop with four sub-tables on config.threads host threads, at least 1.
 */
enum status bench_plain(struct bench_result *result, struct bench *bench, struct error *err);

#endif
