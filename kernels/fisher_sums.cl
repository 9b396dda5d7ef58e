/* fisher_sums: sums the projected descriptors of each word, and their squares, for all pictures in
 * a slot in one launch.
 *
 * A row consists of the number of descriptors of each of WORDS words, the sums of their PROJECTED
 * values, word by word, and the sums of the values' squares. Sums are modulo 2^32.
 *
 * On CPUs a work-item takes all descriptors of a picture and owns its row. Elsewhere a work-group
 * takes a chunk of CHUNK descriptors and each work-item one of their columns; it adds atomically
 * without waiting for the result, and neighbouring work-items add to neighbouring words. */
#include "descriptor_part.h"
#include "find_part.h"

#if !defined COLUMNS || !defined PROJECTED || !defined WORDS || !defined CHUNK
#error COLUMNS, PROJECTED, WORDS or CHUNK is not defined
#endif

#define RECORD (PROJECTED + 2)

/* In OpenCL C 2.0 vload16 takes a generic pointer, which Oclgrind 21.10 does not support. */
struct __attribute__((packed, aligned(4))) sixteen_words {
    uint16 words;
};

struct __attribute__((packed)) sixteen_bytes {
    uchar16 bytes;
};

__kernel void fisher_sums(__global const struct words_part *parts, uint count, uint all,
                          __global const uchar *records, __global uint *values)
{
    const uint item = (uint)get_group_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first[1])
    const struct words_part part = parts[found];
    __global uint *numbers = values + part.words;
    __global uint *sums = numbers + WORDS, *squares = sums + WORDS * PROJECTED;
    __global const uchar *record = records + RECORD * (size_t)(part.offset / COLUMNS);
#if CHUNK == 0
    for (uint d = 0; d < part.number; d++, record += RECORD) {
        const uint word = record[PROJECTED] | (uint)record[PROJECTED + 1] << 8;
        numbers[word]++;
        for (uint v = 0; v < PROJECTED / 16; v++) {
            const uint place = word * (PROJECTED / 16) + v;
            const int16 value = convert_int16(
                as_char16(((__global const struct sixteen_bytes *)record)[v].bytes));
            ((__global struct sixteen_words *)sums)[place].words += as_uint16(value);
            ((__global struct sixteen_words *)squares)[place].words += as_uint16(value * value);
        }
    }
#else
    const uint begin = (item - part.first[1]) * CHUNK, end = min(begin + CHUNK, part.number);
    const uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);
    for (uint i = begin * PROJECTED + lane; i < end * PROJECTED; i += lanes) {
        const uint d = i / PROJECTED, column = i - d * PROJECTED;
        __global const uchar *own = record + RECORD * (size_t)d;
        const uint word = own[PROJECTED] | (uint)own[PROJECTED + 1] << 8;
        const int value = as_char(own[column]);
        atomic_add(&sums[word * PROJECTED + column], (uint)value);
        atomic_add(&squares[word * PROJECTED + column], (uint)(value * value));
        if (column == 0)
            atomic_inc(&numbers[word]);
    }
#endif
}
