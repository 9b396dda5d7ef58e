/* shards.h: images of a result, as they are, in tar archives to train on (WebDataset).
 *
 *     DIR/shard-000000.tar    of each image KEY.jpg (or what it is), KEY.json, KEY.cls, KEY.txt, KEY.npy
 *     DIR/shard-000000.json   samples, bytes, SHA-256; it appears when the archive is whole
 *     DIR/index.json          all archives, when all are there
 *     DIR/.clpipe-shards      what they were made from
 *
 * KEY is the image's row, ten digits. Bytes depend on the result, the files and the parameters alone: a
 * repeated command goes on behind the archives that are whole, and several can make different ones. */
#ifndef CLPIPE_SELECTION_SHARDS_H
#define CLPIPE_SELECTION_SHARDS_H

#include "base/list_share.h"
#include "clustering/machine.h"
#include "file/result.h"

#define SHARDS_MARKER ".clpipe-shards"

struct shards_config {
    struct result *result;
    const char *directory;
    const char *selection; /* its images in its order; NULL: all */
    const char *feature;   /* whose rows are added; NULL: none */
    uint64_t samples;      /* of an archive at most; 0: any number */
    uint64_t bytes;        /* likewise, unless one image has more */
    bool shuffle;          /* by `seed` */
    uint64_t seed;
    struct list_share share; /* of several commands: which archives are this one's; count 0: all */
    struct clustering_machine machine;
};

struct shards_report {
    uint64_t archives, made, there; /* of this share; `there` before */
    uint64_t samples, left_out;     /* in those that were made; files that are gone or have changed */
    bool whole;                     /* all archives of all shares are there */
};

/* STATUS_USAGE: no such selection or feature. STATUS_FAILED: the directory holds something else. */
enum status shards_write(struct shards_report *report, const struct shards_config *config, struct error *err);

#endif
