/* test_device_update.c: kernels that sort the rows with changed clusters by cluster, compared with
 * plain C, for work-groups that count in local memory and in global memory. Run it under Oclgrind,
 * too, where it uses less data. */
#include "runner.h"

#include "kmeans.h"
#include "kmeans/cluster.h"
#include "kmeans/shard.h"
#include "test_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not a multiple of the rows of a work-group. With any number of compute units, a work-group has
 * fewer than 6000 of these rows and therefore counts 6000 clusters in global memory; it has at
 * least 1024 rows, for which a table in local memory is worthwhile. */
#define ROWS     20011
#define ROWS_FEW 1100 /* under Oclgrind */
#define CLUSTERS 6000
#define KINDS    6

static int32_t labels[ROWS], before[ROWS];
static cl_uint entries[2 * ROWS];
static cl_int owners[2 * ROWS], kept[ROWS];
static cl_long counts[CLUSTERS];
static bool seen[2 * ROWS];

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *to,
                             struct error *err)
{
    (void)context;
    (void)err;
    for (uint64_t i = 0; i < count; i++)
        to[i] = (float)((first + i) % 100);
    return STATUS_OK;
}

static const char *const kinds[KINDS] = {"all rows join", "none moves",      "three move",
                                         "all move",      "one of 20 moves", "all to one cluster"};

static void make_labels(int kind, uint32_t rows, uint32_t k)
{
    static uint32_t random = 1;
    for (uint32_t i = 0; i < rows; i++) {
        random = random * 1664525u + 1013904223u;
        const int32_t other = (int32_t)((random >> 8) % k);
        if (kind == 0 || (kind == 2 && (i == 0 || i == rows / 2 || i == rows - 1)) ||
            (kind == 4 && i % 20 == 7))
            labels[i] = other;
        else if (kind == 3)
            labels[i] = (labels[i] + 1) % (int32_t)k;
        else if (kind == 5)
            labels[i] = (int32_t)k - 1;
    }
}

static void check_entry(uint32_t at, uint32_t rows, const char *what)
{
    const uint32_t row = entries[at] & ~KMEANS_ENTRY_LEAVES;
    const bool leaves = entries[at] & KMEANS_ENTRY_LEAVES;
    if (row >= rows || labels[row] == before[row] || (leaves && before[row] < 0) ||
        owners[at] != (leaves ? before : labels)[row])
        fail_msg("%s: entry %u is row %u, leaves %d, of cluster %d", what, at, row, leaves,
                 owners[at]);
    if (seen[2 * row + leaves])
        fail_msg("%s: row %u, leaves %d, has two entries", what, row, leaves);
    seen[2 * row + leaves] = true;
    if (at > 0 && owners[at] < owners[at - 1])
        fail_msg("%s: entry %u is not in the order of clusters", what, at);
}

