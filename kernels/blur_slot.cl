/* blur_slot: the 3x3 box blur of all pictures in a slot in one launch.
 *
 * A pixel's neighbours are 3 bytes away in its row for every channel, so a row of interleaved RGB
 * is blurred as a row of bytes. A work-item takes a block of BLUR_BLOCK_BYTES by BLUR_BLOCK_ROWS:
 * it slides down, keeps the horizontal sums of two rows and adds that of each new row, so every row
 * is loaded three times in all. Sums reach 2,295 and are divided in 16 bits. The range has one
 * work-item per block in the slot, whatever the sizes of the pictures; each bisects for the part
 * that its block belongs to. Bound by the three unaligned loads.
 *
 * If the device takes non-uniform work-groups, the range is exact; otherwise it is rounded up and
 * the work-items past the end do nothing. */
#include "blur_part.h"
#include "find_part.h"

/* Sixteen bytes at any address. In OpenCL C 2.0 vload16 takes a generic pointer, which Oclgrind
 * 21.10 does not support. */
struct __attribute__((packed)) sixteen {
    uchar16 bytes;
};

static inline ushort16 load(__global const uchar *in)
{
    return convert_ushort16(((__global const struct sixteen *)in)->bytes);
}

/* Horizontal sums around 16 bytes of a row. */
static inline ushort16 across(__global const uchar *in)
{
    return load(in) + load(in + 3) + load(in + 6);
}

/* The columns at the right that do not fill a block. */
static inline void blur_bytes(__global uchar *out, __global const uchar *in, uint bytes, uint rows,
                              uint stride)
{
    for (uint x = 0; x < bytes; x++) {
        uint above = in[x] + in[x + 3] + in[x + 6];
        uint here = in[stride + x] + in[stride + x + 3] + in[stride + x + 6];
        for (uint row = 0; row < rows; row++) {
            __global const uchar *next = in + (row + 2) * stride + x;
            const uint below = next[0] + next[3] + next[6];
            out[row * (stride - 6) + x] = (uchar)((above + here + below) / 9);
            above = here;
            here = below;
        }
    }
}

__kernel void blur_slot(__global const uchar *pixels, __global const struct blur_part *parts,
                        uint count, uint blocks, __global uchar *blurred)
{
    const uint block = (uint)get_global_id(0);
    if (block >= blocks)
        return;
    FIND_PART(found, parts, count, block, first)
    const struct blur_part part = parts[found];
    const uint bytes = 3 * part.width, stride = bytes + 6;
    const uint columns = (bytes + BLUR_BLOCK_BYTES - 1) / BLUR_BLOCK_BYTES;
    const uint down = (block - part.first) / columns;
    const uint x = (block - part.first - down * columns) * BLUR_BLOCK_BYTES;
    const uint y = down * BLUR_BLOCK_ROWS;
    if (y >= part.rows)
        return;
    const uint rows = min((uint)BLUR_BLOCK_ROWS, part.rows - y);
    __global const uchar *in = pixels + part.offset + y * stride + x;
    __global uchar *out = blurred + part.blurred + y * bytes + x;
    if (x + BLUR_BLOCK_BYTES > bytes) {
        blur_bytes(out, in, bytes - x, rows, stride);
        return;
    }
    ushort16 above = across(in), here = across(in + stride);
    for (uint row = 0; row < rows; row++) {
        const ushort16 below = across(in + (row + 2) * stride);
        ((__global struct sixteen *)(out + row * bytes))->bytes =
            convert_uchar16((above + here + below) / (ushort16)(9));
        above = here;
        here = below;
    }
}
