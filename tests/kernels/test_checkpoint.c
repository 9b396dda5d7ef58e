/* test_checkpoint.c: runs that are interrupted repeatedly, within and between passes, give the same
 * bits as an uninterrupted run on all paths. */
#include "runner.h"

#include "base/log.h"
#include "cluster_on.h"
#include "kmeans/cluster.h"
#include "kmeans/sweep.h"
#include "test_devices.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS      700
#define DIMENSION 37
/* Each interruption comes later than the one before, so that all cases finish. */
#define ATTEMPTS_MAX 200

static float rows[ROWS * DIMENSION], weights[ROWS];
static char path_of_state[] = "/tmp/test_checkpoint_XXXXXX";
static struct stop stop;
static atomic_int armed, left;

/* Called for each event: a read, a seed or an iteration. */
static void count_down(void)
{
    if (atomic_load(&armed) && atomic_fetch_sub(&left, 1) == 1)
        stop_request(&stop, STOP_SIGNAL);
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    memcpy(to, rows + first * DIMENSION, (size_t)count * DIMENSION * sizeof *to);
    count_down();
    return STATUS_OK;
}

static void tell_phase(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    /* Interruptions start only after loading. */
    if (strcmp(phase, "rows read") != 0)
        atomic_store(&armed, 1);
    count_down();
}

static void tell_progress(void *context, uint32_t iteration, double inertia, uint64_t moved,
                          double pruned, double seconds)
{
    (void)context;
    (void)iteration;
    (void)inertia;
    (void)moved;
    (void)pruned;
    (void)seconds;
    atomic_store(&armed, 1);
    count_down();
}

static enum status digest_rows(void *context, char hex[65], struct error *err)
{
    (void)err;
    snprintf(hex, 65, "%s", (const char *)context);
    return STATUS_OK;
}

static const struct matrix_source source = {
    .rows = ROWS, .dimension = DIMENSION, .read = read_rows};

/* Seven overlapping groups, and some rows that occur twice. */
static void fill_rows(void)
{
    uint32_t random = 4321;
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t j = 0; j < DIMENSION; j++) {
            random = random * 1664525u + 1013904223u;
            rows[i * DIMENSION + j] =
                1 + (float)((i % 7) * ((j + i % 5) % 3)) + (float)(random >> 8) / (float)(1 << 21);
        }
    memcpy(rows + 100 * DIMENSION, rows, 50 * DIMENSION * sizeof *rows);
    for (uint32_t i = 0; i < ROWS; i++)
        weights[i] = i % 11 ? (float)(i % 7 + 1) / 3 : 0;
}

static const struct path {
    const char *name;
    struct lane_choice choice;
    uint64_t memory; /* if small, the rows are streamed */
    bool brief;      /* also tested in brief mode */
} paths[] = {
    {"resident", {true, false, false, false, false, false, 1}, 256 << 20, true},
    {"streamed", {true, false, false, true, false, false, 1}, 80000, true},
    {"exact on the host, streamed", {true, false, true, true, false, false, 1}, 40000, false},
    {"tiled", {true, true, false, false, false, false, 1}, 256 << 20, false},
    {"tensor cores", {true, true, false, false, true, false, 1}, 256 << 20, false},
    {"two devices, tiled", {true, true, false, false, false, false, 2}, 256 << 20, true},
};
#define PATHS (sizeof paths / sizeof paths[0])

