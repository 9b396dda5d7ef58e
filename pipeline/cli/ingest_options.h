/* ingest_options.h: options of the commands that read images: ingest and run; codebook and list have some of
 * them. */
#ifndef CLPIPE_CLI_INGEST_OPTIONS_H
#define CLPIPE_CLI_INGEST_OPTIONS_H

#include "cli/option_rows.h"

/* Which files of the sources are read. */
struct walk_given {
    struct text_list include, exclude;
    bool follow_symlinks, archives, hidden;
};

/* How images are decoded; the structs of ingest, run and codebook begin with it. */
struct image_options {
    struct options common;
    struct walk_given walk;
    int alpha, icc, decode_scale; /* icc: 0 ignore, 1 apply */
    uint64_t max_pixels, max_scans, limit;
    double max_decode_seconds;
    bool isolate;
};

/* Features and updates; the structs of ingest and run begin with it. */
struct ingest_options {
    struct image_options image;
    struct text_list features, drop_source;
    int store, normalize, blur; /* store: enum feature_store; blur: 0 off, 1 by 3x3 pixels */
    int preset;                 /* index in presets[] (features/preset.h), -1: none */
    int jpeg_pixels;
    bool compress, sidecar, strict, fresh, retry_failed, add, add_codes, quality, retrain,
        allow_removal, checksum;
    struct share allow_failures;
    const char *codebook, *onnxruntime, *relocate, *histogram_variant;
    uint64_t thumbnails; /* longest side; 0: not given, or without a number */
    uint64_t slot_size, slots;
};

extern const struct option image_rows[], ingest_rows[], tuning_rows[];

#define GROUP_IMAGES "Images", image_rows
#define GROUP_INGEST "Features and updates", ingest_rows
#define GROUP_TUNING "Tuning and tests (affect speed, never results)", tuning_rows

/* For structs with a member `walk`. */
#define WALK_ROWS                                                                                  \
    FLAG("follow-symlinks", walk.follow_symlinks, "follow symbolic links to directories"),         \
        FLAG("archives", walk.archives,                                                            \
             "read the images in tar and zip archives below directories; an archive that is a "    \
             "SOURCE is always opened"),                                                           \
        FLAG("hidden", walk.hidden, "include names that begin with a dot"),                        \
        LIST("include", walk.include, "GLOB",                                                      \
             "read only files that match, repeatable; a pattern without / is matched against the " \
             "file name"),                                                                         \
        LIST("exclude", walk.exclude, "GLOB", "skip files that match, repeatable")

#endif
