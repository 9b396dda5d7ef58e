/* feed.c: reads the log forwards and the finished file in blocks; both are, but for a few jumps, in
 * the order in which they are asked for. */
#include "file/feed.h"
#include "base/path.h"
#include "base/stop.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDER_BLOCK  8192
#define VALUES_BLOCK (4u << 20) /* bytes of the finished file's rows read at once */

struct feed {
    struct feed_config config;
    uint64_t order[ORDER_BLOCK];
    unsigned order_filled, order_at;
    uint64_t order_next; /* records whose location has been read */
    struct records_cursor cursor;
    char *path; /* with a NUL */
    size_t path_capacity;
    uint8_t *values; /* of the row last read */
    /* The finished file's rows [first, first + loaded), one block for each feature. */
    const struct result_feature *feature[FEATURE_MAX];
    uint8_t *block[FEATURE_MAX];
    uint64_t first;
    unsigned loaded, block_rows;
    char message[sizeof((struct failure *)0)->message];
};

enum status feed_open(struct feed **out, const struct feed_config *config, struct error *err)
{
    *out = NULL;
    struct feed *feed = calloc(1, sizeof *feed);
    size_t row_bytes = 4 * (size_t)config->features->values;
    if (!feed || !(feed->values = calloc(1, row_bytes + 1))) {
        free(feed);
        return error_memory(err, row_bytes, "an image's values");
    }
    feed->config = *config;
    feed->block_rows = row_bytes < VALUES_BLOCK ? (unsigned)(VALUES_BLOCK / row_bytes) : 1;
    feed->cursor = (struct records_cursor){.records = config->log, .values = true};
    for (unsigned i = 0; config->finished && i < config->features->count; i++) {
        const struct feature *feature = &config->features->feature[i];
        feed->feature[i] = result_feature_find(config->finished, feature->name);
        feed->block[i] = malloc(feature_row_bytes(feature) * feed->block_rows);
        if (!feed->block[i]) {
            feed_close(&feed);
            return error_memory(err, feature_row_bytes(feature), "rows of the finished file");
        }
    }
    *out = feed;
    return STATUS_OK;
}

void feed_close(struct feed **feed)
{
    if (!feed || !*feed)
        return;
    struct feed *f = *feed;
    *feed = NULL;
    for (unsigned i = 0; i < FEATURE_MAX; i++)
        free(f->block[i]);
    records_cursor_clear(&f->cursor);
    free(f->path);
    free(f->values);
    free(f);
}

enum status feed_next_location(struct feed *feed, uint64_t *location, struct error *err)
{
    if (stop_check(feed->config.stop, "writing the file", err))
        return STATUS_INTERRUPTED;
    if (feed->order_at == feed->order_filled) {
        uint64_t left = feed->config.records - feed->order_next;
        if (left == 0)
            return STATUS_END;
        unsigned count = left < ORDER_BLOCK ? (unsigned)left : ORDER_BLOCK;
        size_t size = count * sizeof feed->order[0], got = 0;
        while (got < size) {
            ssize_t n = pread(feed->config.order, (char *)feed->order + got, size - got,
                              (off_t)(feed->order_next * sizeof feed->order[0] + got));
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                return error_errno(err, STATUS_FAILED, n ? errno : EIO, "pread",
                                   "cannot read the order of the rows");
            got += (size_t)n;
        }
        feed->order_next += count;
        feed->order_filled = count;
        feed->order_at = 0;
    }
    *location = feed->order[feed->order_at++];
    return STATUS_OK;
}

static enum status load_finished(struct feed *feed, uint64_t row, unsigned count,
                                 struct error *err)
{
    feed->loaded = 0;
    for (unsigned i = 0; i < feed->config.features->count; i++)
        if (result_feature_read_raw(feed->config.finished, feed->feature[i], row, count,
                                    feed->block[i], err))
            return STATUS_FAILED;
    feed->first = row;
    feed->loaded = count;
    return STATUS_OK;
}

enum status feed_finished_values(struct feed *feed, uint64_t row, const void **values,
                                 struct error *err)
{
    const struct feature_set *features = feed->config.features;
    if (row < feed->first || row >= feed->first + feed->loaded) {
        uint64_t left = result_images(feed->config.finished) - row;
        unsigned count = left < feed->block_rows ? (unsigned)left : feed->block_rows;
        /* Rows behind this one may be in a chunk that is damaged. */
        if (load_finished(feed, row, count, NULL) && load_finished(feed, row, 1, err))
            return STATUS_FAILED;
    }
    for (unsigned i = 0; i < features->count; i++) {
        const size_t size = feature_row_bytes(&features->feature[i]);
        memcpy(feed->values + 4 * (size_t)features->feature[i].place,
               feed->block[i] + (row - feed->first) * size, size);
    }
    *values = feed->values;
    return STATUS_OK;
}

