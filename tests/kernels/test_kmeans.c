/* test_kmeans.c: clustering gives the bits of the reference on all devices and code paths. Run it
 * under Oclgrind, too, where it uses less data. */
#include "runner.h"

#include "cluster_on.h"
#include "kmeans/seed.h"
#include "test_kmeans_reference.h"

#include <stdio.h>
#include <unistd.h>

static struct ocl_devices devices;

static bool is_oclgrind(const struct ocl_device *device)
{
    return strstr(device->platform, "Oclgrind") != NULL;
}

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

/* The code paths, all of which must give the same bits. */
static const struct path {
    const char *name;
    struct lane_choice choice;
    uint64_t memory; /* if small, the rows are streamed */
    unsigned threads;
    bool slow; /* not tested under Oclgrind */
} paths[] = {
    {"resident", {true, false, false, false, false, false, 1}, 256 << 20, 2, false},
    {"pruned in any way", {true, false, false, false, false, true, 1}, 256 << 20, 2, false},
    {"streamed", {true, false, false, false, false, true, 1}, 40000, 3, false},
    {"copied", {true, false, false, true, false, true, 1}, 256 << 20, 1, true},
    {"copied and streamed", {true, false, false, true, false, false, 1}, 40000, 2, true},
    {"exact on the host", {true, false, true, false, false, true, 1}, 256 << 20, 2, true},
    {"exact on the host, streamed", {true, false, true, true, false, false, 1}, 40000, 1, true},
    {"tiled", {true, true, false, false, false, false, 1}, 256 << 20, 2, true},
    {"tiled, streamed, exact on the host",
     {true, true, true, false, false, true, 1},
     40000,
     2,
     true},
    {"tensor cores", {true, true, false, false, true, false, 1}, 256 << 20, 2, true},
    {"tiled, pruned in any way", {true, true, false, false, false, true, 1}, 256 << 20, 2, true},
    {"tensor cores, pruned in any way",
     {true, true, false, false, true, true, 1},
     256 << 20,
     2,
     true},
    {"three devices", {true, false, false, false, false, true, 3}, 256 << 20, 2, true},
    {"two devices, streamed", {true, false, true, true, false, false, 2}, 40000, 1, true},
    {"two devices, tiled", {true, true, false, false, true, true, 2}, 256 << 20, 2, true},
};

static void compare(const struct cluster_outcome *out, const struct reference *ref,
                    const struct matrix *m, uint32_t k, const char *what)
{
    for (uint32_t i = 0; i < m->n; i++) {
        if (out->labels[i] != ref->labels[i])
            fail_msg("%s: row %u has label %d, not %d", what, i, out->labels[i], ref->labels[i]);
        float distance = (float)ref->distances[i];
        if (memcmp(&out->distances[i], &distance, sizeof distance) != 0)
            fail_msg("%s: row %u is at %.9g, not %.9g", what, i, (double)out->distances[i],
                     (double)distance);
    }
    if (memcmp(out->centroids, ref->c, (size_t)k * m->d * sizeof *ref->c) != 0)
        fail_msg("%s: the centroids differ", what);
    if (out->iterations != ref->iterations || out->converged != ref->converged)
        fail_msg("%s: %u iterations (converged %d), not %u (%d)", what, out->iterations,
                 out->converged, ref->iterations, ref->converged);
    if (memcmp(&out->inertia, &ref->inertia, sizeof out->inertia) != 0)
        fail_msg("%s: inertia %.17g, not %.17g", what, out->inertia, ref->inertia);
    for (uint32_t l = 0; l < k; l++)
        if (out->sizes[l] != ref_count(ref->labels, m->n, l) || out->sizes[l] == 0)
            fail_msg("%s: cluster %u has %llu rows, not %u", what, l,
                     (unsigned long long)out->sizes[l], ref_count(ref->labels, m->n, l));
}

/* Checks that nearest[] has each cluster's own rows, ordered by distance and then by row. */
static void check_nearest(const struct cluster_outcome *out, const struct reference *ref,
                          const struct matrix *m, uint32_t k, const char *what)
{
    for (uint32_t l = 0; l < k; l++) {
        int64_t taken[3] = {-1, -1, -1};
        for (int t = 0; t < 3; t++) {
            for (uint32_t i = 0; i < m->n; i++)
                if (ref->labels[i] == (int32_t)l && i != taken[0] && i != taken[1] &&
                    (taken[t] < 0 || ref->distances[i] < ref->distances[taken[t]]))
                    taken[t] = i;
            if (out->nearest[l * 3 + (uint32_t)t] != taken[t])
                fail_msg("%s: cluster %u: nearest row %d is %lld, not %lld", what, l, t,
                         (long long)out->nearest[l * 3 + (uint32_t)t], (long long)taken[t]);
        }
    }
}

