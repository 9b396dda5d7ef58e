/* build.h: OUT.h5 from a log, an order and, for an update, the file that it replaces. */
#ifndef CLPIPE_FILE_BUILD_H
#define CLPIPE_FILE_BUILD_H

#include "file/content.h"
#include "file/feed.h"
#include "file/foreign.h"
#include "file/sidecars.h"
#include "log/journal.h"

struct build_foreign;
struct carry;
struct workdir;
struct row_map;

struct build_config {
    const char *output;
    const struct content *content;
    struct feed_config feed; /* feed.finished is NULL where earlier work was to be ignored */
    struct result *replaced; /* the file that is there now, or NULL */
    const struct store_run *run;
    unsigned threads; /* that read, deflate and write rows */
    bool compress;    /* features are deflated (chunks.h) */
    uint64_t images, failures;
    /* Images that have a code: /images/code is written only where all have. Bytes of all
     * thumbnails, which are written where content->thumbnail_size is not 0. */
    uint64_t codes, thumbnail_bytes;
    /* Of the columns of texts. */
    struct text_size image_texts[TABLE_TEXTS_MOST], failure_texts[TABLE_TEXTS_MOST];
    const struct row_map *map; /* where `replaced` is: which of its rows each row was */
    /* What else is kept of `replaced` (its file and path are set here); NULL: nothing. */
    struct carry *carry;
    struct sidecars *sidecars;     /* what lies beside the pictures; NULL: it is not stored */
    struct build_foreign *foreign; /* filled where `replaced` is; may be NULL */
};

/* What others have stored in `replaced` is kept as it is: how much, and the number of this run. */
struct build_foreign {
    struct foreign_copied copied;
    uint64_t run;
};

/* Writes the file. */
enum status build_file(const struct build_config *build, struct error *err);

#endif