static const struct kind {
    const char *name;
    enum cluster_init init;
    enum cluster_metric metric;
    uint32_t k, n_init, max_iter, mini_batch;
    double tol;
    bool sweep, weighted;
} kinds[] = {
    {"restarts", INIT_KMEANSPP, METRIC_EUCLIDEAN, 24, 2, 100, 0, 0, false, false},
    {"k-means||, cosine", INIT_KMEANS_PARALLEL, METRIC_COSINE, 9, 2, 100, 0, 1e-3, false, false},
    /* Some clusters are empty at first, and rows are relocated to them. */
    {"given", INIT_GIVEN, METRIC_EUCLIDEAN, 12, 1, 30, 0, 0, false, false},
    {"first centroids only", INIT_RANDOM, METRIC_HELLINGER, 5, 2, 0, 0, 0, false, false},
    {"mini-batches", INIT_KMEANSPP, METRIC_EUCLIDEAN, 8, 2, 15, 150, 0, false, false},
    {"sweep", INIT_KMEANSPP, METRIC_EUCLIDEAN, 9, 2, 100, 0, 0, true, false},
    {"sweep, weights", INIT_KMEANSPP, METRIC_EUCLIDEAN, 9, 1, 100, 0, 0, true, true},
    {"weights", INIT_KMEANSPP, METRIC_EUCLIDEAN, 9, 1, 100, 0, 0, false, true},
    {"weights, given", INIT_GIVEN, METRIC_EUCLIDEAN, 12, 1, 30, 0, 0, false, true},
    {"weights, k-means||", INIT_KMEANS_PARALLEL, METRIC_EUCLIDEAN, 9, 1, 100, 0, 0, false, true},
    {"weights, mini-batches", INIT_RANDOM, METRIC_EUCLIDEAN, 8, 2, 15, 150, 0, false, true},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct found {
    struct cluster_outcome best;
    struct cluster_sweep sweep;
};

static enum status run(struct found *found, struct ocl_context *context, const struct kind *kind,
                       const struct path *path, const struct checkpoint_config *checkpoint,
                       struct error *err)
{
    static const struct cluster_sweep_config values = {.first = 1, .last = 9, .step = 2};
    struct cluster_config config;
    cluster_config_default(&config);
    config.k = kind->k;
    config.init = kind->init;
    config.initial = rows + 95 * DIMENSION;
    config.metric = kind->metric;
    config.weights = kind->weighted ? weights : NULL;
    config.n_init = kind->n_init;
    config.max_iter = kind->max_iter;
    config.method = kind->mini_batch ? "mini-batch" : NULL;
    config.mini_batch = kind->mini_batch;
    config.tol = kind->tol;
    config.memory = config.device_memory = path->memory;
    config.threads = 2;
    config.watch = (struct watch){&stop, tell_phase, NULL};
    config.iteration = tell_progress;
    config.checkpoint = checkpoint;
    *found = (struct found){0};
    atomic_store(&stop.cause, STOP_NONE);
    atomic_store(&armed, 0);
    if (kind->sweep)
        return cluster_sweep_run_on(&found->best, &found->sweep, context, &source, &config, &values,
                                    &path->choice, err);
    return cluster_run_on(&found->best, context, &source, &config, &path->choice, err);
}

static void clear(struct found *found)
{
    cluster_outcome_clear(&found->best);
    cluster_sweep_clear(&found->sweep);
}

static void compare(const struct found *a, const struct found *b, const struct kind *kind,
                    const struct path *path)
{
    const struct cluster_outcome *x = &a->best, *y = &b->best;
    const char *what = x->k != y->k                                               ? "k"
                       : x->iterations != y->iterations                           ? "iterations"
                       : x->converged != y->converged                             ? "converged"
                       : memcmp(&x->inertia, &y->inertia, sizeof x->inertia) != 0 ? "inertia"
                                                                                  : NULL;
    const struct {
        const char *name;
        const void *x, *y;
        size_t bytes;
    } arrays[] = {
        {"centroids", x->centroids, y->centroids, x->k * DIMENSION * sizeof *x->centroids},
        {"labels", x->labels, y->labels, ROWS * sizeof *x->labels},
        {"distances", x->distances, y->distances, ROWS * sizeof *x->distances},
        {"sizes", x->sizes, y->sizes, x->k * sizeof *x->sizes},
        {"nearest", x->nearest, y->nearest, x->k * 3 * sizeof *x->nearest},
        {"history", x->inertia_history, y->inertia_history,
         x->iterations * sizeof *x->inertia_history},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0] && !what; i++)
        if (arrays[i].bytes > 0 && memcmp(arrays[i].x, arrays[i].y, arrays[i].bytes) != 0)
            what = arrays[i].name;
    if (what)
        fail_msg("%s, %s: other %s", kind->name, path->name, what);
    assert_int_equal(a->sweep.count, b->sweep.count);
    assert_int_equal(a->sweep.suggested, b->sweep.suggested);
    assert_string_equal(a->sweep.reason, b->sweep.reason);
    for (uint32_t i = 0; i < a->sweep.count; i++)
        if (memcmp(&a->sweep.values[i], &b->sweep.values[i], sizeof a->sweep.values[i]) != 0)
            fail_msg("%s: k = %u differs", path->name, a->sweep.values[i].k);
}

/* Returns the number of iterations that the last run resumed from. */
static uint64_t check(struct ocl_context *context, const struct kind *kind, const struct path *path,
                      const struct found *wanted)
{
    const struct checkpoint_config checkpoint = {.path = path_of_state,
                                                 .seconds = 1e9,
                                                 .parameters = kind->name,
                                                 .rows = digest_rows,
                                                 .context = "rows"};
    struct found found;
    struct error err = ERROR_INIT;
    enum status status = STATUS_INTERRUPTED;
    unlink(path_of_state);
    for (int attempt = 0; attempt < ATTEMPTS_MAX && status == STATUS_INTERRUPTED; attempt++) {
        atomic_store(&left, 2 + 2 * attempt * attempt);
        status = run(&found, context, kind, path, &checkpoint, &err);
        if (status == STATUS_INTERRUPTED &&
            !strstr(err.sentence, "the same command again to resume"))
            fail_msg("%s, %s: attempt %d: %s", kind->name, path->name, attempt, err.sentence);
    }
    if (status != STATUS_OK)
        fail_msg("%s, %s: %s", kind->name, path->name, err.sentence);
    compare(&found, wanted, kind, path);
    const uint64_t resumed = found.best.iterations_resumed;
    clear(&found);
    return resumed;
}

