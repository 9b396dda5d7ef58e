/* shards.h: the unmodified images of a result in tar archives for training (WebDataset).
 *
 *     DIR/shard-000000.tar    per image KEY.jpg (or the like), KEY.json, KEY.cls, KEY.txt, KEY.npy
 *     DIR/shard-000000.json   samples, bytes, SHA-256; written when the archive is complete
 *     DIR/index.json          all archives, once all are complete
 *     DIR/.clpipe-shards      what they were made from
 *
 * KEY is the image's row, ten digits. The bytes depend only on the result, the files and the
 * parameters: a repeated command continues after the complete archives, and several can make
 * different ones. */
#ifndef CLPIPE_JOBS_SHARDS_H
#define CLPIPE_JOBS_SHARDS_H

#include "base/list_share.h"
#include "jobs/machine.h"

#define SHARDS_MARKER ".clpipe-shards"

struct shards_config {
    struct result *result;
    const char *directory;
    const char *selection; /* writes its images in its order; NULL: all images */
    const char *feature;   /* whose rows are added; NULL: none */
    uint64_t samples;      /* maximum per archive; 0: any number */
    uint64_t bytes;        /* likewise, unless a single image is larger */
    bool shuffle;          /* by `seed` */
    uint64_t seed;
    struct list_share share; /* between several commands: the archives of this one; count 0: all */
    struct clustering_machine machine;
};

struct shards_report {
    uint64_t archives, made, there; /* of this share; `there`: made earlier */
    uint64_t samples;               /* in the archives made */
    uint64_t left_out; /* in all of this share: files that were missing or had changed */
    bool whole;        /* all archives of all shares exist */
};

/* STATUS_USAGE: no such selection or feature. STATUS_FAILED: the directory holds something else. */
enum status shards_write(struct shards_report *report, const struct shards_config *config,
                         struct error *err);

#endif
