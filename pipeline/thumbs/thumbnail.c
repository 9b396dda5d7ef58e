/* thumbnail.c: means of rectangles, rows first, and a JPEG of them.
 *
 * The rows of the picture that make a row of the thumbnail are added to one row of sums, times their
 * weights, in one pass over bytes. Only a complete row of sums is then added up along x, so that the
 * part that moves by pixels of three bytes is done once for each row of the thumbnail. */
#include "thumbs/thumbnail.h"

#include "base/minmax.h"
#include "thumbs/box.h"
#include "thumbs/reduced.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* Rows, and columns, that are looked at for one of the thumbnail: at least so many of those that
 * there are, and fewer than twice as many, so that a sum of rows fits 16 bits: 2 * 4 * 16 * 255. */
#define SAMPLES 4u
/* Columns are left out only where there are more of them for one of the thumbnail: the sums of all
 * are in memory, and those of one must fit 32 bits. */
#define COLUMNS_MOST 1024u

struct thumbnail_maker {
    uint32_t size;
    bool active, failed;
    uint8_t orientation;
    uint32_t width, height;                  /* of the rows to come */
    uint32_t to_width, to_height;            /* of the thumbnail, as stored */
    uint32_t step_x, step_y;                 /* every so many columns and rows count */
    uint32_t columns, lines;                 /* that count */
    uint32_t y;                              /* the next row */
    uint32_t line;                           /* the next one that counts */
    uint32_t to_row;                         /* that is being added up */
    uint32_t row_weight;                     /* of its sums */
    uint16_t *sums;                          /* columns x 3, and BOX_BEHIND */
    size_t sums_room;                        /* bytes */
    struct box_row pending[2 * SAMPLES + 2]; /* rows that belong to the sums, not added yet */
    unsigned pending_count;
    struct box_columns boxes;
    uint8_t *pixels, *upright; /* size x size x 3, and a byte that is written */
    struct reduced reduced;    /* scratch for coefficients */
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    bool jpeg_made;
    uint8_t *file; /* of the JPEG being written */
    unsigned long file_bytes;
    size_t file_room;
};

/* --- JPEG ------------------------------------------------------------------------------------ */

_Noreturn static void on_error(j_common_ptr common)
{
    longjmp(((struct thumbnail_maker *)common->client_data)->escape, 1);
}

static void on_message(j_common_ptr common, int level)
{
    (void)common;
    (void)level;
}

static bool create_compressor(struct thumbnail_maker *maker)
{
    if (setjmp(maker->escape))
        return false;
    jpeg_create_compress(&maker->jpeg);
    maker->jpeg_made = true;
    maker->jpeg.in_color_space = JCS_RGB;
    maker->jpeg.input_components = 3;
    jpeg_set_defaults(&maker->jpeg);
    jpeg_set_quality(&maker->jpeg, THUMBNAIL_QUALITY, TRUE);
    return true;
}

struct thumbnail_maker *thumbnail_maker_new(uint32_t size)
{
    struct thumbnail_maker *maker = calloc(1, sizeof *maker);
    if (!maker)
        return NULL;
    maker->size = size;
    maker->pixels = malloc((size_t)size * size * 3 + 1);
    maker->upright = malloc((size_t)size * size * 3);
    maker->jpeg.err = jpeg_std_error(&maker->errors);
    maker->errors.error_exit = on_error;
    maker->errors.emit_message = on_message;
    maker->jpeg.client_data = maker;
    if (!maker->pixels || !maker->upright || !create_compressor(maker)) {
        thumbnail_maker_free(maker);
        return NULL;
    }
    return maker;
}

void thumbnail_maker_free(struct thumbnail_maker *maker)
{
    if (!maker)
        return;
    if (maker->jpeg_made)
        jpeg_destroy_compress(&maker->jpeg);
    reduced_clear(&maker->reduced);
    free(maker->file);
    free(maker->sums);
    box_clear(&maker->boxes);
    free(maker->pixels);
    free(maker->upright);
    free(maker);
}