struct shape {
    uint32_t n, d, k, max_iter;
};

static void run_shape(struct ocl_context *context, const struct shape *shape, enum fill fill,
                      const struct path *path, const struct matrix *m, const float *initial,
                      const struct reference *ref)
{
    struct matrix copy = *m;
    struct matrix_source source = matrix_source_of(&copy);
    struct cluster_config config;
    struct cluster_outcome out;
    struct error err = ERROR_INIT;
    char what[200];
    cluster_config_default(&config);
    config.k = shape->k;
    config.init = INIT_GIVEN;
    config.initial = initial;
    config.max_iter = shape->max_iter;
    config.memory = path->memory;
    config.threads = path->threads;
    snprintf(what, sizeof what, "%s, %s, %u x %u, k %u", path->name, fill_names[fill], shape->n,
             shape->d, shape->k);
    enum status status = cluster_run_on(&out, context, &source, &config, &path->choice, &err);
    if (status != STATUS_OK)
        fail_msg("%s: %s", what, err.sentence);
    compare(&out, ref, m, shape->k, what);
    check_nearest(&out, ref, m, shape->k, what);
    cluster_outcome_clear(&out);
}

static void check_shape(struct ocl_context *context, const struct shape *shape, enum fill fill,
                        bool fewer)
{
    const size_t values = (size_t)shape->n * shape->d, centroids = (size_t)shape->k * shape->d;
    struct matrix m = {shape->n, shape->d, malloc(values * sizeof(float))};
    float *initial = malloc(centroids * sizeof *initial);
    struct reference ref = {malloc(centroids * sizeof *ref.c),
                            malloc(m.n * sizeof *ref.labels),
                            malloc(m.n * sizeof *ref.distances),
                            0,
                            0,
                            false};
    fill_matrix(&m, fill, shape->n);
    /* The first centroids are rows spread over the data. With few distinct rows some are equal, so
     * clusters start empty. */
    for (uint32_t l = 0; l < shape->k; l++)
        memcpy(initial + (size_t)l * m.d, m.x + (size_t)(l * (m.n / shape->k)) * m.d,
               m.d * sizeof *initial);
    memcpy(ref.c, initial, centroids * sizeof *initial);
    ref_lloyd(&ref, &m, shape->k, shape->max_iter);
    /* In brief mode, each shape takes a different third of the paths. */
    static size_t turn;
    const size_t step = test_brief() ? 3 : 1;
    for (size_t p = turn++ % step; p < sizeof paths / sizeof paths[0]; p += step)
        if (!fewer || !paths[p].slow)
            run_shape(context, shape, fill, &paths[p], &m, initial, &ref);
    free(m.x);
    free(initial);
    free(ref.c);
    free(ref.labels);
    free(ref.distances);
}

static void for_each_device(void (*check)(struct ocl_context *context, bool fewer))
{
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < devices.count; i++) {
        struct ocl_context *context;
        if (!devices.device[i].usable)
            continue;
        assert_int_equal(ocl_context_open(&context, &devices.device[i], NULL, &err), STATUS_OK);
        check(context, is_oclgrind(&devices.device[i]));
        ocl_context_close(&context);
    }
}

static void check_fills(struct ocl_context *context, bool fewer)
{
    /* `wide` has enough columns and centroids for tensor cores, where available. */
    static const struct shape shape = {900, 19, 7, 12}, small = {70, 5, 3, 3},
                              wide = {270, 36, 33, 3};
    for (int fill = 0; fill < FILLS; fill++) {
        check_shape(context, &small, (enum fill)fill, fewer);
        if (!fewer)
            check_shape(context, &shape, (enum fill)fill, fewer);
        if (!fewer && fill != FILL_DUPLICATES && (!test_brief() || fill == FILL_MIXTURE))
            check_shape(context, &wide, (enum fill)fill, fewer);
    }
}

static void test_hard_data(void **state)
{
    (void)state;
    for_each_device(check_fills);
}

