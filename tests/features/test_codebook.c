/* test_codebook.c: codebooks as arrays, their digest, and the reference code for projection and
 * words. */
#include "runner.h"

#include "base/random.h"
#include "features/codebook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 20, PROJECTED = 6, WORDS = 9 };

static void make(struct feature_codebook *codebook)
{
    struct error err = ERROR_INIT;
    uint32_t random = RANDOM_START;
    assert_int_equal(feature_codebook_allocate(codebook, "test-1", COLUMNS, PROJECTED, WORDS, &err),
                     STATUS_OK);
    codebook->shift = 11;
    for (uint32_t i = 0; i < PROJECTED * COLUMNS; i++)
        codebook->matrix[i] = (int16_t)(random_next(&random) >> 21) - 1024;
    for (uint32_t i = 0; i < PROJECTED; i++)
        codebook->offset[i] = -128 * codebook->matrix[i];
    for (uint32_t i = 0; i < WORDS * PROJECTED; i++) {
        codebook->word[i] = (int8_t)(random_next(&random) % 255 - 127);
        codebook->mean[i] = codebook->word[i];
        codebook->deviation[i] = 2;
    }
    memcpy(codebook->word + 5 * PROJECTED, codebook->word + 2 * PROJECTED, PROJECTED);
    for (uint32_t i = 0; i < WORDS; i++)
        codebook->share[i] = 1.0 / WORDS;
}

static void arrays_give_the_same_codebook(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct feature_codebook codebook, copy;
    struct codebook_array arrays[CODEBOOK_ARRAYS], turned[CODEBOOK_ARRAYS];
    char digest[FEATURE_DIGEST], again[FEATURE_DIGEST];
    make(&codebook);
    feature_codebook_digest(digest, &codebook);
    assert_int_equal(strlen(digest), FEATURE_DIGEST - 1);
    feature_codebook_arrays(arrays, &codebook);
    for (unsigned i = 0; i < CODEBOOK_ARRAYS; i++)
        turned[i] = arrays[CODEBOOK_ARRAYS - 1 - i];
    assert_int_equal(feature_codebook_from_arrays(&copy, turned, CODEBOOK_ARRAYS, "a file", &err),
                     STATUS_OK);
    feature_codebook_digest(again, &copy);
    assert_string_equal(again, digest);
    assert_string_equal(copy.descriptor, "test-1");
    copy.deviation[3] += 1;
    feature_codebook_digest(again, &copy);
    assert_string_not_equal(again, digest);
    feature_codebook_clear(&copy);
    feature_codebook_clear(&codebook);
}

static void refuse(const struct codebook_array *arrays, unsigned count, const char *sentence)
{
    struct error err = ERROR_INIT;
    struct feature_codebook codebook;
    assert_int_equal(feature_codebook_from_arrays(&codebook, arrays, count, "a file", &err),
                     STATUS_FAILED);
    assert_string_equal(err.sentence, sentence);
    assert_null(codebook.matrix);
}

#define UNUSABLE "a file: not a codebook that this version can use: "

static void damaged_arrays_are_refused(void **state)
{
    (void)state;
    struct feature_codebook codebook;
    struct codebook_array arrays[CODEBOOK_ARRAYS];
    make(&codebook);
    feature_codebook_arrays(arrays, &codebook);
    refuse(arrays, 0, "a file: not a codebook: it has no descriptor");
    refuse(arrays, 2, "a file: not a codebook: it has no matrix");
    refuse(arrays, CODEBOOK_ARRAYS - 1,
           "a file: not a codebook: its share does not match the rest");
    arrays[5].rows--;
    refuse(arrays, CODEBOOK_ARRAYS, "a file: not a codebook: its mean does not match the rest");
    arrays[5].rows++;
    arrays[4].columns = arrays[4].rows = 0;
    refuse(arrays, CODEBOOK_ARRAYS, "a file: not a codebook that this version can use");
    feature_codebook_arrays(arrays, &codebook);

    const struct feature_codebook good = codebook;
    const double deviation = codebook.deviation[7];
    codebook.deviation[7] = 0;
    refuse(arrays, CODEBOOK_ARRAYS, UNUSABLE "it has an impossible mean or deviation");
    codebook.deviation[7] = deviation;
    const double mean = codebook.mean[7];
    codebook.mean[7] = INFINITY;
    refuse(arrays, CODEBOOK_ARRAYS, UNUSABLE "it has an impossible mean or deviation");
    codebook.mean[7] = mean;
    const double share = codebook.share[1];
    codebook.share[1] = -share;
    refuse(arrays, CODEBOOK_ARRAYS, UNUSABLE "it has an impossible share");
    codebook.share[1] = share;
    const int8_t word = codebook.word[1];
    codebook.word[1] = -128;
    refuse(arrays, CODEBOOK_ARRAYS, UNUSABLE "it has a word outside the range");
    codebook.word[1] = word;
    codebook.shift = 24;
    refuse(arrays, CODEBOOK_ARRAYS, UNUSABLE "its shift is too large");
    codebook.shift = good.shift;
    codebook.offset[1] = 1 << 24;
    refuse(arrays, CODEBOOK_ARRAYS, UNUSABLE "its projection is too large");
    feature_codebook_clear(&codebook);
}

static void projection_and_words(void **state)
{
    (void)state;
    struct feature_codebook codebook;
    int8_t projected[PROJECTED];
    uint8_t descriptor[COLUMNS] = {0};
    make(&codebook);
    for (uint32_t j = 0; j < PROJECTED; j++)
        codebook.matrix[j * COLUMNS] = (int16_t)(8 * (int)j - 24), codebook.offset[j] = 0;
    codebook.shift = 4;
    for (unsigned x = 0; x < 256; x++) {
        descriptor[0] = (uint8_t)x;
        codebook_project(projected, &codebook, descriptor);
        for (int j = 0; j < PROJECTED; j++) {
            int value = (8 * j - 24) * (int)x >> 4;
            value = value > 127 ? 127 : value < -127 ? -127 : value;
            assert_int_equal(projected[j], value);
        }
    }
    /* Words 2 and 5 are equal, so the first one is found. */
    for (uint32_t w = 0; w < WORDS; w++)
        assert_int_equal(codebook_nearest(&codebook, codebook.word + w * PROJECTED),
                         w == 5 ? 2 : w);
    feature_codebook_clear(&codebook);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(arrays_give_the_same_codebook),
    cmocka_unit_test(damaged_arrays_are_refused),
    cmocka_unit_test(projection_and_words),
};

TEST_GROUP(codebook, NULL, NULL)
