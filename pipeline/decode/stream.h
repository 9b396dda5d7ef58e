/* stream.h: JPEG images as entropy-coded data without stuffed bytes, and decoding to coefficients.
 *
 * A device decodes a picture's Huffman code with many work-items at once (kernels/jpeg_entropy.cl).
 * Their input is one contiguous range of a slot, the payload:
 *
 *     struct stream_head    header: geometry, Huffman and quantization tables
 *     borders               segments + 1 uint32: the bit at which each segment begins, and the end
 *     data                  entropy-coded data without stuffed bytes and restart markers
 *     STREAM_PADDING        bytes of zero
 *
 * each aligned to 16 bytes if the first byte is. A segment is the data between two restart markers.
 * This file fills the payload's header and has the plain C reference of the kernel.
 *
 * The reference is stricter than libjpeg: it refuses everything that libjpeg would warn about, and
 * what it accepts has libjpeg's coefficients. A refused file may still be valid; libjpeg
 * decides. */
#ifndef CLPIPE_DECODE_STREAM_H
#define CLPIPE_DECODE_STREAM_H

#include "decode/dct.h"

#include <stdbool.h>
#include <stdint.h>

#define STREAM_SLOTS     6u   /* blocks of an MCU, at most: 4:2:0 */
#define STREAM_TABLES    4u   /* different Huffman tables of a picture, at most */
#define STREAM_TABLE     272u /* bytes of a table: code counts for 16 lengths, 256 symbols */
#define STREAM_PADDING   64u
#define STREAM_BYTES_MAX (1u << 28) /* of data: bits are counted in 32 bits */

/* A block of an MCU, in file order: its tables and its position. Block k of MCU (x, y) is block
 * first + y * row + x * column of the picture. */
struct stream_slot {
    uint32_t dc, ac; /* tables */
    uint32_t component, first, row, column;
};

/* As kernels/entropy_part.h declares it. */
struct stream_head {
    uint32_t data, borders;      /* byte offsets from the header */
    uint32_t bits;               /* of the data */
    uint32_t blocks;             /* of the picture */
    uint32_t segments, interval; /* interval: blocks per segment; the last may be shorter */
    uint32_t slots;              /* blocks of an MCU */
    uint32_t mcus_across;
    uint32_t tables, dc_tables; /* number of tables; bit mask of the DC tables */
    uint32_t unused[6];
    struct stream_slot slot[STREAM_SLOTS];
    uint32_t unused_too[12];
    uint16_t quantization[DCT_COMPONENTS][DCT_BLOCK]; /* natural order */
    uint8_t table[STREAM_TABLES][STREAM_TABLE];
};

/* Sets all but data, bits and tables for a layout whose block counts are those of whole MCUs.
 * restart_interval: in MCUs, 0: none. */
void stream_begin(struct stream_head *head, const struct dct_layout *layout,
                  uint32_t restart_interval);

/* Sets the two Huffman tables of a component, each as in a DHT segment: numbers of codes of 1 to 16
 * bits, and their symbols. False: a table is invalid, or there are more than STREAM_TABLES. */
bool stream_set_tables(struct stream_head *head, unsigned component, const uint8_t dc_counts[16],
                       const uint8_t *dc_symbols, const uint8_t ac_counts[16],
                       const uint8_t *ac_symbols);

/* The place of each coefficient, from the order of the code to that of dct.h. */
extern const uint8_t stream_natural_order[DCT_BLOCK];

/* Bytes of a payload with data_bytes of data. */
uint64_t stream_bytes(const struct stream_head *head, uint64_t data_bytes);

/* The plain C reference: decodes a payload to the tables and blocks of dct.h, dct_bytes() of the
 * layout. False: refused; the blocks are undefined. */
bool stream_coefficients(void *out, const void *payload);

#endif
