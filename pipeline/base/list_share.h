/* list_share.h: a shard: the share of a file list that one of several runs processes.
 *
 * Shares of one list are contiguous, disjoint and complete: the list alone decides which item is in
 * which (sources/portion.h). */
#ifndef CLPIPE_BASE_LIST_SHARE_H
#define CLPIPE_BASE_LIST_SHARE_H

#include <stdint.h>

/* Shards of one list; also the most parts of a merged file (result/parts.h). */
#define SHARDS_MAX 65536

struct list_share {
    uint64_t index, count; /* index of count, from 0; count 0: everything, no share */
    uint64_t first, last;  /* positions in the list: [first, last) */
    uint64_t list_count;   /* items of the whole list */
    char list_digest[33];  /* of the whole list, 32 hexadecimal digits; "": not known yet */
};

#endif
