/* words_assign: projects all descriptors of a slot and finds their nearest words in one launch.
 *
 * A work-item takes ROWS descriptors of a part. Both products, of descriptors and projection and of
 * projected values and words, are computed in float32: all terms are integers and all sums, in any
 * order, below 2^24 (features/codebook.h), so they are exact, fused or not. The matrices are
 * transposed, so 16 outputs of one input are a vector; a block of them stays in registers for all
 * inputs. The distance to a word is its squared length - 2 p w, leaving out the descriptor's own
 * length; each lane keeps the first of its minima, and the lanes are compared last, ties going to
 * the lower word.
 *
 * For words=K the work-item counts them in the part's row. For fisher=K it stores the projected
 * values and the word, for fisher_sums to add up: records of PROJECTED + 2 bytes, numbered like the
 * bytes of descriptors.
 *
 * `codebook`: the offsets, PROJECTED; the matrix, COLUMNS x PROJECTED; the squared lengths of
 * words, PADDED, FLT_MAX for padding; -2 times the words, PROJECTED x PADDED. */
#include "descriptor_part.h"
#include "find_part.h"

#if !defined COLUMNS || !defined PROJECTED || !defined WORDS || !defined SHIFT || !defined ROWS
#error COLUMNS, PROJECTED, WORDS, SHIFT or ROWS is not defined
#endif
#if PROJECTED % 16
#error projected values are not whole vectors
#endif

#define ACROSS (PROJECTED / 16) /* vectors */
#define WIDE   ((WORDS + 15) / 16)
#define WHOLE  (WIDE < 4 ? WIDE : 4)
#define PADDED ((WIDE + WHOLE - 1) / WHOLE * WHOLE * 16)

/* Vectors of outputs that stay in registers. With several descriptors per work-item, these suffice
 * for one of them: CPUs have 16 or 32 registers, of half a vector or a whole one. */
#define BLOCK   (ROWS > 1 ? 1 : ACROSS < 4 ? ACROSS : 4)
#define BLOCK_W (ROWS > 1 ? 1 : WHOLE)

#if PROJECTED > 64 && PROJECTED % 64
#error projected values are not whole blocks
#endif

/* In OpenCL C 2.0 vload16 takes a generic pointer, which Oclgrind 21.10 does not support. */
struct __attribute__((packed, aligned(4))) sixteen_floats {
    float16 values;
};

struct __attribute__((packed)) sixteen_bytes {
    uchar16 bytes;
};

static inline float16 load(__global const float *at, uint vector)
{
    return ((__global const struct sixteen_floats *)at)[vector].values;
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
    for (uint block = 0; block < ACROSS; block += BLOCK) {
        float16 sum[ROWS][BLOCK];
#pragma unroll
        for (uint v = 0; v < BLOCK; v++) {
            const float16 offset = load(codebook, block + v);
#pragma unroll
            for (uint r = 0; r < ROWS; r++)
                sum[r][v] = offset;
        }
        for (uint i = 0; i < COLUMNS; i++) {
            __global const float *weights = matrix + PROJECTED * i + 16 * block;
            float16 weight[BLOCK];
#pragma unroll
            for (uint v = 0; v < BLOCK; v++)
                weight[v] = load(weights, v);
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                const float here = (float)row[r][i];
#pragma unroll
                for (uint v = 0; v < BLOCK; v++)
                    sum[r][v] += here * weight[v];
            }
        }
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
#pragma unroll
            for (uint v = 0; v < BLOCK; v++)
                projected[r][block + v] =
                    clamp(floor(sum[r][v] * (1.0f / (1 << SHIFT))), -127.0f, 127.0f);
        }
    }

    float16 least[ROWS];
    int16 nearest[ROWS];
    for (uint r = 0; r < ROWS; r++) {
        least[r] = FLT_MAX;
        nearest[r] = 0;
    }
    const int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (uint block = 0; block < PADDED / 16; block += BLOCK_W) {
        float16 distance[ROWS][BLOCK_W];
#pragma unroll
        for (uint v = 0; v < BLOCK_W; v++) {
            const float16 length = load(lengths, block + v);
#pragma unroll
            for (uint r = 0; r < ROWS; r++)
                distance[r][v] = length;
        }
        for (uint i = 0; i < PROJECTED; i++) {
            __global const float *weights = words + (size_t)PADDED * i + 16 * block;
            float16 weight[BLOCK_W];
#pragma unroll
            for (uint v = 0; v < BLOCK_W; v++)
                weight[v] = load(weights, v);
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                const float here = ((__private const float *)projected[r])[i];
#pragma unroll
                for (uint v = 0; v < BLOCK_W; v++)
                    distance[r][v] += here * weight[v];
            }
        }
#pragma unroll
        for (uint r = 0; r < ROWS; r++) {
#pragma unroll
            for (uint v = 0; v < BLOCK_W; v++) {
                const int16 less = distance[r][v] < least[r];
                least[r] = select(least[r], distance[r][v], less);
                nearest[r] = select(nearest[r], (int)(16 * (block + v)) + lanes, less);
            }
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