static enum status read_log(struct feed *feed, uint64_t location, struct feed_item *item,
                            struct error *err)
{
    const uint64_t row = location_row(location);
    struct store_record read, *record = &read;
    item->is_image = location_kind(location) == LOCATION_LOG_IMAGE;
    enum status status = records_at(&feed->cursor, item->is_image ? RECORDS_IMAGES : RECORDS_FAILURES,
                                    row, record, err);
    if (status)
        return status;
    if (record->path_length >= feed->path_capacity) {
        size_t capacity = 2 * (size_t)record->path_length + 256;
        char *more = realloc(feed->path, capacity);
        if (!more)
            return error_memory(err, capacity, "a path");
        feed->path = more;
        feed->path_capacity = capacity;
    }
    memcpy(feed->path, record->path, record->path_length);
    feed->path[record->path_length] = 0;
    item->path = feed->path;
    item->path_length = record->path_length;
    if (!item->is_image) {
        memcpy(feed->message, record->failure.message, sizeof feed->message);
        text_clean(feed->message, false);
        item->failure = (struct failure_row){.message = feed->message,
                                             .bytes = record->bytes,
                                             .error_number = record->failure.error_number,
                                             .source = record->source,
                                             .mtime_ns = record->mtime_ns,
                                             .inode = record->inode,
                                             .ctime_ns = record->ctime_ns};
        const char *reason = reason_name(record->failure.reason);
        memcpy(item->failure.reason, reason, strnlen(reason, sizeof item->failure.reason));
        return STATUS_OK;
    }
    item->image = (struct result_image){.width = record->width,
                                        .height = record->height,
                                        .orientation = record->orientation,
                                        .channels = record->channels,
                                        .source = record->source,
                                        .bytes = record->bytes,
                                        .mtime_ns = record->mtime_ns,
                                        .inode = record->inode,
                                        .ctime_ns = record->ctime_ns,
                                        .digest = {record->digest[0], record->digest[1]}};
    memcpy(item->image.format, record->format, sizeof item->image.format);
    item->image.has_code = record->has_code;
    memcpy(item->image.code, record->code, sizeof item->image.code);
    if (record->thumbnail_size == feed->config.thumbnail_size && record->thumbnail_size > 0) {
        item->thumbnail = record->thumbnail;
        item->thumbnail_length = record->thumbnail_length;
    }
    for (unsigned i = 0; i < feed->config.features->count; i++) {
        const struct feature *feature = &feed->config.features->feature[i];
        memcpy(feed->values + 4 * (size_t)feature->place, records_feature(&feed->cursor, i, row),
               feature_row_bytes(feature));
    }
    item->values = feed->values;
    return STATUS_OK;
}

enum status feed_read(struct feed *feed, uint64_t location, struct feed_item *item,
                      struct error *err)
{
    *item = (struct feed_item){.location = location};
    uint64_t position = location_row(location);
    enum location_kind kind = location_kind(location);
    if (location_in_log(location))
        return read_log(feed, location, item, err);
    struct result *finished = feed->config.finished;
    const void *row;
    item->is_image = kind == LOCATION_IMAGE;
    if (rows_at(item->is_image ? finished->images : finished->failures, position, &row, &item->path,
                err))
        return STATUS_FAILED;
    item->path_length = (uint32_t)strlen(item->path);
    const int *now = feed->config.source_now;
    if (item->is_image) {
        memcpy(&item->image, row, sizeof item->image);
        if (now)
            item->image.source = (uint16_t)now[item->image.source];
        item->image.has_code = result_has_codes(finished);
        if (feed->config.thumbnail_size > 0 &&
            feed->config.thumbnail_size == result_thumbnail_size(finished) &&
            result_thumbnail_read(finished, position, &item->thumbnail, &item->thumbnail_length,
                                  err))
            return STATUS_FAILED;
        return feed_finished_values(feed, position, &item->values, err);
    }
    memcpy(&item->failure, row, sizeof item->failure);
    if (now)
        item->failure.source = (uint16_t)now[item->failure.source];
    return STATUS_OK;
}