static void check_shapes(struct ocl_context *context, bool fewer)
{
    static const struct shape shapes[] = {
        {1, 1, 1, 5},     {2, 1, 2, 5},      {40, 3, 40, 5},    {300, 1, 4, 30},
        {513, 33, 17, 4}, {600, 300, 5, 4},  {257, 16, 33, 6},  {1000, 8, 140, 4},
        {100, 7, 5, 0},   {100, 7, 5, 1},    {900, 97, 130, 6}, {290, 33, 260, 2},
        {200, 90, 70, 3}, {200, 130, 40, 3}, {3000, 20, 6, 4},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        if (!fewer || shapes[s].n <= 40)
            check_shape(context, &shapes[s], FILL_MIXTURE, fewer);
}

/* Fails unless the outcome of path p has the bits of the first path's outcome. */
static void expect_same(const struct cluster_outcome *out, const struct cluster_outcome *first,
                        size_t p)
{
    if (out->iterations != first->iterations ||
        memcmp(out->inertia_history, first->inertia_history,
               first->iterations * sizeof *first->inertia_history) != 0 ||
        memcmp(out->centroids, first->centroids,
               (size_t)first->k * first->dimension * sizeof *first->centroids) != 0 ||
        memcmp(out->labels, first->labels, first->rows * sizeof *first->labels) != 0)
        fail_msg("%s differs from %s", paths[p].name, paths[0].name);
}

/* Spherical k-means and the history of the inertia, which the reference lacks, have the same bits
 * on all paths. */
static void check_cosine(struct ocl_context *context, bool fewer)
{
    enum { N = 300, D = 21, K = 6 };
    struct matrix m = {N, D, malloc(sizeof(float) * N * D)};
    struct cluster_outcome first = {0};
    fill_matrix(&m, FILL_MIXTURE, 5);
    for (size_t p = 0; p < sizeof paths / sizeof paths[0] && !fewer; p++) {
        struct matrix_source source = matrix_source_of(&m);
        struct cluster_config config;
        struct cluster_outcome out;
        struct error err = ERROR_INIT;
        cluster_config_default(&config);
        config.k = K;
        config.metric = METRIC_COSINE;
        config.memory = paths[p].memory;
        config.threads = paths[p].threads;
        if (cluster_run_on(&out, context, &source, &config, &paths[p].choice, &err) != STATUS_OK)
            fail_msg("%s: %s", paths[p].name, err.sentence);
        for (uint32_t c = 0; c < K; c++) {
            double square = 0;
            for (uint32_t j = 0; j < D; j++)
                square += (double)out.centroids[c * D + j] * (double)out.centroids[c * D + j];
            assert_true(fabs(square - 1) < 1e-6);
        }
        if (p == 0) {
            first = out;
            assert_true(first.iterations > 2);
            continue;
        }
        expect_same(&out, &first, p);
        cluster_outcome_clear(&out);
    }
    cluster_outcome_clear(&first);
    free(m.x);
}

/* Mini-batches: all paths give the same bits, and agree with Sculley's rule in float64 on one
 * thread with the same random rows. */
static void check_batches(struct ocl_context *context, bool fewer)
{
    enum { N = 400, D = 9, K = 5, ROWS = 70, BATCHES = 12 };
    struct matrix m = {N, D, malloc(sizeof(float) * N * D)};
    double centre[K][D], count[K] = {0}, sum[K][D] = {{0}};
    struct cluster_outcome first = {0};
    fill_matrix(&m, FILL_MIXTURE, 8);
    for (uint32_t c = 0; c < K; c++)
        for (uint32_t j = 0; j < D; j++)
            centre[c][j] = (double)m.x[c * D + j];
    for (uint32_t b = 0; b < BATCHES; b++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            const double random = canonical_random(11, 0x80000000u, b * ROWS + i);
            const float *x = m.x + (size_t)(random * N) * D;
            double best = INFINITY;
            uint32_t nearest = 0;
            for (uint32_t c = 0; c < K; c++) {
                double distance = 0;
                for (uint32_t j = 0; j < D; j++)
                    distance += ((double)x[j] - centre[c][j]) * ((double)x[j] - centre[c][j]);
                if (distance < best) {
                    best = distance;
                    nearest = c;
                }
            }
            count[nearest]++;
            for (uint32_t j = 0; j < D; j++)
                sum[nearest][j] += (double)x[j];
        }
        for (uint32_t c = 0; c < K; c++)
            for (uint32_t j = 0; j < D && count[c] > 0; j++)
                centre[c][j] = (double)(float)(sum[c][j] / count[c]);
    }
    for (size_t p = 0; p < sizeof paths / sizeof paths[0] && !fewer; p++) {
        struct matrix_source source = matrix_source_of(&m);
        struct cluster_config config;
        struct cluster_outcome out;
        struct error err = ERROR_INIT;
        cluster_config_default(&config);
        config.k = K;
        config.init = INIT_GIVEN;
        config.initial = m.x;
        config.seed = 11;
        config.max_iter = BATCHES;
        config.method = "mini-batch";
        config.mini_batch = ROWS;
        config.memory = paths[p].memory;
        config.threads = paths[p].threads;
        if (cluster_run_on(&out, context, &source, &config, &paths[p].choice, &err) != STATUS_OK)
            fail_msg("%s: %s", paths[p].name, err.sentence);
        assert_int_equal(out.iterations, BATCHES);
        for (uint32_t c = 0; c < K; c++)
            for (uint32_t j = 0; j < D; j++)
                if (fabs((double)out.centroids[c * D + j] - centre[c][j]) >
                    1e-6 * (1 + fabs(centre[c][j])))
                    fail_msg("%s: centroid %u, column %u is %.9g, not %.9g", paths[p].name, c, j,
                             (double)out.centroids[c * D + j], centre[c][j]);
        if (p == 0) {
            first = out;
            continue;
        }
        expect_same(&out, &first, p);
        cluster_outcome_clear(&out);
    }
    cluster_outcome_clear(&first);
    free(m.x);
}

