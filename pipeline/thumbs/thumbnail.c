/* thumbnail.c: means of rectangles, rows first, and a JPEG of them.
 *
 * The rows of the picture that make a row of the thumbnail are added to one row of sums, times their
 * weights, in one pass over bytes. Only a complete row of sums is then added up along x, so that the
 * part that moves by pixels of three bytes is done once for each row of the thumbnail. */
#include "thumbs/thumbnail.h"

#include "base/minmax.h"
#include "thumbs/reduced.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Weights of rows and columns are counted in sixteenths. */
#define UNIT_BITS 4
#define UNIT      (1u << UNIT_BITS)
/* Rows, and columns, that are looked at for one of the thumbnail: at least so many of those that
 * there are, and fewer than twice as many, so that a sum of rows fits 16 bits: 2 * 4 * 16 * 255. */
#define SAMPLES 4u
/* Columns are left out only where there are more of them for one of the thumbnail: the sums of all
 * are in memory, and those of one must fit 32 bits. */
#define COLUMNS_MOST 1024u

/* Which sums a column of the thumbnail takes. */
struct column {
    uint32_t first, last;
    uint32_t
        outside; /* sixteenths that are not its own, of the first, and 2^16 times of the last */
    float scale; /* 1 / its weight */
};

/* A row that belongs to the sums, but has not been added yet. */
struct pending {
    const uint8_t *row;
    uint16_t weight;
};

struct thumbnail_maker {
    uint32_t size;
    bool active, failed;
    uint8_t orientation;
    uint32_t width, height;       /* of the rows to come */
    uint32_t to_width, to_height; /* of the thumbnail, as stored */
    uint32_t step_x, step_y;      /* every so many columns and rows count */
    uint32_t columns, lines;      /* that count */
    uint32_t y;                   /* the next row */
    uint32_t line;                /* the next one that counts */
    uint32_t to_row;              /* that is being added up */
    uint32_t row_weight;          /* of its sums */
    uint16_t *sums;               /* columns x 3, and one that is read but not used */
    size_t sums_room;             /* bytes */
    struct pending pending[2 * SAMPLES + 2];
    unsigned pending_count;
    struct column *column;     /* size of them */
    uint8_t *pixels, *upright; /* size x size x 3, and a byte that is written */
    struct reduced reduced;    /* scratch for coefficients */
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    bool jpeg_made;
    uint8_t *file; /* of the JPEG being written */
    unsigned long file_bytes;
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
    maker->column = malloc(size * sizeof *maker->column);
    maker->jpeg.err = jpeg_std_error(&maker->errors);
    maker->errors.error_exit = on_error;
    maker->errors.emit_message = on_message;
    maker->jpeg.client_data = maker;
    if (!maker->pixels || !maker->upright || !maker->column || !create_compressor(maker)) {
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
    free(maker->column);
    free(maker->pixels);
    free(maker->upright);
    free(maker);
}

/* A JPEG file in maker->file. */
static bool encode(struct thumbnail_maker *maker, const uint8_t *pixels, uint32_t width,
                   uint32_t height)
{
    struct jpeg_compress_struct *jpeg = &maker->jpeg;
    free(maker->file);
    maker->file = NULL;
    maker->file_bytes = 0;
    if (setjmp(maker->escape)) {
        jpeg_abort_compress(jpeg);
        return false;
    }
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

static void place_columns(struct thumbnail_maker *maker)
{
    const uint64_t units = (uint64_t)maker->columns * UNIT;
    uint64_t begin = 0;
    for (uint32_t x = 0; x < maker->to_width; x++) {
        const uint64_t end = (x + 1) * units / maker->to_width;
        struct column *column = &maker->column[x];
        column->first = (uint32_t)(begin / UNIT);
        column->last = (uint32_t)((end - 1) / UNIT);
        column->outside =
            (uint32_t)(begin % UNIT) | (uint32_t)((column->last + (uint64_t)1) * UNIT - end) << 16;
        column->scale = 1.0f / (float)(end - begin);
        begin = end;
    }
}

void thumbnail_begin(struct thumbnail_maker *maker, uint32_t width, uint32_t height,
                     uint8_t orientation)
{
    if (!maker)
        return;
    maker->active = true;
    maker->failed = width == 0 || height == 0;
    if (maker->failed)
        return;
    maker->orientation = orientation;
    maker->width = maker->to_width = width;
    maker->height = maker->to_height = height;
    thumbnail_dimensions(&maker->to_width, &maker->to_height, maker->size);
    maker->step_y = step_of(height, maker->to_height);
    maker->step_x = width / maker->to_width > COLUMNS_MOST ? step_of(width, maker->to_width) : 1;
    maker->lines = looked_at(height, maker->step_y);
    maker->columns = looked_at(width, maker->step_x);
    maker->y = maker->line = maker->to_row = maker->row_weight = 0;
    maker->pending_count = 0;
    place_columns(maker);
    const size_t bytes = ((size_t)maker->columns * 3 + 1) * sizeof *maker->sums;
    if (bytes > maker->sums_room) {
        free(maker->sums);
        maker->sums = calloc(1, bytes);
        maker->sums_room = maker->sums ? bytes : 0;
        maker->failed = !maker->sums;
    }
}

/* Sums of rows are at most 2 * SAMPLES * UNIT * 255, which is below 2^15; those of columns below 2^30. */

/* sums += the pending rows' value `i`, times their weights */
static void add_value(uint16_t *sums, const struct pending *pending, unsigned rows, size_t i)
{
    for (unsigned r = 0; r < rows; r++)
        sums[i] = (uint16_t)(sums[i] + pending[r].row[i] * pending[r].weight);
}

#ifdef __SSE2__
#define LANES 16u
/* The same of LANES values. */
static void add_lanes(uint16_t *sums, const struct pending *pending, unsigned rows, size_t i)
{
    __m128i *to = (__m128i *)(void *)(sums + i);
    const __m128i zero = _mm_setzero_si128();
    __m128i low = _mm_loadu_si128(to), high = _mm_loadu_si128(to + 1);
    for (unsigned r = 0; r < rows; r++) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(pending[r].row + i));
        const __m128i weight = _mm_set1_epi16((short)pending[r].weight);
        low = _mm_add_epi16(low, _mm_mullo_epi16(_mm_unpacklo_epi8(bytes, zero), weight));
        high = _mm_add_epi16(high, _mm_mullo_epi16(_mm_unpackhi_epi8(bytes, zero), weight));
    }
    _mm_storeu_si128(to, low);
    _mm_storeu_si128(to + 1, high);
}

