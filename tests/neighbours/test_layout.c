/* test_layout.c: maps of random data preserve neighbours and are reproducible to the bit;
 * degenerate graphs work. */
#include "base/random.h"
#include "neighbours/layout.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 600, DIMENSION = 10, CLUSTERS = 25, NEIGHBOURS = 15 };

static double gauss(uint32_t *random)
{
    double sum = 0;
    for (unsigned i = 0; i < 12; i++)
        sum += (double)(random_next(random) >> 8) / (1 << 24);
    return sum - 6;
}

/* Draws clusters, each of them on a plane of its own with some noise. */
static float *draw(void)
{
    uint32_t random = RANDOM_START + test_seed();
    float *rows = malloc(ROWS * DIMENSION * sizeof *rows);
    double centre[CLUSTERS][DIMENSION], axis[CLUSTERS][2][DIMENSION];
    assert_non_null(rows);
    for (unsigned k = 0; k < CLUSTERS; k++) {
        for (unsigned j = 0; j < DIMENSION; j++) {
            centre[k][j] = 2 * gauss(&random);
            axis[k][0][j] = gauss(&random);
            axis[k][1][j] = gauss(&random);
        }
    }
    for (unsigned i = 0; i < ROWS; i++) {
        const double u = gauss(&random), v = gauss(&random);
        for (unsigned j = 0; j < DIMENSION; j++)
            rows[i * DIMENSION + j] =
                (float)(centre[i % CLUSTERS][j] + u * axis[i % CLUSTERS][0][j] +
                        v * axis[i % CLUSTERS][1][j] + 0.1 * gauss(&random));
    }
    return rows;
}

/* The nearest rows by brute force; ties go to the lowest row. */
static int64_t *nearest(const float *rows, unsigned dimension, unsigned neighbours)
{
    int64_t *out = malloc(ROWS * neighbours * sizeof *out);
    double *distance = malloc(ROWS * sizeof *distance);
    assert_true(out && distance);
    for (unsigned i = 0; i < ROWS; i++) {
        for (unsigned j = 0; j < ROWS; j++) {
            distance[j] = i == j ? INFINITY : 0;
            for (unsigned d = 0; d < dimension; d++)
                distance[j] += pow((double)rows[i * dimension + d] - rows[j * dimension + d], 2);
        }
        for (unsigned n = 0; n < neighbours; n++) {
            unsigned best = 0;
            for (unsigned j = 1; j < ROWS; j++)
                best = distance[j] < distance[best] ? j : best;
            out[i * neighbours + n] = best;
            distance[best] = INFINITY;
        }
    }
    free(distance);
    return out;
}

/* The proportion of each row's 10 nearest rows that are among its 10 nearest on the map. */
static double kept(const int64_t *graph, const float *xy)
{
    int64_t *map = nearest(xy, 2, 10);
    unsigned found = 0;
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned a = 0; a < 10; a++)
            for (unsigned b = 0; b < 10; b++)
                found += graph[i * NEIGHBOURS + a] == map[i * 10 + b];
    free(map);
    return found / (10.0 * ROWS);
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    (void)err;
    memcpy(rows, (const float *)context + first * DIMENSION, count * DIMENSION * sizeof *rows);
    return STATUS_OK;
}

static void count_calls(void *context, const char *phase, uint64_t done, uint64_t total)
{
    assert_string_equal(phase, "map");
    uint64_t *calls = context;
    assert_int_equal(done, ++*calls);
    assert_true(done <= total);
}