/* A JPEG file in maker->file. */
static bool encode(struct thumbnail_maker *maker, const uint8_t *pixels, uint32_t width,
                   uint32_t height)
{
    struct jpeg_compress_struct *jpeg = &maker->jpeg;
    if (setjmp(maker->escape)) {
        jpeg_abort_compress(jpeg);
        return false;
    }
    /* The library takes this buffer, or, where it is too small, leaves another one. */
    uint8_t *const before = maker->file;
    maker->file_bytes = maker->file_room;
    jpeg_mem_dest(jpeg, &maker->file, &maker->file_bytes);
    jpeg->image_width = width;
    jpeg->image_height = height;
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < height) {
        JSAMPROW row[16];
        const JDIMENSION count = min_u32(16, height - jpeg->next_scanline);
        for (JDIMENSION i = 0; i < count; i++)
            /* The library takes rows that it does not change as JSAMPROW. */
            row[i] = (JSAMPROW)(uintptr_t)(pixels + (size_t)(jpeg->next_scanline + i) * width * 3);
        jpeg_write_scanlines(jpeg, row, count);
    }
    jpeg_finish_compress(jpeg);
    if (maker->file != before) {
        free(before);
        maker->file_room = maker->file_bytes;
    }
    return true;
}

/* --- sums ------------------------------------------------------------------------------------ */

uint32_t thumbnail_suitable_size(uint64_t images)
{
    return images <= 10000 ? 160 : images < 100000 ? 96 : 64;
}

void thumbnail_dimensions(uint32_t *width, uint32_t *height, uint32_t size)
{
    const uint32_t w = *width, h = *height, longest = max_u32(w, h);
    if (longest <= size)
        return;
    *width = max_u32((uint32_t)(((uint64_t)w * size + longest / 2) / longest), 1);
    *height = max_u32((uint32_t)(((uint64_t)h * size + longest / 2) / longest), 1);
}

/* Of `count` rows every so many count for `to`. */
static uint32_t step_of(uint32_t count, uint32_t to)
{
    return max_u32(count / to / SAMPLES, 1);
}

/* As many are looked at where the middle ones of `step` are. */
static uint32_t looked_at(uint32_t count, uint32_t step)
{
    return (count - step / 2 + step - 1) / step;
}

/* Begins a picture that becomes a thumbnail of to_width x to_height, as stored. */
static void begin(struct thumbnail_maker *maker, uint32_t width, uint32_t height, uint32_t to_width,
                  uint32_t to_height)
{
    maker->width = width;
    maker->height = height;
    maker->to_width = to_width;
    maker->to_height = to_height;
    maker->step_y = step_of(height, to_height);
    maker->step_x = width / to_width > COLUMNS_MOST ? step_of(width, to_width) : 1;
    maker->lines = looked_at(height, maker->step_y);
    maker->columns = looked_at(width, maker->step_x);
    maker->y = maker->line = maker->to_row = maker->row_weight = 0;
    maker->pending_count = 0;
    const size_t bytes = ((size_t)maker->columns * 3 + BOX_BEHIND) * sizeof *maker->sums;
    if (bytes > maker->sums_room) {
        free(maker->sums);
        maker->sums = calloc(1, bytes);
        maker->sums_room = maker->sums ? bytes : 0;
    }
    maker->failed = !maker->sums || !box_place(&maker->boxes, maker->columns, to_width);
}

void thumbnail_begin(struct thumbnail_maker *maker, uint32_t width, uint32_t height,
                     uint8_t orientation)
{
    if (!maker)
        return;
    uint32_t to_width = width, to_height = height;
    maker->active = true;
    maker->failed = width == 0 || height == 0;
    maker->orientation = orientation;
    if (maker->failed)
        return;
    thumbnail_dimensions(&to_width, &to_height, maker->size);
    begin(maker, width, height, to_width, to_height);
}

/* Adds the pending rows to the sums: all of them in one pass. */
static void add_pending(struct thumbnail_maker *maker)
{
    if (maker->pending_count == 0)
        return;
    box_add_rows(maker->sums, maker->pending, maker->pending_count, (size_t)maker->columns * 3,
                 maker->row_weight == 0);
    for (unsigned r = 0; r < maker->pending_count; r++)
        maker->row_weight += maker->pending[r].weight;
    maker->pending_count = 0;
}

