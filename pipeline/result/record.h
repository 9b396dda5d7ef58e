/* record.h: one finished item, an image or a failure, and the location of its record. */
#ifndef CLPIPE_RESULT_RECORD_H
#define CLPIPE_RESULT_RECORD_H

#include "base/failure.h"
#include "result/content.h"

/* One finished item. The pointers belong to the caller and are copied by store_put. */
struct store_record {
    uint64_t sequence; /* walk_item.sequence: each number exactly once, from 0 without gaps */
    const char *path;  /* bytes, as in walk_item */
    uint32_t path_length;
    /* Its row, without the paths; of a failure only source, bytes, times and inode. */
    struct result_image image;
    struct failure failure; /* REASON_NONE: an image, for which the following are set */
    /* A JPEG file with its longest side at most thumbnail_size pixels. thumbnail_size 0: no
     * thumbnail; `thumbnail` is also NULL if `origin` is set. */
    const uint8_t *thumbnail;
    uint32_t thumbnail_length;
    uint16_t thumbnail_size;
    const uint32_t *counters; /* features->counters values; NULL if `origin` is set */
    /* 0, or set by prior_find: location of this record in the store, values and thumbnail
     * included. */
    uint64_t origin;
    bool restated; /* inode and ctime_ns differ from the stored ones */
};

/* The location of a record: a row of the log's tables (records.h), or the finished file. Never
 * 0. */
enum location_kind {
    LOCATION_LOG_IMAGE = 1,
    LOCATION_LOG_FAILURE,
    LOCATION_IMAGE,
    LOCATION_FAILURE,
};

static inline uint64_t location_of(enum location_kind kind, uint64_t row)
{
    return (uint64_t)kind << 61 | row;
}
static inline enum location_kind location_kind(uint64_t location)
{
    return (enum location_kind)(location >> 61);
}
static inline bool location_in_log(uint64_t location)
{
    return location_kind(location) <= LOCATION_LOG_FAILURE;
}
static inline uint64_t location_row(uint64_t location)
{
    return location & (UINT64_MAX >> 3);
}

#endif
