/* test_fetch.c: buffers are copied to the host completely, in pieces and in any number of slices;
 * and results that are computed from more distances than fit into a piece have the defined bits. */
#include "runner.h"

#include "cluster_on.h"
#include "kmeans.h"
#include "kmeans/canonical.h"
#include "kmeans/cluster.h"
#include "ocl/fetch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT   (KMEANS_BLOCK_ROWS * sizeof(double))
#define PIECE  (3 * UNIT)
#define MOST   (9 * PIECE)
#define SLICES 5

static struct ocl_devices devices;

static int open_devices(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    return ocl_devices_open(&devices, 2, &err) != STATUS_OK || devices.count == 0;
}

static int close_devices(void **state)
{
    (void)state;
    ocl_devices_close(&devices);
    return 0;
}

static bool is_oclgrind(const struct ocl_device *device)
{
    return strstr(device->platform, "Oclgrind");
}

static void for_each_device(void (*check)(struct ocl_context *context))
{
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < devices.count; i++) {
        struct ocl_context *context;
        if (!devices.device[i].usable || is_oclgrind(&devices.device[i]))
            continue;
        assert_int_equal(ocl_context_open(&context, &devices.device[i], NULL, &err), STATUS_OK);
        check(context);
        ocl_context_close(&context);
    }
}

/* --- pieces and slices ----------------------------------------------------------------------- */

static unsigned char wanted[MOST + 1];

struct taken {
    unsigned char bytes[MOST + 1];
    size_t last; /* size of the buffer */
    _Atomic int wrong;
    _Atomic int of_number[SLICES]; /* slices with this number that are being processed */
};

static void take(void *context, const struct fetch_slice *slice)
{
    struct taken *taken = context;
    const size_t end = slice->offset + slice->bytes;
    if (slice->number >= SLICES || slice->offset % UNIT != 0 ||
        (end % UNIT != 0 && end != taken->last) || end > taken->last ||
        atomic_fetch_add(&taken->of_number[slice->number], 1) != 0) {
        taken->wrong++;
        return;
    }
    /* Each byte must arrive once. */
    for (size_t i = 0; i < slice->bytes; i++)
        taken->bytes[slice->offset + i] += ((const unsigned char *)slice->values)[i];
    atomic_fetch_sub(&taken->of_number[slice->number], 1);
}

static void check_size(struct fetch *fetch, cl_mem buffer, size_t bytes)
{
    static unsigned char copy[MOST + 1];
    static struct taken taken;
    struct error err = ERROR_INIT;
    memset(copy, 0xa5, sizeof copy);
    assert_int_equal(fetch_copy(fetch, "test", buffer, bytes, copy, &err), STATUS_OK);
    if (memcmp(copy, wanted, bytes) != 0 || copy[bytes] != 0xa5)
        fail_msg("%zu bytes were not copied", bytes);
    for (uint32_t slices = 1; slices <= SLICES; slices++) {
        memset(&taken, 0, sizeof taken);
        taken.last = bytes;
        assert_int_equal(fetch_slices(fetch, "test", buffer, bytes, slices, take, &taken, &err),
                         STATUS_OK);
        if (taken.wrong || memcmp(taken.bytes, wanted, bytes) != 0 || taken.bytes[bytes] != 0)
            fail_msg("%zu bytes in %u slices: %d are wrong", bytes, slices, taken.wrong);
        memset(&taken, 0, sizeof taken);
        taken.last = bytes;
        fetch_slices_of(fetch->lane->workers, wanted, bytes, slices, take, &taken);
        if (taken.wrong || memcmp(taken.bytes, wanted, bytes) != 0 || taken.bytes[bytes] != 0)
            fail_msg("%zu bytes of the host in %u slices", bytes, slices);
    }
}

static void check_fetch(struct ocl_context *context)
{
    static const size_t sizes[] = {
        4,     UNIT - 4,  UNIT,          UNIT + 4,      2 * UNIT + 8, PIECE - 4,
        PIECE, PIECE + 4, 2 * PIECE - 4, 2 * PIECE + 4, PIECE + UNIT, 5 * PIECE + UNIT + 12,
        MOST};
    struct error err = ERROR_INIT;
    for (unsigned threads = 1; threads <= 4; threads += threads == 2 ? 2 : 1) {
        struct workers *workers;
        struct lane lane;
        struct lane_held *held = NULL;
        struct fetch fetch;
        cl_mem buffer = NULL;
        assert_int_equal(workers_open(&workers, threads, &err), STATUS_OK);
        assert_int_equal(lane_open(&lane, context, workers, NULL, NULL, &err), STATUS_OK);
        assert_int_equal(fetch_open(&fetch, &held, &lane, PIECE - 100, &err), STATUS_OK);
        assert_int_equal(fetch.piece_bytes, PIECE);
        assert_int_equal(ocl_buffer(&buffer, context, CL_MEM_READ_WRITE, MOST, NULL, "test", &err),
                         STATUS_OK);
        assert_int_equal(lane_write(&lane, "test", buffer, 0, MOST, wanted, &err), STATUS_OK);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_size(&fetch, buffer, sizes[i]);
        /* The buffer ends before the last piece. */
        static unsigned char more[MOST + PIECE];
        assert_int_equal(fetch_copy(&fetch, "test", buffer, sizeof more, more, &err),
                         STATUS_FAILED);
        assert_int_equal(err.native, CL_INVALID_VALUE);
        err = (struct error)ERROR_INIT;
        ocl_buffer_release(&buffer);
        lane_release(&held);
        lane_close(&lane);
        workers_close(&workers);
    }
}

static void test_slices(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        wanted[i] = (unsigned char)(1 + (i * 2654435761u >> 13) % 251);
    for_each_device(check_fetch);
}

