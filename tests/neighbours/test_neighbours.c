/* test_neighbours.c: neighbours equal those given by the canonical distances of all pairs, for all
 * metrics, instruction sets, block sizes and ties. */
#include "search_reference.h"

#include "neighbours/tile.h"

static const char *const tiles[] = {NULL, "avx2", "plain"};

static void all_rows(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t rows;
        uint32_t dimension, n;
    } shapes[] = {{1, 3, 2}, {2, 1, 5}, {31, 16, 40}, {97, 33, 1}, {200, 20, 7}, {400, 64, 10}};
    random_state = test_seed();
    for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            struct memory_matrix matrix;
            const struct matrix_source source =
                make(&matrix, shapes[s].rows, shapes[s].dimension, pattern);
            for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
                const struct neighbours_choice choice = {.tile = tiles[t],
                                                         .block_rows = t == 1 ? 96 : 0};
                const struct neighbours_config config = {
                    .n = shapes[s].n, .threads = 2, .memory = 64u << 20, .choice = &choice};
                if (tile_choose(tiles[t])) /* otherwise this processor lacks the instructions */
                    check_all(&source, &config);
            }
            free(matrix.values);
        }
}

static void metrics(void **unused)
{
    (void)unused;
    struct memory_matrix matrix;
    random_state = test_seed();
    struct matrix_source source = make(&matrix, 210, 48, SPARSE);
    for (uint64_t i = 0; i < source.rows; i++)
        matrix.values[i * 48] += 0.01f;
    for (int metric = METRIC_EUCLIDEAN; metric <= METRIC_HELLINGER; metric++) {
        const struct neighbours_config config = {
            .metric = (enum cluster_metric)metric, .n = 6, .threads = 2, .memory = 1 << 20};
        check_all(&source, &config);
    }
    free(matrix.values);
}

static void queries(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct memory_matrix matrix;
    struct neighbours got;
    uint32_t stride;
    random_state = test_seed();
    const struct matrix_source source = make(&matrix, 150, 20, DUPLICATES);
    const struct neighbours_config config = {
        .n = 9, .metric = METRIC_HELLINGER, .threads = 3, .memory = 16 << 10};
    float *rows = transformed(&source, config.metric, &stride);
    const uint64_t wanted[] = {149, 0, 70, 70, 3, 12, 99};
    assert_int_equal(neighbours_find(&got, &source, &(struct queries){.rows = wanted, .count = 7},
                                     &config, &err),
                     STATUS_OK);
    for (uint64_t i = 0; i < 7; i++)
        check_row(&got, i, rows + wanted[i] * stride, (int64_t)wanted[i], rows, 150, stride);
    neighbours_clear(&got);
    assert_int_equal(neighbours_find(&got, &source,
                                     &(struct queries){.values = &source, .count = 2}, &config,
                                     &err),
                     STATUS_OK);
    for (uint64_t i = 0; i < 2; i++)
        check_row(&got, i, rows + i * stride, -1, rows, 150, stride);
    neighbours_clear(&got);
    const uint64_t beyond = 150;
    assert_int_equal(neighbours_find(&got, &source, &(struct queries){.rows = &beyond, .count = 1},
                                     &config, &err),
                     STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "no row 150"));
    free(rows);
    free(matrix.values);
}

static void refusals(void **unused)
{
    (void)unused;
    struct memory_matrix matrix;
    struct neighbours got;
    const struct matrix_source source = make(&matrix, 40, 8, CLUMPS);
    struct neighbours_config config = {.n = 2, .threads = 1, .memory = 1 << 20};
    struct error err = ERROR_INIT;
    matrix.values[17 * 8 + 3] = NAN;
    assert_int_equal(neighbours_find(&got, &source, NULL, &config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "row 17"));
    assert_null(got.rows);
    matrix.values[17 * 8 + 3] = 0;
    memset(matrix.values + 9 * 8, 0, 8 * sizeof(float));
    memset(matrix.values, 0, 8 * sizeof(float));
    config.metric = METRIC_COSINE;
    assert_int_equal(neighbours_find(&got, &source, NULL, &config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "row 0"));
    config.metric = METRIC_EUCLIDEAN;
    config.n = 0;
    assert_int_equal(neighbours_find(&got, &source, NULL, &config, &err), STATUS_USAGE);
    struct stop stop = {0};
    config.n = 2;
    config.watch.stop = &stop;
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(neighbours_find(&got, &source, NULL, &config, &err), STATUS_INTERRUPTED);
    free(matrix.values);
}

/* All threads read the rows; two rows are refused, and the first one is reported. */
static void read_by_all_threads(void **unused)
{
    (void)unused;
    struct memory_matrix matrix;
    struct neighbours got;
    struct matrix_source source = make(&matrix, 1500, 64, NOISE);
    const struct neighbours_config config = {.n = 3, .threads = 3, .memory = 16 << 20};
    struct error err = ERROR_INIT;
    source.concurrent = true;
    check_all(&source, &config);
    matrix.values[701 * 64 + 3] = NAN;
    matrix.values[1301 * 64 + 3] = NAN;
    assert_int_equal(neighbours_find(&got, &source, NULL, &config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "row 701"));
    free(matrix.values);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows), cmocka_unit_test(metrics),
                                          cmocka_unit_test(queries), cmocka_unit_test(refusals),
                                          cmocka_unit_test(read_by_all_threads)};
TEST_GROUP(neighbours, NULL, NULL)
