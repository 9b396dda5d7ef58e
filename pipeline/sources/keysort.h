/* keysort.h: sorting records in memory by the bytes of their keys.
 *
 * A record is { uint32 key length, uint32 payload length, key, payload }, padded to 8 bytes, in an
 * arena. Sorting moves 16-byte references to records, each with the next 8 bytes of its key. Keys
 * compare as with memcmp, prefixes first; records with equal keys come in any order. */
#ifndef CLPIPE_SOURCES_KEYSORT_H
#define CLPIPE_SOURCES_KEYSORT_H

#include "base/stop.h"
#include <stddef.h>
#include <stdint.h>

struct record_header {
    uint32_t key_length, payload_length;
};

#define RECORD_ALIGNMENT 8

struct record_reference {
    uint64_t word;  /* the next 8 key bytes, big-endian, zeros after the end */
    uint32_t place; /* the record's offset in the arena / RECORD_ALIGNMENT */
    uint32_t left;  /* bytes of `word` that belong to the key */
};

/* Sorts references by the keys of their records; only `place` must be set. If a stop is requested
 * (stop may be NULL) it returns early with the references in any order. */
void keysort(struct record_reference *references, size_t count, const char *arena,
             struct stop *stop);

/* <0, 0, >0 as with memcmp, then by length. */
int key_compare(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
