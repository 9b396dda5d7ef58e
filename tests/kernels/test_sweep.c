/* test_sweep.c: a sweep over k and its measures have the same bits on all paths, with and without
 * weights, and each k gives the result of cluster_run. */
#include "runner.h"

#include "cluster_on.h"
#include "kmeans/cluster.h"
#include "kmeans/sweep.h"
#include "test_devices.h"

#include <stdio.h>
#include <string.h>

/* More rows than a block, but not a multiple of it; 37 columns are padded. */
#define ROWS      700
#define DIMENSION 37

static float rows[ROWS * DIMENSION], row_weights[ROWS];

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    memcpy(to, rows + first * DIMENSION, (size_t)count * DIMENSION * sizeof *to);
    return STATUS_OK;
}

static const struct matrix_source source = {
    .rows = ROWS, .dimension = DIMENSION, .read = read_rows};

/* Five overlapping groups, and some rows that occur twice. */
static void fill_rows(void)
{
    uint32_t random = 12345;
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t j = 0; j < DIMENSION; j++) {
            random = random * 1664525u + 1013904223u;
            rows[i * DIMENSION + j] =
                (float)((i % 5) * ((j + i % 5) % 3)) + (float)(random >> 8) / (float)(1 << 22);
        }
    memcpy(rows + 100 * DIMENSION, rows, 50 * DIMENSION * sizeof *rows);
    for (uint32_t i = 0; i < ROWS; i++)
        row_weights[i] = i % 13 ? (float)(i % 7) / 3 : 0;
}

static const struct path {
    const char *name;
    struct lane_choice choice;
    uint64_t memory; /* if small, the rows are streamed */
    unsigned threads;
} paths[] = {
    {"resident", {true, false, false, false, false, false, 1}, 256 << 20, 2},
    {"streamed", {true, false, false, true, false, false, 1}, 40000, 1},
    {"exact on the host", {true, false, true, false, false, false, 1}, 256 << 20, 3},
    {"exact on the host, streamed", {true, false, true, true, false, false, 1}, 40000, 2},
    {"tiled", {true, true, false, false, false, false, 1}, 256 << 20, 2},
    {"tensor cores", {true, true, false, false, true, false, 1}, 256 << 20, 2},
    {"two devices", {true, false, true, false, false, false, 2}, 256 << 20, 2},
};
#define PATHS (sizeof paths / sizeof paths[0])

static const struct cluster_sweep_config values = {.first = 1, .last = 9, .step = 2};

static void run_path(struct cluster_outcome *out, struct cluster_sweep *sweep,
                     struct ocl_context *context, const struct path *path, const float *weights)
{
    struct cluster_config config;
    struct error err = ERROR_INIT;
    cluster_config_default(&config);
    config.memory = config.device_memory = path->memory;
    config.threads = path->threads;
    config.n_init = 2;
    config.weights = weights;
    if (cluster_sweep_run_on(out, sweep, context, &source, &config, &values, &path->choice, &err) !=
        STATUS_OK)
        fail_msg("%s: %s", path->name, err.sentence);
}

static bool same_value(const struct cluster_sweep_value *a, const struct cluster_sweep_value *b)
{
    return a->k == b->k && a->iterations == b->iterations && a->converged == b->converged &&
           memcmp(&a->inertia, &b->inertia, sizeof a->inertia) == 0 &&
           memcmp(&a->measures, &b->measures, sizeof a->measures) == 0;
}

static void check_alone(struct ocl_context *context, const struct cluster_sweep *sweep,
                        const struct cluster_outcome *best, const float *weights)
{
    for (uint32_t i = 0; i < sweep->count; i++) {
        struct cluster_config config;
        struct cluster_outcome alone;
        struct error err = ERROR_INIT;
        cluster_config_default(&config);
        config.k = sweep->values[i].k;
        config.n_init = 2;
        config.weights = weights;
        const struct cluster_devices device = {&context, 1};
        assert_int_equal(cluster_run(&alone, &device, &source, &config, &err), STATUS_OK);
        assert_memory_equal(&alone.inertia, &sweep->values[i].inertia, sizeof alone.inertia);
        assert_int_equal(alone.iterations, sweep->values[i].iterations);
        if (i == sweep->suggested) {
            assert_int_equal(best->k, alone.k);
            assert_memory_equal(alone.labels, best->labels, ROWS * sizeof *alone.labels);
            assert_memory_equal(alone.centroids, best->centroids,
                                alone.k * DIMENSION * sizeof *alone.centroids);
        }
        cluster_outcome_clear(&alone);
    }
}

static void try_paths(struct ocl_devices *devices, const float *weights)
{
    struct cluster_outcome first = {0};
    struct cluster_sweep wanted = {0};
    struct error err = ERROR_INIT;
    for (unsigned d = 0; d < devices->count; d++) {
        struct ocl_context *context;
        /* Oclgrind would take minutes, and test_kmeans has already run most kernels there. */
        if (!devices->device[d].usable || strstr(devices->device[d].platform, "Oclgrind"))
            continue;
        assert_int_equal(ocl_context_open(&context, &devices->device[d], NULL, &err), STATUS_OK);
        /* In brief mode, only two paths are tested with weights. */
        for (size_t p = 0; p < (test_brief() && weights ? 2 : PATHS); p++) {
            struct cluster_outcome out;
            struct cluster_sweep sweep;
            run_path(&out, &sweep, context, &paths[p], weights);
            if (!wanted.values) {
                first = out;
                wanted = sweep;
                check_alone(context, &wanted, &first, weights);
                continue;
            }
            assert_int_equal(sweep.suggested, wanted.suggested);
            assert_string_equal(sweep.reason, wanted.reason);
            for (uint32_t i = 0; i < sweep.count; i++)
                if (!same_value(&sweep.values[i], &wanted.values[i]))
                    fail_msg("%s: k = %u differs", paths[p].name, sweep.values[i].k);
            assert_memory_equal(out.labels, first.labels, ROWS * sizeof *out.labels);
            cluster_outcome_clear(&out);
            cluster_sweep_clear(&sweep);
        }
        ocl_context_close(&context);
    }
    cluster_outcome_clear(&first);
    cluster_sweep_clear(&wanted);
}

static void test_paths(void **state)
{
    try_paths(*state, NULL);
    try_paths(*state, row_weights);
}

static void test_agreement(void **state)
{
    (void)state;
    /* Classes of three rows and one row, clusters {0, 0, 1, 1}; computed by hand. */
    const int32_t labels[] = {0, 0, 1, 1};
    const uint32_t classes[] = {0, 0, 0, 1};
    struct cluster_agreement found;
    struct error err = ERROR_INIT;
    assert_int_equal(cluster_agree(&found, labels, 2, classes, 2, 4, &err), STATUS_OK);
    assert_true(found.purity == 0.75);
    assert_float_equal(found.ari, 0, 1e-12);
    assert_float_equal(found.nmi, 0.34371101848545077, 1e-9);
    /* With a single cluster and a single class, agreement is perfect. */
    const uint32_t one[] = {0, 0, 0, 0};
    const int32_t same[] = {0, 0, 0, 0};
    assert_int_equal(cluster_agree(&found, same, 1, one, 1, 4, &err), STATUS_OK);
    assert_true(found.purity == 1 && found.nmi == 1 && found.ari == 1);
}

static int setup(void **state)
{
    fill_rows();
    return test_devices_open(state);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths),
                                          cmocka_unit_test(test_agreement)};
TEST_GROUP_WITHIN(120, sweep, setup, test_devices_close)
