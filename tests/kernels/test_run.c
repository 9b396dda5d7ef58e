/* test_run.c: clusterings by one rank and by several ranks in threads, each with a share of the
 * rows, give the same bits. */
#include "runner.h"

#include "cluster_on.h"
#include "kmeans/cluster.h"
#include "kmeans/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS    1700 /* the last block is incomplete */
#define COLUMNS 37   /* as in test_sweep, so that kernels are shared */

static float values[ROWS * COLUMNS], weights[ROWS];
static uint32_t classes[ROWS];

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    memcpy(to, values + first * COLUMNS, count * COLUMNS * sizeof *to);
    return STATUS_OK;
}

static const struct matrix_source source = {.rows = ROWS, .dimension = COLUMNS, .read = read_rows};

/* With fewer distinct rows than clusters, some clusters are empty. */
static void fill(uint32_t distinct)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t random = i * 7 % distinct * 2654435761u + 12345;
        for (uint32_t j = 0; j < COLUMNS; j++) {
            random = random * 1664525u + 1013904223u;
            values[i * COLUMNS + j] = (float)(random >> 8) * 0x1p-20f + (float)(i % distinct % 5);
        }
        weights[i] = (float)(i * 31 % 11) * 0.37f; /* some are 0 */
        classes[i] = i * 13 % 7;
    }
}

static const struct kind {
    const char *name, *method;
    enum cluster_init init;
    uint32_t distinct, k;
    double tol;
    bool weighted;
} kinds[] = {
    {"kmeans++", NULL, INIT_KMEANSPP, ROWS, 13, 0, false},
    {"kmeans++ with weights", NULL, INIT_KMEANSPP, ROWS, 13, 0, true},
    {"kmeans||", NULL, INIT_KMEANS_PARALLEL, ROWS, 20, 1e-3, false},
    {"kmeans|| with weights", NULL, INIT_KMEANS_PARALLEL, ROWS, 20, 0, true},
    {"random", NULL, INIT_RANDOM, ROWS, 9, 0, false},
    {"random with weights", NULL, INIT_RANDOM, ROWS, 9, 0, true},
    {"empty clusters", NULL, INIT_RANDOM, 40, 38, 0, false},
    {"empty clusters with weights", NULL, INIT_RANDOM, 40, 30, 0, true},
    {"mini-batches", "mini-batch", INIT_KMEANSPP, ROWS, 6, 0, false},
};

static void configure(struct cluster_config *config, const struct kind *kind)
{
    fill(kind->distinct);
    cluster_config_default(config);
    config->k = kind->k;
    config->method = kind->method;
    config->init = kind->init;
    config->tol = kind->tol;
    config->weights = kind->weighted ? weights : NULL;
    config->mini_batch = kind->method ? 100 : 0;
    config->max_iter = 12;
    config->n_init = 2;
    config->threads = 2;
}

static void expect_same(const struct cluster_outcome *out, const struct cluster_outcome *one,
                        const char *what)
{
    if (out->rows != ROWS || out->iterations != one->iterations ||
        out->converged != one->converged || out->inertia != one->inertia ||
        memcmp(out->inertia_history, one->inertia_history, one->iterations * sizeof(double)) != 0)
        fail_msg("%s: other iterations", what);
    if (memcmp(out->centroids, one->centroids, one->k * COLUMNS * sizeof(float)) != 0)
        fail_msg("%s: other centroids", what);
    if (memcmp(out->labels, one->labels, ROWS * sizeof *one->labels) != 0 ||
        memcmp(out->distances, one->distances, ROWS * sizeof *one->distances) != 0)
        fail_msg("%s: labels or distances differ", what);
    if (memcmp(out->sizes, one->sizes, one->k * sizeof *one->sizes) != 0 ||
        memcmp(out->nearest, one->nearest, 3 * one->k * sizeof *one->nearest) != 0)
        fail_msg("%s: sizes or nearest rows differ", what);
}

enum kernels { OF_CPUS, TILED, TENSOR };

/* TILED: the kernels for GPUs, which keep sums on the device; TENSOR: also those for tensor
 * cores. */