/* With weights, some of them 0, all paths give the same bits, both for all rows and for
 * mini-batches. */
static void check_weights(struct ocl_context *context, bool fewer)
{
    enum { N = 700, D = 33, K = 9 };
    struct matrix m = {N, D, malloc(sizeof(float) * N * D)};
    float weights[N];
    uint64_t state = 21;
    fill_matrix(&m, FILL_MIXTURE, 6);
    for (uint32_t i = 0; i < N; i++)
        weights[i] = i % 5 == 0 ? 0 : 0.25f * (float)(1 + test_bits(&state) % 1000);
    for (int batches = 0; batches < 2; batches++) {
        struct cluster_outcome first = {0};
        for (size_t p = 0; p < sizeof paths / sizeof paths[0] && !fewer; p++) {
            struct matrix_source source = matrix_source_of(&m);
            struct cluster_config config;
            struct cluster_outcome out;
            struct error err = ERROR_INIT;
            cluster_config_default(&config);
            config.k = K;
            config.weights = weights;
            config.max_iter = 12;
            config.method = batches ? "mini-batch" : "lloyd";
            config.mini_batch = batches ? 80 : 0;
            config.memory = paths[p].memory;
            config.threads = paths[p].threads;
            if (cluster_run_on(&out, context, &source, &config, &paths[p].choice, &err) !=
                STATUS_OK)
                fail_msg("%s: %s", paths[p].name, err.sentence);
            if (p == 0) {
                first = out;
                continue;
            }
            expect_same(&out, &first, p);
            cluster_outcome_clear(&out);
        }
        cluster_outcome_clear(&first);
    }
    free(m.x);
}

/* Whole centroids are those of a run, rounded, and label the rows; the last of several runs is not the best. */
static void check_whole(struct ocl_context *context, bool fewer)
{
    enum { N = 900, D = 36, K = 33 };
    struct matrix m = {N, D, malloc(sizeof(float) * N * D)};
    struct matrix_source source = matrix_source_of(&m);
    float *rounded = malloc(sizeof *rounded * K * D);
    int32_t *labels = malloc(sizeof *labels * N);
    double *distances = malloc(sizeof *distances * N);
    struct cluster_config config;
    struct error err = ERROR_INIT;
    cluster_config_default(&config);
    config.k = K;
    config.max_iter = 6;
    config.n_init = 4;
    fill_matrix(&m, FILL_MIXTURE, 5);
    for (size_t i = 0; i < (size_t)N * D; i++)
        m.x[i] = floorf(8 * m.x[i]);
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        if (fewer && paths[p].slow)
            continue;
        struct cluster_outcome plain, whole;
        config.memory = paths[p].memory;
        config.threads = paths[p].threads;
        config.whole = false;
        assert_int_equal(cluster_run_on(&plain, context, &source, &config, &paths[p].choice, &err),
                         STATUS_OK);
        config.whole = true;
        assert_int_equal(cluster_run_on(&whole, context, &source, &config, &paths[p].choice, &err),
                         STATUS_OK);
        for (size_t i = 0; i < (size_t)K * D; i++)
            rounded[i] = floorf(plain.centroids[i] + 0.5f);
        ref_assign(labels, distances, &m, rounded, K);
        assert_memory_equal(whole.centroids, rounded, sizeof *rounded * K * D);
        assert_memory_equal(whole.labels, labels, sizeof *labels * N);
        for (size_t i = 0; i < N; i++)
            assert_true(whole.distances[i] == (float)distances[i]);
        assert_true(whole.inertia == plain.inertia && whole.iterations == plain.iterations);
        assert_memory_equal(whole.sizes, plain.sizes, sizeof *plain.sizes * K);
        cluster_outcome_clear(&plain);
        cluster_outcome_clear(&whole);
    }
    free(m.x);
    free(rounded);
    free(labels);
    free(distances);
}

static void test_whole(void **state)
{
    (void)state;
    for_each_device(check_whole);
}

static void test_weights(void **state)
{
    (void)state;
    for_each_device(check_weights);
}

static void test_batches(void **state)
{
    (void)state;
    for_each_device(check_batches);
}

static void test_cosine(void **state)
{
    (void)state;
    for_each_device(check_cosine);
}

static void test_shapes(void **state)
{
    (void)state;
    for_each_device(check_shapes);
}

/* --- one tiled launch under Oclgrind --------------------------------------------------------- */

