/* test_staging.c: plans with branches: features of the decoded, scaled, blurred, and scaled and
 * blurred picture from one upload, compared with plain C. */
#include "runner.h"

#include "base/random.h"
#include "device/blur_step.h"
#include "device/plan.h"
#include "device/staging.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PICTURES 30u
#define WORDS    64u
#define SIDE     40u
#define IMAGES   4u /* as decoded; scaled; blurred; scaled and blurred: 16 words each */

struct picture {
    uint8_t *pixels;
    uint32_t width, height, parts;
    uint32_t values[WORDS], wanted[WORDS];
    pthread_mutex_t lock;
};

static void add_values(void *context, void *item, const struct part_result *result)
{
    (void)context;
    struct picture *picture = item;
    pthread_mutex_lock(&picture->lock);
    for (unsigned i = 0; i < WORDS; i++)
        picture->values[i] += result->values[i];
    pthread_mutex_unlock(&picture->lock);
}

static void fail_device(void *context, const struct error *err, unsigned alive)
{
    (void)context;
    (void)alive;
    fail_msg("%s", err->sentence);
}

/* One feature for each image, and the plan that produces the images. */
struct images {
    struct feature_set set;
    struct feature_set one[IMAGES]; /* each with its offset in the row */
    struct count_config config[IMAGES];
    struct step_plan plan;
};

static void make_plan(struct images *images, bool scaled)
{
    struct error err = ERROR_INIT;
    memset(images, 0, sizeof *images);
    images->plan.words = WORDS;
    for (unsigned i = 0; i < IMAGES; i++) {
        char spec[64];
        snprintf(spec, sizeof spec, "f%u=gray:bins=4,grid=2x2", i);
        assert_int_equal(feature_set_add(&images->set, spec, NORMALIZE_NONE, &err), STATUS_OK);
        images->one[i].feature[0] = images->set.feature[i];
        images->one[i].count = 1;
        images->one[i].counters = images->one[i].values = WORDS;
        images->config[i] = (struct count_config){.features = &images->one[i]};
        int node = -1;
        if (i & 1 && !scaled)
            continue;
        if (i & 1)
            node = step_plan_node(
                &images->plan,
                (struct step_node){.step = &scale_step, .input = node, .parameter = SIDE});
        if (i & 2)
            node = step_plan_node(
                &images->plan,
                (struct step_node){.step = &blur_step, .input = node, .border = BLUR_BORDER});
        step_plan_node(
            &images->plan,
            (struct step_node){.step = &count_step, .input = node, .config = &images->config[i]});
    }
    assert_int_equal(images->plan.count, scaled ? 7 : 3);
    assert_int_equal(step_plan_least_part(&images->plan), scaled ? 3 * SIDE * SIDE : 0);
    assert_int_equal(step_plan_overlap(&images->plan), BLUR_BORDER);
}

static uint8_t *blur(const uint8_t *pixels, uint32_t width, uint32_t height)
{
    uint8_t *out = calloc(width * 3, height);
    if (width > BLUR_BORDER && height > BLUR_BORDER)
        blur_reference(out, 3 * (size_t)(width - BLUR_BORDER), pixels, 3 * (size_t)width,
                       width - BLUR_BORDER, height - BLUR_BORDER);
    return out;
}

static void count_wanted(struct picture *picture, const struct images *images, bool scaled)
{
    for (unsigned i = 0; i < IMAGES; i++) {
        uint32_t width = picture->width, height = picture->height;
        uint8_t *pixels = malloc((size_t)3 * width * height);
        memcpy(pixels, picture->pixels, (size_t)3 * width * height);
        if (i & 1 && scaled) {
            const struct scale_window window = scale_window(width, height, 1, SIDE);
            width = window.width;
            height = window.height;
            scale_reference(pixels, &window, picture->pixels, 3 * (size_t)picture->width,
                            picture->width, picture->height, 1);
        }
        if (i & 2) {
            uint8_t *blurred = blur(pixels, width, height);
            free(pixels);
            pixels = blurred;
            width -= width > BLUR_BORDER ? BLUR_BORDER : width;
            height -= height > BLUR_BORDER ? BLUR_BORDER : height;
        }
        if (!(i & 1) || scaled)
            feature_count_reference(picture->wanted + images->set.feature[i].offset,
                                    &images->set.feature[i], pixels, 3 * (size_t)width, width,
                                    height, 7);
        free(pixels);
    }
}

static void make_picture(struct picture *picture, unsigned number, uint32_t *random)
{
    *picture = (struct picture){.width = 1 + (random_next(random) >> 8) % (number % 8 ? 60 : 400),
                                .height = 1 + (random_next(random) >> 8) % (number % 8 ? 60 : 400)};
    if (number < 4)
        picture->height = number / 2 + 1;
    if (number == 2 || number == 3)
        picture->width = number;
    const size_t bytes = (size_t)3 * picture->width * picture->height;
    picture->pixels = malloc(bytes);
    pthread_mutex_init(&picture->lock, NULL);
    for (size_t b = 0; b < bytes; b++)
        picture->pixels[b] = (uint8_t)(random_next(random) >> 9);
}

/* Submits a picture, in overlapping strips where the steps accept them. */
static void submit_picture(struct staging *staging, struct picture *picture, bool whole,
                           uint32_t *random)
{
    const uint32_t overlap = staging_overlap(staging);
    for (uint32_t y = 0, bottom = 0; bottom < picture->height; y = bottom - overlap) {
        const uint32_t rows = overlap + 1 + (random_next(random) >> 8) % picture->height;
        const uint32_t end = !whole && picture->height - y > rows ? y + rows : picture->height;
        const struct part_shape pixels = {.width = picture->width,
                                          .height = picture->height,
                                          .orientation = 7,
                                          .rect = {0, y, picture->width, end}};
        struct staging_part part;
        assert_true(staging_acquire(staging, &part, &pixels, NULL, 0, NULL));
        memcpy(part.bytes, picture->pixels + (size_t)3 * picture->width * y, part.shape.bytes);
        bottom = part.shape.rect.y1;
        picture->parts++;
        staging_submit(staging, &part, picture);
    }
}

