/* entropy_part.h: data shared by the host and jpeg_entropy. */
#ifndef CLPIPE_KERNELS_ENTROPY_PART_H
#define CLPIPE_KERNELS_ENTROPY_PART_H

#include "part_types.h"

#define JPEG_STREAM_SLOTS  6
#define JPEG_STREAM_TABLES 4
#define JPEG_BLOCKS_AT     384 /* bytes of quantization tables before the first block */

/* Bits of a verdict; 0: the coefficients are proven correct. */
#define JPEG_NOT_SYNCHRONISED 1 /* within the rounds allowed */
#define JPEG_NO_CODE          2
#define JPEG_BEYOND_BLOCK     4  /* a run passes the last coefficient of a block */
#define JPEG_TOO_SHORT        8  /* fewer blocks than the header announces */
#define JPEG_BITS_WRONG       16 /* a segment's last block ends past its data, or 8 bits early */
#define JPEG_LINK_WRONG       32 /* a work-item ended where the next one did not begin */
#define JPEG_MEAN_TOO_LARGE   64 /* a DC value does not fit 16 bits */

/* decode/stream.h describes both structs. */
struct jpeg_stream_slot {
    PART_U32 dc, ac, component, first, row, column;
};

struct jpeg_stream {
    PART_U32 data, borders, bits, blocks, segments, interval, slots, mcus_across, tables, dc_tables;
    PART_U32 unused[6];
    struct jpeg_stream_slot slot[JPEG_STREAM_SLOTS];
    PART_U32 unused_too[12];
    PART_U16 quantization[JPEG_BLOCKS_AT / 2];
    PART_U8 table[JPEG_STREAM_TABLES][272];
};

/* A part in a slot. Offsets are in bytes, multiples of 16. */
struct jpeg_stream_part {
    PART_U32 offset, out;
    PART_U32 sixteens; /* 16-byte vectors to copy; for a stream 1, or 0 if abandoned */
    PART_U32 verdict;  /* index of its verdict */
};

#endif