static void check_kind(struct ocl_context *context, const struct kind *kind, enum kernels kernels)
{
    struct cluster_config config;
    struct cluster_outcome one, out;
    struct error err = ERROR_INIT;
    struct lane_choice choice = {
        .forced = true, .tiled = kernels != OF_CPUS, .tensor = kernels == TENSOR, .ranks = 1};
    configure(&config, kind);
    if (cluster_run_on(&one, context, &source, &config, &choice, &err) != STATUS_OK)
        fail_msg("%s: %s", kind->name, err.sentence);
    for (choice.ranks = 2; choice.ranks <= RUN_RANKS; choice.ranks++) {
        char what[100];
        snprintf(what, sizeof what, "%s, %u ranks%s", kind->name, choice.ranks,
                 kernels == TENSOR  ? ", tensor"
                 : kernels == TILED ? ", tiled"
                                    : "");
        if (cluster_run_on(&out, context, &source, &config, &choice, &err) != STATUS_OK)
            fail_msg("%s: %s", what, err.sentence);
        expect_same(&out, &one, what);
        cluster_outcome_clear(&out);
    }
    cluster_outcome_clear(&one);
}

static struct ocl_devices devices;

/* With Oclgrind 21.10, threads that use a device at the same time sometimes end the process with
 * status 255. */
static void skip_in_simulator(void)
{
    if (strstr(devices.device[0].platform, "Oclgrind"))
        skip();
}

static void ranks_give_the_same_bits(void **state)
{
    skip_in_simulator();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        check_kind(*state, &kinds[i], OF_CPUS);
    check_kind(*state, &kinds[0], TILED);
    check_kind(*state, &kinds[6], TILED);
    check_kind(*state, &kinds[6], TENSOR);
}

static void check_sweep(struct ocl_context *context, bool weighted)
{
    const struct kind kind = {"sweep", NULL, INIT_KMEANSPP, ROWS, 0, 0, weighted};
    const struct cluster_sweep_config range = {3, 9, 3, classes, 7, NULL};
    struct lane_choice choice = {.forced = true, .ranks = 1};
    struct cluster_config config;
    struct cluster_outcome one, out;
    struct cluster_sweep sweep, sweep_one;
    struct error err = ERROR_INIT;
    configure(&config, &kind);
    if (cluster_sweep_run_on(&one, &sweep_one, context, &source, &config, &range, &choice, &err) !=
        STATUS_OK)
        fail_msg("%s", err.sentence);
    choice.ranks = 3;
    if (cluster_sweep_run_on(&out, &sweep, context, &source, &config, &range, &choice, &err) !=
        STATUS_OK)
        fail_msg("%s", err.sentence);
    expect_same(&out, &one, weighted ? "sweep with weights" : "sweep");
    assert_int_equal(sweep.suggested, sweep_one.suggested);
    for (uint32_t i = 0; i < sweep.count; i++) {
        const struct cluster_sweep_value *a = &sweep.values[i], *b = &sweep_one.values[i];
        assert_memory_equal(&a->measures, &b->measures, sizeof a->measures);
        assert_memory_equal(&a->agreement, &b->agreement, sizeof a->agreement);
    }
    cluster_outcome_clear(&one);
    cluster_outcome_clear(&out);
    cluster_sweep_clear(&sweep);
    cluster_sweep_clear(&sweep_one);
}

static void ranks_give_the_same_measures(void **state)
{
    skip_in_simulator();
    check_sweep(*state, false);
    check_sweep(*state, true);
}

/* An error when reading the rows of one rank ends the others. */
static void error_of_one_rank_ends_all(void **state)
{
    skip_in_simulator();
    struct lane_choice choice = {.forced = true, .ranks = 3};
    struct cluster_config config;
    struct cluster_outcome out;
    struct error err = ERROR_INIT;
    configure(&config, &kinds[0]);
    values[(ROWS - 1) * COLUMNS] = __builtin_nanf("");
    assert_int_equal(cluster_run_on(&out, *state, &source, &config, &choice, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "row 1699 "));
}

static int open_device(void **state)
{
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    if (ocl_devices_open(&devices, 2, &err) != STATUS_OK || devices.count == 0 ||
        ocl_context_open(&context, &devices.device[0], NULL, &err) != STATUS_OK)
        return 1;
    *state = context;
    return 0;
}

static int close_device(void **state)
{
    struct ocl_context *context = *state;
    ocl_context_close(&context);
    ocl_devices_close(&devices);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_give_the_same_bits),
    cmocka_unit_test(ranks_give_the_same_measures),
    cmocka_unit_test(error_of_one_rank_ends_all),
};
TEST_GROUP_WITHIN(120, run, open_device, close_device)
