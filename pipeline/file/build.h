/* build.h: OUT.h5 from a log, an order and, for an update, the file that it replaces. */
#ifndef CLPIPE_FILE_BUILD_H
#define CLPIPE_FILE_BUILD_H

#include "file/feed.h"
#include "file/store.h"

/* Paths of a table that are not UTF-8. */
struct raw_tally {
    uint64_t rows, bytes;
};

struct build_config {
    const char *output;
    const struct store_config *config;
    struct feed_config feed; /* feed.finished is NULL where earlier work was to be ignored */
    struct result *replaced; /* the file that is there now, or NULL */
    const struct store_run *run;
    uint64_t images, failures;
    struct raw_tally raw_images, raw_failures;
    const bool *leave_out; /* clusters of `replaced` that are not kept, by number; NULL: none */
};

/* How the rows to be compare with those of the finished file. */
struct build_difference {
    bool same_rows; /* the images' values are equal: clusters stay right */
    bool same_all;  /* everything is: there is nothing to write */
};
enum status build_compare(struct build_difference *difference, const struct build_config *build,
                          struct error *err);

/* Whether the images are those of the file that is replaced, whatever their features are: then its
 * clusters stay right, too. */
enum status build_compare_images(bool *same, const struct build_config *build, struct error *err);

/* Writes the file. Clusters of build->replaced are carried over if `keep_clusters`. */
enum status build_file(const struct build_config *build, bool keep_clusters, struct error *err);

#endif
