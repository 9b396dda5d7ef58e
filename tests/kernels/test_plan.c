/* test_plan.c: how the device plans a pass from shifts that only it knows, and the list of moved
 * centroids, compared with plain C. Run it under Oclgrind, too, where it uses less data. */
#include "runner.h"

#include "kmeans.h"
#include "kmeans/cluster.h"
#include "kmeans/shard.h"
#include "test_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS         5003
#define CLUSTERS     4500
#define CLUSTERS_FEW 130 /* under Oclgrind */
#define KINDS        5

static cl_float shifts[CLUSTERS], sorted[CLUSTERS], near[ROWS], far[ROWS];
static int32_t labels[ROWS], ids[CLUSTERS];

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    for (uint64_t i = 0; i < count; i++)
        to[i] = (float)((first + i) % 100);
    return STATUS_OK;
}

static const char *const kinds[KINDS] = {"none moved", "few moved", "equal shifts", "few values",
                                         "all differ"};

static void make_drifts(int kind, uint32_t k)
{
    static uint32_t random = 7;
    for (uint32_t c = 0; c < k; c++) {
        random = random * 1664525u + 1013904223u;
        const float value = (float)(random >> 8) * 0x1p-24f;
        shifts[c] = kind == 0   ? 0
                    : kind == 1 ? (c % 37 == 5 ? value : 0)
                    : kind == 2 ? 0.25f
                    : kind == 3 ? (float)(random >> 29) * 0.125f
                                : value;
        sorted[c] = shifts[c];
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        random = random * 1664525u + 1013904223u;
        labels[i] = (int32_t)((random >> 8) % k);
        near[i] = (float)(random >> 16 & 255) / 128;
        far[i] = near[i] + (float)(random >> 8 & 127) / 128;
    }
}

