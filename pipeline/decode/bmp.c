/* bmp.c: Windows and OS/2 bitmaps.
 *
 * Headers of 12 (OS/2 1), 16 to 64 (OS/2 2), 40, 52, 56, 108 and 124 bytes; 1, 2, 4, 8, 16, 24 and
 * 32 bits; RLE4 and RLE8; bit fields with and without alpha. 32 bits without bit fields have no
 * alpha: the fourth byte is undefined. Sources: Microsoft's description of BITMAPINFOHEADER to
 * BITMAPV5HEADER, the OS/2 Presentation Manager reference.
 *
 * Rows are stored bottom up and read at their offsets, so memory does not grow with the picture.
 * Run-length coded pictures can only be read in order and are decoded to one byte per pixel
 * (counted in info.memory). Skipped pixels have index 0; runs past the end of a row are clipped. */
#include "decode/codec.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16384 }; /* pixels converted at a time: whole bytes at every depth */
enum { RGB = 0, RLE8 = 1, RLE4 = 2, FIELDS = 3, JPEG = 4, PNG = 5, ALPHA_FIELDS = 6 };

struct field {
    uint32_t mask, shift;
};

struct bmp {
    struct input *input;
    uint32_t width, height, row;
    uint32_t bits, compression;
    bool top_down;
    uint64_t offset, row_bytes;
    struct field field[4]; /* R, G, B, A */
    uint8_t palette[256][3];
    uint8_t *indices; /* of run-length coded pictures, top row first */
    uint8_t piece[PIECE * 4];
};

static void bmp_reset(void *state)
{
    struct bmp *bmp = state;
    free(bmp->indices);
    bmp->indices = NULL;
}

/* --- the header ------------------------------------------------------------------------------ */

static enum reason check_variant(struct bmp *bmp, uint32_t header, struct failure *failure)
{
    bool os2 = header < 40 || (header > 40 && header < 108 && header != 52 && header != 56);
    uint32_t c = bmp->compression, bits = bmp->bits;
    if (os2 && c >= FIELDS)
        return failure_set(failure, REASON_UNSUPPORTED, "OS/2 compression %u", c);
    if (c == JPEG || c == PNG)
        return failure_set(failure, REASON_UNSUPPORTED, "a JPEG or PNG inside a bitmap");
    if (c > ALPHA_FIELDS)
        return failure_set(failure, REASON_UNSUPPORTED, "compression %u", c);
    if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
        return failure_set(failure, REASON_CORRUPT, "%u bits per pixel", bits);
    if ((c == RLE8 && bits != 8) || (c == RLE4 && bits != 4) ||
        ((c == FIELDS || c == ALPHA_FIELDS) && bits != 16 && bits != 32))
        return failure_set(failure, REASON_CORRUPT, "compression %u with %u bits per pixel", c,
                           bits);
    return REASON_NONE;
}

/* Returns the bytes that the masks take after the header. */
static uint32_t read_fields(struct bmp *bmp, const uint8_t *data, size_t have, uint32_t header)
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    uint32_t behind = 0, given = 0;
    if (bmp->compression == FIELDS || bmp->compression == ALPHA_FIELDS) {
        given = header >= 56 || bmp->compression == ALPHA_FIELDS ? 4 : 3;
        behind = header >= 52 ? 0 : 4 * given;
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t mask = i < 3 ? usual[bmp->bits == 32][i] : 0;
        if (given)
            mask = i < given && 58 + 4 * i <= have ? little_endian(data + 54 + 4 * i, 4) : 0;
        if (bmp->bits == 16)
            mask &= 0xffff;
        bmp->field[i].mask = mask;
        bmp->field[i].shift = mask ? (uint32_t)__builtin_ctz(mask) : 0;
    }
    return behind;
}

static void read_palette(struct bmp *bmp, const uint8_t *data, size_t have, uint64_t at,
                         uint32_t used, uint32_t entry)
{
    uint64_t count = 1u << bmp->bits;
    if (used > 0 && used < count)
        count = used;
    if (bmp->offset > at && (bmp->offset - at) / entry < count)
        count = (bmp->offset - at) / entry;
    for (uint64_t i = 0; i < count && at + entry * i + 3 <= have; i++) {
        const uint8_t *colour = data + at + entry * i;
        for (int c = 0; c < 3; c++)
            bmp->palette[i][c] = colour[2 - c];
    }
}