static void test_interrupted(void **state)
{
    struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    for (unsigned d = 0; d < devices->count; d++) {
        struct ocl_context *context;
        if (!devices->device[d].usable || strstr(devices->device[d].platform, "Oclgrind"))
            continue;
        assert_int_equal(ocl_context_open(&context, &devices->device[d], NULL, &err), STATUS_OK);
        for (size_t i = 0; i < KINDS; i++) {
            struct found wanted;
            atomic_store(&left, INT32_MAX);
            assert_int_equal(run(&wanted, context, &kinds[i], &paths[0], NULL, &err), STATUS_OK);
            uint64_t resumed = 0;
            for (size_t p = 0; p < PATHS; p++)
                if (paths[p].brief || !test_brief())
                    resumed += check(context, &kinds[i], &paths[p], &wanted);
            clear(&wanted);
            if (kinds[i].max_iter > 0 && resumed == 0)
                fail_msg("%s: no iteration was resumed", kinds[i].name);
        }
        ocl_context_close(&context);
    }
}

/* Leaves the checkpoint of an interrupted run. */
static void interrupt(struct ocl_context *context, const struct checkpoint_config *checkpoint)
{
    struct found found;
    struct error err = ERROR_INIT;
    atomic_store(&left, 50);
    assert_int_equal(run(&found, context, &kinds[0], &paths[0], checkpoint, &err),
                     STATUS_INTERRUPTED);
}

static uint64_t resumed_by(struct ocl_context *context, const struct checkpoint_config *checkpoint)
{
    struct found found;
    struct error err = ERROR_INIT;
    atomic_store(&left, INT32_MAX);
    assert_int_equal(run(&found, context, &kinds[0], &paths[0], checkpoint, &err), STATUS_OK);
    const uint64_t resumed = found.best.iterations_resumed;
    clear(&found);
    return resumed;
}

/* A checkpoint is ignored if it has other rows or options, is truncated or has a wrong byte. */
static void test_stale(void **state)
{
    struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    struct ocl_context *context = NULL;
    for (unsigned d = 0; d < devices->count && !context; d++)
        if (devices->device[d].usable && !strstr(devices->device[d].platform, "Oclgrind"))
            assert_int_equal(ocl_context_open(&context, &devices->device[d], NULL, &err),
                             STATUS_OK);
    if (!context)
        return;
    const struct checkpoint_config fits = {path_of_state, 1e9, "p", digest_rows, "rows", NULL};
    const struct checkpoint_config other_rows = {path_of_state, 1e9,      "p",
                                                 digest_rows,   "others", NULL};
    const struct checkpoint_config other_options = {path_of_state, 1e9,    "q",
                                                    digest_rows,   "rows", NULL};
    interrupt(context, &fits);
    assert_true(resumed_by(context, &fits) > 0);
    assert_int_equal(resumed_by(context, &other_rows), 0);
    assert_int_equal(resumed_by(context, &other_options), 0);
    assert_int_equal(resumed_by(context, NULL), 0);
    struct stat st;
    assert_int_equal(stat(path_of_state, &st), 0);
    FILE *file = fopen(path_of_state, "r+");
    assert_non_null(file);
    fseek(file, (long)st.st_size / 2, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 1, file);
    fclose(file);
    assert_int_equal(resumed_by(context, &fits), 0);
    interrupt(context, &fits);
    assert_true(resumed_by(context, &fits) > 0);
    assert_int_equal(truncate(path_of_state, st.st_size - 1), 0);
    assert_int_equal(resumed_by(context, &fits), 0);
    assert_int_equal(truncate(path_of_state, 3), 0);
    assert_int_equal(resumed_by(context, &fits), 0);
    ocl_context_close(&context);
}

static int setup(void **state)
{
    const int file = mkstemp(path_of_state);
    if (file < 0)
        return -1;
    close(file);
    fill_rows();
    log_set_level(LOG_ERROR);
    return test_devices_open(state);
}

static int teardown(void **state)
{
    unlink(path_of_state);
    return test_devices_close(state);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupted),
                                          cmocka_unit_test(test_stale)};
TEST_GROUP_WITHIN(120, checkpoint, setup, teardown)