static void check_plan(bool scaled, unsigned slots)
{
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    struct staging *staging;
    static struct images images;
    static struct picture picture[PICTURES];
    uint32_t random = test_seed(), parts = 0;
    const unsigned chosen = 0;
    make_plan(&images, scaled);
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    const struct staging_config config = {.selection = {&devices, &chosen, 1, NULL, NULL},
                                          .plan = &images.plan,
                                          .host_memory = 64u << 20,
                                          .slot_bytes = 1u << 20,
                                          .slot_count = slots,
                                          .deliver = add_values,
                                          .failed = fail_device};
    if (staging_open(&staging, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    scale_goal goals[STEP_NODES_MAX];
    assert_int_equal(staging_goals(goals, staging), scaled);
    assert_true(!scaled || goals[0] == SIDE);
    for (unsigned i = 0; i < PICTURES; i++) {
        make_picture(&picture[i], i, &random);
        submit_picture(staging, &picture[i], scaled, &random);
        parts += picture[i].parts;
    }
    staging_close(&staging);
    assert_true(scaled ? parts == PICTURES : parts > PICTURES);
    for (unsigned i = 0; i < PICTURES; i++) {
        count_wanted(&picture[i], &images, scaled);
        for (unsigned w = 0; w < WORDS; w++)
            if (picture[i].values[w] != picture[i].wanted[w])
                fail_msg("picture %u, %u x %u: word %u is %u, not %u", i, picture[i].width,
                         picture[i].height, w, picture[i].values[w], picture[i].wanted[w]);
        free(picture[i].pixels);
        pthread_mutex_destroy(&picture[i].lock);
    }
    ocl_devices_close(&devices);
}

static void test_plain_and_blurred_in_strips(void **state)
{
    (void)state;
    check_plan(false, 3);
}

static void test_plain_blurred_and_scaled(void **state)
{
    (void)state;
    check_plan(true, 2);
}

static unsigned fill_slots(struct staging_part held[16], struct staging *staging)
{
    const struct part_shape pixels = {
        .width = 500, .height = 300, .orientation = 1, .rect = {0, 0, 500, 300}};
    struct staging_else other = {.rate = 1e30};
    unsigned count = 0;
    while (staging_acquire(staging, &held[count], &pixels, NULL, 0, &other)) {
        assert_false(other.full);
        assert_true(part_is_whole(&held[count].shape) && count < 15);
        memset(held[count].bytes, 0, held[count].shape.bytes);
        count++;
    }
    assert_true(other.full);
    return count;
}

struct caller {
    struct staging *staging;
    struct staging_part part;
    atomic_bool calling, done;
    bool acquired, full;
};

static void *call_main(void *argument)
{
    struct caller *caller = argument;
    const struct part_shape pixels = {
        .width = 8, .height = 8, .orientation = 1, .rect = {0, 0, 8, 8}};
    struct staging_else other = {.rate = 1};
    caller->calling = true;
    caller->acquired = staging_acquire(caller->staging, &caller->part, &pixels, NULL, 0, &other);
    caller->full = other.full;
    caller->done = true;
    return NULL;
}

/* A thread that need not wait is told that all slots are full, and gets a place once there is one.
 * A thread that could add little to the device's rate waits. */
static void test_full_slots(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    struct staging *staging;
    static struct images images;
    static struct staging_part held[16];
    struct picture picture = {.parts = 0};
    pthread_t thread;
    const unsigned chosen = 0;
    make_plan(&images, false);
    pthread_mutex_init(&picture.lock, NULL);
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    const struct staging_config config = {.selection = {&devices, &chosen, 1, NULL, NULL},
                                          .plan = &images.plan,
                                          .host_memory = 64u << 20,
                                          .slot_bytes = 1u << 20,
                                          .slot_count = 2,
                                          .deliver = add_values,
                                          .failed = fail_device};
    assert_int_equal(staging_open(&staging, &config, &err), STATUS_OK);
    for (unsigned round = 0; round < 3; round++) { /* afterwards the device's rate is known */
        assert_int_equal(fill_slots(held, staging),
                         4); /* of 450,000 bytes, in two slots of a MiB */
        for (unsigned i = 0; i < 4; i++)
            staging_submit(staging, &held[i], &picture);
        staging_settle(staging);
    }
    assert_int_equal(fill_slots(held, staging), 4);
    struct caller caller = {.staging = staging};
    assert_int_equal(pthread_create(&thread, NULL, call_main, &caller), 0);
    while (!caller.calling)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    const bool waited = !caller.done;
    for (unsigned i = 0; i < 4; i++)
        staging_cancel(staging, &held[i]);
    pthread_join(thread, NULL);
    assert_true(waited && caller.acquired && !caller.full);
    staging_cancel(staging, &caller.part);
    staging_abort(staging);
    const struct part_shape pixels = caller.part.shape;
    struct staging_else other = {.rate = 1};
    assert_false(staging_acquire(staging, &held[0], &pixels, NULL, 0, &other));
    assert_false(other.full);
    staging_close(&staging);
    pthread_mutex_destroy(&picture.lock);
    ocl_devices_close(&devices);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plain_and_blurred_in_strips),
    cmocka_unit_test(test_plain_blurred_and_scaled),
    cmocka_unit_test(test_full_slots),
};
TEST_GROUP_WITHIN(60, staging, NULL, NULL)
