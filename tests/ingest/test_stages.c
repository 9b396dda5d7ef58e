/* test_stages.c: which stage limits a run, and how long devices were idle. */
#include "runner.h"

#include "ingest/stages.h"

static void names_and_threads(void **state)
{
    (void)state;
    static const char *const name[] = {"walk", "decode", "upload", "histogram", "store"};
    struct stage_times stage[INGEST_STAGES] = {[STAGE_WALK] = {.busy = 3}};
    stages_init(stage);
    for (unsigned i = 0; i < INGEST_STAGES; i++) {
        assert_string_equal(stage[i].name, name[i]);
        assert_int_equal(stage[i].threads, 1);
    }
    assert_true(stage[STAGE_WALK].busy == 3);
}

static void rings_are_busy_or_starved(void **state)
{
    (void)state;
    struct stage_times stage[INGEST_STAGES] = {{0}};
    const struct staging_times times = {.upload = 1.5, .compute = 4, .read_back = 0.25, .rings = 2};
    stages_init(stage);
    stages_add_devices(stage, &times, 10);
    assert_int_equal(stage[STAGE_UPLOAD].threads, 2);
    assert_int_equal(stage[STAGE_HISTOGRAM].threads, 2);
    assert_true(stage[STAGE_UPLOAD].busy == 1.5 && stage[STAGE_UPLOAD].starved == 18.5);
    assert_true(stage[STAGE_HISTOGRAM].busy == 4.25 && stage[STAGE_HISTOGRAM].starved == 15.75);
    assert_int_equal(stage[STAGE_DECODE].threads, 1);
    assert_true(stage[STAGE_STORE].starved == 0);
    /* Device clocks may run faster than ours. */
    stages_add_devices(stage, &times, 2);
    assert_true(stage[STAGE_UPLOAD].starved == 2.5 && stage[STAGE_HISTOGRAM].starved == 0);
}

static void assert_bottleneck(unsigned expected, const double busy[INGEST_STAGES],
                              const unsigned threads[INGEST_STAGES])
{
    struct stage_times stage[INGEST_STAGES] = {{0}};
    for (unsigned i = 0; i < INGEST_STAGES; i++) {
        stage[i].busy = busy[i];
        stage[i].threads = threads[i];
    }
    assert_int_equal(stages_bottleneck(stage), expected);
}

static void the_busiest_threads(void **state)
{
    (void)state;
    const unsigned one[] = {1, 1, 1, 1, 1}, some[] = {1, 8, 2, 2, 1}, none[] = {1, 0, 1, 1, 1};
    assert_bottleneck(STAGE_DECODE, (double[]){9, 2, 1, 1, 1}, one);
    assert_bottleneck(STAGE_UPLOAD, (double[]){0, 2, 3, 1, 1}, one);
    assert_bottleneck(STAGE_HISTOGRAM, (double[]){0, 2, 3, 4, 1}, one);
    assert_bottleneck(STAGE_STORE, (double[]){0, 2, 3, 4, 5}, one);
    assert_bottleneck(STAGE_DECODE, (double[]){0, 2, 2, 2, 2}, one); /* the first of equals */
    assert_bottleneck(STAGE_UPLOAD, (double[]){0, 8, 3, 2, 1}, some);
    assert_bottleneck(STAGE_DECODE, (double[]){0, 16, 3, 2, 1}, some);
    assert_bottleneck(STAGE_STORE, (double[]){0, 8, 1, 1, 1.25}, some);
    assert_bottleneck(STAGE_STORE, (double[]){0, 5, 0, 0, 1}, none);
    assert_bottleneck(STAGE_DECODE, (double[]){0, 0, 0, 0, 0}, none);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_and_threads),
    cmocka_unit_test(rings_are_busy_or_starved),
    cmocka_unit_test(the_busiest_threads),
};
TEST_GROUP(stages, NULL, NULL)
