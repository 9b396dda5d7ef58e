/* row_map.h: which row of the file that is updated each row of the file to be was. */
#ifndef CLPIPE_FILE_ROW_MAP_H
#define CLPIPE_FILE_ROW_MAP_H

#include "file/feed.h"

/* A row is an earlier one if its image has the same place (source and path) and the same bytes, and
 * the features that both files have the same values. */
struct row_map {
    int64_t *earlier; /* for each image: its row, or -1: it is new or has changed */
    uint64_t rows, fresh, gone;
    bool same; /* every row is where it was, and none is new or gone */
};

struct row_map_config {
    const struct feed_config *feed; /* the rows to be */
    const struct content *content;
    uint64_t images;
    struct result *old;
    const int *earlier_source; /* for each source of the content: its number in `old`, or -1 */
    uint8_t *there; /* for each row of `old`: set where an image or a failure has its place; or NULL */
};
#define ROW_THERE  1
#define ROW_FAILED 2

enum status row_map_make(struct row_map *out, const struct row_map_config *config,
                         struct error *err);
void row_map_clear(struct row_map *map);

#endif