static void check_tiled(struct ocl_context *context, bool fewer)
{
    static const struct shape shape = {9, 3, 2, 1};
    static const struct path tiled = {
        "tiled", {true, true, false, false, false, false, 1}, 256 << 20, 1, false};
    struct matrix m = {shape.n, shape.d, malloc(sizeof(float) * shape.n * shape.d)};
    float c[6];
    int32_t labels[9];
    double distances[9];
    struct reference ref = {c, labels, distances, 0, 0, false};
    if (!fewer) {
        free(m.x);
        return;
    }
    fill_matrix(&m, FILL_MIXTURE, 1);
    float initial[6];
    memcpy(initial, m.x, sizeof initial);
    memcpy(c, initial, sizeof c);
    ref_lloyd(&ref, &m, shape.k, shape.max_iter);
    run_shape(context, &shape, FILL_MIXTURE, &tiled, &m, initial, &ref);
    free(m.x);
}

static void test_tiled_kernels(void **state)
{
    (void)state;
    for_each_device(check_tiled);
}

/* Runs `shape` from `initial` on all paths and compares the results with the reference. */
static void check_given(struct ocl_context *context, const struct shape *shape, enum fill fill,
                        const struct matrix *m, const float *initial, bool fewer)
{
    const size_t bytes = (size_t)shape->k * m->d * sizeof *initial;
    struct reference ref = {malloc(bytes),
                            malloc(m->n * sizeof *ref.labels),
                            malloc(m->n * sizeof *ref.distances),
                            0,
                            0,
                            false};
    memcpy(ref.c, initial, bytes);
    ref_lloyd(&ref, m, shape->k, shape->max_iter);
    /* In brief mode, each call takes a different third of the paths. */
    static size_t turn;
    const size_t step = test_brief() ? 3 : 1;
    for (size_t p = turn++ % step; p < sizeof paths / sizeof paths[0]; p += step)
        if (!fewer || !paths[p].slow)
            run_shape(context, shape, fill, &paths[p], m, initial, &ref);
    free(ref.c);
    free(ref.labels);
    free(ref.distances);
}

/* --- near-ties ------------------------------------------------------------------------------- */

/* Rows halfway between two centroids except for one unit in the last place of one value: the filter
 * cannot decide, but the result is defined. */
static void check_near_ties(struct ocl_context *context, bool fewer)
{
    const struct shape shape = {fewer ? 24 : 600, 12, 2, 1};
    struct matrix m = {shape.n, shape.d, malloc(sizeof(float) * shape.n * shape.d)};
    float initial[24];
    uint64_t state = 5;
    for (uint32_t j = 0; j < 12; j++) {
        initial[j] = (float)(test_bits(&state) % 1000);
        initial[12 + j] = (float)(test_bits(&state) % 1000);
    }
    for (uint32_t i = 0; i < m.n; i++) {
        float *row = m.x + (size_t)i * 12;
        for (uint32_t j = 0; j < 12; j++)
            row[j] = (initial[j] + initial[12 + j]) / 2;
        uint32_t j = i % 12;
        if (i % 3 == 0)
            row[j] = nextafterf(row[j], i % 2 ? 1e9f : -1e9f);
    }
    check_given(context, &shape, FILL_INTEGERS, &m, initial, fewer);
    free(m.x);
}

/* Rounding to float16 subtracts almost half a unit from each value of one centroid and adds as much
 * to the other: scores are as wrong as the bound on lengths allows, and the farther centroid seems
 * nearer. */
static void check_rounding_adds_up(struct ocl_context *context, bool fewer)
{
    const struct shape shape = {fewer ? 24 : 600, 64, 2, 1};
    struct matrix m = {shape.n, shape.d, malloc(sizeof(float) * shape.n * shape.d)};
    float initial[128];
    for (uint32_t j = 0; j < 64; j++) {
        const float sign = j % 3 ? 1 : -1;
        initial[j] = sign * (1 + 0x1p-11f - 0x1p-20f);
        initial[64 + j] = sign * (1 + 0x1p-11f + 0x1p-20f);
        for (uint32_t i = 0; i < m.n; i++)
            m.x[(size_t)i * 64 + j] =
                (i % 2 ? sign : -sign) * /* the mean is too small to be subtracted */
                ((i % 3 == 0) != (j == i % 64) ? 1 + 0x1p-10f : 1);
    }
    check_given(context, &shape, FILL_INTEGERS, &m, initial, fewer);
    free(m.x);
}

static void test_near_ties(void **state)
{
    (void)state;
    for_each_device(check_near_ties);
    for_each_device(check_rounding_adds_up);
}

