/* visual_words.cl: the nearest visual word of each descriptor, and how often each word occurs in each
 * picture, in the ways that a textbook compares. docs/case-study.md explains and measures them.
 *
 * -D COLUMNS=n  values of a descriptor
 * -D WORDS=n    words of the codebook
 * -D PICTURE=n  descriptors of a picture, which are neighbours
 * -D ITEMS=n    work-items of a group (in_local)
 *
 * Values are integers from 1 to 255 in float32, so every sum below is exact in whatever order, and all
 * ways give the same labels. With equal distances the lowest word is the nearest. */

#define KERNEL __kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
#define ARGUMENTS(words_space)                                                                     \
    (__global const float *restrict rows, words_space const float *restrict words,                 \
     __global uint *restrict labels, __global uint *restrict counts, uint count)

static void take(__global uint *labels, __global uint *counts, uint i, uint label)
{
    labels[i] = label;
    atomic_inc(&counts[(size_t)(i / PICTURE) * WORDS + label]);
}

/* Declares `label`, the nearest word of the descriptor whose value of column j is VALUE. */
#define NEAREST(VALUE)                                                                             \
    uint label = 0;                                                                                \
    float least = INFINITY;                                                                        \
    for (uint w = 0; w < WORDS; w++) {                                                             \
        float sum = 0;                                                                             \
        for (uint j = 0; j < COLUMNS; j++) {                                                       \
            const float t = VALUE - words[w * COLUMNS + j];                                        \
            sum += t * t;                                                                          \
        }                                                                                          \
        if (sum < least) {                                                                         \
            least = sum;                                                                           \
            label = w;                                                                             \
        }                                                                                          \
    }

/* One work-item per descriptor, as one would write it in C. Neighbouring work-items read values
 * that are COLUMNS apart. */
KERNEL naive ARGUMENTS(__global)
{
    const uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    NEAREST(rows[(size_t)i * COLUMNS + j])
    take(labels, counts, i, label);
}

/* The same, but the descriptors are transposed: work-items side by side read values side by side. */
KERNEL coalesced ARGUMENTS(__global)
{
    const uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    NEAREST(rows[(size_t)j * count + i])
    take(labels, counts, i, label);
}

/* Rows as in naive, four values at a time. */
KERNEL vectors ARGUMENTS(__global)
{
    const uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    uint label = 0;
    float least = INFINITY;
    for (uint w = 0; w < WORDS; w++) {
        float4 sum = (float4)(0);
        for (uint j = 0; j < COLUMNS / 4; j++) {
            const float4 t = vload4(j, rows + (size_t)i * COLUMNS) - vload4(j, words + w * COLUMNS);
            sum += t * t;
        }
        const float all = sum.x + sum.y + sum.z + sum.w;
        if (all < least) {
            least = all;
            label = w;
        }
    }
    take(labels, counts, i, label);
}

/* A work-group brings its descriptors to local memory once, side by side, and then reads them
 * there, one work-item per bank. */
KERNEL in_local ARGUMENTS(__global)
{
    __local float mine[COLUMNS * (ITEMS + 1)];
    const uint lid = (uint)get_local_id(0), first = (uint)get_group_id(0) * ITEMS, i = first + lid;
    const uint here = min((uint)ITEMS, count - first);
    for (uint v = lid; v < here * COLUMNS; v += ITEMS)
        mine[v % COLUMNS * (ITEMS + 1) + v / COLUMNS] = rows[(size_t)first * COLUMNS + v];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i >= count)
        return;
    NEAREST(mine[j * (ITEMS + 1) + lid])
    take(labels, counts, i, label);
}

#ifdef CONSTANT
/* As coalesced; all work-items read the same word at a time, from constant memory. */
KERNEL in_constant ARGUMENTS(__constant)
{
    const uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    NEAREST(rows[(size_t)j * count + i])
    take(labels, counts, i, label);
}
#endif

/* The words of pictures whose labels are known: follows clpipe's own assignment. */
__kernel void count_labels(__global const int *restrict labels, __global uint *restrict counts,
                           uint count)
{
    const uint i = (uint)get_global_id(0);
    if (i < count)
        atomic_inc(&counts[(size_t)(i / PICTURE) * WORDS + (uint)labels[i]]);
}

/* A floor: each value is read once. */
__kernel void read_once(__global const float4 *restrict rows, __global float *restrict out,
                        uint fours)
{
    float4 sum = (float4)(0);
    for (uint v = (uint)get_global_id(0); v < fours; v += (uint)get_global_size(0))
        sum += rows[v];
    out[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}

/* A floor for all ways that subtract and multiply in float32: as many of both operations, in
 * registers. `turns` of 64. */
__kernel void arithmetic(__global float *restrict out, uint turns)
{
    /* All lanes differ, or compilers evaluate one of them. */
    const float16 x = (float16)((float)get_global_id(0)) +
                      (float16)(0, 3, 7, 12, 18, 25, 33, 42, 52, 63, 75, 88, 102, 117, 133, 150);
    float16 sum0 = (float16)(0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    float4 y = (float4)(1, 2, 3, 4);
    for (uint turn = 0; turn < turns; turn++) {
        const float16 t0 = x - y.x, t1 = x - y.y, t2 = x - y.z, t3 = x - y.w;
        sum0 = fma(t0, t0, sum0);
        sum1 = fma(t1, t1, sum1);
        sum2 = fma(t2, t2, sum2);
        sum3 = fma(t3, t3, sum3);
        y = y + 1;
    }
    const float16 all = sum0 + sum1 + sum2 + sum3;
    const float8 half_sum = all.lo + all.hi;
    out[get_global_id(0)] = dot(half_sum.lo, half_sum.hi);
}
