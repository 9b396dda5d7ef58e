/* portion.h: divides a list into shards.
 *
 * The list consists of pieces that are not divided: a file; consecutive files of a sample
 * (base/sample_name.h); a compressed archive. A piece begins at the total weight of all items
 * before it, and belongs to the shard whose range of the total weight contains the middle of its
 * first item. So for any number of shards, shards are contiguous, disjoint and complete, and
 * deviate from equal sizes by less than a piece. The weight of an item is its size plus one byte,
 * so that empty files count; that of a compressed archive its compressed size. */
#ifndef CLPIPE_SOURCES_PORTION_H
#define CLPIPE_SOURCES_PORTION_H

#include "base/hash.h"
#include "sources/entry.h"

/* State over the whole list, item by item. */
struct portion_total {
    struct murmur3 digest; /* of paths and weights */
    uint64_t count, weight;
};

void portion_begin(struct portion_total *total);
/* Adds an item; returns its weight. */
uint64_t portion_add(struct portion_total *total, const char *path, size_t length,
                     const struct entry *entry);
void portion_digest(char hex[33], const struct portion_total *total);

/* The shard, of `count`, of a piece that begins at weight `before` with an item of weight `weight`,
 * in a list with total weight `total`. */
uint64_t portion_shard(uint64_t before, uint64_t weight, uint64_t total, uint64_t count);

#endif
