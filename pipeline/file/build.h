/* build.h: OUT.h5 from a log, an order and, for an update, the file that it replaces. */
#ifndef CLPIPE_FILE_BUILD_H
#define CLPIPE_FILE_BUILD_H

#include "file/content.h"
#include "file/feed.h"
#include "log/journal.h"

struct build_config {
    const char *output;
    const struct content *content;
    struct feed_config feed; /* feed.finished is NULL where earlier work was to be ignored */
    struct result *replaced; /* the file that is there now, or NULL */
    const struct store_run *run;
    uint64_t images, failures;
    /* Images that have a code: /images/code is written only where all have. Bytes of all
     * thumbnails, which are written where content->thumbnail_size is not 0. */
    uint64_t codes, thumbnail_bytes;
    struct raw_paths_tally raw_images, raw_failures;
    const bool *leave_out; /* clusters of `replaced` that are not kept, by number; NULL: none */
};

/* Writes the file. Clusters of build->replaced are carried over if `keep_clusters`. */
enum status build_file(const struct build_config *build, bool keep_clusters, struct error *err);

#endif
