/* encode.c: JPEG through libjpeg, PNG through libpng. */
#include "encode.h"
#include <stdio.h> /* before jpeglib.h, which needs FILE */

#include <jpeglib.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fputs("draw_sample: no memory\n", stderr);
        exit(3);
    }
    return memory;
}

/* --- JPEG ------------------------------------------------------------------------------------ */

/* The canvas as 8-bit samples in stored orientation. */
static unsigned char *stored_pixels(unsigned *width, unsigned *height, const struct canvas *canvas,
                                    int orientation)
{
    int turned = orientation >= 5;
    *width = turned ? canvas->height : canvas->width;
    *height = turned ? canvas->width : canvas->height;
    unsigned char *pixels = allocate((size_t)*width * *height, 3);
    for (unsigned y = 0; y < *height; y++) {
        for (unsigned x = 0; x < *width; x++) {
            unsigned right = *width - 1 - x, up = *height - 1 - y, ux = x, uy = y;
            switch (orientation) {
            case 2:
                ux = right;
                break;
            case 3:
                ux = right, uy = up;
                break;
            case 4:
                uy = up;
                break;
            case 5:
                ux = y, uy = x;
                break;
            case 6:
                ux = up, uy = x;
                break;
            case 7:
                ux = up, uy = right;
                break;
            case 8:
                ux = y, uy = right;
                break;
            default:
                break;
            }
            const float *from = canvas->rgb + 3 * ((size_t)uy * canvas->width + ux);
            for (int c = 0; c < 3; c++)
                pixels[3 * ((size_t)y * *width + x) + (unsigned)c] =
                    (unsigned char)(from[c] * 255.0f + 0.5f);
        }
    }
    return pixels;
}

static unsigned char luma(const unsigned char *rgb)
{
    return (unsigned char)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
}

/* An EXIF block with the one tag. */
static void write_orientation(j_compress_ptr jpeg, int orientation, int big_endian)
{
    unsigned char little[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0,
                              0x12, 1,   3,   0,   1, 0, 0,   0,   0,  0, 0, 0, 0, 0, 0, 0};
    unsigned char big[] = {'E', 'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                           1,   0x12, 0,   3,   0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0};
    little[24] = (unsigned char)orientation;
    big[25] = (unsigned char)orientation;
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, big_endian ? big : little, sizeof little);
}

/* One row in the samples of the file. CMYK is written inverted, as Adobe's programs do. */
static void jpeg_row(unsigned char *out, const unsigned char *rgb, unsigned width,
                     enum jpeg_space space)
{
    for (unsigned x = 0; x < width; x++, rgb += 3) {
        if (space == JPEG_COLOUR) {
            memcpy(out + 3 * (size_t)x, rgb, 3);
        } else if (space == JPEG_GREY) {
            out[x] = luma(rgb);
        } else {
            int most = rgb[0] > rgb[1] ? rgb[0] : rgb[1];
            most = rgb[2] > most ? rgb[2] : most;
            for (int c = 0; c < 3; c++)
                out[4 * (size_t)x + (unsigned)c] =
                    (unsigned char)(most ? (rgb[c] * 255 + most / 2) / most : 255);
            out[4 * (size_t)x + 3] = (unsigned char)most;
        }
    }
}

