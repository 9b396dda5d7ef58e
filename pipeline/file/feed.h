/* feed.h: the rows of the file to be, one after the other, from wherever they lie: the log, or the
 * finished file that is updated. */
#ifndef CLPIPE_FILE_FEED_H
#define CLPIPE_FILE_FEED_H

#include "file/prior.h"
#include "file/result_internal.h"
#include "log/records.h"

struct feed_config {
    int order; /* `records` locations of 8 bytes, in walk order */
    uint64_t records;
    const struct records *log;
    const struct feature_set *features;
    unsigned thumbnail_size; /* thumbnails made for another one are left out */
    struct result *finished; /* may be NULL */
    const int *source_now;   /* as in prior.h */
    struct stop *stop;       /* may be NULL */
};

/* A row: of images, with its values (features->values words), or of failures. `path` is its
 * bytes; the path in the rows is not set. All valid until the next call. */
struct feed_item {
    uint64_t location;
    bool is_image;
    struct result_image image;
    struct failure_row failure;
    const char *path;
    uint32_t path_length;
    const void *values;
    const uint8_t *thumbnail; /* of an image; thumbnail_length 0: it has none */
    uint64_t thumbnail_length;
};

struct feed;
enum status feed_open(struct feed **out, const struct feed_config *config, struct error *err);
void feed_close(struct feed **feed);

/* The location of the next row, without reading it; STATUS_END after the last, STATUS_INTERRUPTED
 * once a stop was asked for. */
enum status feed_next_location(struct feed *feed, uint64_t *location, struct error *err);
/* The row at a location that feed_next_location gave. */
enum status feed_read(struct feed *feed, uint64_t location, struct feed_item *item,
                      struct error *err);

/* The values of row `row` of the finished file's features; valid until the next call of this or
 * feed_read. */
enum status feed_finished_values(struct feed *feed, uint64_t row, const void **values,
                                 struct error *err);

#endif