static void test_neighbours_are_preserved(void **state)
{
    (void)state;
    float *rows = draw();
    int64_t *neighbour = nearest(rows, DIMENSION, NEIGHBOURS);
    const struct matrix_source matrix = {
        .rows = ROWS, .dimension = DIMENSION, .read = read_rows, .context = rows};
    const struct neighbours graph = {.queries = ROWS, .n = NEIGHBOURS, .rows = neighbour};
    float xy[2][2 * ROWS], initial[2][2 * ROWS];
    uint64_t calls = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct neighbours_config config = {
            .threads = i ? 3 : 1, .watch = {.show = i ? NULL : count_calls, .context = &calls}};
        assert_int_equal(layout_principal(initial[i], &matrix, &config, NULL), STATUS_OK);
        assert_int_equal(layout_map(xy[i], &graph, initial[i], &config, NULL), STATUS_OK);
    }
    assert_true(calls > 100);
    assert_memory_equal(initial[0], initial[1], sizeof initial[0]);
    assert_memory_equal(xy[0], xy[1], sizeof xy[0]);
    float extent[2] = {0, 0};
    for (unsigned i = 0; i < 2 * ROWS; i++)
        extent[i % 2] = fmaxf(extent[i % 2], fabsf(xy[0][i]));
    assert_true(fabsf(fmaxf(extent[0], extent[1]) - 1) < 1e-5f);
    const double principal = kept(neighbour, initial[0]), map = kept(neighbour, xy[0]);
    print_message("# kept by principal components %.3f, by the map %.3f\n", principal, map);
    assert_true(map > 0.5);
    assert_true(map > 2 * principal);
    /* Works without initial positions, too. */
    const struct neighbours_config config = {.threads = 2};
    assert_int_equal(layout_map(xy[1], &graph, NULL, &config, NULL), STATUS_OK);
    assert_true(kept(neighbour, xy[1]) > 0.5);
    free(neighbour);
    free(rows);
}

/* Data with variances of 9, 4 and 1 along known axes, far from the origin. */
static void test_principal_components(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START + test_seed();
    float *rows = calloc(ROWS * DIMENSION, sizeof *rows);
    float xy[2 * ROWS];
    for (unsigned i = 0; i < ROWS; i++) {
        float *row = rows + i * DIMENSION;
        for (unsigned j = 0; j < DIMENSION; j++)
            row[j] = (float)(100 + 0.2 * gauss(&random));
        row[2] += (float)(3 * gauss(&random));
        row[7] += (float)(2 * gauss(&random));
    }
    rows[5 * DIMENSION] = NAN;
    const struct matrix_source matrix = {
        .rows = ROWS, .dimension = DIMENSION, .read = read_rows, .context = rows};
    const struct neighbours_config config = {.threads = 2};
    assert_int_equal(layout_principal(xy, &matrix, &config, NULL), STATUS_OK);
    assert_true(xy[10] == 0 && xy[11] == 0);
    for (unsigned axis = 0; axis < 2; axis++) {
        double product = 0, one = 0, two = 0;
        for (unsigned i = 0; i < ROWS; i++) {
            const double a = xy[2 * i + axis], b = rows[i * DIMENSION + (axis ? 7 : 2)] - 100.0;
            product += i == 5 ? 0 : a * b;
            one += i == 5 ? 0 : a * a;
            two += i == 5 ? 0 : b * b;
        }
        assert_true(fabs(product) / sqrt(one * two) > 0.98);
    }
    free(rows);
}

static void check_finite(const float *xy, uint64_t rows)
{
    for (uint64_t i = 0; i < 2 * rows; i++)
        assert_true(isfinite(xy[i]) && fabsf(xy[i]) <= 1.0001f);
}

static void test_small_graphs(void **state)
{
    (void)state;
    const struct neighbours_config config = {.threads = 2};
    int64_t pair[2] = {1, 0}, none[2] = {-1, -1};
    float xy[4] = {9, 9, 9, 9};
    struct neighbours graph = {.queries = 0, .n = 1, .rows = pair};
    assert_int_equal(layout_map(xy, &graph, NULL, &config, NULL), STATUS_OK);
    graph.queries = 1;
    graph.rows = none;
    assert_int_equal(layout_map(xy, &graph, NULL, &config, NULL), STATUS_OK);
    assert_true(xy[0] == 0 && xy[1] == 0);
    graph.queries = 2;
    assert_int_equal(layout_map(xy, &graph, NULL, &config, NULL), STATUS_OK);
    check_finite(xy, 2);
    graph.rows = pair;
    assert_int_equal(layout_map(xy, &graph, NULL, &config, NULL), STATUS_OK);
    check_finite(xy, 2);
    graph.n = 0;
    assert_int_equal(layout_map(xy, &graph, NULL, &config, NULL), STATUS_OK);
    check_finite(xy, 2);
}