/* --- outcomes of several pieces -------------------------------------------------------------- */

/* More distances than fit into a piece, and not a multiple of a block. */
#define ROWS     300001
#define COLUMNS  2
#define CLUSTERS 5

static float *matrix, *row_weights;

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    memcpy(to, matrix + first * COLUMNS, (size_t)count * COLUMNS * sizeof *to);
    return STATUS_OK;
}

static const struct matrix_source source = {.rows = ROWS, .dimension = COLUMNS, .read = read_rows};

static const struct path {
    const char *name;
    struct lane_choice choice;
    uint64_t device_memory; /* less than all rows need, so that they are streamed */
    unsigned threads;
    bool weighted; /* also tested with weights */
} paths[] = {
    {"copied", {true, false, false, true, false, false, 1}, 0, 3, true},
    {"streamed", {true, false, false, true, false, false, 1}, 30 << 20, 1, false},
    {"exact on the host", {true, false, true, false, false, false, 1}, 0, 2, true},
    {"tiled", {true, true, false, false, false, false, 1}, 0, 2, false},
    {"two devices", {true, false, false, false, false, false, 2}, 0, 3, false},
};

/* Checks distances, inertia and nearest rows, computed from labels and centroids as
 * docs/clustering.md defines them. */
static void check_outcome(const struct cluster_outcome *out, const float *weights, const char *what)
{
    int64_t nearest[CLUSTERS][3];
    double least[CLUSTERS][3], inertia = 0;
    uint64_t sizes[CLUSTERS] = {0};
    memset(nearest, 0xff, sizeof nearest);
    for (uint64_t begin = 0; begin < ROWS; begin += KMEANS_BLOCK_ROWS) {
        const uint32_t rows =
            ROWS - begin < KMEANS_BLOCK_ROWS ? (uint32_t)(ROWS - begin) : KMEANS_BLOCK_ROWS;
        double block[KMEANS_BLOCK_ROWS];
        for (uint32_t i = 0; i < rows; i++) {
            const int64_t row = (int64_t)(begin + i);
            const int32_t label = out->labels[row];
            float x[KMEANS_LANES] = {0}, c[KMEANS_LANES] = {0};
            memcpy(x, matrix + row * COLUMNS, COLUMNS * sizeof *x);
            memcpy(c, out->centroids + label * COLUMNS, COLUMNS * sizeof *c);
            const double distance = canonical_distance(x, c, KMEANS_LANES);
            if (out->distances[row] != (float)distance)
                fail_msg("%s: row %lld is at %g, not %g", what, (long long)row,
                         (double)out->distances[row], distance);
            block[i] = distance * (weights ? (double)weights[row] : 1);
            sizes[label]++;
            int at = 3;
            while (at > 0 && (nearest[label][at - 1] < 0 || distance < least[label][at - 1]))
                at--;
            for (int t = 2; t > at; t--) {
                nearest[label][t] = nearest[label][t - 1];
                least[label][t] = least[label][t - 1];
            }
            if (at < 3) {
                nearest[label][at] = row;
                least[label][at] = distance;
            }
        }
        inertia += canonical_block_sum(block, rows);
    }
    if (memcmp(&inertia, &out->inertia, sizeof inertia) != 0)
        fail_msg("%s: inertia %.17g, not %.17g", what, out->inertia, inertia);
    if (memcmp(nearest, out->nearest, sizeof nearest) != 0)
        fail_msg("%s: other nearest rows", what);
    if (memcmp(sizes, out->sizes, sizeof sizes) != 0)
        fail_msg("%s: other sizes", what);
}

static void run_paths(struct ocl_context *context, const float *weights)
{
    struct cluster_outcome first = {0};
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        if (weights && !paths[p].weighted)
            continue;
        struct cluster_config config;
        struct cluster_outcome out;
        struct error err = ERROR_INIT;
        cluster_config_default(&config);
        config.k = CLUSTERS;
        config.init = INIT_RANDOM;
        config.seed = 3;
        config.max_iter = 0;
        config.weights = weights;
        config.device_memory = paths[p].device_memory;
        config.threads = paths[p].threads;
        if (cluster_run_on(&out, context, &source, &config, &paths[p].choice, &err) != STATUS_OK)
            fail_msg("%s: %s", paths[p].name, err.sentence);
        check_outcome(&out, weights, paths[p].name);
        if (first.labels &&
            (memcmp(out.labels, first.labels, ROWS * sizeof *out.labels) != 0 ||
             memcmp(out.distances, first.distances, ROWS * sizeof *out.distances) != 0))
            fail_msg("%s differs from %s", paths[p].name, paths[0].name);
        if (!first.labels)
            first = out;
        else
            cluster_outcome_clear(&out);
    }
    cluster_outcome_clear(&first);
}

static void check_large(struct ocl_context *context)
{
    run_paths(context, NULL);
    run_paths(context, row_weights);
}

static void test_large(void **state)
{
    (void)state;
    uint32_t random = 12345;
    matrix = malloc(sizeof *matrix * ROWS * COLUMNS);
    row_weights = malloc(sizeof *row_weights * ROWS);
    assert_non_null(matrix);
    assert_non_null(row_weights);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
        random = random * 1664525u + 1013904223u;
        matrix[i] = (float)(random >> 20); /* many rows are equal */
    }
    for (size_t i = 0; i < ROWS; i++)
        row_weights[i] = (float)(i % 5) / 4; /* the largest is 1, so none is rounded */
    for_each_device(check_large);
    free(matrix);
    free(row_weights);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices),
                                          cmocka_unit_test(test_large)};
TEST_GROUP_WITHIN(120, fetch, open_devices, close_devices)
