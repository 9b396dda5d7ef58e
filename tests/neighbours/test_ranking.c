/* test_ranking.c: the measures equal those of complete rankings sorted by the canonical distance,
 * for all metrics, instruction sets, block sizes and ties. */
#include "neighbours/distances.h"
#include "neighbours/ranking.h"
#include "search_reference.h"

static const char *const ways[] = {NULL, "avx2", "plain"};

/* --- the definitions, on whole sorted rankings ----------------------------------------------------- */

static void sort_others(struct entry *all, uint64_t *count, const float *rows, uint64_t row,
                        const uint32_t *classes, uint64_t n, uint32_t stride)
{
    *count = 0;
    for (uint64_t i = 0; i < n; i++)
        if (i != row && classes[i] != RANKING_NO_CLASS)
            all[(*count)++] = (struct entry){
                canonical_distance(rows + row * stride, rows + i * stride, stride), (int64_t)i};
    qsort(all, *count, sizeof *all, compare);
}

static void define(struct ranking *out, const float *rows, const uint32_t *classes,
                   uint32_t class_count, uint64_t n, uint32_t stride)
{
    struct entry *all = malloc(n * sizeof *all);
    double *first_ten = calloc(class_count, sizeof *first_ten), sum = 0, hits[3] = {0};
    uint64_t *queries = calloc(class_count, sizeof *queries), with = 0;
    *out = (struct ranking){0};
    for (uint64_t row = 0; row < n; row++) {
        uint64_t count, found = 0, found_10 = 0;
        double precision = 0, precision_10 = 0;
        if (classes[row] == RANKING_NO_CLASS)
            continue;
        sort_others(all, &count, rows, row, classes, n, stride);
        for (uint64_t i = 0; i < count; i++) {
            if (classes[all[i].row] != classes[row])
                continue;
            precision += (double)++found / (double)(i + 1);
            found_10 += i < 10;
            if (i < 10)
                precision_10 = precision;
            hits[0] += i < 1;
            hits[1] += i < 5;
            hits[2] += i < 10;
        }
        if (found == 0)
            continue;
        out->queries++;
        queries[classes[row]]++;
        sum += precision / (double)found;
        first_ten[classes[row]] += found_10 ? precision_10 / (double)found_10 : 0;
    }
    const double q = (double)out->queries;
    out->map = sum / q;
    out->precision_at_1 = hits[0] / q;
    out->precision_at_5 = hits[1] / q / 5;
    out->precision_at_10 = hits[2] / q / 10;
    for (uint32_t c = 0; c < class_count; c++)
        if (queries[c] > 0) {
            out->mmap_at_10 += first_ten[c] / (double)queries[c];
            with++;
        }
    out->mmap_at_10 /= (double)with;
    free(all);
    free(first_ten);
    free(queries);
}

static void check_close(double got, double wanted)
{
    if (isnan(wanted))
        assert_true(isnan(got));
    else
        assert_true(fabs(got - wanted) <= 1e-13);
}

static void check(const struct matrix_source *source, const uint32_t *classes, uint32_t class_count,
                  const struct neighbours_config *config)
{
    struct error err = ERROR_INIT;
    struct ranking got, wanted;
    uint32_t stride;
    float *rows = transformed(source, config->metric, &stride);
    define(&wanted, rows, classes, class_count, source->rows, stride);
    if (ranking_measure(&got, source, classes, class_count, config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(got.queries, wanted.queries);
    check_close(got.map, wanted.map);
    check_close(got.precision_at_1, wanted.precision_at_1);
    check_close(got.precision_at_5, wanted.precision_at_5);
    check_close(got.precision_at_10, wanted.precision_at_10);
    check_close(got.mmap_at_10, wanted.mmap_at_10);
    free(rows);
}

static uint32_t *draw_classes(uint64_t rows, uint32_t class_count)
{
    uint32_t *classes = malloc(rows * sizeof *classes);
    for (uint64_t i = 0; i < rows; i++) {
        classes[i] = (uint32_t)(uniform() * uniform() * (float)class_count);
        if (uniform() < 0.1f)
            classes[i] = RANKING_NO_CLASS;
    }
    return classes;
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void measures(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t rows;
        uint32_t dimension, classes;
    } shapes[] = {{3, 2, 1}, {8, 17, 3}, {61, 16, 5}, {150, 20, 2}, {333, 5, 40}};
    random_state = test_seed();
    for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            struct memory_matrix matrix;
            const struct matrix_source source =
                make(&matrix, shapes[s].rows, shapes[s].dimension, pattern);
            uint32_t *classes = draw_classes(source.rows, shapes[s].classes);
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                const struct neighbours_choice choice = {.distances = ways[w],
                                                         .block_rows = w == 1 ? 29 : 0};
                const struct neighbours_config config = {
                    .threads = 2, .memory = w == 2 ? 4096 : 64u << 20, .choice = &choice};
                if (distances_choose(ways[w]))
                    check(&source, classes, shapes[s].classes, &config);
            }
            free(classes);
            free(matrix.values);
        }
}

static void metrics(void **unused)
{
    (void)unused;
    struct memory_matrix matrix;
    random_state = test_seed();
    struct matrix_source source = make(&matrix, 120, 48, SPARSE);
    uint32_t *classes = draw_classes(source.rows, 6);
    for (uint64_t i = 0; i < source.rows; i++)
        matrix.values[i * 48] += 0.01f;
    for (int metric = METRIC_EUCLIDEAN; metric <= METRIC_HELLINGER; metric++) {
        const struct neighbours_config config = {
            .metric = (enum cluster_metric)metric, .threads = 2, .memory = 1 << 20};
        check(&source, classes, 6, &config);
    }
    free(classes);
    free(matrix.values);
}

/* A row whose class has no other row is not a query; all distances have the bits of the
 * definition. */
static void edge_cases(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct memory_matrix matrix;
    struct ranking got;
    random_state = test_seed();
    const struct matrix_source source = make(&matrix, 8, 64, NOISE);
    const uint32_t alone[8] = {0, 1, 2, 3, 4, 5, 6, RANKING_NO_CLASS};
    const struct neighbours_config config = {.threads = 1, .memory = 1 << 20};
    assert_int_equal(ranking_measure(&got, &source, alone, 7, &config, &err), STATUS_OK);
    assert_int_equal(got.queries, 0);
    assert_true(isnan(got.map) && isnan(got.precision_at_10) && isnan(got.mmap_at_10));
    const float *x[DISTANCES_SIDE], *y[DISTANCES_SIDE];
    for (unsigned i = 0; i < DISTANCES_SIDE; i++) {
        x[i] = matrix.values + (size_t)i * 64;
        y[i] = matrix.values + (size_t)(7 - i) * 64;
    }
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        double out[DISTANCES_SIDE * DISTANCES_SIDE];
        if (!distances_choose(ways[w]))
            continue;
        distances_choose(ways[w])(out, x, y, 64);
        for (unsigned i = 0; i < DISTANCES_SIDE * DISTANCES_SIDE; i++) {
            const double wanted = canonical_distance(x[i / 4], y[i % 4], 64);
            assert_memory_equal(&out[i], &wanted, sizeof wanted);
        }
    }
    free(matrix.values);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(measures), cmocka_unit_test(metrics),
                                          cmocka_unit_test(edge_cases)};
TEST_GROUP(ranking, NULL, NULL)
