/* clpipe.h: exact k-means and nearest neighbours of rows in memory, and features of pictures.
 *
 *     struct clpipe *clpipe = NULL;
 *     struct clpipe_error err = CLPIPE_INIT(clpipe_error);
 *     struct clpipe_rows rows = CLPIPE_INIT(clpipe_rows);
 *     struct clpipe_kmeans kmeans = CLPIPE_INIT(clpipe_kmeans);
 *     ...
 *     if (clpipe_open(&clpipe, NULL, &err) || clpipe_fit(&fit, clpipe, &rows, &kmeans, NULL, &err))
 *         fprintf(stderr, "%s\n", err.text);
 *     clpipe_close(&clpipe);
 *
 * Structs begin with their size, which CLPIPE_INIT sets; members left at 0 get their defaults.
 * Arrays belong to the caller and are used only during the call. Handles are not addresses: a
 * closed or invalid handle is an error, not undefined behaviour.
 *
 * Threads: all functions may be called from any thread. Calls with the same handle run one after another; calls
 * with different handles run in parallel. In a callback, calls with a handle return CLPIPE_ARGUMENT, except
 * clpipe_stop and clpipe_close.
 *
 * Processes: after fork(), a child whose parent has used clpipe must not use it: every function returns
 * CLPIPE_FORK.
 *
 * The first clpipe_open or clpipe_devices of a process sets environment variables that OpenCL drivers read. */
#ifndef CLPIPE_H
#define CLPIPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum clpipe_status {
    CLPIPE_OK = 0,
    CLPIPE_ARGUMENT = 1, /* invalid: a NULL, size, stride, name or number */
    CLPIPE_DATA = 2,     /* NaN; fewer distinct rows than k */
    CLPIPE_DEVICE = 3,   /* no device, or its driver failed */
    CLPIPE_MEMORY = 4,   /* of the host */
    CLPIPE_STOPPED = 5,  /* by clpipe_stop or a callback */
    CLPIPE_CLOSED = 6,   /* no open handle of that kind */
    CLPIPE_FORK = 7,     /* the process was forked from one that uses clpipe */
};

#define CLPIPE_INIT(NAME)                                                                          \
    {                                                                                              \
        .size = sizeof(struct NAME)                                                                \
    }

/* Filled by every function that does not return CLPIPE_OK. The argument may be NULL. */
struct clpipe_error {
    size_t size;
    int status;      /* enum clpipe_status */
    char text[1200]; /* one line, UTF-8 */
};

/* --- devices ----------------------------------------------------------------------------------- */

struct clpipe_device {
    size_t size;
    int usable;
    char type[16]; /* "cpu", "gpu", "accelerator", "custom" */
    char name[128], platform[128], driver[128];
    char reason[160]; /* why it is not usable */
    uint64_t memory;  /* bytes */
};

/* Writes up to *count devices to `devices`, whose `size` members the caller has set, and the number of devices
 * to *count. clpipe_options selects device i by the number i. */
int clpipe_devices(struct clpipe_device *devices, unsigned *count, struct clpipe_error *err);

/* --- handles ----------------------------------------------------------------------------------- */

struct clpipe;

struct clpipe_options {
    size_t size;
    /* NULL: the best; "cpu", "gpu", "all", one or more numbers ("0,2"), part of a name */
    const char *device;
    unsigned threads;       /* on the host; 0: one for each CPU available to the process */
    uint64_t memory;        /* bytes of host buffers; 0: half of the available memory */
    uint64_t device_memory; /* bytes on each device; 0: all of its memory */
};

/* Opens devices; options may be NULL. This takes tenths of a second: keep the handle. */
int clpipe_open(struct clpipe **out, const struct clpipe_options *options,
                struct clpipe_error *err);

/* The names of the handle's devices, as one string. */
int clpipe_name(char *name, size_t size, struct clpipe *clpipe, struct clpipe_error *err);

/* Closes the handle and sets it to NULL; accepts NULL and a pointer to NULL. A call in progress on another
 * thread continues to its end. */
int clpipe_close(struct clpipe **clpipe);

/* Makes the call in progress with this handle, if any, return CLPIPE_STOPPED soon. */
int clpipe_stop(struct clpipe *clpipe);

