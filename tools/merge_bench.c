/* merge_bench.c: results without pictures, as the shards of one ingest.
 *
 *     merge_bench DIRECTORY SHARDS ROWS
 *
 * Writes DIRECTORY/shard-00000.h5 and so on, each with ROWS made-up images and their feature
 * rgb_4x2x2 (16 values, around 64 centres). What clpipe merge makes of them is what one ingest of all
 * would have given. tools/bench-merge runs it. */
#include "base/output.h"
#include "base/random.h"
#include "file/checksums.h"
#include "file/columns.h"
#include "file/names.h"
#include "file/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMENSION 16
#define CENTRES   64
#define PIXELS    3000000 /* of an image, 2000 x 1500 */
#define BLOCK     4096

static const char parameters[] = "{\"alpha\":\"white\"}";

struct shard {
    const char *path;
    hid_t file;
    uint64_t index, count, rows;
};

/* A row: a centre and noise, and shares that add up to 1 as counts of pixels do. */
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

static enum status write_features(const struct shard *s, struct error *err)
{
    static float block[BLOCK][DIMENSION];
    static const char *const texts[][2] = {{"spec", "rgb:bins=4x2x2,grid=1x1,normalize=l1"},
                                           {"kind", "rgb"},
                                           {"bins", "4x2x2"},
                                           {"grid", "1x1"},
                                           {"normalize", "l1"}};
    const hsize_t size[2] = {s->rows, DIMENSION};
    const uint32_t scale = 1;
    uint32_t seed = RANDOM_START + 1000003 * (uint32_t)(s->index + 1);
    hid_t group = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    if (h5_create_scale(s->file, "image", s->rows, s->path, err) ||
        h5_create_scale(s->file, "feature_rgb_4x2x2", DIMENSION, s->path, err) ||
        h5_create_group(&group, s->file, "features", s->path, err) ||
        h5_create_dataset(&dataset, group, "rgb_4x2x2", VALUE_F32, 2, size, s->path, err) ||
        h5_attach_scale(s->file, dataset, 0, "image", s->path, err) ||
        h5_attach_scale(s->file, dataset, 1, "feature_rgb_4x2x2", s->path, err) ||
        h5_put_number(dataset, "decode_scale", VALUE_U32, &scale, s->path, err))
        goto out;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (h5_put_text(dataset, texts[i][0], texts[i][1], s->path, err))
            goto out;
    for (uint64_t first = 0; first < s->rows; first += BLOCK) {
        const uint64_t count = s->rows - first < BLOCK ? s->rows - first : BLOCK;
        for (uint64_t i = 0; i < count; i++)
            fill_row(block[i], &seed);
        if (h5_write_rows(dataset, VALUE_F32, first, count, block, s->path, err))
            goto out;
    }
    status = STATUS_OK;
out:
    h5_close(&dataset);
    h5_close(&group);
    return status;
}

static enum status write_tables(const struct shard *s, struct error *err)
{
    static const char *const source = "pictures";
    const struct text_size texts[] = {{16, 16 * s->rows}, {0, 0}, {0, 0}};
    struct columns *images = NULL, *failures = NULL;
    hid_t group = H5I_INVALID_HID, other = H5I_INVALID_HID;
    enum status status = STATUS_FAILED;
    if (columns_create(&images, &group, s->file, &image_table, s->rows, true, texts, s->path, err) ||
        sources_write(s->file, group, &source, NULL, 1, s->path, err) ||
        columns_create(&failures, &other, s->file, &failure_table, 0, false, texts + 1, s->path,
                       err))
        goto out;
    for (uint64_t i = 0; i < s->rows; i++) {
        struct result_image row = {.width = 2000,
                                   .height = 1500,
                                   .orientation = 1,
                                   .channels = 3,
                                   .bytes = 500000 + i,
                                   .mtime_ns = (int64_t)i,
                                   .digest = {s->index, i},
                                   .format = "jpeg"};
        char name[64];
        const int length = snprintf(name, sizeof name, "%05llu/%06llu.jpg",
                                    (unsigned long long)s->index, (unsigned long long)i);
        memcpy(row.code, &i, sizeof i);
        if (columns_add_named(images, &row, name, (uint32_t)length, err))
            goto out;
    }
    status = columns_finish(images, err) || columns_finish(failures, err) ? STATUS_FAILED : STATUS_OK;
out:
    columns_close(&images);
    columns_close(&failures);
    h5_close(&group);
    h5_close(&other);
    return status;
}

static enum status write_shard(struct shard *s, struct error *err)
{
    struct output *output;
    enum status status = output_open(&output, s->path, err);
    if (status)
        return status;
    const uint64_t first = s->index * s->rows, last = first + s->rows, all = s->count * s->rows;
    status = h5_create_file(&s->file, output_temporary(output), err);
    if (status == STATUS_OK &&
        (schema_put_root(s->file, s->path, err) ||
         h5_put_text(s->file, "parameters", parameters, s->path, err) ||
         h5_put_number(s->file, "shard_index", VALUE_U64, &s->index, s->path, err) ||
         h5_put_number(s->file, "shard_count", VALUE_U64, &s->count, s->path, err) ||
         h5_put_number(s->file, "shard_first", VALUE_U64, &first, s->path, err) ||
         h5_put_number(s->file, "shard_last", VALUE_U64, &last, s->path, err) ||
         h5_put_number(s->file, "list_count", VALUE_U64, &all, s->path, err) ||
         h5_put_text(s->file, "list_digest", "made-up", s->path, err) || write_features(s, err) ||
         write_tables(s, err) || checksums_write(s->file, s->path, err)))
        status = STATUS_FAILED;
    if (status == STATUS_OK)
        status = h5_finish_file(&s->file, s->path, err);
    if (status == STATUS_OK)
        status = output_commit(output, err);
    output_close(&output);
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
    struct shard shard = {.path = path,
                          .count = strtoull(argv[2], NULL, 10),
                          .rows = strtoull(argv[3], NULL, 10)};
    for (; shard.index < shard.count; shard.index++) {
        snprintf(path, sizeof path, "%s/shard-%05llu.h5", argv[1], (unsigned long long)shard.index);
        if (write_shard(&shard, &err)) {
            fprintf(stderr, "merge_bench: %s\n", error_line(line, sizeof line, &err));
            return 3;
        }
    }
    return 0;
}
