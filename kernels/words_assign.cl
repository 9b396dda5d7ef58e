/* words_assign: projects all descriptors of a slot and finds their nearest words in one launch.
 *
 * A work-item takes ROWS descriptors of a part. Both products, of descriptors and projection and of
 * projected values and words, are computed in float32: all terms are integers and all sums, in any
 * order, below 2^24 (features/codebook.h), so they are exact, fused or not. The matrices are
 * transposed, so 16 outputs of one input are a vector, which stays in registers for all inputs of
 * the ROWS descriptors. The distance to a word is its squared length - 2 p w, leaving out the
 * descriptor's own length; each lane keeps the first of its minima, and the lanes are compared
 * last, ties going to the lower word.
 *
 * For words=K the work-item counts them in the part's row. For fisher=K it stores the projected
 * values and the word, for fisher_sums to add up: records of PROJECTED + 2 bytes, numbered like the
 * bytes of descriptors.
 *
 * `codebook`: the offsets, PROJECTED; the matrix, COLUMNS x PROJECTED; the squared lengths of
 * words, PADDED, FLT_MAX for padding; -2 times the words, PROJECTED x PADDED. */
#include "descriptor_part.h"
#include "find_part.h"

#if !defined COLUMNS || !defined PROJECTED || !defined WORDS || !defined SHIFT || \
    !defined ROWS || !defined CHUNK
#error COLUMNS, PROJECTED, WORDS, SHIFT, ROWS or CHUNK is not defined
#endif
#if PROJECTED % 16
#error projected values are not whole vectors
#endif
#if COLUMNS % 4
#error descriptors are not whole vectors
#endif

/* Bytes of a descriptor that are read at a time: the work-items of a GPU read different cache lines. */
#if CHUNK == 0
#define INPUTS 1
typedef uchar inputs;
#elif COLUMNS % 16
#define INPUTS 4
typedef uint inputs;
#else
#define INPUTS 16
typedef uint4 inputs;
#endif

#define ACROSS (PROJECTED / 16) /* vectors */
#define PADDED ((WORDS + 15) / 16 * 16)

/* In OpenCL C 2.0 vstore16 takes a generic pointer, which Oclgrind 21.10 does not support. */
struct __attribute__((packed)) sixteen_bytes {
    uchar16 bytes;
};

/* All offsets in the codebook are whole vectors. */
static inline float16 load(__global const float *at, uint vector)
{
    return ((__global const float16 *)at)[vector];
}

static inline uint first_least(float16 value, int16 word)
{
    const int8 take8 = (value.hi < value.lo) | ((value.hi == value.lo) & (word.hi < word.lo));
    const float8 v8 = select(value.lo, value.hi, take8);
    const int8 w8 = select(word.lo, word.hi, take8);
    const int4 take4 = (v8.hi < v8.lo) | ((v8.hi == v8.lo) & (w8.hi < w8.lo));
    const float4 v4 = select(v8.lo, v8.hi, take4);
    const int4 w4 = select(w8.lo, w8.hi, take4);
    const int2 take2 = (v4.hi < v4.lo) | ((v4.hi == v4.lo) & (w4.hi < w4.lo));
    const float2 v2 = select(v4.lo, v4.hi, take2);
    const int2 w2 = select(w4.lo, w4.hi, take2);
    return (uint)(v2.y < v2.x || (v2.y == v2.x && w2.y < w2.x) ? w2.y : w2.x);
}

__kernel void words_assign(__global const uchar *descriptors,
                           __global const struct words_part *parts, uint count, uint all,
                           __global const float *codebook, __global uint *values,
                           __global uchar *records)
{
    const uint item = (uint)get_global_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first[0])
    const struct words_part part = parts[found];
    const uint begin = (item - part.first[0]) * ROWS;
    if (begin >= part.number)
        return;
    const uint own = min((uint)ROWS, part.number - begin);
    __global const float *matrix = codebook + PROJECTED;
    __global const float *lengths = matrix + COLUMNS * PROJECTED;
    __global const float *words = lengths + PADDED;
    __global const uchar *row[ROWS]; /* those past the last repeat it */
    for (uint r = 0; r < ROWS; r++)
        row[r] = descriptors + part.offset + COLUMNS * (size_t)(begin + min(r, own - 1));

    float16 projected[ROWS][ACROSS];
    for (uint v = 0; v < ACROSS; v++) {
        float16 sum[ROWS];
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
            sum[r] = load(codebook, v);
        for (uint first = 0; first < COLUMNS; first += INPUTS) {
            inputs input[ROWS];
#pragma unroll
            for (uint r = 0; r < ROWS; r++)
                input[r] = *(__global const inputs *)(row[r] + first);
#pragma unroll
            for (uint i = 0; i < INPUTS; i++) {
                const float16 weight = load(matrix + PROJECTED * (first + i), v);
#pragma unroll
                for (uint r = 0; r < ROWS; r++)
                    sum[r] += (float)((__private const uchar *)&input[r])[i] * weight;
            }
        }
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
            projected[r][v] = clamp(floor(sum[r] * (1.0f / (1 << SHIFT))), -127.0f, 127.0f);
    }

    float16 least[ROWS];
    int16 nearest[ROWS];
    for (uint r = 0; r < ROWS; r++) {
        least[r] = FLT_MAX;
        nearest[r] = 0;
    }
    const int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (uint v = 0; v < PADDED / 16; v++) {
        float16 distance[ROWS];
#pragma unroll
        for (uint r = 0; r < ROWS; r++)
            distance[r] = load(lengths, v);
        for (uint i = 0; i < PROJECTED; i++) {
            const float16 weight = load(words + (size_t)PADDED * i, v);
#pragma unroll
            for (uint r = 0; r < ROWS; r++)
                distance[r] += ((__private const float *)projected[r])[i] * weight;
        }
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
            const int16 less = distance[r] < least[r];
            least[r] = select(least[r], distance[r], less);
            nearest[r] = select(nearest[r], (int)(16 * v) + lanes, less);
        }
    }
    for (uint r = 0; r < own; r++) {
        const uint word = first_least(least[r], nearest[r]);
#ifdef FISHER
        __global uchar *record =
            records + (PROJECTED + 2) * (size_t)(part.offset / COLUMNS + begin + r);
        for (uint v = 0; v < ACROSS; v++)
            ((__global struct sixteen_bytes *)record)[v].bytes =
                as_uchar16(convert_char16(projected[r][v]));
        record[PROJECTED] = (uchar)word;
        record[PROJECTED + 1] = (uchar)(word >> 8);
#else
        atomic_inc(&values[part.words + word]);
#endif
    }
}