static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void put(struct shard *shard, cl_mem buffer, size_t bytes, const void *from)
{
    struct error err = ERROR_INIT;
    if (lane_write(shard->lane, "test", buffer, 0, bytes, from, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
}

/* Counts rows by the first threshold below which they may have to be searched, as shift_bounds
 * does. */
static void count_rows(uint32_t found[KMEANS_CANDIDATES + 2], const float *thresholds,
                       uint32_t candidates, uint32_t rows)
{
    memset(found, 0, (KMEANS_CANDIDATES + 2) * sizeof *found);
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t j = 0;
        while (j < candidates && far[i] - near[i] > thresholds[j])
            j++;
        found[j]++;
    }
}

static void check_plan(struct shard *shard, uint32_t rows, uint32_t k, const char *what)
{
    struct prune *prune = &shard->assign.prune;
    struct tile *tile = &shard->data.tiles[0];
    struct error err = ERROR_INIT;
    float thresholds[KMEANS_CANDIDATES];
    uint32_t found[KMEANS_CANDIDATES + 2], moved = 0;
    put(shard, tile->labels, rows * sizeof *labels, labels);
    put(shard, tile->upper_bounds, rows * sizeof *near, near);
    put(shard, tile->lower_bounds, rows * sizeof *far, far);
    put(shard, prune->shifts, k * sizeof *shifts, shifts);
    if (prune_plan_ahead(prune, k, NULL, &err) != STATUS_OK ||
        mailbox_read(&shard->filter.mailbox, &err) != STATUS_OK)
        fail_msg("%s: %s", what, err.sentence);
    const cl_uint *plan = prune->plan.host;
    qsort(sorted, k, sizeof *sorted, descending);
    for (uint32_t c = 0; c < k; c++)
        moved += shifts[c] > 0;
    if (plan[KMEANS_PLAN_MOVED] != moved)
        fail_msg("%s: %u moved, not %u", what, plan[KMEANS_PLAN_MOVED], moved);
    for (uint32_t j = 0; j < prune->candidates; j++) {
        thresholds[j] = prune->ranks[j] < k ? sorted[prune->ranks[j]] : 0;
        if (memcmp(&plan[j], &thresholds[j], sizeof *plan) != 0)
            fail_msg("%s: threshold %u is wrong", what, j);
    }
    count_rows(found, thresholds, prune->candidates, rows);
    for (uint32_t j = 0; j <= prune->candidates; j++)
        if (plan[KMEANS_PLAN_FOUND + j] != found[j])
            fail_msg("%s: %u rows at %u, not %u", what, plan[KMEANS_PLAN_FOUND + j], j, found[j]);

    for (uint32_t j = 0; j < prune->candidates; j++) {
        uint32_t at = 0, listed = 0;
        bool incremental;
        prune->turn = j; /* each candidate is chosen in turn */
        prune_choose(&incremental, prune, k);
        for (uint32_t c = 0; c < k; c++)
            listed += shifts[c] > thresholds[j];
        if (!incremental || prune->threshold != thresholds[j] || prune->most != sorted[0])
            fail_msg("%s: candidate %u is not the one chosen", what, j);
        /* If no centroid has moved, none is searched. */
        if (prune->moved_count < listed || (listed == 0 && prune->moved_count > 0))
            fail_msg("%s: %u moved, not %u", what, prune->moved_count, listed);
        memset(ids, 0x55, k * sizeof *ids);
        put(shard, shard->device_update.cursors, k * sizeof *ids, ids);
        if (prune_list(prune, shard->device_update.cursors, k, &err) != STATUS_OK ||
            lane_read(shard->lane, "test", shard->device_update.cursors, 0, k * sizeof *ids, ids,
                      &err) != STATUS_OK)
            fail_msg("%s: %s", what, err.sentence);
        for (uint32_t c = 0; c < k; c++)
            if (shifts[c] > thresholds[j] && ids[at++] != (int32_t)c)
                fail_msg("%s: mover %u is %d, not %u", what, at - 1, ids[at - 1], c);
        for (; at < k; at++)
            if (ids[at] != (at < prune->moved_count ? -1 : 0x55555555))
                fail_msg("%s: place %u of %u has %d", what, at, prune->moved_count, ids[at]);
    }
}

static void check_device(struct ocl_context *context, bool fewer)
{
    static const uint32_t clusters[] = {1, 2, 15, 16, 17, 127, 128, 129, 1000, CLUSTERS};
    static const uint32_t clusters_few[] = {3, CLUSTERS_FEW};
    const uint32_t *k = fewer ? clusters_few : clusters;
    const size_t count =
        fewer ? sizeof clusters_few / sizeof *k : sizeof clusters / sizeof *clusters;
    const uint32_t rows = fewer ? 300 : ROWS;
    const struct matrix_source source = {.rows = rows, .dimension = 1, .read = read_rows};
    const struct lane_choice tiled = {.forced = true, .tiled = true, .tensor = true, .ranks = 1};
    struct comm alone = {.size = 1};
    struct lane lane;
    struct workers *workers;
    const struct rank rank = {&alone, &lane, &source};
    struct cluster_config config;
    struct shard opened, *shard = &opened;
    struct error err = ERROR_INIT;
    cluster_config_default(&config);
    config.k = k[count - 1];
    config.memory = 256 << 20;
    config.threads = 1;
    if (workers_open(&workers, 1, &err) != STATUS_OK ||
        lane_open(&lane, context, workers, NULL, &tiled, &err) != STATUS_OK ||
        shard_open(shard, &rank, &config, &err) != STATUS_OK ||
        shard_open_update(shard, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    shard->lane->any_prune = true;
    for (size_t i = 0; i < count && shard->device_update.used; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            char what[200];
            snprintf(what, sizeof what, "%s: k %u, %s", shard->lane->device->name, k[i],
                     kinds[kind]);
            make_drifts(kind, k[i]);
            check_plan(shard, rows, k[i], what);
        }
    shard_close(shard);
    lane_close(&lane);
    workers_close(&workers);
}

static void test_plan(void **state)
{
    const struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < devices->count; i++) {
        struct ocl_context *context;
        if (!devices->device[i].usable)
            continue;
        assert_int_equal(ocl_context_open(&context, &devices->device[i], NULL, &err), STATUS_OK);
        check_device(context, strstr(devices->device[i].platform, "Oclgrind") != NULL);
        ocl_context_close(&context);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_plan)};
TEST_GROUP_WITHIN(120, plan, test_devices_open, test_devices_close)
