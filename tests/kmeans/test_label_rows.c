/* test_label_rows.c: labels of rows computed on the host compared with distances in long double.
 * Ties go to the lowest centroid, the result does not depend on threads or blocks, and rows outside
 * the space get no label. */
#include "runner.h"

#include "kmeans/label_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS     200
#define CLUSTERS 9

static const char *const metrics[] = {"euclidean", "cosine", "hellinger"};

static float *draw(size_t count, uint32_t seed)
{
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / 16777216.0f;
    }
    return values;
}

/* Converts one row to the metric's space in float32. */
static void to_space(float *out, const float *row, uint32_t dimension, const char *metric)
{
    long double length = 0;
    for (uint32_t j = 0; j < dimension; j++)
        length += (long double)row[j] * row[j];
    for (uint32_t j = 0; j < dimension; j++)
        out[j] = metric[0] == 'c'   ? (float)((double)row[j] / sqrt((double)length))
                 : metric[0] == 'h' ? (float)sqrt((double)row[j])
                                    : row[j];
}

static void test_labels(void **state)
{
    (void)state;
    static const uint32_t dimensions[] = {1, 3, 16, 17, 100};
    struct error error = ERROR_INIT;
    for (size_t d = 0; d < sizeof dimensions / sizeof *dimensions; d++)
        for (int m = 0; m < 3; m++) {
            const uint32_t dimension = dimensions[d];
            float *rows = draw((size_t)ROWS * dimension, 1 + (uint32_t)m);
            float *centroids = draw((size_t)CLUSTERS * dimension, 99), *point = draw(dimension, 1);
            /* Two centroids are equal: rows get the first one. */
            memcpy(centroids + 7 * dimension, centroids + 2 * dimension, dimension * sizeof(float));
            int32_t labels[ROWS], again[ROWS];
            float distances[ROWS], once_more[ROWS];
            memset(labels, 255, sizeof labels);
            memset(again, 255, sizeof again);
            assert_int_equal(label_rows(labels, distances, rows, ROWS, dimension, centroids,
                                        CLUSTERS, metrics[m], 1, NULL, &error),
                             STATUS_OK);
            for (int row = 0; row < ROWS; row++) {
                long double least = INFINITY, own = 0;
                to_space(point, rows + (size_t)row * dimension, dimension, metrics[m]);
                for (int c = 0; c < CLUSTERS; c++) {
                    long double sum = 0;
                    for (uint32_t j = 0; j < dimension; j++) {
                        const long double t =
                            (long double)point[j] - centroids[(size_t)c * dimension + j];
                        sum += t * t;
                    }
                    own = c == labels[row] ? sum : own;
                    least = sum < least ? sum : least;
                }
                assert_int_not_equal(labels[row], 7);
                assert_true(own - least <= 1e-12L * (1 + least));
                assert_true(fabsl(own - (long double)distances[row]) <= 1e-6L * own + 1e-9L);
            }
            assert_int_equal(label_rows(again, once_more, rows, ROWS, dimension, centroids,
                                        CLUSTERS, metrics[m], 3, NULL, &error),
                             STATUS_OK);
            assert_memory_equal(labels, again, sizeof labels);
            assert_memory_equal(distances, once_more, sizeof distances);
            /* If labels are given, only distances are computed. */
            memset(once_more, 0, sizeof once_more);
            assert_int_equal(label_rows(again, once_more, rows, ROWS, dimension, centroids,
                                        CLUSTERS, metrics[m], 3, NULL, &error),
                             STATUS_OK);
            assert_memory_equal(labels, again, sizeof labels);
            assert_memory_equal(distances, once_more, sizeof distances);
            free(rows);
            free(centroids);
            free(point);
        }
}

static void test_rows_outside(void **state)
{
    (void)state;
    struct error error = ERROR_INIT;
    const float rows[] = {1, 2, NAN, 1, 0, 0, -1, 4, INFINITY, 0};
    const float centroids[] = {1, 0, 0, 1};
    static const bool placed[3][5] = {{true, false, true, true, false},
                                      {true, false, false, true, false},
                                      {true, false, true, false, false}};
    for (int m = 0; m < 3; m++) {
        int32_t labels[5] = {-1, -1, -1, -1, -1};
        float distances[5];
        assert_int_equal(
            label_rows(labels, distances, rows, 5, 2, centroids, 2, metrics[m], 2, NULL, &error),
            STATUS_OK);
        for (int row = 0; row < 5; row++) {
            assert_int_equal(labels[row] >= 0, placed[m][row]);
            assert_int_equal(!isnan(distances[row]), placed[m][row]);
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct error error = ERROR_INIT;
    struct stop stop = {0};
    const float value = 1;
    int32_t label = -1;
    float distance;
    assert_int_equal(
        label_rows(&label, &distance, &value, 1, 1, &value, 1, "manhattan", 1, NULL, &error),
        STATUS_FAILED);
    assert_int_equal(
        label_rows(&label, &distance, &value, 0, 1, &value, 1, "cosine", 1, NULL, &error),
        STATUS_OK);
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(
        label_rows(&label, &distance, &value, 1, 1, &value, 1, "cosine", 1, &stop, &error),
        STATUS_INTERRUPTED);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_labels),
                                          cmocka_unit_test(test_rows_outside),
                                          cmocka_unit_test(test_refusals)};
TEST_GROUP(label_rows, NULL, NULL)
