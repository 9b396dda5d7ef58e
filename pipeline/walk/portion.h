/* portion.h: which part of a list belongs to which shard.
 *
 * The list is cut into pieces that stay together: a file; the files of a sample (base/sample_name.h)
 * that follow each other; a compressed archive. A piece begins at the sum of the weights of all items
 * before it, and belongs to the shard in whose part of the total the middle of its first item lies. So
 * the shards' parts are contiguous, disjoint and complete for every number of shards, and differ from
 * equal parts by less than a piece. The weight of an item is its size and a byte, so that empty files
 * count; that of a compressed archive its compressed size. */
#ifndef CLPIPE_WALK_PORTION_H
#define CLPIPE_WALK_PORTION_H

#include "base/hash.h"
#include "base/list_share.h"
#include "walk/entry.h"

/* The whole list, item by item. */
struct portion_total {
    struct murmur3 digest; /* of paths and weights */
    uint64_t count, weight;
};

void portion_begin(struct portion_total *total);
/* Adds an item; returns its weight. */
uint64_t portion_add(struct portion_total *total, const char *path, size_t length,
                     const struct entry *entry);
void portion_digest(char hex[33], const struct portion_total *total);

/* The shard, of `count`, of a piece that begins at `before` with an item of weight `weight`, in a list
 * of weight `total`. */
uint64_t portion_shard(uint64_t before, uint64_t weight, uint64_t total, uint64_t count);

#endif
