/* test_train.c: codebooks trained on samples with known words, with any number of threads; on flat
 * samples; and on fewer descriptors than words. */
#include "runner.h"

#include "base/random.h"
#include "features/train.h"
#include "ocl/ocl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 37, PROJECTED = 5, ROWS = 3001, CENTRES = 6 };

static const struct descriptor descriptor = {
    .name = "test-1", .columns = COLUMNS, .projected = PROJECTED, .whiten = 0.5};

static struct ocl_devices devices;
static struct ocl_context *context;
static uint8_t sample[ROWS * COLUMNS];

static void train(struct feature_codebook *codebook, uint64_t rows, uint32_t words,
                  unsigned threads)
{
    struct error err = ERROR_INIT;
    const struct cluster_devices all = {&context, 1};
    const struct codebook_training training = {
        .sample = sample, .rows = rows, .devices = &all, .memory = 64 << 20, .threads = threads};
    if (codebook_train(codebook, &descriptor, words, &training, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
}

/* Every word has the values that its descriptors' statistics give, and the arrays are a valid
 * codebook. */
static void check(const struct feature_codebook *codebook, uint64_t rows)
{
    struct error err = ERROR_INIT;
    struct codebook_array arrays[CODEBOOK_ARRAYS];
    struct feature_codebook copy;
    feature_codebook_arrays(arrays, codebook);
    if (feature_codebook_from_arrays(&copy, arrays, CODEBOOK_ARRAYS, "it", &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    feature_codebook_clear(&copy);
    for (uint32_t w = 0; w < codebook->words; w++) {
        double sum[PROJECTED] = {0}, squares[PROJECTED] = {0};
        uint64_t number = 0;
        for (uint64_t r = 0; r < rows; r++) {
            int8_t projected[PROJECTED];
            codebook_project(projected, codebook, sample + r * COLUMNS);
            if (codebook_nearest(codebook, projected) != w)
                continue;
            number++;
            for (uint32_t j = 0; j < PROJECTED; j++) {
                sum[j] += projected[j];
                squares[j] += projected[j] * projected[j];
            }
        }
        assert_true(codebook->share[w] == (double)(number ? number : 1) / (double)rows);
        for (uint32_t j = 0; j < PROJECTED && number; j++) {
            const double mean = sum[j] / (double)number;
            const double variance = squares[j] / (double)number - mean * mean;
            const double stored = codebook->deviation[w * PROJECTED + j];
            assert_true(codebook->mean[w * PROJECTED + j] == mean);
            assert_true(stored >= 0.5 && stored >= sqrt(variance));
        }
    }
}

static void words_are_the_centres(void **state)
{
    (void)state;
    struct feature_codebook one, three;
    char digest[FEATURE_DIGEST], again[FEATURE_DIGEST];
    uint32_t random = RANDOM_START;
    uint32_t first[CENTRES];
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i < COLUMNS; i++)
            sample[r * COLUMNS + i] = (uint8_t)(40 + (r % CENTRES * 2654435761u >> (i % 24) & 127) +
                                                random_next(&random) % 9);
    train(&one, ROWS, CENTRES, 1);
    train(&three, ROWS, CENTRES, 3);
    feature_codebook_digest(digest, &one);
    feature_codebook_digest(again, &three);
    assert_string_equal(digest, again);
    check(&one, ROWS);
    for (uint32_t r = 0; r < ROWS; r++) {
        int8_t projected[PROJECTED];
        codebook_project(projected, &one, sample + r * COLUMNS);
        const uint32_t word = codebook_nearest(&one, projected);
        if (r < CENTRES)
            first[r] = word;
        assert_int_equal(word, first[r % CENTRES]);
    }
    feature_codebook_clear(&three);
    feature_codebook_clear(&one);
}

static void poor_samples(void **state)
{
    (void)state;
    struct feature_codebook codebook;
    int8_t projected[PROJECTED];
    memset(sample, 77, sizeof sample);
    train(&codebook, 50, 4, 1); /* flat: no variance in any column */
    check(&codebook, 50);
    codebook_project(projected, &codebook, sample);
    assert_int_equal(codebook_nearest(&codebook, projected), 0);
    feature_codebook_clear(&codebook);
    for (uint32_t r = 0; r < 3; r++) /* one column varies; three distinct rows for 8 words */
        sample[r * COLUMNS + 5] = (uint8_t)(100 * r);
    train(&codebook, 3, 8, 2);
    check(&codebook, 3);
    for (uint32_t w = 3; w < 8; w++)
        assert_memory_equal(codebook.word + w * PROJECTED, codebook.word, PROJECTED);
    feature_codebook_clear(&codebook);

    struct error err = ERROR_INIT;
    const struct codebook_training none = {.sample = sample, .threads = 1};
    assert_int_equal(codebook_train(&codebook, &descriptor, 4, &none, &err), STATUS_USAGE);
    assert_null(codebook.matrix);
}

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    (void)state;
    return ocl_devices_open(&devices, 2, &err) != STATUS_OK || devices.count == 0 ||
           ocl_context_open(&context, &devices.device[0], NULL, &err) != STATUS_OK;
}

static int teardown(void **state)
{
    (void)state;
    ocl_context_close(&context);
    ocl_devices_close(&devices);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_are_the_centres),
    cmocka_unit_test(poor_samples),
};

TEST_GROUP(train, setup, teardown)
