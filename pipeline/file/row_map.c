/* row_map.c: rows taken over say where they were. Those of the log are looked for: in the order of
 * the walk, where a cursor on the old rows finds them, and beyond that, for lists whose order has
 * changed, in a table of all old rows. */
#include "file/row_map.h"
#include "base/hash.h"
#include "base/source_name.h"
#include "file/parameters.h"
#include <stdlib.h>
#include <string.h>

struct finder {
    const struct row_map_config *config;
    struct result *old;
    const int *earlier_source;
    bool archives;  /* in directories */
    bool ascending; /* so are the numbers of the sources that stay */
    uint64_t cursor;
    uint64_t *table; /* row + 1; 0: free */
    uint64_t slots;
    uint8_t *values; /* of one feature of an old row */
};

static uint64_t hash_place(uint16_t source, const char *path)
{
    uint64_t digest[2];
    murmur3_of_path(digest, source, path, strlen(path));
    return digest[0];
}

static enum status old_row(const struct finder *f, uint64_t row, const struct result_image **image,
                           const char **path, struct error *err)
{
    const void *found;
    enum status status = rows_at(f->old->images, row, &found, path, err);
    *image = found;
    return status;
}

static enum status build_table(struct finder *f, struct error *err)
{
    const uint64_t rows = result_images(f->old);
    f->slots = 1024;
    while (f->slots < 2 * rows)
        f->slots *= 2;
    f->table = calloc(f->slots, sizeof *f->table);
    if (!f->table)
        return error_memory(err, f->slots * sizeof *f->table, "the earlier rows");
    for (uint64_t row = 0; row < rows; row++) {
        const struct result_image *image;
        const char *path;
        if (old_row(f, row, &image, &path, err))
            return STATUS_FAILED;
        uint64_t at = hash_place(image->source, path) & (f->slots - 1);
        while (f->table[at])
            at = (at + 1) & (f->slots - 1);
        f->table[at] = row + 1;
    }
    return STATUS_OK;
}

static enum status find_in_table(struct finder *f, uint16_t source, const char *wanted,
                                 int64_t *found, struct error *err)
{
    if (!f->table && build_table(f, err))
        return STATUS_FAILED;
    for (uint64_t at = hash_place(source, wanted) & (f->slots - 1); f->table[at];
         at = (at + 1) & (f->slots - 1)) {
        const struct result_image *image;
        const char *path;
        if (old_row(f, f->table[at] - 1, &image, &path, err))
            return STATUS_FAILED;
        if (image->source == source && strcmp(path, wanted) == 0) {
            *found = (int64_t)(f->table[at] - 1);
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

/* The old row of the same place; -1: there is none. */
static enum status find_place(struct finder *f, const struct feed_item *item, int64_t *found,
                              struct error *err)
{
    const uint16_t now = item->is_image ? item->image.source : item->failure.source;
    const bool ordered = source_is_sorted(f->config->content->sources[now], f->archives);
    const int source = f->earlier_source[now];
    *found = -1;
    if (source < 0)
        return STATUS_OK;
    for (; f->ascending && f->cursor < result_images(f->old); f->cursor++) {
        const struct result_image *image;
        const char *path;
        if (old_row(f, f->cursor, &image, &path, err))
            return STATUS_FAILED;
        if (image->source < source)
            continue;
        const int order = image->source == source ? strcmp(path, item->path) : 1;
        if (order == 0) {
            *found = (int64_t)f->cursor++;
            return STATUS_OK;
        }
        if (order > 0 || !ordered)
            break;
    }
    return f->ascending && ordered ? STATUS_OK
                                   : find_in_table(f, (uint16_t)source, item->path, found, err);
}

/* Makes *row -1 unless the image has the bytes, and the values, that it had there. */
static enum status check_content(struct finder *f, const struct feed_item *item, int64_t *row,
                                 struct error *err)
{
    const struct feature_set *features = f->config->content->features;
    const struct result_image *image;
    const char *path;
    if (old_row(f, (uint64_t)*row, &image, &path, err))
        return STATUS_FAILED;
    bool same = image->bytes == item->image.bytes &&
                memcmp(image->digest, item->image.digest, sizeof image->digest) == 0;
    for (unsigned i = 0; same && i < features->count; i++) {
        const struct feature *feature = &features->feature[i];
        const struct result_feature *there = result_feature_find(f->old, feature->name);
        if (!there || strcmp(there->spec, feature->spec) != 0 ||
            there->dimension != feature->dimension)
            continue;
        if (result_feature_read_raw(f->old, there, (uint64_t)*row, 1, f->values, err))
            return STATUS_FAILED;
        same = memcmp(f->values, (const uint8_t *)item->values + 4 * (size_t)feature->place,
                      feature_row_bytes(feature)) == 0;
    }
    if (!same)
        *row = -1;
    return STATUS_OK;
}

static enum status fill(struct row_map *map, struct finder *f, struct feed *feed, struct error *err)
{
    struct feed_item item;
    uint64_t location, next = 0;
    enum status status;
    uint8_t *there = f->config->there;
    while (!(status = feed_next_location(feed, &location, err))) {
        const enum location_kind kind = location_kind(location);
        const bool logged = location_in_log(location);
        int64_t row = -1;
        if (kind == LOCATION_FAILURE)
            continue;
        if (kind == LOCATION_IMAGE) {
            row = (int64_t)location_row(location);
            f->cursor = (uint64_t)row + 1;
        } else {
            if ((status = feed_read(feed, location, &item, err)))
                return status;
            if ((item.is_image || there) && find_place(f, &item, &row, err))
                return STATUS_FAILED;
        }
        /* What could not be looked at has a failure beside its row. */
        if (there && row >= 0)
            there[row] |= logged && !item.is_image ? ROW_FAILED : ROW_THERE;
        if (logged && !item.is_image)
            continue;
        if (logged && row >= 0 && check_content(f, &item, &row, err))
            return STATUS_FAILED;
        map->same = map->same && row == (int64_t)next;
        map->fresh += row < 0;
        map->earlier[next++] = row;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

enum status row_map_make(struct row_map *out, const struct row_map_config *config,
                         struct error *err)
{
    struct result *old = config->old;
    const int *earlier_source = config->earlier_source;
    struct feed *feed = NULL;
    struct finder f = {.config = config,
                       .old = old,
                       .earlier_source = earlier_source,
                       .archives = parameters_archives(config->content->parameters)};
    int last = -1;
    *out = (struct row_map){.rows = config->images, .same = config->images == result_images(old)};
    enum status status = STATUS_FAILED;
    f.ascending = true;
    for (unsigned i = 0; i < config->content->source_count; i++)
        if (earlier_source[i] >= 0) {
            f.ascending = f.ascending && earlier_source[i] > last;
            last = earlier_source[i];
        }
    out->earlier = malloc((size_t)config->images * sizeof *out->earlier + 1);
    f.values = malloc(4 * (size_t)config->content->features->values + 1);
    if (!out->earlier || !f.values) {
        error_memory(err, (size_t)config->images * sizeof *out->earlier, "the earlier rows");
        goto out;
    }
    if ((status = feed_open(&feed, config->feed, err)))
        goto out;
    status = fill(out, &f, feed, err);
    out->gone = result_images(old) - (config->images - out->fresh);
out:
    feed_close(&feed);
    free(f.table);
    free(f.values);
    if (status)
        row_map_clear(out);
    return status;
}

void row_map_clear(struct row_map *map)
{
    free(map->earlier);
    *map = (struct row_map){.earlier = NULL};
}