static __m128i load_four(const uint16_t *sums)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)sums);
}

/* One pixel, and a byte behind it, from the columns' sums. */
static void reduce(uint8_t *out, const uint16_t *sums, const struct column *column, float scale)
{
    const uint16_t *at = sums + 3 * (size_t)column->first;
    const uint16_t *last = sums + 3 * (size_t)column->last;
    const __m128i zero = _mm_setzero_si128();
    const __m128i outside = _mm_madd_epi16(_mm_unpacklo_epi16(load_four(at), load_four(last)),
                                           _mm_set1_epi32((int)column->outside));
    __m128i sum = zero;
    for (; at <= last; at += 3)
        sum = _mm_add_epi32(sum, _mm_unpacklo_epi16(load_four(at), zero));
    sum = _mm_sub_epi32(_mm_slli_epi32(sum, UNIT_BITS), outside);
    const __m128 mean = _mm_add_ps(
        _mm_mul_ps(_mm_cvtepi32_ps(sum), _mm_set1_ps(column->scale * scale)), _mm_set1_ps(0.5f));
    __m128i bytes = _mm_cvttps_epi32(mean);
    bytes = _mm_packs_epi32(bytes, bytes);
    bytes = _mm_packus_epi16(bytes, bytes);
    const int four = _mm_cvtsi128_si32(bytes);
    memcpy(out, &four, sizeof four);
}
#else
#define LANES 1u
static void add_lanes(uint16_t *sums, const struct pending *pending, unsigned rows, size_t i)
{
    add_value(sums, pending, rows, i);
}

static void reduce(uint8_t *out, const uint16_t *sums, const struct column *column, float scale)
{
    const uint16_t *first = sums + 3 * (size_t)column->first;
    const uint16_t *last = sums + 3 * (size_t)column->last;
    for (unsigned c = 0; c < 3; c++) {
        int32_t sum = 0;
        for (const uint16_t *at = first; at <= last; at += 3)
            sum += at[c];
        sum = sum * (int32_t)UNIT - first[c] * (int32_t)(column->outside & 0xffff) -
              last[c] * (int32_t)(column->outside >> 16);
        out[c] = (uint8_t)((float)sum * (column->scale * scale) + 0.5f);
    }
}
#endif

/* Adds the pending rows to the sums: all of them in one pass. */
static void add_pending(struct thumbnail_maker *maker)
{
    const struct pending *pending = maker->pending;
    const unsigned rows = maker->pending_count;
    const size_t count = (size_t)maker->columns * 3;
    uint16_t *sums = maker->sums;
    if (rows == 0)
        return;
    if (maker->row_weight == 0)
        memset(sums, 0, count * sizeof *sums);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        add_lanes(sums, pending, rows, i);
    for (; i < count; i++)
        add_value(sums, pending, rows, i);
    for (unsigned r = 0; r < rows; r++)
        maker->row_weight += pending[r].weight;
    maker->pending_count = 0;
}

/* The row of sums becomes a row of the thumbnail. */
static void reduce_columns(struct thumbnail_maker *maker)
{
    const float scale = 1.0f / (float)maker->row_weight;
    uint8_t *out = maker->pixels + (size_t)maker->to_row * maker->to_width * 3;
    for (uint32_t x = 0; x < maker->to_width; x++, out += 3)
        reduce(out, maker->sums, &maker->column[x], scale);
}

/* A row that counts; it must last until add_pending. */
static void add_line(struct thumbnail_maker *maker, const uint8_t *row)
{
    const uint64_t units = (uint64_t)maker->lines * UNIT;
    uint64_t from = (uint64_t)maker->line * UNIT;
    const uint64_t to = from + UNIT;
    while (from < to) {
        const uint64_t end = (maker->to_row + 1) * units / maker->to_height;
        const uint64_t until = min_u64(to, end);
        maker->pending[maker->pending_count++] = (struct pending){row, (uint16_t)(until - from)};
        from = until;
        if (until == end) {
            add_pending(maker);
            reduce_columns(maker);
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
    const uint8_t orientation = maker->orientation;
    const uint32_t to_width = maker->to_width, to_height = maker->to_height;
    uint32_t width, height;
    const uint8_t *pixels =
        reduced_pixels(&maker->reduced, &width, &height, coefficients, layout, to_width, to_height);
    if (!pixels) {
        maker->failed = true;
        return;
    }
    /* The sides' ratio is the picture's, not that of blocks rounded up. */
    thumbnail_begin(maker, width, height, orientation);
    maker->to_width = to_width;
    maker->to_height = to_height;
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
    uint8_t *file = realloc(maker->file, maker->file_bytes);
    file = file ? file : maker->file;
    *bytes = (uint32_t)maker->file_bytes;
    maker->file = NULL;
    return file;
}