static void encode_jpeg(struct bytes *out, const struct canvas *canvas, const struct encoding *e)
{
    unsigned width, height;
    unsigned char *pixels = stored_pixels(&width, &height, canvas, e->orientation);
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors); /* an error prints and exits, which suits this program */
    jpeg_create_compress(&jpeg);
    unsigned char *data = NULL;
    unsigned long size = 0;
    jpeg_mem_dest(&jpeg, &data, &size);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = e->jpeg == JPEG_GREY ? 1 : e->jpeg == JPEG_CMYK ? 4 : 3;
    jpeg.in_color_space = e->jpeg == JPEG_GREY   ? JCS_GRAYSCALE
                          : e->jpeg == JPEG_CMYK ? JCS_CMYK
                                                 : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg.dct_method = JDCT_ISLOW;
    jpeg_set_quality(&jpeg, e->quality, TRUE);
    if (e->jpeg == JPEG_COLOUR) {
        jpeg.comp_info[0].h_samp_factor = e->sampling_h;
        jpeg.comp_info[0].v_samp_factor = e->sampling_v;
    }
    if (e->progressive)
        jpeg_simple_progression(&jpeg);
    jpeg.restart_interval = (unsigned)e->restart;
    jpeg_start_compress(&jpeg, TRUE);
    if (e->orientation)
        write_orientation(&jpeg, e->orientation, e->big_endian);
    unsigned char *row = allocate(width, 4);
    for (unsigned y = 0; y < height; y++) {
        jpeg_row(row, pixels + 3 * (size_t)y * width, width, e->jpeg);
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    free(pixels);
    *out = (struct bytes){data, size};
}

/* --- PNG ------------------------------------------------------------------------------------- */

struct png_sink {
    struct bytes bytes;
    size_t room;
};

static void png_append(png_structp png, png_bytep data, size_t size)
{
    struct png_sink *sink = png_get_io_ptr(png);
    if (sink->bytes.size + size > sink->room) {
        size_t room = 2 * (sink->bytes.size + size);
        unsigned char *grown = allocate(room, 1);
        if (sink->bytes.size)
            memcpy(grown, sink->bytes.data, sink->bytes.size);
        free(sink->bytes.data);
        sink->bytes.data = grown;
        sink->room = room;
    }
    memcpy(sink->bytes.data + sink->bytes.size, data, size);
    sink->bytes.size += size;
}

static void png_nothing(png_structp png)
{
    (void)png;
}

static void png_complain(png_structp png, png_const_charp message)
{
    (void)png;
    fprintf(stderr, "draw_sample: libpng: %s\n", message);
    exit(3);
}

/* 0 to 1 as an integer of `levels` steps, the fraction spread by an 8x8 ordered dither. */
static unsigned dithered(float value, unsigned levels, unsigned x, unsigned y)
{
    static const unsigned char order[8][8] = {
        {0, 32, 8, 40, 2, 34, 10, 42},  {48, 16, 56, 24, 50, 18, 58, 26},
        {12, 44, 4, 36, 14, 46, 6, 38}, {60, 28, 52, 20, 62, 30, 54, 22},
        {3, 35, 11, 43, 1, 33, 9, 41},  {51, 19, 59, 27, 49, 17, 57, 25},
        {15, 47, 7, 39, 13, 45, 5, 37}, {63, 31, 55, 23, 61, 29, 53, 21},
    };
    float scaled = value * (float)(levels - 1) + ((float)order[y & 7][x & 7] + 0.5f) / 64.0f;
    unsigned level = (unsigned)scaled;
    return level < levels ? level : levels - 1;
}

/* Opaque in the middle, fading out towards the corners, as a cut-out picture does. */
static float opacity_at(const struct canvas *canvas, unsigned x, unsigned y)
{
    float dx = 2.0f * ((float)x + 0.5f) / (float)canvas->width - 1.0f;
    float dy = 2.0f * ((float)y + 0.5f) / (float)canvas->height - 1.0f;
    float out = dx * dx * dx * dx + dy * dy * dy * dy;
    return out < 0.8f ? 1.0f : out > 1.2f ? 0.0f : (1.2f - out) / 0.4f;
}

/* Red, green and blue in 6, 7 and 6 steps: 252 colours, of which index 0 is black. */
static void png_cube(png_structp png, png_infop info, int transparent)
{
    png_color palette[252];
    for (unsigned i = 0; i < 252; i++) {
        palette[i].red = (png_byte)(i / 42 * 51);
        palette[i].green = (png_byte)((i / 6 % 7) * 255 / 6);
        palette[i].blue = (png_byte)(i % 6 * 51);
    }
    png_set_PLTE(png, info, palette, 252);
    if (transparent)
        png_set_tRNS(png, info, (png_byte[]){0}, 1, NULL);
}

