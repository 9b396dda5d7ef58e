/* mma_bytes.h: products of 16 x 32 by 32 x 8 signed bytes by NVIDIA's tensor cores
 * (mma.m16n8k32). */
#ifndef CLPIPE_KERNELS_MMA_BYTES_H
#define CLPIPE_KERNELS_MMA_BYTES_H

static void multiply_codes(int *sum, const uint *a, uint b0, uint b1)
{
    __asm__ volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The same, with sums starting at 0. */
static void multiply_first_codes(int *sum, const uint *a, uint b0, uint b1)
{
    __asm__ volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                     : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}

#endif
