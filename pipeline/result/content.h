/* content.h: the content of a file, its rows, and the runs that wrote it. */
#ifndef CLPIPE_RESULT_CONTENT_H
#define CLPIPE_RESULT_CONTENT_H

#include "base/list_share.h"
#include "base/stop.h"
#include "features/feature.h"
#include <stdbool.h>
#include <stdint.h>

/* Everything that determines the rows. The pointers belong to the caller. */
struct content {
    const char *const *sources; /* texts from place_text */
    /* For each source, the text of the directory to which it is relative ("": unknown); NULL:
     * unknown. */
    const char *const *directories;
    unsigned source_count;
    const struct feature_set *features;
    unsigned decode_scale;
    /* Longest side, in pixels, of the thumbnails of the file; 0: none requested. Thumbnails are not
     * part of a file's identity. */
    unsigned thumbnail_size;
    const char *preset;      /* JSON: how the features are joined (preset.h); NULL: not joined */
    struct list_share share; /* the shard of these rows; count 0: all rows */
    const char *parameters;  /* JSON of all options that affect the content, stored verbatim */
};

/* One row of /images. */
struct result_image {
    const char *path;       /* UTF-8 as stored */
    const char *path_raw;   /* the bytes */
    uint32_t width, height; /* upright, unscaled */
    uint8_t orientation, channels;
    uint16_t source;
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t inode; /* of the file, or archive, when opened; 0: unknown */
    int64_t ctime_ns;
    uint64_t digest[2];
    char format[8];
    bool has_code;
    uint8_t code[32]; /* 256 bits: bit i is bit 7 - i % 8 of byte i / 8; zeros if there is none */
};

/* One row of /failures. */
struct failure_row {
    const char *path; /* UTF-8 as stored */
    char reason[16];
    const char *message;
    uint64_t bytes;
    int32_t error_number;
    uint16_t source;
    int64_t mtime_ns;
    uint64_t inode; /* 0: unknown */
    int64_t ctime_ns;
};

/* One member of /runs: the fields are stored as attributes of /runs/N. */
struct store_run {
    const char *command; /* the command line */
    const char *json;    /* everything else, as a JSON object; to be written: NULL: nothing */
    const char *device, *driver, *host; /* to be written: host NULL: this one */
    double seconds;
};

/* Labels rows that are new to a clustering: label_rows of kmeans/label_rows.h. */
typedef enum status (*label_rows_fn)(int32_t *labels, float *distances, const float *rows,
                                     uint64_t count, uint32_t dimension, const float *centroids,
                                     uint32_t k, const char *metric, unsigned threads,
                                     struct stop *stop, struct error *err);

#endif
