/* thumbnail.c: computes a smaller upright picture and encodes it as JPEG. */
#include "decode/thumbnail.h"

#include "base/minmax.h"
#include "decode/jpeg_errors.h"
#include "decode/scale.h"
#include "decode/shrink.h"

#include <stdlib.h>
#include <string.h>

struct thumbnail_maker {
    uint32_t size;
    bool active; /* a picture was begun, and has not failed */
    bool fine;
    uint8_t orientation;
    struct shrink shrink;
    uint8_t *pixels, *upright; /* size x size x 3, and one byte past them */
    struct jpeg_compress_struct jpeg;
    struct jpeg_errors errors;
    bool jpeg_made;
};

/* The first size of a file's buffer, which the library enlarges. */
#define FILE_BYTES 16384u

/* --- JPEG ------------------------------------------------------------------------------------ */

static bool create_compressor(struct thumbnail_maker *maker)
{
    if (setjmp(maker->errors.escape))
        return false;
    jpeg_create_compress(&maker->jpeg);
    maker->jpeg_made = true;
    maker->jpeg.in_color_space = JCS_RGB;
    maker->jpeg.input_components = 3;
    jpeg_set_defaults(&maker->jpeg);
    jpeg_set_quality(&maker->jpeg, THUMBNAIL_QUALITY, TRUE);
    return true;
}

struct thumbnail_maker *thumbnail_maker_new(uint32_t size, bool fine)
{
    struct thumbnail_maker *maker = calloc(1, sizeof *maker);
    if (!maker)
        return NULL;
    maker->size = size;
    maker->fine = fine;
    maker->pixels = malloc((size_t)size * size * 3 + 1);
    maker->upright = malloc((size_t)size * size * 3);
    maker->jpeg.err = jpeg_errors_init(&maker->errors);
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
    shrink_clear(&maker->shrink);
    free(maker->pixels);
    free(maker->upright);
    free(maker);
}

/* Returns the file; NULL: no memory. */
static uint8_t *encode(struct thumbnail_maker *maker, uint32_t *bytes, const uint8_t *pixels,
                       uint32_t width, uint32_t height)
{
    struct jpeg_compress_struct *jpeg = &maker->jpeg;
    uint8_t *const first = malloc(FILE_BYTES), *file = first;
    unsigned long size = FILE_BYTES;
    if (!first || setjmp(maker->errors.escape)) {
        jpeg_abort_compress(jpeg);
        free(first);
        return NULL;
    }
    jpeg_mem_dest(jpeg, &file, &size);
    jpeg->image_width = width;
    jpeg->image_height = height;
    jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor =
        maker->fine || min_u32(width, height) <= THUMBNAIL_FINE ? 1 : 2;
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < height) {
        JSAMPROW row[16];
        const JDIMENSION count = min_u32(16, height - jpeg->next_scanline);
        for (JDIMENSION i = 0; i < count; i++)
            /* The library uses JSAMPROW for constant rows as well. */
            row[i] = (JSAMPROW)(uintptr_t)(pixels + (size_t)(jpeg->next_scanline + i) * width * 3);
        jpeg_write_scanlines(jpeg, row, count);
    }
    jpeg_finish_compress(jpeg);
    if (file != first)
        free(first);
    /* It may be kept in memory for a while. */
    uint8_t *exact = realloc(file, size);
    *bytes = (uint32_t)size;
    return exact ? exact : file;
}

/* --- pixels ---------------------------------------------------------------------------------- */

uint32_t thumbnail_suitable_size(uint64_t images)
{
    return images <= 10000 ? 160 : images < 100000 ? 96 : 64;
}

void thumbnail_begin(struct thumbnail_maker *maker, uint32_t width, uint32_t height,
                     uint8_t orientation)
{
    if (!maker)
        return;
    uint32_t to_width = width, to_height = height;
    shrink_dimensions(&to_width, &to_height, maker->size);
    maker->orientation = orientation;
    maker->active = shrink_begin(&maker->shrink, width, height, maker->pixels, to_width, to_height);
}

void thumbnail_rows(struct thumbnail_maker *maker, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    if (maker && maker->active)
        maker->active = shrink_rows(&maker->shrink, rgb, stride, rows);
}

void thumbnail_coefficients(struct thumbnail_maker *maker, const void *coefficients,
                            const struct dct_layout *layout)
{
    if (maker && maker->active)
        maker->active = shrink_coefficients(&maker->shrink, coefficients, layout, maker->pixels,
                                            maker->shrink.to_width, maker->shrink.to_height);
}

bool thumbnail_decode(struct thumbnail_maker *maker, struct decode *decode,
                      const struct image_info *info, struct stop *stop)
{
    const size_t stride = (size_t)info->out_width * 3;
    const uint32_t at_once =
        min_u32((uint32_t)max_u64(THUMBNAIL_STRIP / stride, 1), info->out_height);
    struct failure failure = {.reason = REASON_NONE};
    uint64_t digest[2];
    uint8_t *rows = malloc(stride * at_once);
    bool good = rows && maker;
    thumbnail_begin(maker, info->out_width, info->out_height, info->orientation);
    for (uint32_t y = 0; y < info->out_height && good; y += at_once) {
        const uint32_t count = min_u32(at_once, info->out_height - y);
        good = !stop_overdue(stop) &&
               decode_rows(decode, rows, stride, count, &failure) == REASON_NONE;
        if (good)
            thumbnail_rows(maker, rows, stride, count);
    }
    free(rows);
    return good && decode_end(decode, digest, &failure) == REASON_NONE;
}

/* --- results --------------------------------------------------------------------------------- */

/* The upright pixels: the input itself or a rotated copy. */
static const uint8_t *make_upright(struct thumbnail_maker *maker, uint32_t *width, uint32_t *height,
                                   const uint8_t *pixels, uint8_t orientation)
{
    const uint32_t w = *width, h = *height;
    if (orientation < 2 || orientation > 8)
        return pixels;
    const struct scale_turn turn = scale_turn(w, h, orientation);
    uint8_t *first = maker->upright + turn.first;
    *width = orientation >= 5 ? h : w;
    *height = orientation >= 5 ? w : h;
    for (int32_t y = 0; y < (int32_t)h; y++)
        for (int32_t x = 0; x < (int32_t)w; x++, pixels += 3)
            memcpy(first + (ptrdiff_t)y * turn.row + (ptrdiff_t)x * turn.column, pixels, 3);
    return maker->upright;
}

uint8_t *thumbnail_encode(struct thumbnail_maker *maker, uint32_t *bytes, const uint8_t *pixels,
                          uint32_t width, uint32_t height, uint8_t orientation)
{
    *bytes = 0;
    if (!maker)
        return NULL;
    pixels = make_upright(maker, &width, &height, pixels, orientation);
    return encode(maker, bytes, pixels, width, height);
}

uint8_t *thumbnail_finish(struct thumbnail_maker *maker, uint32_t *bytes)
{
    const bool done = maker && maker->active && shrink_is_done(&maker->shrink);
    *bytes = 0;
    if (maker)
        maker->active = false;
    return done ? thumbnail_encode(maker, bytes, maker->pixels, maker->shrink.to_width,
                                   maker->shrink.to_height, maker->orientation)
                : NULL;
}