static enum reason bmp_begin(void *state, struct input *input, const struct decode_options *options,
                             struct image_info *info, struct failure *failure)
{
    struct bmp *bmp = state;
    size_t have = input_peek(input, 4096);
    const uint8_t *data = input->buffer + input->position;
    bmp->input = input;
    bmp->row = 0;
    bmp->offset = little_endian(data + 10, 4);
    memset(bmp->palette, 0, sizeof bmp->palette);
    uint32_t header = little_endian(data + 14, 4), used = 0;
    if (header != 12 && (header < 16 || header > 64) && header != 108 && header != 124)
        return failure_set(failure, REASON_UNSUPPORTED, "a header of %u bytes", header);
    if (have < 14 + (uint64_t)header)
        return codec_short(input, failure, "the file ends within the header");
    int64_t width, height;
    bmp->compression = RGB;
    if (header == 12) {
        width = little_endian(data + 18, 2);
        height = little_endian(data + 20, 2);
        bmp->bits = little_endian(data + 24, 2);
    } else {
        width = (int32_t)little_endian(data + 18, 4);
        height = (int32_t)little_endian(data + 22, 4);
        bmp->bits = little_endian(data + 28, 2);
        bmp->compression = header >= 20 ? little_endian(data + 30, 4) : RGB;
        used = header >= 36 ? little_endian(data + 46, 4) : 0;
    }
    bmp->top_down = height < 0;
    height = height < 0 ? -height : height;
    if (width < 0 || height > INT32_MAX)
        return failure_set(failure, REASON_CORRUPT, "a picture of %lld x %lld pixels",
                           (long long)width, (long long)height);
    if (check_variant(bmp, header, failure) != REASON_NONE ||
        codec_set_size(info, (uint64_t)width, (uint64_t)height, options, failure) != REASON_NONE)
        return failure->reason;
    bmp->width = info->width;
    bmp->height = info->height;
    uint64_t end = 14 + (uint64_t)header + read_fields(bmp, data, have, header);
    if (bmp->offset < end)
        return failure_set(failure, REASON_CORRUPT, "pixels that begin within the header");
    if (bmp->bits <= 8)
        read_palette(bmp, data, have, end, used, header == 12 ? 3 : 4);
    bool runs = bmp->compression == RLE8 || bmp->compression == RLE4;
    bmp->row_bytes = ((uint64_t)bmp->width * bmp->bits + 31) / 32 * 4;
    uint64_t last = ((uint64_t)bmp->width * bmp->bits + 7) / 8;
    if (bmp->offset >= input->blob.bytes ||
        (!runs && bmp->offset + bmp->row_bytes * (bmp->height - 1) + last > input->blob.bytes))
        return failure_set(failure, REASON_TRUNCATED, "the file ends early");
    info->channels = bmp->bits >= 16 && bmp->field[3].mask ? 4 : 3;
    info->memory = runs ? (uint64_t)bmp->width * bmp->height : 0;
    return REASON_NONE;
}

/* --- run lengths ----------------------------------------------------------------------------- */

struct pen {
    uint64_t x, y;
};

static void put_index(struct bmp *bmp, struct pen *pen, int index)
{
    if (pen->x < bmp->width && pen->y < bmp->height) {
        uint64_t y = bmp->top_down ? pen->y : bmp->height - 1 - pen->y;
        bmp->indices[y * bmp->width + pen->x] = (uint8_t)index;
    }
    pen->x++;
}

/* Writes `count` indices of one value, or of two alternating ones. */
static void put_run(struct bmp *bmp, struct pen *pen, int count, int value)
{
    int index[2] = {bmp->bits == 8 ? value : value >> 4, bmp->bits == 8 ? value : value & 15};
    uint64_t end = pen->x + (uint64_t)count;
    for (int i = 0; pen->x < end && pen->x < bmp->width; i++)
        put_index(bmp, pen, index[i % 2]);
    pen->x = end;
}

/* Copies `count` literal indices, padded to 16 bits; false at the end of the file. */
static bool read_absolute(struct bmp *bmp, struct pen *pen, int count)
{
    int bytes = bmp->bits == 8 ? count : (count + 1) / 2, value = 0;
    for (int i = 0; i < bytes; i++) {
        value = input_byte(bmp->input);
        if (value < 0)
            return false;
        if (bmp->bits == 8) {
            put_index(bmp, pen, value);
        } else {
            put_index(bmp, pen, value >> 4);
            if (2 * i + 1 < count)
                put_index(bmp, pen, value & 15);
        }
    }
    return bytes % 2 == 0 || input_byte(bmp->input) >= 0;
}

/* Has the bitmap ended? True, too, if the last row is full: the end mark may be missing. */
static bool is_full(const struct bmp *bmp, const struct pen *pen)
{
    return pen->y >= bmp->height || (pen->y == bmp->height - 1 && pen->x >= bmp->width);
}

