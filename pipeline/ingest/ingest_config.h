/* ingest_config.h: configuration, progress and report of an ingest. */
#ifndef CLPIPE_INGEST_CONFIG_H
#define CLPIPE_INGEST_CONFIG_H

#include "base/error.h"
#include "base/failure.h"
#include "base/stop.h"
#include "decode/decode.h"
#include "device/plan.h"
#include "features/feature.h"
#include "ingest/stages.h"
#include "ocl/ocl.h"
#include "result/store.h"
#include "sources/walk.h"
#include <stdint.h>

/* Which thumbnails to make. When a file is updated its thumbnails stay, and new ones have the same
 * size. */
enum ingest_thumbnails {
    THUMBNAILS_KEPT,      /* no new ones */
    THUMBNAILS_NEW_FILES, /* for new files, with a size that depends on the number of images */
    THUMBNAILS_WANTED,    /* images without one are decoded again */
};

/* Progress shown to the user. */
struct ingest_progress {
    const char *phase;    /* "walking", "sample", "codebook", "images", "writing" */
    uint64_t done, total; /* items: images, failures and skipped files */
    uint64_t images, failed;
    uint64_t bytes_done, bytes_total; /* of files */
    double seconds;                   /* since the phase started */
};

/* Replaces features that learn if there are too few images to learn from. */
struct ingest_few {
    struct feature_set features; /* none of them learns */
    const char *parameters;      /* as in struct content */
    const char *preset;
};
#define INGEST_FEW 64 /* minimum number of images */

struct ingest_config {
    struct walk_options walk;
    struct decode_options decode;
    struct isolate *isolate; /* decoders in separate processes; NULL: decode in the threads */
    struct feature_set features;
    const struct ingest_few *few; /* NULL: features are learned from any number of images */
    struct store_config store;    /* except features, decode_scale and stop, which are set here, and
                                * sources unless given: the walk's */
    bool sidecars;                /* store sidecar files of the pictures */
    bool checksum;                /* keep images of an earlier run only if their bytes are equal */
    bool strict;
    enum ingest_thumbnails thumbnails;
    uint32_t thumbnail_size; /* THUMBNAILS_WANTED: THUMBNAIL_LEAST to THUMBNAIL_MOST; 0: the file's
                              * size, or one for the number of files */
    bool dry_run;            /* walk and headers only: no device, no output */

    /* Finds the devices, on the calling thread, while the walk runs; not called in a dry run. Its
     * result must outlive the run. */
    enum status (*find_devices)(void *context, struct ocl_selection *found, struct error *err);
    void *find_devices_context;

    /* Called instead of walk_open, on the calling thread after find_devices; NULL: walk_open, on
     * another thread. */
    enum status (*open_walk)(void *context, struct walk **out, const struct walk_config *config,
                             struct error *err);
    /* Called with the number of files after the walk, before any file is read; an error ends the
     * ingest. May be NULL. */
    enum status (*check_count)(void *context, uint64_t files, struct error *err);
    void *check_context;
    bool allow_removal; /* even if many images of the file were removed */
    /* Replaces values[i] by the sum over all processes that share the walk; NULL: a single
     * process. */
    enum status (*sum)(void *context, int64_t *values, size_t count, struct error *err);
    void *ranks;                 /* the context of open_walk and sum */
    const char *also_skipped[2]; /* files and directories to skip in addition to the output; or
                                  * NULL */
    struct trace *trace;         /* may be NULL */

    unsigned threads;        /* decode threads, at least 1 */
    uint64_t memory;         /* limit on host buffers in bytes; at least 16 MiB is used */
    uint64_t memory_streams; /* the limit if a device decodes JPEG streams; at least `memory` */
    uint64_t device_memory;  /* limit on buffers of each device; 0: the device's own */
    uint64_t slot_bytes;     /* 0: chosen for the device */
    unsigned slot_count;     /* per device; 0: chosen */
    enum histogram_variant variant;
    enum plan_jpeg jpeg; /* PLAN_JPEG_HOST is used if `isolate` or `decode.scale` is set */

    struct stop *stop;
    void (*progress)(void *context,
                     const struct ingest_progress *progress); /* about 10 times a second, */
    void *progress_context;                                   /* one thread at a time */

    /* For /runs. */
    const char *command_line;
};

/* Why an image is removed from the existing file. */
enum loss {
    LOSS_GONE,     /* its file is missing */
    LOSS_EXCLUDED, /* by the glob patterns */
    LOSS_UNLISTED,
    LOSS_ARCHIVE, /* has changed and no longer contains it */
    LOSS_FAILED,  /* is no longer an image, or cannot be read */
    LOSS_PASSED,  /* exists, but the walk skips it */
    LOSS_DROPPED, /* with its source, which the command removes */
    LOSSES,
};

/* How a JPEG image was sent to the device. */
enum jpeg_way {
    JPEG_NOT_DECODED, /* or not a JPEG */
    JPEG_STREAM,
    JPEG_COEFFICIENTS,
    JPEG_PIXELS,
    JPEG_WAYS,
};

struct ingest_report {
    uint32_t ranks; /* number of processes in the sum; 0: a single process */
    uint64_t images_ok, images_unchanged, images_resumed;
    /* Files with unchanged size and time that were read again, because the inode or change time
     * differs or all files are compared; and those of them whose bytes differ. */
    uint64_t files_compared, files_differ;
    uint64_t by_reason[REASON_COUNT];
    struct walk_passed passed;
    struct list_share share; /* part of the list that was read; count 0: all */
    uint64_t bytes_read, pixels;
    uint64_t jpeg[JPEG_WAYS];  /* images */
    uint64_t jpeg_handed_back; /* files that a device refused */
    uint64_t jpeg_progressive; /* images decoded by the host */
    double seconds;            /* process start to durable file */
    struct stage_times stage[INGEST_STAGES];
    unsigned bottleneck; /* index into stage */
    char device[256];    /* the names, joined by " + " */
    uint64_t memory;     /* the configured limit that was used */
    uint64_t peak_rss_bytes;
    uint64_t removed[LOSSES];     /* from the existing file, or would have been */
    struct store_summary summary; /* contents of the new file */
    uint32_t sample;              /* images that codebooks were learned from; 0: nothing learned */
    bool few;                     /* there were too few: the features are those of config->few */
    uint64_t sealed;              /* if interrupted: records kept for the next run */
};

#endif
