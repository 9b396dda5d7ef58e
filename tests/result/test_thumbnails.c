/* test_thumbnails.c: codes and thumbnails of records are in the file after updates and kills. */
#include "result/repair.h"
#include "test_store_common.h"
#include <hdf5.h>

#define ITEMS 60

/* What a run makes for each image. */
struct making {
    bool code, require;
    uint16_t size;    /* of the thumbnails that it makes */
    uint16_t wanted;  /* of the thumbnails that it requests */
    uint64_t version; /* of every fourth item */
    unsigned items;   /* total number, of which the run processes `until` */
    unsigned until;
};

struct outcome {
    struct store_summary summary;
    unsigned fresh, unchanged, resumed;
};

static struct outcome run(struct fixture *f, const struct making *making)
{
    struct error error = ERROR_INIT;
    struct store *store;
    struct outcome outcome = {.fresh = 0};
    const unsigned until = making->until ? making->until : making->items;
    f->config.content.thumbnail_size = making->wanted;
    f->config.require_codes = making->require;
    assert_ok(store_open(&store, &f->config, &error));
    for (unsigned i = 0; i < until; i++) {
        struct made made;
        struct store_record prior;
        make_record(&made, i, i % 4 == 1 ? making->version : 0);
        add_extras(&made, making->code, making->size);
        bool found = prior_find(store_prior(store), 0, made.path, made.record.path_length,
                                made.record.image.bytes, made.record.image.mtime_ns, &prior);
        struct store_record *record = found ? &prior : &made.record;
        record->sequence = i;
        assert_ok(store_put(store, record, &error));
        outcome.fresh += !found;
        outcome.unchanged += found && !location_in_log(prior.origin);
        outcome.resumed += found && location_in_log(prior.origin);
    }
    if (until == making->items)
        assert_ok(store_finish(store, &test_run, &outcome.summary, &error));
    store_close(&store);
    return outcome;
}

/* Checks that the file contains exactly what add_extras gives: codes or none, and thumbnails of
 * `size` (0: none) for items below `with`. */
static void assert_extras(struct fixture *f, const struct making *made_as, bool codes,
                          uint16_t size, unsigned with)
{
    struct error error = ERROR_INIT;
    struct result *result;
    uint64_t row = 0, broken;
    assert_ok(result_open(&result, f->output, &error));
    assert_int_equal(result_has_codes(result), codes);
    assert_int_equal(result->thumbnail_size, size);
    for (unsigned i = 0; i < made_as->items; i++) {
        struct made made;
        struct result_image image;
        const uint8_t *jpeg;
        uint64_t length;
        uint8_t code[32];
        make_record(&made, i, i % 4 == 1 ? made_as->version : 0);
        add_extras(&made, codes, size);
        if (made.record.failure.reason != REASON_NONE)
            continue;
        assert_ok(result_image_at(result, row, &image, &error));
        assert_int_equal(image.has_code, codes);
        assert_memory_equal(image.code, made.record.image.code, sizeof image.code);
        if (codes) {
            assert_ok(result_codes_read(result, row, 1, code, &error));
            assert_memory_equal(code, made.record.image.code, sizeof code);
        }
        assert_ok(result_thumbnail_read(result, row, &jpeg, &length, &error));
        assert_int_equal(length, i < with ? made.record.thumbnail_length : 0);
        if (length > 0)
            assert_memory_equal(jpeg, made.thumbnail, length);
        row++;
    }
    assert_int_equal(row, result_images(result));
    assert_ok(result_verify(result, print_broken, NULL, &broken, &error));
    assert_int_equal(broken, 0);
    result_close(&result);
}

static void test_written_and_carried_over(void **state)
{
    struct fixture *f = *state;
    struct making making = {.code = true, .size = 160, .wanted = 160, .items = ITEMS};
    run(f, &making);
    assert_extras(f, &making, true, 160, ITEMS);
    assert_true(run(f, &making).summary.unchanged);
    /* Some rows have changed and some are new; the others come from the file. */
    making.version = 1;
    making.items = ITEMS + 20;
    struct outcome outcome = run(f, &making);
    assert_true(outcome.unchanged > ITEMS / 2 && outcome.fresh >= 20);
    assert_extras(f, &making, true, 160, making.items);
    /* A run that does not request thumbnails keeps the existing ones. */
    making = (struct making){.code = true, .version = 1, .items = ITEMS + 30};
    run(f, &making);
    assert_extras(f, &making, true, 160, ITEMS + 20);
    /* If they are requested again, missing ones are made where possible. */
    making.size = making.wanted = 160;
    run(f, &making);
    assert_extras(f, &making, true, 160, making.items);
    assert_true(run(f, &making).summary.unchanged);
}

