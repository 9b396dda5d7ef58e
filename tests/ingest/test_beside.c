/* test_beside.c: a stop while sidecar files are being read is reported as an interruption. */
#include "../sources/test_walk.h"

#include "ingest/beside.h"

static const char *const here[] = {"tree"};

static void a_stop_interrupts_reading(void **state)
{
    (void)state;
    put_directory("tree");
    put_file("tree/a.jpg", "content");
    put_file("tree/a.txt", "caption");
    const struct walk_config config = config_for(here);
    struct stop stop = {0};
    struct error err = ERROR_INIT;
    struct sidecars *sidecars;
    struct walk *walk = open_walk(&config);
    assert_int_equal(sidecars_open(&sidecars, "spool", &err), STATUS_OK);
    assert_int_equal(beside_read(sidecars, walk, &stop, &err), STATUS_OK);
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(beside_read(sidecars, walk, &stop, &err), STATUS_INTERRUPTED);
    assert_int_equal(err.status, STATUS_INTERRUPTED);
    sidecars_close(&sidecars);
    walk_close(&walk);
}

static const struct CMUnitTest tests[] = {walk_test(a_stop_interrupts_reading)};
TEST_GROUP(beside, NULL, NULL)