static void read_back(struct shard *shard, cl_mem buffer, size_t bytes, void *to)
{
    struct error err = ERROR_INIT;
    if (bytes > 0 && lane_read(shard->lane, "test", buffer, 0, bytes, to, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
}

/* Updates the sums on the device to match labels[], and checks the sorted entries. */
static void check_moves(struct shard *shard, uint32_t rows, uint32_t k, const char *what)
{
    struct tile *tile = &shard->data.tiles[0];
    struct error err = ERROR_INIT;
    uint32_t total = 0;
    memset(seen, 0, sizeof seen);
    memset(entries, 0xff, sizeof entries);
    for (uint32_t i = 0; i < rows; i++)
        total += labels[i] == before[i] ? 0 : before[i] < 0 ? 1 : 2;
    if (lane_write(shard->lane, "labels", tile->labels, 0, rows * sizeof *labels, labels, &err) !=
            STATUS_OK ||
        device_update_tile(&shard->device_update, tile, NULL, &err) != STATUS_OK)
        fail_msg("%s: %s", what, err.sentence);
    read_back(shard, shard->device_update.entries, total * sizeof *entries, entries);
    read_back(shard, shard->device_update.entry_clusters, total * sizeof *owners, owners);
    read_back(shard, shard->device_update.counts.buffer, k * sizeof *counts, counts);
    read_back(shard, tile->summed_labels, rows * sizeof *kept, kept);
    for (uint32_t at = 0; at < total; at++)
        check_entry(at, rows, what);
    if (memcmp(kept, labels, rows * sizeof *kept) != 0)
        fail_msg("%s: the labels of the sums were not updated", what);
    for (uint32_t i = 0; i < rows; i++)
        counts[labels[i]]--;
    for (uint32_t c = 0; c < k; c++)
        if (counts[c] != 0)
            fail_msg("%s: cluster %u has %lld rows too many", what, c, (long long)counts[c]);
    memcpy(before, labels, rows * sizeof *before);
}

/* If some rows have no label yet, nothing may be updated, although labels[] and before[] differ. */
static void check_unless(struct shard *shard, uint32_t rows, uint32_t k, const char *what)
{
    static cl_long counts_after[CLUSTERS + 2];
    const struct device_count left = {shard->assign.counters.sets[0].buffer, 1};
    const cl_uint numbers[2] = {0, 1};
    struct tile *tile = &shard->data.tiles[0];
    struct error err = ERROR_INIT;
    read_back(shard, shard->device_update.counts.buffer, k * sizeof *counts, counts);
    if (lane_write(shard->lane, "test", left.counts, 0, sizeof numbers, numbers, &err) !=
            STATUS_OK ||
        lane_write(shard->lane, "labels", tile->labels, 0, rows * sizeof *labels, labels, &err) !=
            STATUS_OK ||
        device_update_tile(&shard->device_update, tile, &left, &err) != STATUS_OK)
        fail_msg("%s: %s", what, err.sentence);
    read_back(shard, tile->summed_labels, rows * sizeof *kept, kept);
    read_back(shard, shard->device_update.counts.buffer, (k + 2) * sizeof *counts, counts_after);
    assert_memory_equal(kept, before, rows * sizeof *kept);
    assert_memory_equal(counts_after, counts, k * sizeof *counts);
    assert_int_equal(counts_after[k], 0);
}

static void check_device(struct ocl_context *context, bool fewer)
{
    /* The sums are opened for 6000 clusters; 5120, 3072 and 1024 are the rows of a work-group on
     * devices with one, two and many compute units. */
    static const uint32_t clusters[] = {1, 7, 1000, 1024, 1025, 3072, 3073, 5120, 5121, CLUSTERS};
    static const uint32_t clusters_few[] = {100, 1025};
    const uint32_t *k = fewer ? clusters_few : clusters;
    const size_t count =
        fewer ? sizeof clusters_few / sizeof *k : sizeof clusters / sizeof *clusters;
    const struct matrix_source source = {
        .rows = fewer ? ROWS_FEW : ROWS, .dimension = 1, .read = read_rows};
    const struct lane_choice tiled = {.forced = true, .tiled = true, .ranks = 1};
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
    const struct ocl_device *device = shard->lane->device;
    assert_int_equal(shard->device_update.used, device->int64_atomics && device->fp64);
    for (size_t i = 0; i < count && shard->device_update.used; i++) {
        shard->update.k = k[i];
        update_reset(&shard->update, true);
        assert_int_equal(device_update_reset(&shard->device_update, &err), STATUS_OK);
        memset(before, 0xff, sizeof before);
        for (int kind = 0; kind < KINDS; kind++) {
            char what[200];
            snprintf(what, sizeof what, "%s: k %u, %s", device->name, k[i], kinds[kind]);
            make_labels(kind, (uint32_t)source.rows, k[i]);
            if (kind == 0 || kind == 4)
                check_unless(shard, (uint32_t)source.rows, k[i], what);
            check_moves(shard, (uint32_t)source.rows, k[i], what);
        }
    }
    shard_close(shard);
    lane_close(&lane);
    workers_close(&workers);
}

static void test_moves(void **state)
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

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_moves)};
TEST_GROUP_WITHIN(120, device_update, test_devices_open, test_devices_close)