static void put_sample(unsigned char *row, size_t *at, float value, int depth)
{
    if (depth == 16) {
        unsigned v = (unsigned)(value * 65535.0f + 0.5f);
        row[(*at)++] = (unsigned char)(v >> 8);
        row[(*at)++] = (unsigned char)v;
    } else {
        row[(*at)++] = (unsigned char)(value * 255.0f + 0.5f);
    }
}

static void png_row(unsigned char *row, const struct canvas *canvas, unsigned y,
                    const struct encoding *e)
{
    size_t at = 0;
    memset(row, 0, (size_t)canvas->width * 8);
    for (unsigned x = 0; x < canvas->width; x++) {
        const float *p = canvas->rgb + 3 * ((size_t)y * canvas->width + x);
        float grey = 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
        switch (e->png) {
        case PNG_INDEXED:
            row[x] = (unsigned char)(dithered(p[0], 6, x, y) * 42 + dithered(p[1], 7, x, y) * 6 +
                                     dithered(p[2], 6, x, y));
            if (e->transparent && opacity_at(canvas, x, y) < 0.5f)
                row[x] = 0;
            break;
        case PNG_COLOUR:
        case PNG_COLOUR_ALPHA:
            for (int c = 0; c < 3; c++)
                put_sample(row, &at, p[c], e->depth);
            if (e->png == PNG_COLOUR_ALPHA)
                put_sample(row, &at, opacity_at(canvas, x, y), e->depth);
            break;
        case PNG_GREY:
        case PNG_GREY_ALPHA:
            if (e->depth < 8) {
                unsigned per_byte = 8 / (unsigned)e->depth, shift = per_byte - 1 - x % per_byte;
                unsigned level = dithered(grey, 1U << e->depth, x, y);
                row[x / per_byte] |= (unsigned char)(level << (shift * (unsigned)e->depth));
            } else {
                put_sample(row, &at, grey, e->depth);
                if (e->png == PNG_GREY_ALPHA)
                    put_sample(row, &at, opacity_at(canvas, x, y), e->depth);
            }
            break;
        }
    }
}

static void encode_png(struct bytes *out, const struct canvas *canvas, const struct encoding *e)
{
    static const int types[] = {
        [PNG_COLOUR] = PNG_COLOR_TYPE_RGB,      [PNG_COLOUR_ALPHA] = PNG_COLOR_TYPE_RGB_ALPHA,
        [PNG_GREY] = PNG_COLOR_TYPE_GRAY,       [PNG_GREY_ALPHA] = PNG_COLOR_TYPE_GRAY_ALPHA,
        [PNG_INDEXED] = PNG_COLOR_TYPE_PALETTE,
    };
    struct png_sink sink = {{NULL, 0}, 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, png_complain, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        fputs("draw_sample: libpng does not start\n", stderr);
        exit(3);
    }
    png_set_write_fn(png, &sink, png_append, png_nothing);
    png_set_compression_level(png, 3);
    png_set_filter(png, 0,
                   e->png == PNG_INDEXED || e->depth < 8 ? PNG_FILTER_NONE : PNG_FILTER_SUB);
    png_set_IHDR(png, info, canvas->width, canvas->height, e->depth, types[e->png],
                 e->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (e->png == PNG_INDEXED)
        png_cube(png, info, e->transparent);
    png_write_info(png, info);
    int passes = e->interlaced ? png_set_interlace_handling(png) : 1;
    unsigned char *row = allocate(canvas->width, 8);
    for (int pass = 0; pass < passes; pass++) {
        for (unsigned y = 0; y < canvas->height; y++) {
            png_row(row, canvas, y, e);
            png_write_row(png, row);
        }
    }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(row);
    *out = sink.bytes;
}

void encode(struct bytes *out, const struct canvas *canvas, const struct encoding *encoding)
{
    if (encoding->kind == ENCODING_JPEG)
        encode_jpeg(out, canvas, encoding);
    else
        encode_png(out, canvas, encoding);
}