/* Reports the progress of a call. The argument may be NULL. */
struct clpipe_watch {
    size_t size;
    /* Called on the calling thread. phase: "rows read", "first centroids", "iterations", "rows labelled", "rows
     * compared"; total is 0 while unknown. Returning a value other than 0 ends the call with CLPIPE_STOPPED. */
    int (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

/* --- rows -------------------------------------------------------------------------------------- */

enum clpipe_type { CLPIPE_FLOAT32 = 0, CLPIPE_FLOAT16 = 1, CLPIPE_FLOAT64 = 2, CLPIPE_UINT8 = 3 };

/* Rows of numbers, converted to float32 for computing: in memory (not copied on the host), or from a
 * callback. */
struct clpipe_rows {
    size_t size;
    uint64_t rows;
    uint32_t columns;   /* at most CLPIPE_COLUMNS_MAX */
    int type;           /* enum clpipe_type */
    const void *values; /* address of row 0, column 0; NULL: `read` provides the rows */
    /* Bytes from one row, or value, to the next; may be negative; 0: no gaps. */
    int64_t row_stride, column_stride;
    /* Writes rows [first, first + count), columns float32 each. Called for any range, repeatedly, by one
     * thread at a time, which need not be the calling one. Returning a value other than 0 makes the call
     * fail. */
    int (*read)(void *context, uint64_t first, uint64_t count, float *values);
    void *context;
};

#define CLPIPE_COLUMNS_MAX (1u << 22)

/* --- k-means ----------------------------------------------------------------------------------- */

enum clpipe_metric {
    CLPIPE_EUCLIDEAN = 0,
    CLPIPE_COSINE = 1,    /* euclidean between rows divided by their lengths (spherical k-means) */
    CLPIPE_HELLINGER = 2, /* euclidean between the square roots of rows */
};

enum clpipe_init { CLPIPE_KMEANSPP, CLPIPE_KMEANS_PARALLEL, CLPIPE_RANDOM, CLPIPE_GIVEN };

struct clpipe_kmeans {
    size_t size;
    uint32_t k;
    int metric;           /* enum clpipe_metric */
    int init;             /* enum clpipe_init */
    const float *initial; /* CLPIPE_GIVEN: k x columns values */
    const float *weights; /* of the rows, at least 0; NULL: all rows weigh the same */
    uint64_t seed;
    uint32_t n_init;   /* runs, of which the best is kept; 0: 1 */
    uint32_t max_iter; /* 0: 300 */
    /* As in scikit-learn, relative to the mean variance of the columns; 0: until no label
     * changes. */
    double tol;
    uint32_t mini_batch; /* rows per batch; 0: full iterations (Lloyd) */
};

/* The caller's arrays for the result of a clustering; NULL: not wanted. The result is the same on every
 * device. */
struct clpipe_fit {
    size_t size;
    float *centroids; /* k x columns, in the space of the metric */
    int32_t *labels;  /* rows */
    float *distances; /* rows; squared, in the space of the metric */
    uint64_t *sizes;  /* k */
    double inertia;   /* this and the following are always set */
    uint32_t iterations;
    int converged; /* before max_iter */
};

/* Clusters rows. CLPIPE_DATA: k exceeds the number of distinct rows; NaN or infinite values; zeros under cosine,
 * negative values under hellinger; invalid weights. The message names the row. */
int clpipe_fit(struct clpipe_fit *out, struct clpipe *clpipe, const struct clpipe_rows *rows,
               const struct clpipe_kmeans *kmeans, const struct clpipe_watch *watch,
               struct clpipe_error *err);

/* Finds the nearest of k centroids (k x columns, in the space of the metric) to each row, and the squared
 * distance; either may be NULL. */
int clpipe_predict(int32_t *labels, float *distances, struct clpipe *clpipe,
                   const struct clpipe_rows *rows, const float *centroids, uint32_t k, int metric,
                   const struct clpipe_watch *watch, struct clpipe_error *err);

/* --- neighbours -------------------------------------------------------------------------------- */

/* Finds the n nearest rows of each query, nearest first, rows at equal distances in their order. queries: with as
 * many columns as `rows`; NULL: the rows themselves, none of which is its own neighbour (copies of it are).
 * Writes the numbers of the rows and the squared distances in the space of the metric, queries x n each; either
 * may be NULL. The result is that of `clpipe similar`, bit-identical on every device. CLPIPE_ARGUMENT: n exceeds
 * the number of possible neighbours; CLPIPE_DATA: as for clpipe_fit; the message names the row or query. */
int clpipe_neighbors(int64_t *neighbors, double *distances, struct clpipe *clpipe,
                     const struct clpipe_rows *rows, const struct clpipe_rows *queries, uint32_t n,
                     int metric, const struct clpipe_watch *watch, struct clpipe_error *err);

/* --- features ---------------------------------------------------------------------------------- */

/* The features to compute: those of `clpipe ingest`, except those that learn codebooks from the
 * images. */
struct clpipe_features {
    size_t size;
    const char *const *specs; /* as for --feature: "hog:grid=4x4"; a row is their concatenation */
    uint32_t count;           /* of specs, at most 16 */
    const char *preset;       /* instead of specs: "color", "few", "semantic"; joined rows of unit
                               * length */
};

/* A picture, given by exactly one of path, bytes and pixels. */
struct clpipe_picture {
    size_t size;
    const char *path;
    const void *bytes; /* an encoded image in any format listed by `clpipe formats` */
    uint64_t length;   /* of bytes */
    const uint8_t *pixels;
    uint32_t width, height, channels; /* of pixels; channels: 1 (grey) or 3 (RGB) */
    int64_t row_stride, column_stride, channel_stride; /* in bytes; may be negative; 0: no gaps */
    /* Set by the call: CLPIPE_OK, or CLPIPE_DATA or CLPIPE_MEMORY if the picture has no features, with a
     * reason ("truncated") and a sentence. */
    int status;
    char reason[24], message[200];
};

/* Writes the features of `count` pictures, *columns float32 each, equal to those that an ingest stores. A
 * picture without features gets NaN; the call still succeeds. Always sets *columns; if `values` is NULL,
 * does nothing else. Starting takes tenths of a second, so pass many pictures per call. All structs of the
 * array have the same size. The phase of progress is "images". */
int clpipe_features(float *values, uint32_t *columns, struct clpipe *clpipe,
                    struct clpipe_picture *pictures, uint64_t count,
                    const struct clpipe_features *features, const struct clpipe_watch *watch,
                    struct clpipe_error *err);

/* The version of the library, "0.3.0". */
const char *clpipe_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