/* Given centroids far outside the data, with squares far beyond float32. */
static void check_far_centroids(struct ocl_context *context, bool fewer)
{
    const struct shape shape = {fewer ? 30 : 400, 4, 3, 6};
    struct matrix m = {shape.n, shape.d, malloc(sizeof(float) * shape.n * shape.d)};
    static const float initial[12] = {1e30f, -2e30f, 0, 0, 1e-35f, 0, 0, 0, -3, 1e25f, 0, 7};
    fill_matrix(&m, FILL_TINY, 3);
    check_given(context, &shape, FILL_TINY, &m, initial, fewer);
    free(m.x);
}

/* Data with a large mean, which the filter subtracts, and a nearest centroid whose difference from
 * that mean exceeds float32. */
static void check_farther_than_float(struct ocl_context *context, bool fewer)
{
    const struct shape shape = {fewer ? 30 : 300, 3, 2, 1};
    struct matrix m = {shape.n, shape.d, malloc(sizeof(float) * shape.n * shape.d)};
    static const float initial[6] = {-2.5e38f, -2.5e38f, -2.5e38f, -2.75e38f, 8e37f, 8e37f};
    uint64_t state = 9;
    for (uint32_t i = 0; i < 3 * m.n; i++)
        m.x[i] = 8e37f * (1 + 1e-4f * (float)(test_bits(&state) % 100));
    check_given(context, &shape, FILL_HUGE, &m, initial, fewer);
    free(m.x);
}

/* One row is so large that the others keep only a dozen bits: their sums show how each value was
 * rounded, including halfway values. */
static void check_rounding(struct ocl_context *context, bool fewer)
{
    const struct shape shape = {fewer ? 30 : 300, 18, 3, 4};
    struct matrix m = {shape.n, shape.d, malloc(sizeof(float) * shape.n * shape.d)};
    float initial[54];
    fill_matrix(&m, FILL_MIXTURE, 5);
    for (uint32_t i = 0; i < m.n * m.d; i++) {
        if (i % 5 == 0)
            m.x[i] = ldexpf(roundf(ldexpf(m.x[i], 15)) + 0.5f, -15);
        if (i >= (m.n - 1) * m.d)
            m.x[i] = 0x1p38f;
    }
    memcpy(initial, m.x, 36 * sizeof *initial);
    memcpy(initial + 36, m.x + (size_t)(m.n - 1) * m.d, 18 * sizeof *initial);
    check_given(context, &shape, FILL_OUTLIER, &m, initial, fewer);
    free(m.x);
}

static void test_far_centroids(void **state)
{
    (void)state;
    for_each_device(check_far_centroids);
    for_each_device(check_farther_than_float);
    for_each_device(check_rounding);
}

/* --- first centroids ------------------------------------------------------------------------- */

/* Returns one path's first centroids, to be freed by the caller. */
static float *first_centroids(struct ocl_context *context, const struct matrix *m, uint32_t k,
                              enum cluster_init init, const struct path *path, const char *what)
{
    struct matrix copy = *m;
    struct matrix_source source = matrix_source_of(&copy);
    struct cluster_config config;
    struct cluster_outcome out;
    struct error err = ERROR_INIT;
    cluster_config_default(&config);
    config.k = k;
    config.init = init;
    config.seed = 77;
    config.max_iter = 0;
    config.memory = path->memory;
    config.threads = path->threads;
    if (cluster_run_on(&out, context, &source, &config, &path->choice, &err) != STATUS_OK)
        fail_msg("%s, %s: %s", what, path->name, err.sentence);
    float *centroids = out.centroids;
    out.centroids = NULL;
    cluster_outcome_clear(&out);
    return centroids;
}

/* k-means++ gives the reference's centroids on all paths; k-means|| and random give the same ones
 * on all paths. There are more seeds than the device chooses without the host. */
static void check_seeding(struct ocl_context *context, bool fewer)
{
    static const enum fill fills[] = {FILL_MIXTURE,   FILL_INTEGERS, FILL_OFFSET, FILL_HUGE,
                                      FILL_SUBNORMAL, FILL_TINY,     FILL_OUTLIER};
    const uint32_t n = fewer ? 60 : 700, d = fewer ? 3 : 19, k = fewer ? 3 : 37;
    struct matrix m = {n, d, malloc(sizeof(float) * n * d)};
    float *wanted = malloc(sizeof(float) * k * d);
    for (size_t f = 0; f < (fewer ? 1 : sizeof fills / sizeof fills[0]); f++) {
        fill_matrix(&m, fills[f], 4);
        for (int init = INIT_KMEANSPP; init <= INIT_RANDOM; init++) {
            if (init == INIT_KMEANSPP)
                ref_plus_plus(wanted, &m, k, 77);
            for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
                if (fewer && paths[p].slow)
                    continue;
                float *c = first_centroids(context, &m, k, (enum cluster_init)init, &paths[p],
                                           fill_names[fills[f]]);
                if (p == 0 && init != INIT_KMEANSPP)
                    memcpy(wanted, c, sizeof(float) * k * d);
                if (memcmp(c, wanted, sizeof(float) * k * d) != 0)
                    fail_msg("init %d, %s, %s: the first centroids differ", init,
                             fill_names[fills[f]], paths[p].name);
                free(c);
            }
        }
    }
    free(m.x);
    free(wanted);
}

