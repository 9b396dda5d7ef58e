/* merge_bench.c: writes results without pictures, like the shards of one ingest.
 *
 *     merge_bench DIRECTORY SHARDS ROWS
 *
 * Writes DIRECTORY/shard-00000.h5 and so on, each with ROWS made-up images and their feature
 * rgb_4x2x2 (16 values, around 64 centres). clpipe merge makes of them what one ingest of
 * everything would have given. tools/bench-merge runs it. */
#include "base/random.h"
#include "features/feature.h"
#include "result/rewrite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMENSION 16
#define CENTRES   64
#define PIXELS    3000000 /* of an image, 2000 x 1500 */

static const char parameters[] = "{\"alpha\":\"white\"}";

struct shard {
    uint64_t index, count, rows;
};

/* A row: a centre plus noise, as shares that add up to 1, like counts of pixels. */
static void fill_row(float *row, uint32_t *seed)
{
    const uint32_t centre = (random_next(seed) >> 8) % CENTRES;
    uint32_t counts[DIMENSION], left = PIXELS;
    for (int i = 0; i < DIMENSION - 1; i++) {
        const uint32_t share = (centre * 7 + (uint32_t)i * 13) % 31 * 2500;
        counts[i] = share + (random_next(seed) >> 8) % 20000;
        counts[i] = counts[i] < left ? counts[i] : left;
        left -= counts[i];
    }
    counts[DIMENSION - 1] = left;
    for (int i = 0; i < DIMENSION; i++)
        row[i] = (float)((double)counts[i] / PIXELS);
}

static void fill_image(const struct shard *s, const struct move_column *column, uint64_t row,
                       uint8_t *to)
{
    struct result_image image = {.width = 2000,
                                 .height = 1500,
                                 .orientation = 1,
                                 .channels = 3,
                                 .bytes = 500000 + row,
                                 .mtime_ns = (int64_t)row,
                                 .digest = {s->index, row},
                                 .format = "jpeg"};
    memcpy(image.code, &row, sizeof row);
    memcpy(to, (const char *)&image + image_table.column[column->number].offset, column->row_bytes);
}

static enum status read_rows(void *context, const struct move_column *column, bool lengths,
                             uint64_t first, uint64_t count, void *rows, struct error *err)
{
    const struct shard *s = context;
    uint8_t *to = rows;
    (void)err;
    for (uint64_t i = 0; i < count && lengths; i++)
        ((uint64_t *)rows)[i] = strlen("00000/000000.jpg");
    if (lengths)
        return STATUS_OK;
    for (uint64_t row = first; row < first + count; row++, to += column->row_bytes) {
        char name[64];
        uint32_t seed = RANDOM_START + 1000003 * (uint32_t)(s->index + 1) + 7919 * (uint32_t)row;
        float values[DIMENSION];
        if (column->kind == MOVE_TEXT) {
            snprintf(name, sizeof name, "%05llu/%06llu.jpg", (unsigned long long)s->index,
                     (unsigned long long)row);
            memcpy(to, name, column->row_bytes);
        } else if (column->number == ROW_FEATURE) {
            fill_row(values, &seed);
            memcpy(to, values, sizeof values);
        } else {
            fill_image(s, column, row, to);
        }
    }
    return STATUS_OK;
}

static enum status write_shard(const struct shard *s, const char *path,
                               const struct feature_set *features, struct error *err)
{
    static const char *const source = "pictures";
    struct shard shard = *s;
    const struct row_input input = {read_rows, &shard};
    const struct store_run run = {"", "{}", "", "", "", 0};
    const struct content content = {.sources = &source,
                                    .source_count = 1,
                                    .features = features,
                                    .decode_scale = 1,
                                    .share = {.index = s->index,
                                              .count = s->count,
                                              .first = s->index * s->rows,
                                              .last = (s->index + 1) * s->rows,
                                              .list_count = s->count * s->rows,
                                              .list_digest = "made-up"},
                                    .parameters = parameters};
    struct new_rows rows = {.content = &content, .input = &input, .codes = true};
    struct rewrite_report report;
    enum status status = row_list_add(&rows.lists.images, 0, 0, s->rows, err);
    const struct rewrite rewrite = {.output = path, .rows = &rows, .threads = 2, .run = &run};
    if (!status)
        status = rewrite_file(&report, &rewrite, err);
    row_lists_clear(&rows.lists);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    char path[4096], line[1200];
    if (argc != 4) {
        fprintf(stderr, "merge_bench DIRECTORY SHARDS ROWS\n");
        return 2;
    }
    static struct feature_set features;
    struct shard shard = {.count = strtoull(argv[2], NULL, 10),
                          .rows = strtoull(argv[3], NULL, 10)};
    if (feature_set_add(&features, "rgb:bins=4x2x2", NORMALIZE_L1, &err)) {
        fprintf(stderr, "merge_bench: %s\n", error_line(line, sizeof line, &err));
        return 3;
    }
    for (; shard.index < shard.count; shard.index++) {
        snprintf(path, sizeof path, "%s/shard-%05llu.h5", argv[1], (unsigned long long)shard.index);
        if (write_shard(&shard, path, &features, &err)) {
            fprintf(stderr, "merge_bench: %s\n", error_line(line, sizeof line, &err));
            return 3;
        }
    }
    return 0;
}