static void test_other_size_makes_all_again(void **state)
{
    struct fixture *f = *state;
    struct making making = {.size = 160, .wanted = 160, .items = ITEMS};
    char before[65], after[65];
    run(f, &making);
    identity_of(before, f->output);
    making.size = making.wanted = 64;
    struct outcome outcome = run(f, &making);
    assert_false(outcome.summary.unchanged);
    assert_extras(f, &making, false, 64, ITEMS);
    /* Thumbnails are not part of the identity. */
    identity_of(after, f->output);
    assert_string_equal(before, after);
}

static void test_codes_are_for_all_or_none(void **state)
{
    struct fixture *f = *state;
    struct making making = {.items = ITEMS};
    char without[65], with[65], hex[65];
    run(f, &making);
    identity_of(without, f->output);
    making.code = true;
    /* Missing codes alone are no reason to process images again. */
    assert_true(run(f, &making).summary.unchanged);
    making.items = ITEMS + 10;
    run(f, &making);
    assert_extras(f, &making, false, 0, 0);
    making.require = true;
    struct outcome outcome = run(f, &making);
    assert_false(outcome.summary.unchanged);
    assert_extras(f, &making, true, 0, 0);
    identity_of(with, f->output);
    assert_string_not_equal(with, without);
    assert_true(run(f, &making).summary.unchanged);
    f->config.fresh = true;
    making.require = false;
    run(f, &making);
    f->config.fresh = false;
    identity_of(hex, f->output);
    assert_string_equal(hex, with);
}

static void test_resumed(void **state)
{
    struct fixture *f = *state;
    struct making making = {.code = true, .size = 160, .wanted = 160, .items = ITEMS, .until = 25};
    run(f, &making);
    making.until = 40;
    assert_int_equal(run(f, &making).resumed, 25);
    making.until = 0;
    assert_int_equal(run(f, &making).resumed, 40);
    assert_extras(f, &making, true, 160, ITEMS);
    /* A run that requests thumbnails cannot use a log without them, or with another size. */
    f->config.fresh = true;
    making.until = 30;
    making.wanted = making.size = 0;
    run(f, &making);
    f->config.fresh = false;
    unlink(f->output);
    making.wanted = making.size = 64;
    struct outcome outcome = run(f, &making);
    assert_true(outcome.resumed < 15); /* only failures are used */
    making.wanted = making.size = 32;
    making.until = 0;
    outcome = run(f, &making);
    assert_true(outcome.resumed < 15);
    assert_extras(f, &making, true, 32, ITEMS);
}

static void ignore(const char *line, void *context)
{
    (void)line;
    (void)context;
}

static void test_repaired_from_the_log(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct making making = {.code = true, .size = 160, .wanted = 160, .items = ITEMS, .until = 40};
    run(f, &making);
    const struct repair_config config = {.input = f->output, .run = &test_run, .broken = ignore};
    struct repair_report report;
    assert_ok(store_repair(&report, &config, &error));
    assert_true(report.from_log && report.written);
    remove_tree(f->work);
    making.items = 40;
    assert_extras(f, &making, true, 160, 40);
}

static void test_damaged_ends(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct making making = {.size = 160, .wanted = 160, .items = ITEMS};
    const uint64_t wrong = UINT64_MAX;
    struct result *result;
    const uint8_t *jpeg;
    uint64_t length, broken;
    run(f, &making);
    hid_t file = H5Fopen(f->output, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t end = H5Dopen2(file, "thumbnails/end", H5P_DEFAULT), space = H5Dget_space(end);
    hsize_t at = 7, one = 1;
    hid_t memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(end, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, &wrong) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(end);
    H5Fclose(file);
    assert_ok(result_open(&result, f->output, &error));
    assert_ok(result_thumbnail_read(result, 6, &jpeg, &length, &error));
    assert_int_equal(result_thumbnail_read(result, 7, &jpeg, &length, &error), STATUS_FAILED);
    assert_int_equal(result_thumbnail_read(result, 8, &jpeg, &length, &error), STATUS_FAILED);
    assert_ok(result_thumbnail_read(result, 9, &jpeg, &length, &error));
    assert_ok(result_verify(result, ignore, NULL, &broken, &error));
    assert_true(broken > 0);
    result_close(&result);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_written_and_carried_over, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_other_size_makes_all_again, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_codes_are_for_all_or_none, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_resumed, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_repaired_from_the_log, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_damaged_ends, fixture_open, fixture_close),
};

TEST_GROUP(thumbnails, NULL, NULL)
