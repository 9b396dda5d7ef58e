/* stream.h: JPEG images as entropy code without its stuffed bytes, and its decoding to coefficients.
 *
 * A device decodes a picture's Huffman code with many work-items at once (kernels/jpeg_entropy.cl).
 * What they need lies in one range of a slot, the payload:
 *
 *     struct stream_head    what to decode, Huffman and quantization tables
 *     borders               segments + 1 uint32: the bit at which each segment begins, and the end
 *     data                  the entropy code, without stuffed bytes and restart markers
 *     STREAM_PADDING        bytes of zero
 *
 * each aligned to 16 bytes if the first byte is. A segment is what lies between two restart markers.
 * This file fills the payload's head and holds the plain C reference of the kernel.
 *
 * The reference is stricter than libjpeg: what it accepts has libjpeg's coefficients, and what libjpeg
 * would warn about it refuses. What it refuses may still be a picture, on which libjpeg decides.
 */
#ifndef CLPIPE_PART_STREAM_H
#define CLPIPE_PART_STREAM_H

#include "part/dct.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_SLOTS     6u   /* blocks of an MCU, at most: 4:2:0 */
#define STREAM_TABLES    4u   /* different Huffman tables of a picture, at most */
#define STREAM_TABLE     272u /* bytes of one: 16 numbers of codes by length, 256 symbols */
#define STREAM_PADDING   64u
#define STREAM_BYTES_MAX (1u << 28) /* of data: bits are counted in 32 bits */

/* A block of an MCU, in the order of the file: its tables, and where it lies. Block k of MCU (x, y)
 * is block first + y * row + x * column of the picture's. */
struct stream_slot {
    uint32_t dc, ac; /* tables */
    uint32_t component, first, row, column;
};

/* As kernels/entropy_part.h declares it. */
struct stream_head {
    uint32_t data, borders;      /* bytes from the head */
    uint32_t bits;               /* of data */
    uint32_t blocks;             /* of the picture */
    uint32_t segments, interval; /* blocks of a segment but the last */
    uint32_t slots;              /* blocks of an MCU */
    uint32_t mcus_across;
    uint32_t tables, dc_tables; /* their number; a bit for each that codes DC differences */
    uint32_t unused[6];
    struct stream_slot slot[STREAM_SLOTS];
    uint32_t unused_too[12];
    uint16_t quantization[DCT_COMPONENTS][DCT_BLOCK]; /* natural order */
    uint8_t table[STREAM_TABLES][STREAM_TABLE];
};

/* Sets all but data, bits and tables for pictures of that layout, whose blocks are those of whole MCUs;
 * restart_interval: in MCUs, 0: none. */
void stream_begin(struct stream_head *head, const struct dct_layout *layout,
                  uint32_t restart_interval);

/* Gives a component its two Huffman tables, each as in a DHT segment: numbers of codes of 1 to 16 bits,
 * and their symbols. False: one is not valid, or the picture has more than STREAM_TABLES. */
bool stream_set_tables(struct stream_head *head, unsigned component, const uint8_t dc_counts[16],
                       const uint8_t *dc_symbols, const uint8_t ac_counts[16],
                       const uint8_t *ac_symbols);

/* The size of a payload with data_bytes of data. */
uint64_t stream_bytes(const struct stream_head *head, uint64_t data_bytes);

/* The plain C reference: decodes a payload to the tables and blocks of dct.h, dct_bytes() of the
 * layout. False: it is refused; then the blocks are undefined. */
bool stream_coefficients(void *out, const void *payload);

#endif
