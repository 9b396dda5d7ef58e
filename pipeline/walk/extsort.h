/* extsort.h: sorts any number of records in bounded memory.
 *
 *   extsort_add ──> buffer ──(full: sorted)──> runs on disk ──(merged)──> extsort_next
 *
 * What fits into the buffer is sorted there and never touches the disk. Memory: `memory` bytes (or
 * twice the largest record, where that is more) and 64 KiB. One thread. */
#ifndef CLPIPE_WALK_EXTSORT_H
#define CLPIPE_WALK_EXTSORT_H

#include "base/error.h"
#include "base/stop.h"
#include <stddef.h>
#include <stdint.h>

struct extsort;

struct extsort_record {
    const char *key, *payload; /* not aligned */
    uint32_t key_length, payload_length;
};

/* Runs go to nameless files in `directory`; memory below 64 KiB is taken as that. stop may be NULL.
 */
enum status extsort_open(struct extsort **out, const char *directory, uint64_t memory,
                         struct stop *stop, struct error *err);

/* STATUS_FAILED: memory or disk; STATUS_INTERRUPTED. */
enum status extsort_add(struct extsort *sort, const struct extsort_record *record,
                        struct error *err);

/* Ends the adding; from here on extsort_next hands the records out by the bytes of their keys (as
 * memcmp, shorter first), those with equal keys in no particular order. */
enum status extsort_finish(struct extsort *sort, struct error *err);

/* The next record, its bytes valid until the next call; or STATUS_END. */
enum status extsort_next(struct extsort *sort, struct extsort_record *record, struct error *err);

/* Accepts NULL and NULLs. */
void extsort_close(struct extsort **sort);

#endif
