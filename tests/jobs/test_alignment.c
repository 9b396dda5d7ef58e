/* test_alignment.c: copies and merely similar pictures, at the limits of each rule. */
#include "runner.h"

#include "base/random.h"
#include "jobs/alignment.h"

#include <stdlib.h>
#include <string.h>

#define SIDE   256u
#define BLOCK  16u
#define BLOCKS (SIDE / BLOCK * (SIDE / BLOCK))

static struct alignment_plane a, b;
static struct alignment_scratch scratch;

/* Fills a block with 4 x 4 squares, two bright ones in each row and column, so that all blocks have
 * the same energy. An inverted block contradicts the original as much as possible. */
static void fill_block(struct alignment_plane *plane, uint32_t block, uint32_t seed, bool inverted)
{
    uint8_t *at = plane->pixel + block / 16 * BLOCK * SIDE + block % 16 * BLOCK;
    uint32_t random = RANDOM_START + seed, swap[2][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}};
    for (uint32_t i = 0; i < 24; i++) {
        random_next(&random);
        uint32_t *one = &swap[i % 2][random >> 8 & 3], *other = &swap[i % 2][random >> 12 & 3];
        const uint32_t held = *one;
        *one = *other;
        *other = held;
    }
    for (uint32_t i = 0; i < 16; i++) {
        const bool bright = ((swap[0][i / 4] + swap[1][i % 4]) % 4 < 2) != inverted;
        for (uint32_t y = 0; y < 4; y++)
            memset(at + (i / 4 * 4 + y) * SIDE + i % 4 * 4, bright ? 160 : 80, 4);
    }
}

static void fill(struct alignment_plane *plane, uint32_t seed)
{
    plane->width = plane->height = SIDE;
    plane->colour_width = plane->colour_height = ALIGNMENT_COLOUR;
    memset(plane->colour, 128, sizeof plane->colour);
    for (uint32_t i = 0; i < BLOCKS; i++)
        fill_block(plane, i, seed + 7919 * i, false);
}

static struct alignment compare(void)
{
    return alignment_compare(&a, &b, false, &scratch);
}

static int setup(void **state)
{
    (void)state;
    fill(&a, 1);
    fill(&b, 1);
    return 0;
}

static void a_picture_is_a_certain_copy_of_itself(void **state)
{
    (void)state;
    const struct alignment same = compare();
    assert_true(same.same && same.certain);
    assert_int_equal(same.blocks, BLOCKS);
    assert_int_equal(same.contrary, 0);
    fill(&b, 2);
    assert_false(compare().same);
}

/* At most one block in 32 may differ, and then the copy is not certain. The blocks are kept apart,
 * so that none counts as an edge. */
static void few_blocks_may_differ(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= BLOCKS / 32 + 1; n++) {
        const uint32_t block = 16 * (2 + 3 * (n / 4)) + 2 + 3 * (n % 4);
        fill_block(&b, block, 1 + 7919 * block, true);
        const struct alignment alike = compare();
        assert_int_equal(alike.contrary, n);
        assert_int_equal(alike.same, n <= BLOCKS / 32);
        assert_false(alike.certain);
    }
}

/* A strip at an edge may be covered up to a fifth of the height. */
static void an_edge_may_be_covered(void **state)
{
    (void)state;
    for (uint32_t rows = 1; rows <= 6; rows++) {
        for (uint32_t i = 0; i < 16; i++)
            fill_block(&b, 16 * (16 - rows) + i, 1 + 7919 * (16 * (16 - rows) + i), true);
        const struct alignment barred = compare();
        assert_int_equal(barred.same, rows <= 3);
        assert_false(barred.certain);
    }
    fill(&b, 1);
    for (uint32_t i = 0; i < 32; i++)
        fill_block(&b, 16 * 13 + i, 1 + 7919 * (16 * 13 + i), true);
    assert_false(compare().same);
}

/* A block without content contradicts one that has content. */
static void missing_contents_contradict(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 9; i++)
        for (uint32_t y = 0; y < BLOCK; y++)
            memset(b.pixel + ((2 + i / 3 * 4) * BLOCK + y) * SIDE + (2 + i % 3 * 4) * BLOCK, 120,
                   BLOCK);
    const struct alignment emptied = compare();
    assert_false(emptied.same);
    assert_int_equal(emptied.contrary, 9);
}

/* With no colours and few shapes, only brightness can distinguish two pictures. */
static void flat_pictures_without_colours(void **state)
{
    (void)state;
    for (uint32_t colours = 0; colours < 2; colours++) {
        for (uint32_t added = 0; added <= 5; added += 5) {
            memset(a.pixel, 120, sizeof a.pixel);
            memset(b.pixel, 120 + (int)added, sizeof b.pixel);
            for (uint32_t i = 0; i < 24; i++) {
                const uint32_t block = 32 + 16 * (i / 6 * 3) + 2 + i % 6 * 2;
                fill_block(&a, block, i, false);
                fill_block(&b, block, i, false);
            }
            for (uint32_t i = 0; i < sizeof a.colour; i += 3)
                a.colour[i] = b.colour[i] = (uint8_t)(128 + 40 * colours);
            assert_int_equal(compare().same, added == 0 || colours);
        }
    }
}