/* Equal rows: the first ones are the neighbours of all, and all start at the same place. */
static void test_equal_rows(void **state)
{
    (void)state;
    enum { N = 3000 };
    const struct neighbours_config config = {.threads = 2};
    int64_t *neighbour = malloc(N * NEIGHBOURS * sizeof *neighbour);
    float *xy = malloc(2 * N * sizeof *xy), *initial = calloc(2 * N, sizeof *initial);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < NEIGHBOURS; j++)
            neighbour[i * NEIGHBOURS + j] = j < i ? j : j + 1;
    const struct neighbours graph = {.queries = N, .n = NEIGHBOURS, .rows = neighbour};
    assert_int_equal(layout_map(xy, &graph, initial, &config, NULL), STATUS_OK);
    check_finite(xy, N);
    free(neighbour);
    free(initial);
    free(xy);
}

/* Two rings that are not connected, and an isolated row. */
static void test_components(void **state)
{
    (void)state;
    enum { RING = 100, N = 2 * RING + 1 };
    const struct neighbours_config config = {.threads = 2};
    int64_t neighbour[N * 2];
    float xy[2 * N], initial[2 * N];
    for (int64_t i = 0; i < N; i++) {
        const int64_t ring = i / RING * RING, at = i % RING;
        neighbour[2 * i] = i < 2 * RING ? ring + (at + 1) % RING : -1;
        neighbour[2 * i + 1] = i < 2 * RING ? ring + (at + RING - 1) % RING : -1;
        initial[2 * i] = (float)(i / RING);
        initial[2 * i + 1] = (float)at / RING;
    }
    const struct neighbours graph = {.queries = N, .n = 2, .rows = neighbour};
    assert_int_equal(layout_map(xy, &graph, initial, &config, NULL), STATUS_OK);
    check_finite(xy, N);
    /* Neighbours within a ring are closer than rows of different rings are on average. */
    double beside = 0, across = 0;
    for (int64_t i = 0; i < RING; i++) {
        const float *a = xy + 2 * i, *b = xy + 2 * neighbour[2 * i], *c = xy + 2 * (i + RING);
        beside += hypot((double)a[0] - b[0], (double)a[1] - b[1]) / RING;
        across += hypot((double)a[0] - c[0], (double)a[1] - c[1]) / RING;
    }
    assert_true(beside * 4 < across);
}

static void test_stops(void **state)
{
    (void)state;
    struct stop stop = {0};
    struct error err = ERROR_INIT;
    const struct neighbours_config config = {.threads = 1, .watch = {.stop = &stop}};
    int64_t pair[2] = {1, 0};
    float xy[4];
    const struct neighbours graph = {.queries = 2, .n = 1, .rows = pair};
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(layout_map(xy, &graph, NULL, &config, &err), STATUS_INTERRUPTED);
}

/* 0 and 1 are neighbours of each other, 0 is a neighbour of 2: the mutual pair has twice the
 * weight. */
static void test_mutual_neighbours_count_twice(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct edges found;
    int64_t neighbour[3] = {1, 0, 0};
    const struct neighbours graph = {.queries = 3, .n = 1, .rows = neighbour};
    assert_int_equal(layout_attract(&found, &graph, &err), STATUS_OK);
    assert_int_equal(found.begin[1], 2);
    assert_int_equal(found.begin[3], 4);
    assert_int_equal(found.edge[0].row, 1);
    assert_int_equal(found.edge[1].row, 2);
    assert_float_equal(found.edge[0].weight, 1. / 3, 1e-7);
    assert_float_equal(found.edge[1].weight, 1. / 6, 1e-7);
    assert_float_equal(found.edge[2].weight, 1. / 3, 1e-7); /* 1 attracts 0 */
    assert_float_equal(found.edge[3].weight, 1. / 6, 1e-7); /* 2 attracts 0 */
    edges_close(&found);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_mutual_neighbours_count_twice),
    cmocka_unit_test(test_neighbours_are_preserved),
    cmocka_unit_test(test_principal_components),
    cmocka_unit_test(test_small_graphs),
    cmocka_unit_test(test_equal_rows),
    cmocka_unit_test(test_components),
    cmocka_unit_test(test_stops),
};
TEST_GROUP(layout, NULL, NULL)
