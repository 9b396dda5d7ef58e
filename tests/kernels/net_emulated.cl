/* net_emulated: the kernels of net_tensor without NVIDIA's instructions. Lanes exchange operands
 * through local memory instead. */
#define EMULATED

#define ONE_BY_ONE _Pragma("unroll 1")
#define UNROLL     ONE_BY_ONE /* unrolled loops with barriers take minutes to compile */
#define LANES_MEET barrier(CLK_LOCAL_MEM_FENCE)
#define WARP_LANES                  \
    __local uint all[WARPS][32][6]; \
    __local uint(*lanes)[6] = all[warp];

static inline int multiply_high(int a, int b, int c)
{
    return mul_hi(a, b) + c;
}

static inline uint pack(int a, int b, int c, int d)
{
    return as_uint(convert_uchar4_sat((int4)(a, b, c, d)));
}

static __attribute__((unused)) int dot4(uint a, uint w, int sum)
{
    const uchar4 x = as_uchar4(a);
    const char4 y = as_char4(w);
    return sum + x.s0 * y.s0 + x.s1 * y.s1 + x.s2 * y.s2 + x.s3 * y.s3;
}

static __attribute__((unused)) uint permute(uint a, uint b, uint order)
{
    const ulong bytes = (ulong)b << 32 | a;
    uint made = 0;
    for (uint i = 0; i < 4; i++)
        made |= ((uint)(bytes >> ((order >> 4 * i & 7) * 8)) & 255) << 8 * i;
    return made;
}

/* Adds the product of 16 x 32 and 32 x 8 bytes to 16 x 8 sums; `lanes` has space for the warp's
 * operands. */
static __attribute__((unused)) void multiply(int *sum, uint a0, uint a1, uint a2, uint a3, uint b0,
                                             uint b1, __local uint (*lanes)[6])
{
    const uint lane = (uint)get_local_id(0) & 31;
    LANES_MEET;
    lanes[lane][0] = a0;
    lanes[lane][1] = a1;
    lanes[lane][2] = a2;
    lanes[lane][3] = a3;
    lanes[lane][4] = b0;
    lanes[lane][5] = b1;
    LANES_MEET;
    for (uint i = 0; i < 4; i++) {
        __local const uint(*a)[6] = lanes + lane / 4 * 4;
        __local const uint(*b)[6] = lanes + (lane % 4 * 2 + i % 2) * 4;
        for (uint t = 0; t < 4; t++)
            sum[i] = dot4(a[t][2 + i / 2], b[t][5], dot4(a[t][i / 2], b[t][4], sum[i]));
    }
}

#include "net_tensor.cl"