/* A row that counts; it must last until add_pending. */
static void add_line(struct thumbnail_maker *maker, const uint8_t *row)
{
    const bool whole = box_is_whole(maker->lines, maker->to_height);
    uint64_t from = (uint64_t)maker->line * BOX_UNIT;
    const uint64_t to = from + BOX_UNIT;
    while (from < to) {
        const uint64_t end = box_end(maker->lines, maker->to_height, maker->to_row);
        const uint64_t until = min_u64(to, end);
        maker->pending[maker->pending_count++] =
            (struct box_row){row, (uint16_t)(whole ? 1 : until - from)};
        from = until;
        if (until == end) {
            add_pending(maker);
            box_add_columns(maker->pixels + (size_t)maker->to_row * maker->to_width * 3,
                            maker->sums, &maker->boxes, maker->row_weight);
            maker->to_row++;
            maker->row_weight = 0;
        }
    }
    maker->line++;
}

/* The middle pixel of each step_x. */
static const uint8_t *pick_columns(struct thumbnail_maker *maker, uint8_t *picked,
                                   const uint8_t *row)
{
    const uint8_t *at = row + (size_t)(maker->step_x / 2) * 3;
    for (uint32_t x = 0; x < maker->columns; x++, at += (size_t)maker->step_x * 3)
        memcpy(picked + (size_t)x * 3, at, 3);
    return picked;
}

void thumbnail_rows(struct thumbnail_maker *maker, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    if (!maker || !maker->active || maker->failed)
        return;
    uint8_t *picked = NULL;
    if (maker->step_x > 1 && !(picked = malloc((size_t)maker->columns * 3))) {
        maker->failed = true;
        return;
    }
    rows = min_u32(rows, maker->height - maker->y);
    /* The next row that counts is the middle one of its step. */
    for (;;) {
        const uint64_t next = (uint64_t)maker->line * maker->step_y + maker->step_y / 2;
        if (maker->line == maker->lines || next >= (uint64_t)maker->y + rows)
            break;
        const uint8_t *row = rgb + (size_t)(next - maker->y) * stride;
        add_line(maker, picked ? pick_columns(maker, picked, row) : row);
        if (picked)
            add_pending(maker);
    }
    add_pending(maker);
    maker->y += rows;
    free(picked);
}

void thumbnail_coefficients(struct thumbnail_maker *maker, const void *coefficients,
                            const struct dct_layout *layout)
{
    if (!maker || !maker->active || maker->failed)
        return;
    const uint32_t to_width = maker->to_width, to_height = maker->to_height;
    uint32_t width, height;
    const uint8_t *pixels =
        reduced_pixels(&maker->reduced, &width, &height, coefficients, layout, to_width, to_height);
    if (!pixels) {
        maker->failed = true;
        return;
    }
    begin(maker, width, height, to_width, to_height);
    thumbnail_rows(maker, pixels, (size_t)width * 3, height);
}

/* --- the end --------------------------------------------------------------------------------- */

/* The upright pixels: those of the maker or a copy. */
static const uint8_t *make_upright(struct thumbnail_maker *maker, uint32_t *width, uint32_t *height)
{
    const uint8_t orientation = maker->orientation;
    const uint32_t w = maker->to_width, h = maker->to_height;
    *width = orientation >= 5 && orientation <= 8 ? h : w;
    *height = orientation >= 5 && orientation <= 8 ? w : h;
    if (orientation < 2 || orientation > 8)
        return maker->pixels;
    const bool swapped = orientation >= 5;
    const bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    uint8_t *out = maker->upright;
    for (uint32_t y = 0; y < *height; y++) {
        for (uint32_t x = 0; x < *width; x++, out += 3) {
            uint32_t column = swapped ? y : x, row = swapped ? x : y;
            column = right ? w - 1 - column : column;
            row = down ? h - 1 - row : row;
            memcpy(out, maker->pixels + ((size_t)row * w + column) * 3, 3);
        }
    }
    return maker->upright;
}

uint8_t *thumbnail_finish(struct thumbnail_maker *maker, uint32_t *bytes)
{
    *bytes = 0;
    if (!maker || !maker->active)
        return NULL;
    maker->active = false;
    if (maker->failed || maker->to_row < maker->to_height)
        return NULL;
    uint32_t width, height;
    const uint8_t *pixels = make_upright(maker, &width, &height);
    if (!encode(maker, pixels, width, height))
        return NULL;
    /* As long as it is: it may wait in memory for a while. */
    uint8_t *file = malloc(maker->file_bytes);
    if (file) {
        memcpy(file, maker->file, maker->file_bytes);
        *bytes = (uint32_t)maker->file_bytes;
    }
    return file;
}