/* Brightness may be scaled by up to a factor of two; a picture whose brightness differs only in
 * places is not a copy. */
static void brightness(void **state)
{
    (void)state;
    for (uint32_t gain = 13; gain <= 25; gain += 6) {
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
            b.pixel[i] = (uint8_t)(a.pixel[i] * 10 / gain);
        const struct alignment darker = compare();
        assert_int_equal(darker.same, gain < 20);
        assert_int_equal(darker.certain, gain < 20);
    }
    fill(&b, 1);
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        if (i / SIDE % 64 < 24 && i % SIDE % 64 < 24)
            b.pixel[i] = (uint8_t)(b.pixel[i] + 60);
    assert_false(compare().same);
}

static void set_colour(struct alignment_plane *plane, uint8_t red, uint8_t green, uint8_t blue)
{
    for (uint32_t i = 0; i < ALIGNMENT_COLOUR * ALIGNMENT_COLOUR; i++) {
        const bool inside = i / ALIGNMENT_COLOUR % 32 < 16 && i % 32 < 16;
        plane->colour[3 * i] = inside ? red : 128;
        plane->colour[3 * i + 1] = inside ? green : 128;
        plane->colour[3 * i + 2] = inside ? blue : 128;
    }
}

static void colours(void **state)
{
    (void)state;
    set_colour(&a, 200, 60, 60);
    set_colour(&b, 200, 60, 60);
    assert_true(compare().certain);
    set_colour(&b, 180, 70, 80);
    assert_true(compare().certain);
    set_colour(&b, 60, 134, 60); /* as bright as the red, but green */
    assert_false(compare().same);
    /* A grey version counts as a copy only if its brightness is the same, and is not certain. */
    set_colour(&b, 128, 128, 128);
    const struct alignment grey = compare();
    assert_true(grey.same && !grey.certain);
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        b.pixel[i] = (uint8_t)(a.pixel[i] * 8 / 10);
    assert_false(compare().same);
}

/* The aspect ratios of two pictures may differ, but a part is not stretched to match the whole. */
static void stretched(void **state)
{
    (void)state;
    b.height = SIDE / 2;
    for (uint32_t i = 0; i < SIDE * SIDE / 2; i++)
        b.pixel[i] = a.pixel[2 * (i / SIDE) * SIDE + i % SIDE];
    assert_true(compare().same);
    fill(&b, 1);
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        b.pixel[i] = a.pixel[i / SIDE * 7 / 8 * SIDE + i % SIDE];
    assert_false(compare().same);
}

static void small_or_flat_pictures_are_not_copies(void **state)
{
    (void)state;
    a.width = a.height = b.width = b.height = ALIGNMENT_LEAST - 1;
    assert_false(compare().same);
    setup(state);
    memset(a.pixel, 200, sizeof a.pixel);
    memset(b.pixel, 200, sizeof b.pixel);
    assert_false(compare().same);
    /* One block, which also extends into its neighbours, is too little; six are sufficient. */
    for (uint32_t i = 0; i < 6; i++) {
        fill_block(&a, 36 + 37 * i, i, false);
        fill_block(&b, 36 + 37 * i, i, false);
        if (i == 0)
            assert_false(compare().same);
    }
    assert_true(compare().same);
}

/* The small planes do not show a spot of 4 x 4 pixels in planes with 16 times as many pixels. */
static void a_spot_makes_a_copy_uncertain(void **state)
{
    static uint8_t fine[2][ALIGNMENT_FINE * ALIGNMENT_FINE];
    static float memory[3 * ALIGNMENT_FINE * ALIGNMENT_FINE];
    (void)state;
    a.fine = fine[0];
    b.fine = fine[1];
    a.fine_width = a.fine_height = b.fine_width = b.fine_height = ALIGNMENT_FINE;
    scratch.fine = memory;
    for (uint32_t i = 0; i < ALIGNMENT_FINE * ALIGNMENT_FINE; i++)
        a.fine[i] = b.fine[i] = a.pixel[i / ALIGNMENT_FINE / 4 * SIDE + i % ALIGNMENT_FINE / 4];
    assert_true(compare().certain);
    const int differences[] = {16, 80};
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t at = (518 + i / 4) * ALIGNMENT_FINE + 518 + i % 4;
            b.fine[at] = (uint8_t)(a.fine[at] + differences[k]);
        }
        assert_true(compare().same);
        assert_int_equal(compare().certain, k == 0);
    }
    a.fine = b.fine = NULL;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_picture_is_a_certain_copy_of_itself, setup),
    cmocka_unit_test_setup(few_blocks_may_differ, setup),
    cmocka_unit_test_setup(an_edge_may_be_covered, setup),
    cmocka_unit_test_setup(missing_contents_contradict, setup),
    cmocka_unit_test_setup(flat_pictures_without_colours, setup),
    cmocka_unit_test_setup(brightness, setup),
    cmocka_unit_test_setup(colours, setup),
    cmocka_unit_test_setup(stretched, setup),
    cmocka_unit_test_setup(a_spot_makes_a_copy_uncertain, setup),
    cmocka_unit_test_setup(small_or_flat_pictures_are_not_copies, setup),
};
TEST_GROUP(alignment, NULL, NULL)
