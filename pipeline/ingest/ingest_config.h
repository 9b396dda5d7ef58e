/* ingest_config.h: what an ingest is given, shows while it runs, and reports. */
#ifndef CLPIPE_INGEST_CONFIG_H
#define CLPIPE_INGEST_CONFIG_H

#include "base/error.h"
#include "base/failure.h"
#include "base/stop.h"
#include "decode/decode.h"
#include "features/feature.h"
#include "file/store.h"
#include "ingest/stages.h"
#include "ocl/ocl.h"
#include "steps/plan.h"
#include "walk/walk.h"
#include <stdint.h>

/* The devices of a run. */
struct ingest_devices {
    const struct ocl_devices *devices;
    const unsigned *chosen; /* indices into devices */
    unsigned count;
};

/* Which thumbnails are made. Those of a file that is updated stay, and what is decoded gets one of
 * their size. */
enum ingest_thumbnails {
    THUMBNAILS_KEPT,      /* no others */
    THUMBNAILS_NEW_FILES, /* of a size that suits the number of files, where there is no file yet */
    THUMBNAILS_WANTED,    /* images that have none are decoded again */
};

/* What the person sees while it runs. */
struct ingest_progress {
    const char *phase;    /* "walking", "sample", "codebook", "images", "writing" */
    uint64_t done, total; /* items: images, failures and skipped files */
    uint64_t images, failed, skipped, unchanged;
    uint64_t bytes_done, bytes_total; /* of files */
    double seconds;                   /* since the phase began */
};

/* What takes the place of features that learn where there is too little to learn from. */
struct ingest_few {
    struct feature_set features; /* none of them learns */
    const char *parameters;      /* as in struct content */
    const char *preset;
};
#define INGEST_FEW 64 /* images are too few */

struct ingest_config {
    struct walk_options walk;
    struct decode_options decode;
    struct isolate *isolate; /* opened with the same options: decoders in processes of their own;
                                NULL: in the threads */
    struct feature_set features;
    const struct ingest_few *few; /* NULL: the features are learned from however few images there are */
    struct store_config store; /* but features, decode_scale and stop, which are these; sources, too,
                                  unless they are given: as the file stores those of the walk */
    bool sidecars; /* what lies beside the pictures is stored */
    bool checksum; /* images that an earlier run has are kept only if their bytes are the same */
    bool strict;
    enum ingest_thumbnails thumbnails;
    uint32_t thumbnail_size; /* THUMBNAILS_WANTED: THUMBNAIL_LEAST to THUMBNAIL_MOST; 0: the file's,
                                or one that suits the number of files */
    bool dry_run;            /* walk and headers only: no device, no output */

    /* Finds the devices, on the calling thread, while another walks; not called by a dry run. What
     * it gives must outlive the run. */
    enum status (*find_devices)(void *context, struct ingest_devices *found, struct error *err);
    void *find_devices_context;

    /* In the place of walk_open, on the calling thread after find_devices; NULL: walk_open, on another
     * thread. */
    enum status (*open_walk)(void *context, struct walk **out, const struct walk_config *config,
                             struct error *err);
    void *open_walk_context;
    /* Called after the walk with the number of files, before one is read; an error ends the ingest. May be
     * NULL. */
    enum status (*check_count)(void *context, uint64_t files, struct error *err);
    void *check_context;
    bool allow_removal; /* however many images of the file have gone */
    /* values[i] becomes the sum of all processes that share the walk; NULL: there is one. */
    enum status (*sum)(void *context, int64_t *values, size_t count, struct error *err);
    void *sum_context;
    const char *also_skipped[2]; /* files and directories that are no input, beside the output; or NULL */
    struct trace *trace; /* may be NULL */

    unsigned threads; /* decode threads, at least 1 */
    uint64_t memory;  /* bound on host buffers, bytes; at least 16 MiB is used */
    uint64_t memory_streams; /* instead, where a device decodes JPEG streams; not less */
    uint64_t
        device_memory;   /* bound on device buffers of each device, 0: no bound but the device's */
    uint64_t slot_bytes; /* 0: chosen for the device */
    unsigned slot_count; /* for each device, 0: chosen */
    enum histogram_variant variant;
    enum plan_jpeg jpeg; /* PLAN_JPEG_HOST is taken where `isolate` or `decode.scale` is set */

    struct stop *stop;
    void (*progress)(void *context,
                     const struct ingest_progress *progress); /* about 10 a second, */
    void *progress_context;                                   /* from one thread at a time */

    /* For /runs. */
    const char *command_line;
};

/* Why an image of the file that is updated has gone from it. */
enum loss {
    LOSS_GONE,     /* its file is not there */
    LOSS_EXCLUDED, /* by the globs */
    LOSS_UNLISTED,
    LOSS_ARCHIVE, /* has changed, and does not have it any more */
    LOSS_FAILED,  /* is no image any more, or cannot be read */
    LOSS_PASSED,  /* is there, but the walk passes it over */
    LOSS_DROPPED, /* with its source, which the command drops */
    LOSSES,
};

/* What of a JPEG image came to the device. */
enum jpeg_way {
    JPEG_NOT_DECODED, /* or it is no JPEG */
    JPEG_STREAM,
    JPEG_COEFFICIENTS,
    JPEG_PIXELS,
    JPEG_WAYS,
};

struct ingest_report {
    uint32_t ranks; /* processes that it is the sum of; 0: of one that works alone */
    uint64_t images_ok, images_failed, images_unchanged, images_resumed, files_not_images;
    /* Files of the size and time of before that were read again: their inode or time of change is
     * another, or all are compared; those with other bytes. */
    uint64_t files_compared, files_differ;
    uint64_t by_reason[REASON_COUNT];
    uint64_t links_passed; /* symbolic links to directories that were not followed */
    uint64_t paths_repeated; /* lines of lists that name what one before has named */
    uint64_t archives_passed; /* archives in directories that were not opened */
    struct list_share share;  /* what was read of the list; count 0: everything */
    uint64_t bytes_read, pixels;
    uint64_t jpeg[JPEG_WAYS];  /* images */
    uint64_t jpeg_handed_back; /* files: by a device that could not prove them */
    uint64_t jpeg_progressive; /* images, whose pixels the host makes */
    double seconds; /* process start to durable file */
    struct stage_times stage[INGEST_STAGES];
    unsigned bottleneck; /* index into stage */
    char device[256];    /* the names, joined by " + " */
    uint64_t memory; /* of the configuration, the one that was used */
    uint64_t peak_rss_bytes;
    uint64_t removed[LOSSES]; /* images of the file that was updated, or would have been */
    struct store_summary summary; /* what the finished file holds */
    uint32_t sample;              /* images that codebooks were learned from; 0: none were learned */
    bool few;                     /* they were too few: the features are those of config->few */
    bool file_written;            /* false: nothing new, or interrupted */
    uint64_t sealed;              /* interrupted: records kept for the next run */
};

#endif
