/* test_method.c: a new k-means method needs only one file and one table row. This file has a method
 * whose table replaces that of methods.c. */
#include "runner.h"

#include "kmeans/cluster.h"
#include "kmeans/fit.h"
#include "kmeans/run.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the method: Lloyd's with a fixed number of steps ---------------------------------------- */

#define STEPS 3

static enum status steps_open(void **out, struct fit *fit, uint32_t first, struct error *err)
{
    assert_int_equal(first, 0);
    *out = fit;
    return fit_forget_labels(fit, err);
}

static enum status steps_iterate(struct method_step *step, void *method, uint32_t iteration,
                                 struct error *err)
{
    double shift;
    bool relocated;
    enum status status = fit_assign(method, true, &step->moved, err);
    if (status == STATUS_OK)
        status = fit_update(method, &step->inertia, &shift, &relocated, err);
    step->converged = iteration + 1 == STEPS;
    return status;
}

static void steps_close(void **method)
{
    *method = NULL;
}

static const struct kmeans_method steps_method = {
    .name = "steps",
    .labels_rows = true,
    .open = steps_open,
    .iterate = steps_iterate,
    .close = steps_close,
};

const struct kmeans_method *const kmeans_methods[] = {&lloyd_method, &steps_method, NULL};

/* --- tests ----------------------------------------------------------------------------------- */

#define ROWS    600
#define COLUMNS 5
#define K       7

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    for (uint64_t i = 0; i < count * COLUMNS; i++)
        to[i] = (float)((first * COLUMNS + i) * 2654435761u % 1000);
    return STATUS_OK;
}

static void run(struct cluster_outcome *out, struct ocl_context *context, const char *method,
                uint32_t max_iter)
{
    const struct matrix_source source = {.rows = ROWS, .dimension = COLUMNS, .read = read_rows};
    const struct cluster_devices devices = {&context, 1};
    struct cluster_config config;
    struct error err = ERROR_INIT;
    cluster_config_default(&config);
    config.k = K;
    config.method = method;
    config.max_iter = max_iter;
    if (cluster_run(out, &devices, &source, &config, &err) != STATUS_OK)
        fail_msg("%s: %s", method, err.sentence);
}

/* The same number of Lloyd's iterations gives the same bits. */
static void moves_three_times(void **state)
{
    struct cluster_outcome steps, lloyd;
    run(&steps, *state, "steps", 100);
    run(&lloyd, *state, "lloyd", STEPS);
    assert_int_equal(steps.iterations, STEPS);
    assert_true(steps.converged);
    assert_false(lloyd.converged);
    assert_memory_equal(steps.centroids, lloyd.centroids, K * COLUMNS * sizeof(float));
    assert_memory_equal(steps.labels, lloyd.labels, ROWS * sizeof(int32_t));
    assert_memory_equal(steps.inertia_history, lloyd.inertia_history, STEPS * sizeof(double));
    cluster_outcome_clear(&steps);
    cluster_outcome_clear(&lloyd);
}

static void method_of_a_name(void **state)
{
    (void)state;
    struct cluster_config config;
    cluster_config_default(&config);
    assert_ptr_equal(method_of(&config), &lloyd_method);
    config.method = "steps";
    assert_ptr_equal(method_of(&config), &steps_method);
    config.method = "mini-batch";
    assert_null(method_of(&config));
}

static void unknown_method_is_misuse(void **state)
{
    const struct matrix_source source = {.rows = ROWS, .dimension = COLUMNS, .read = read_rows};
    struct ocl_context *context = *state;
    const struct cluster_devices devices = {&context, 1};
    struct cluster_config config;
    struct cluster_outcome out;
    struct error err = ERROR_INIT;
    cluster_config_default(&config);
    config.method = "mini-batch"; /* not in this table */
    assert_int_equal(cluster_run(&out, &devices, &source, &config, &err), STATUS_USAGE);
}

static struct ocl_devices devices;

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    if (ocl_devices_open(&devices, 2, &err) != STATUS_OK || devices.count == 0)
        return -1;
    return ocl_context_open((struct ocl_context **)state, &devices.device[0], NULL, &err) ==
                   STATUS_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    ocl_context_close((struct ocl_context **)state);
    ocl_devices_close(&devices);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(moves_three_times),
    cmocka_unit_test(method_of_a_name),
    cmocka_unit_test(unknown_method_is_misuse),
};
TEST_GROUP(method, setup, teardown)
