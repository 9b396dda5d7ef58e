/* prior.h: earlier work on the items of a walk, found in the order of the walk.
 *
 * Earlier work is the existing file and the logs of interrupted runs; each has two streams, images and
 * failures, in walk order. For sources in the order of the paths' bytes (directories), a cursor in each
 * stream moves along with the walk: one sequential pass, no memory. Lists and archives have their own
 * order: a cursor finds items in the same order as before; at the first item out of order, an index of
 * the source's records is built in a file. One thread. */
#ifndef CLPIPE_RESULT_PRIOR_H
#define CLPIPE_RESULT_PRIOR_H

#include "result/records.h"
#include "result/result.h"

struct prior;

struct prior_config {
    const struct content *content;    /* of the new file */
    bool retry_failed, retry_limited; /* as in struct store_config */
    bool codes;                       /* ignore images without a code */
    unsigned thumbnail_size;          /* and those without a thumbnail of this size; 0: any */
    struct result *finished;          /* NULL: none */
    const int *source_now; /* per source of `finished`: its number in the content, or -1; NULL: the
                                * same */
    const struct records *log; /* the log as it was before this run; NULL: none */
    const char *directory;     /* for the index */
};

enum status prior_open(struct prior **out, const struct prior_config *config, struct error *err);
void prior_close(struct prior **prior);

/* Earlier work on this item: fills *record, whose origin is its location, and returns true if a log or the
 * existing file has it with the same bytes and mtime. Pass the record to store_put unchanged, except for
 * its sequence; its path is `path`. Never returns failures that do not depend on the content (unreadable,
 * vanished, changed, out-of-memory). Items must be asked for in walk order. */
bool prior_find(struct prior *prior, uint16_t source, const char *path, uint32_t path_length,
                uint64_t bytes, int64_t mtime_ns, struct store_record *record);

/* Records of the existing file for an item that the walk could not read. prior_find_unseen: its image,
 * whatever its bytes and mtime. prior_next_below: the next of its images and failures below a directory (""
 * or with a '/' at its end) of a source in the order of its paths, before the path `before` (NULL: to the
 * end); the record's path is valid until the next call. */
bool prior_find_unseen(struct prior *prior, uint16_t source, const char *path, uint32_t path_length,
                       struct store_record *record);
bool prior_next_below(struct prior *prior, uint16_t source, const char *directory,
                      const char *before, struct store_record *record);

/* For unread sources: passes the existing file's records of `source` (its new
 * number) to `add`. Call it with sources in ascending order. */
enum status prior_list(struct prior *prior, uint16_t source,
                       enum status (*add)(void *context, const struct store_record *record,
                                          struct error *err),
                       void *context, struct error *err);
/* The image or failure at a location, with its path: fastest in ascending order. */
enum status prior_at(struct prior *prior, uint64_t location, struct store_record *record,
                     struct error *err);

/* Sets thumbnail_size of the configuration. */
void prior_require_thumbnails(struct prior *prior, unsigned size);

/* Find images of `finished`, whatever their bytes and mtime. prior_seek: continue from `row`, for a source in
 * the order of its paths. prior_find_row: the image's row, or -1. STATUS_FAILED: no space for the index. */
void prior_seek(struct prior *prior, uint64_t row);
enum status prior_find_row(struct prior *prior, uint16_t source, const char *path,
                           uint32_t path_length, int64_t *row, struct error *err);

#endif