static enum reason read_runs(struct bmp *bmp, struct failure *failure)
{
    struct pen pen = {0};
    bmp->indices = calloc(bmp->height, bmp->width);
    if (!bmp->indices)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u x %u pixels",
                           bmp->width, bmp->height);
    input_read(bmp->input, NULL, bmp->offset);
    while (pen.y < bmp->height) {
        int count = input_byte(bmp->input), value = input_byte(bmp->input);
        if (value < 0)
            break;
        if (count > 0) {
            put_run(bmp, &pen, count, value);
        } else if (value == 0) {
            pen = (struct pen){0, pen.y + 1};
        } else if (value == 1) {
            return REASON_NONE;
        } else if (value == 2) {
            int right = input_byte(bmp->input), up = input_byte(bmp->input);
            if (up < 0)
                break;
            pen.x += (uint64_t)right;
            pen.y += (uint64_t)up;
        } else if (!read_absolute(bmp, &pen, value)) {
            break;
        }
    }
    return is_full(bmp, &pen) ? REASON_NONE
                              : codec_short(bmp->input, failure, "the file ends early");
}

/* --- rows ------------------------------------------------------------------------------------ */

static void convert_indices(uint8_t *dst, const struct bmp *bmp, const uint8_t *src, uint32_t count,
                            uint32_t bits)
{
    uint32_t mask = (1u << bits) - 1;
    for (uint32_t x = 0; x < count; x++, dst += 3) {
        uint32_t bit = x * bits;
        memcpy(dst, bmp->palette[src[bit / 8] >> (8 - bits - bit % 8) & mask], 3);
    }
}

static uint8_t field_of(const struct field *field, uint32_t pixel)
{
    return field->mask
               ? pixel_scale((pixel & field->mask) >> field->shift, field->mask >> field->shift)
               : 0;
}

static void convert_fields(uint8_t *dst, const struct bmp *bmp, const uint8_t *src, uint32_t count)
{
    const enum alpha_mode mode = bmp->input->colours->mode;
    for (uint32_t x = 0; x < count; x++, dst += 3) {
        uint32_t pixel =
            bmp->bits == 16 ? little_endian(src + 2 * x, 2) : little_endian(src + 4 * x, 4);
        uint32_t a = bmp->field[3].mask ? field_of(&bmp->field[3], pixel) : 255;
        for (int c = 0; c < 3; c++)
            dst[c] = pixel_over(field_of(&bmp->field[c], pixel), a, mode);
    }
}

static enum reason read_row(uint8_t *dst, struct bmp *bmp, struct failure *failure)
{
    uint64_t stored = bmp->top_down ? bmp->row : bmp->height - 1 - bmp->row;
    for (uint32_t x = 0; x < bmp->width; x += PIECE, dst += 3 * PIECE) {
        uint32_t count = bmp->width - x < PIECE ? bmp->width - x : PIECE;
        size_t bytes = (count * bmp->bits + 7) / 8;
        uint64_t at = bmp->offset + stored * bmp->row_bytes + (uint64_t)x * bmp->bits / 8;
        if (input_at(bmp->input, at, bmp->piece, bytes) != bytes) {
            if (bmp->input->error_number)
                return codec_short(bmp->input, failure, "");
            return failure_set(failure, REASON_TRUNCATED, "the file ends early");
        }
        if (bmp->bits <= 8) {
            convert_indices(dst, bmp, bmp->piece, count, bmp->bits);
        } else if (bmp->bits == 24) {
            for (uint32_t i = 0; i < 3 * count; i += 3) {
                dst[i] = bmp->piece[i + 2];
                dst[i + 1] = bmp->piece[i + 1];
                dst[i + 2] = bmp->piece[i];
            }
        } else {
            convert_fields(dst, bmp, bmp->piece, count);
        }
    }
    return REASON_NONE;
}

static enum reason bmp_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                            struct failure *failure)
{
    struct bmp *bmp = state;
    bool runs = bmp->compression == RLE8 || bmp->compression == RLE4;
    if (runs && !bmp->indices && read_runs(bmp, failure) != REASON_NONE)
        return failure->reason;
    for (uint32_t i = 0; i < rows; i++, bmp->row++, dst += stride) {
        if (runs)
            convert_indices(dst, bmp, bmp->indices + (size_t)bmp->row * bmp->width, bmp->width, 8);
        else if (read_row(dst, bmp, failure) != REASON_NONE)
            return failure->reason;
    }
    return REASON_NONE;
}

const struct codec codec_bmp = {
    .state_bytes = sizeof(struct bmp),
    .begin = bmp_begin,
    .rows = bmp_rows,
    .reset = bmp_reset,
};
