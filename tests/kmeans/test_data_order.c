/* test_data_order.c: passes over streamed rows in reverse order. */
#include "runner.h"

#include "kmeans/data.h"

#define MOST 40

/* Each tile is visited once; spans, of which the last may be shorter, run from the last to the
 * first. */
static void every_tile_once(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= MOST; count++)
        for (uint32_t span = 1; span <= count + 2; span++) {
            uint32_t before = 0;
            for (uint32_t s = (count + span - 1) / span; s-- > 0;)
                for (uint32_t tile = s * span; tile < (s + 1) * span && tile < count; tile++)
                    assert_int_equal(data_backwards(before++, count, span), tile);
            assert_int_equal(before, count);
        }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(every_tile_once)};
TEST_GROUP(data_order, NULL, NULL)
