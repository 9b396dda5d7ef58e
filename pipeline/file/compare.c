/* compare.c: are the rows to be written those that the finished file has?
 *
 * Rows that were taken over from the finished file need no look, if they come at the same place.
 * What was done again (failures that are always tried again, a file that was only touched) is
 * compared value by value. */
#include "file/compare.h"
#include <stdlib.h>
#include <string.h>

static bool same_image(const struct result_image *a, const struct result_image *b)
{
    return a->width == b->width && a->height == b->height && a->orientation == b->orientation &&
           a->channels == b->channels && a->source == b->source && a->bytes == b->bytes &&
           a->mtime_ns == b->mtime_ns && memcmp(a->digest, b->digest, sizeof a->digest) == 0 &&
           memcmp(a->format, b->format, sizeof a->format) == 0;
}

/* Whether the finished file has the code and the thumbnail of an item of the log. */
static enum status same_extras(bool *same, const struct build_config *build,
                               const struct feed_item *item, struct result *finished, uint64_t row,
                               const struct result_image *image, struct error *err)
{
    const uint8_t *old = NULL;
    uint64_t length = 0;
    *same = build->codes < build->images ||
            (result_has_codes(finished) &&
             memcmp(item->image.code, image->code, sizeof image->code) == 0);
    if (build->content->thumbnail_size == 0)
        return STATUS_OK;
    if (result_thumbnail_size(finished) == build->content->thumbnail_size &&
        result_thumbnail_read(finished, row, &old, &length, err))
        return STATUS_FAILED;
    *same = *same && length == item->thumbnail_length &&
            (length == 0 || memcmp(old, item->thumbnail, length) == 0);
    return STATUS_OK;
}

static bool same_failure(const struct failure_row *a, const struct failure_row *b)
{
    return memcmp(a->reason, b->reason, sizeof a->reason) == 0 && a->bytes == b->bytes &&
           a->error_number == b->error_number && a->source == b->source &&
           a->mtime_ns == b->mtime_ns && strcmp(a->message, b->message) == 0;
}

/* Compares an item of the log with row `row` of the finished file's table. `mine` has room for an
 * image's values. */
static enum status compare_row(struct build_difference *difference, struct feed *feed,
                               const struct build_config *build, const struct feed_item *item,
                               uint64_t row, void *mine, size_t value_bytes, struct error *err)
{
    struct result *finished = build->feed.finished;
    const void *old, *values;
    const char *old_path;
    bool extras;
    if (rows_at(item->is_image ? finished->images : finished->failures, row, &old, &old_path, err))
        return STATUS_FAILED;
    if (strcmp(item->path, old_path) != 0 ||
        !(item->is_image ? same_image(&item->image, old) : same_failure(&item->failure, old)))
        difference->same_all = false;
    if (!item->is_image)
        return STATUS_OK;
    if (same_extras(&extras, build, item, finished, row, old, err))
        return STATUS_FAILED;
    difference->same_all = difference->same_all && extras;
    /* The feed has one buffer for values. */
    memcpy(mine, item->values, value_bytes);
    if (feed_finished_values(feed, row, &values, err))
        return STATUS_FAILED;
    if (memcmp(values, mine, value_bytes) != 0)
        difference->same_rows = difference->same_all = false;
    return STATUS_OK;
}

enum status build_compare(struct build_difference *difference, const struct build_config *build,
                          struct error *err)
{
    struct result *finished = build->feed.finished;
    *difference = (struct build_difference){false, false};
    if (!finished || build->images != result_images(finished))
        return STATUS_OK;
    difference->same_rows = true;
    difference->same_all = build->failures == result_failures(finished) &&
                           (build->content->thumbnail_size == 0 ||
                            build->content->thumbnail_size == result_thumbnail_size(finished));
    enum status status = STATUS_FAILED;
    size_t value_bytes = 4 * (size_t)build->feed.features->values;
    void *mine = malloc(value_bytes);
    struct feed *feed = NULL;
    struct feed_item item;
    uint64_t location, next[2] = {0, 0}; /* rows of failures and of images */
    if (!mine) {
        error_memory(err, value_bytes, "an image's values");
        goto out;
    }
    if (feed_open(&feed, &build->feed, err))
        goto out;
    while (difference->same_rows && !(status = feed_next_location(feed, &location, err))) {
        enum location_kind kind = location_kind(location);
        bool is_image = kind == LOCATION_IMAGE;
        if (location_in_log(location)) {
            if ((status = feed_read(feed, location, &item, err)))
                goto out;
            is_image = item.is_image;
            /* Where there are more failures than before everything has changed already. */
            if ((is_image || difference->same_all) &&
                (status = compare_row(difference, feed, build, &item, next[is_image], mine,
                                      value_bytes, err)))
                goto out;
        } else if (location_row(location) != next[is_image]) {
            difference->same_all = false;
            difference->same_rows = difference->same_rows && !is_image;
        }
        next[is_image]++;
    }
    if (status == STATUS_END)
        status = STATUS_OK;
out:
    feed_close(&feed);
    free(mine);
    return status;
}
