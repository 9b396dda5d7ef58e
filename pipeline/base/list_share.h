/* list_share.h: the share that one of several runs has of a list of files: a shard.
 *
 * Shares of one list are contiguous, disjoint and complete: what belongs to which is decided by the
 * list alone (walk/portion.h). */
#ifndef CLPIPE_BASE_LIST_SHARE_H
#define CLPIPE_BASE_LIST_SHARE_H

#include <stdint.h>

/* Of one list; as many as one merged file may have parts (file/parts.h). */
#define SHARDS_MAX 65536

struct list_share {
    uint64_t index, count;     /* index of count, from 0; count 0: everything, no share */
    uint64_t first, last;      /* positions in the list: first is the first of the share, last is the
                                  one behind its last */
    uint64_t list_count;       /* items of the whole list */
    char list_digest[33];      /* of the whole list, 32 hexadecimal digits; "": not known yet */
};

#endif
