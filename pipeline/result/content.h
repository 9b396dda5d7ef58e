/* content.h: what a file is made from, a row of it, and by which run. */
#ifndef CLPIPE_RESULT_CONTENT_H
#define CLPIPE_RESULT_CONTENT_H

#include "base/list_share.h"
#include "features/feature.h"
#include <stdbool.h>
#include <stdint.h>

/* All that shapes the rows. The pointers belong to the caller. */
struct content {
    const char *const *sources; /* texts, as place_text gives them */
    /* Of each source the text of the directory that it is looked up from ("": unknown); NULL: of all. */
    const char *const *directories;
    unsigned source_count;
    const struct feature_set *features;
    unsigned decode_scale;
    /* Longest side, in pixels, of the thumbnails that the file is to hold: 0 where none were asked
     * for. They are no part of a file's identity. */
    unsigned thumbnail_size;
    const char *preset;      /* JSON: how the features are joined (preset.h); NULL: they are not */
    struct list_share share; /* the rows are those of a shard; count 0: of everything */
    const char *parameters;  /* JSON of all options that shape the content, stored to the letter */
};

/* One row of /images. */
struct result_image {
    const char *path;     /* UTF-8 as stored */
    const char *path_raw; /* the bytes */
    uint32_t width, height;
    uint8_t orientation, channels;
    uint16_t source;
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t inode; /* of the file, 0: unknown */
    int64_t ctime_ns;
    uint64_t digest[2];
    char format[8];
    bool has_code;
    uint8_t code[32]; /* zeros where there is none */
};

/* One member of /runs: the fields are stored as attributes of /runs/N. */
struct store_run {
    const char *command; /* the command line */
    const char *json;    /* everything else, as a JSON object */
    const char *device, *driver, *host;
    double seconds;
};

#endif