/* Five distinct rows and more seeds than that: all paths report the error. */
static void check_copies(struct ocl_context *context, bool fewer)
{
    enum { ROWS = 600, COLUMNS = 17, K = 6, DIFFERENT = 5 };
    struct matrix m = {ROWS, COLUMNS, malloc(sizeof(float) * ROWS * COLUMNS)};
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        m.x[i] = (float)(i / COLUMNS % DIFFERENT * (i % COLUMNS));
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        struct matrix_source source = matrix_source_of(&m);
        struct cluster_config config;
        struct cluster_outcome out;
        struct error err = ERROR_INIT;
        if (fewer && paths[p].slow)
            continue;
        cluster_config_default(&config);
        config.k = K;
        config.memory = paths[p].memory;
        config.threads = paths[p].threads;
        if (cluster_run_on(&out, context, &source, &config, &paths[p].choice, &err) == STATUS_OK ||
            !strstr(err.sentence, "only 5 distinct rows"))
            fail_msg("%s: %s", paths[p].name, err.sentence);
    }
    free(m.x);
}

/* How many commands of that name a closed trace has. */
static unsigned commands_in(const char *trace, const char *name)
{
    char *line = NULL, wanted[80];
    size_t room = 0;
    unsigned found = 0;
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    snprintf(wanted, sizeof wanted, "\"ph\":\"X\",\"name\":\"%s\"", name);
    while (getline(&line, &room, file) > 0)
        for (const char *at = line; (at = strstr(at, wanted)); at++)
            found++;
    free(line);
    fclose(file);
    return found;
}

/* With tensor cores, k-means++ by lists chooses all but the first seeds of a mixture. Copies of 60 rows, of which
 * two are often drawn for one seed, leave rounds to launches; the seeds are the reference's, too. */
static void check_lists(struct ocl_context *shared, bool fewer)
{
    enum { ROWS = 700, COLUMNS = 19, K = 37, DISTINCT = 60 };
    static const struct path tensor = {
        "tensor cores", {true, true, false, false, true, false, 1}, 256 << 20, 2, true};
    unsigned launched[2];
    if (fewer || !ocl_context_device(shared)->fp64 ||
        ocl_context_device(shared)->max_work_group < KMEANS_LISTED_ITEMS)
        return;
    for (int copies = 0; copies < 2; copies++) {
        char path[] = "/tmp/clpipe-test-trace-XXXXXX";
        struct matrix m = {ROWS, COLUMNS, malloc(sizeof(float) * ROWS * COLUMNS)};
        float *wanted = malloc(sizeof *wanted * K * COLUMNS);
        struct ocl_context *context;
        struct trace *trace;
        struct error err = ERROR_INIT;
        fill_matrix(&m, FILL_MIXTURE, 4);
        for (uint32_t i = DISTINCT; i < ROWS && copies; i++)
            memcpy(m.x + (size_t)i * COLUMNS, m.x + (size_t)(i % DISTINCT) * COLUMNS,
                   COLUMNS * sizeof *m.x);
        ref_plus_plus(wanted, &m, K, 77);
        close(mkstemp(path));
        assert_int_equal(trace_open(&trace, path, &err), STATUS_OK);
        assert_int_equal(ocl_context_open(&context, ocl_context_device(shared), trace, &err),
                         STATUS_OK);
        float *c = first_centroids(context, &m, K, INIT_KMEANSPP, &tensor, "lists");
        ocl_context_close(&context);
        assert_int_equal(trace_close(&trace, &err), STATUS_OK);
        assert_memory_equal(c, wanted, sizeof *c * K * COLUMNS);
        assert_true(commands_in(path, "seed listed") > 0);
        launched[copies] = commands_in(path, "seed take");
        unlink(path);
        free(c);
        free(wanted);
        free(m.x);
    }
    assert_int_equal(launched[0], 2); /* before the lists, and for them */
    assert_true(launched[1] > 2);
}

/* The same for more seeds than a batch has, for one block of rows, whole blocks and a part of one, with and
 * without weights, some of them 0: lists choose what the host does. */
