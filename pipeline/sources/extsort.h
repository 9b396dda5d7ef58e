/* extsort.h: sorts any number of records in bounded memory.
 *
 *   extsort_add ──> buffer ──(full: sorted)──> runs on disk ──(merged)──> extsort_next
 *
 * Records that fit into the buffer are sorted there without disk access. Memory: `memory` bytes (or
 * twice the largest record if that is more) plus 64 KiB and, while they are sorted, 16 bytes a record.
 * One thread. */
#ifndef CLPIPE_SOURCES_EXTSORT_H
#define CLPIPE_SOURCES_EXTSORT_H

#include "base/error.h"
#include "base/stop.h"
#include <stdint.h>

struct extsort;

struct extsort_record {
    const char *key, *payload; /* not aligned */
    uint32_t key_length, payload_length;
};

/* Runs go to unlinked files in `directory`, whose name stays valid until the end; memory is at least
 * 64 KiB. stop may be NULL. */
enum status extsort_open(struct extsort **out, const char *directory, uint64_t memory,
                         struct stop *stop, struct error *err);

/* STATUS_FAILED: memory or disk; STATUS_INTERRUPTED. */
enum status extsort_add(struct extsort *sort, const struct extsort_record *record,
                        struct error *err);

/* Ends adding; extsort_next then returns the records ordered by the bytes of their keys (memcmp,
 * then length), those with equal keys in any order. */
enum status extsort_finish(struct extsort *sort, struct error *err);

/* The next record, valid until the next call; or STATUS_END. */
enum status extsort_next(struct extsort *sort, struct extsort_record *record, struct error *err);

/* Accepts NULL. */
void extsort_close(struct extsort **sort);

#endif