static void check_more_lists(struct ocl_context *context, bool fewer)
{
    enum { ROWS = 1500, COLUMNS = 5, PATHS = 2 };
    static const struct path both[PATHS] = {
        {"tensor cores", {true, true, false, false, true, false, 1}, 256 << 20, 2, true},
        {"exact on the host", {true, false, true, false, false, true, 1}, 256 << 20, 2, true}};
    static const struct {
        uint32_t rows, k;
        bool weighted;
    } shapes[] = {{256, 90, false}, {1024, 300, true}, {1500, 600, false}, {1500, 290, true}};
    struct matrix m = {ROWS, COLUMNS, malloc(sizeof(float) * ROWS * COLUMNS)};
    float weights[ROWS];
    if (fewer)
        goto out;
    fill_matrix(&m, FILL_MIXTURE, 9);
    for (uint32_t i = 0; i < ROWS; i++)
        weights[i] = i % 7 == 3 ? 0 : ldexpf(1 + (float)(i % 5), (int)(i % 11) - 5);
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        struct cluster_outcome found[PATHS];
        struct matrix part = {shapes[s].rows, COLUMNS, m.x};
        struct matrix_source source = matrix_source_of(&part);
        for (int p = 0; p < PATHS; p++) {
            struct cluster_config config;
            struct error err = ERROR_INIT;
            cluster_config_default(&config);
            config.k = shapes[s].k;
            config.weights = shapes[s].weighted ? weights : NULL;
            config.max_iter = 0;
            config.memory = both[p].memory;
            config.threads = both[p].threads;
            if (cluster_run_on(&found[p], context, &source, &config, &both[p].choice, &err) !=
                STATUS_OK)
                fail_msg("%u rows, %s: %s", part.n, both[p].name, err.sentence);
        }
        assert_memory_equal(found[0].centroids, found[1].centroids,
                            sizeof(float) * shapes[s].k * COLUMNS);
        cluster_outcome_clear(&found[0]);
        cluster_outcome_clear(&found[1]);
    }
out:
    free(m.x);
}

/* Seeding several sets at once gives the same seeds as seeding each set alone, for a mixture, large
 * offsets and huge values. A set with too few distinct rows is not seeded. */
static void check_sets(struct ocl_context *context, bool fewer)
{
    enum { SETS = 4, D = 21, K = 40 };
    static const struct seed_set sets[SETS] = {{0, 300}, {300, 1100}, {1400, 60}, {1460, 513}};
    static const enum fill fills[SETS] = {FILL_MIXTURE, FILL_OFFSET, FILL_MIXTURE, FILL_HUGE};
    static const struct lane_choice tiled = {true, true, false, false, false, false, 1};
    if (fewer || !ocl_context_device(context)->fp64)
        return;
    const uint64_t all = sets[SETS - 1].first + sets[SETS - 1].rows;
    struct matrix m = {(uint32_t)all, D, malloc(sizeof(float) * all * D)};
    struct cluster_devices one = {&context, 1};
    struct cluster_config config;
    struct error err = ERROR_INIT;
    uint32_t seeds[SETS * K];
    bool done[SETS];
    for (unsigned i = 0; i < SETS; i++) {
        struct matrix part = {(uint32_t)sets[i].rows, D, m.x + sets[i].first * D};
        fill_matrix(&part, fills[i], 3 + i);
    }
    for (uint64_t i = 5; i < sets[2].rows; i++)
        memcpy(m.x + (sets[2].first + i) * D, m.x + (sets[2].first + i % 5) * D, D * sizeof *m.x);
    cluster_config_default(&config);
    config.k = K;
    config.max_iter = 0;
    config.choice = &tiled;
    struct matrix_source source = matrix_source_of(&m);
    if (seed_sets(seeds, done, sets, SETS, &one, &source, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    for (unsigned i = 0; i < SETS; i++) {
        struct matrix part = {(uint32_t)sets[i].rows, D, m.x + sets[i].first * D};
        struct cluster_outcome out = {0};
        source = matrix_source_of(&part);
        const enum status status =
            cluster_run_on(&out, context, &source, &config, &paths[0].choice, &err);
        assert_int_equal(done[i], status == STATUS_OK);
        assert_int_equal(done[i], i != 2);
        for (unsigned c = 0; c < K && done[i]; c++)
            if (memcmp(out.centroids + c * D, part.x + (size_t)seeds[i * K + c] * D,
                       D * sizeof *part.x) != 0)
                fail_msg("seed %u of set %u is row %u", c, i, seeds[i * K + c]);
        cluster_outcome_clear(&out);
    }
    free(m.x);
}

static void test_seeding(void **state)
{
    (void)state;
    for_each_device(check_seeding);
    for_each_device(check_copies);
    for_each_device(check_lists);
    for_each_device(check_more_lists);
    for_each_device(check_sets);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hard_data),     cmocka_unit_test(test_shapes),
    cmocka_unit_test(test_near_ties),     cmocka_unit_test(test_far_centroids),
    cmocka_unit_test(test_tiled_kernels), cmocka_unit_test(test_seeding),
    cmocka_unit_test(test_cosine),        cmocka_unit_test(test_batches),
    cmocka_unit_test(test_weights),       cmocka_unit_test(test_whole),
};
TEST_GROUP_WITHIN(300, kmeans, open_devices, close_devices)
