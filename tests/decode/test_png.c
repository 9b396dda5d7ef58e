/* test_png.c: all kinds of PNG compared with values that are computed here; and files that are
 * truncated, invalid or too large. */
#include "test_decode_common.h"

#include <malloc.h>
#include <stdbool.h>

#include <png.h>
#include <zlib.h>

#define WIDTH  29u
#define HEIGHT 19u

struct drawing {
    int type, depth, samples;
    bool interlaced, transparent;
    uint16_t v[HEIGHT][WIDTH][4];
    png_color palette[256];
    png_byte palette_alpha[256];
    uint16_t key[3];
};

static void draw(struct drawing *d)
{
    d->samples = d->type == PNG_COLOR_TYPE_RGB          ? 3
                 : d->type == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
                 : d->type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                                        : 1;
    for (int i = 0; i < 256; i++) {
        d->palette[i] =
            (png_color){(png_byte)next_random(), (png_byte)next_random(), (png_byte)next_random()};
        d->palette_alpha[i] = (png_byte)next_random();
    }
    uint32_t mask = (1u << d->depth) - 1;
    for (uint32_t y = 0; y < HEIGHT; y++) {
        for (uint32_t x = 0; x < WIDTH; x++) {
            for (int s = 0; s < d->samples; s++)
                d->v[y][x][s] = (uint16_t)(next_random() & mask);
        }
    }
    /* The transparent colour occurs, and so does a similar one; with 16 bits they have the same
     * upper bytes. */
    for (int s = 0; s < 3; s++) {
        d->key[s] = (uint16_t)(next_random() & mask);
        d->v[3][4][s] = d->v[7][9][s] = d->key[s];
    }
    d->v[7][9][0] ^= 1;
}

static void put_bytes(png_structp png, png_bytep data, size_t size)
{
    struct bytes *out = png_get_io_ptr(png);
    out->data = realloc(out->data, out->size + size);
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_nothing(png_structp png)
{
    (void)png;
}

static struct bytes make_png(const struct drawing *d)
{
    struct bytes out = {NULL, 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &out, put_bytes, put_nothing);
    png_set_IHDR(png, info, WIDTH, HEIGHT, d->depth, d->type,
                 d->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    int colours = 1 << (d->depth < 8 ? d->depth : 8);
    if (d->type == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, d->palette, colours);
    png_color_16 key = {0, d->key[0], d->key[1], d->key[2], d->key[0]};
    if (d->transparent && d->type == PNG_COLOR_TYPE_PALETTE)
        png_set_tRNS(png, info, d->palette_alpha, colours / 2, NULL);
    else if (d->transparent)
        png_set_tRNS(png, info, NULL, 0, &key);
    png_write_info(png, info);
    static uint8_t rows[HEIGHT][WIDTH * 8];
    png_bytep row[HEIGHT];
    memset(rows, 0, sizeof rows);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        row[y] = rows[y];
        size_t bit = 0;
        for (uint32_t x = 0; x < WIDTH; x++) {
            for (int s = 0; s < d->samples; s++, bit += (size_t)d->depth) {
                for (int b = 0; b < d->depth; b++) {
                    if (d->v[y][x][s] >> (d->depth - 1 - b) & 1)
                        rows[y][(bit + (size_t)b) / 8] |= (uint8_t)(0x80 >> (bit + (size_t)b) % 8);
                }
            }
        }
    }
    png_write_image(png, row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return out;
}

static uint32_t eight_bits(uint32_t v, int depth)
{
    return depth == 16 ? (v * 255 + 32767) / 65535 : v * 255 / ((1u << depth) - 1);
}

static void expected_pixel(uint8_t out[3], const struct drawing *d, const uint16_t *v,
                           enum alpha_mode mode)
{
    uint32_t c[3], a = 255;
    if (d->type == PNG_COLOR_TYPE_PALETTE) {
        c[0] = d->palette[v[0]].red;
        c[1] = d->palette[v[0]].green;
        c[2] = d->palette[v[0]].blue;
        if (d->transparent && v[0] < (1 << d->depth) / 2)
            a = d->palette_alpha[v[0]];
    } else {
        for (int i = 0; i < 3; i++)
            c[i] = eight_bits(v[d->samples >= 3 ? i : 0], d->depth);
        if (d->samples % 2 == 0)
            a = eight_bits(v[d->samples - 1], d->depth);
        else if (d->transparent)
            a = memcmp(v, d->key, sizeof *v * (size_t)d->samples) == 0 ? 0 : 255;
    }
    uint32_t back = mode == ALPHA_WHITE ? 255 : 0;
    for (int i = 0; i < 3; i++)
        out[i] = (uint8_t)(mode == ALPHA_DROP ? c[i] : (c[i] * a + back * (255 - a) + 127) / 255);
}

/* All colour types, depths, interlacing and transparency of PNG, in all alpha modes. */
static void png_pixels(void **state)
{
    (void)state;
    static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                   {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    static struct drawing d;
    for (enum alpha_mode mode = ALPHA_WHITE; mode <= ALPHA_DROP; mode++) {
        struct decode_options options;
        decode_options_default(&options);
        options.alpha = mode;
        struct decode *decode = open_decode(&options);
        for (size_t i = 0; i < 4 * sizeof kinds / sizeof *kinds; i++) {
            d.type = kinds[i / 4][0];
            d.depth = kinds[i / 4][1];
            d.interlaced = i & 1;
            d.transparent = i & 2;
            if (d.transparent && (d.type & PNG_COLOR_MASK_ALPHA))
                continue;
            draw(&d);
            struct bytes file = make_png(&d);
            struct outcome got = decode_bytes(decode, file.data, file.size);
            assert_int_equal(got.reason, REASON_NONE);
            assert_int_equal(got.info.channels,
                             (d.type & PNG_COLOR_MASK_COLOR ? 3 : 1) +
                                 (d.transparent || (d.type & PNG_COLOR_MASK_ALPHA) ? 1 : 0));
            for (uint32_t y = 0; y < HEIGHT; y++) {
                for (uint32_t x = 0; x < WIDTH; x++) {
                    uint8_t expected[3];
                    expected_pixel(expected, &d, d.v[y][x], mode);
                    assert_memory_equal(got.pixels + 3 * (y * WIDTH + x), expected, 3);
                }
            }
            free(got.pixels);
            free(file.data);
        }
        decode_close(&decode);
    }
}

/* A PNG that is cut anywhere is `truncated` unless all of its pixels are present: only IEND may be
 * missing. */
static void truncated_png(void **state)
{
    (void)state;
    static struct drawing d = {.type = PNG_COLOR_TYPE_RGB, .depth = 8};
    struct decode *decode = open_decode(NULL);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        d.interlaced = interlaced;
        draw(&d);
        struct bytes file = make_png(&d);
        for (size_t cut = 8; cut <= file.size; cut++)
            assert_int_equal(reason_of(decode, file.data, cut),
                             cut < file.size - 12 ? REASON_TRUNCATED : REASON_NONE);
        free(file.data);
    }
    decode_close(&decode);
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A PNG consisting of a header and the start of one more chunk. */
static struct bytes make_stub(uint32_t width, const char *chunk, uint32_t length)
{
    static uint8_t data[57];
    memcpy(data, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16);
    put32(data + 16, width);
    put32(data + 20, 1);
    memcpy(data + 24, "\x10\x06\0\0", 5); /* RGBA, 16 bits */
    put32(data + 29, (uint32_t)crc32(0, data + 12, 17));
    put32(data + 33, length);
    memcpy(data + 37, chunk, 4);
    return (struct bytes){data, sizeof data};
}

static size_t heap_bytes(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

/* Dimensions in a header allocate no memory before decode_rows. */
static void declared_sizes_cost_nothing(void **state)
{
    (void)state;
    static const char *const chunks[] = {"IDAT", "tEXt", "iCCP", "eXIf", "PLTE", "prIv"};
    struct decode *decode = open_decode(NULL);
    size_t before = heap_bytes();
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct bytes file = make_stub(4, chunks[i], 0x7ffffff0);
        assert_int_equal(reason_of(decode, file.data, file.size), REASON_TRUNCATED);
    }
    struct bytes file = make_stub(268435456, "IDAT", 100);
    int fd = file_of(file.data, file.size);
    struct image_info info;
    struct failure failure;
    struct stat st;
    fstat(fd, &st);
    const struct blob blob =
        blob_of_range(fd, 0, file.size, file.size, clock_file_time(&st.st_mtim));
    assert_int_equal(decode_begin(decode, &blob, "a.png", &info, &failure), REASON_NONE);
    assert_true(info.memory >= UINT64_C(268435456) * 8);
    assert_true(heap_bytes() < before + (1u << 20));
    decode_abort(decode);
    close(fd);
    file = make_stub(268435457, "IDAT", 100);
    assert_int_equal(reason_of(decode, file.data, file.size), REASON_TOO_LARGE);
    decode_close(&decode);
}

/* Metadata of any length is skipped at any position. */
static void long_chunks_are_skipped(void **state)
{
    (void)state;
    static struct drawing d = {.type = PNG_COLOR_TYPE_GRAY, .depth = 8};
    enum { LONG = 9 << 20, AT = 33 };
    draw(&d);
    struct bytes file = make_png(&d);
    uint8_t *longer = calloc(1, file.size + LONG + 12);
    memcpy(longer, file.data, AT);
    put32(longer + AT, LONG);
    memcpy(longer + AT + 4, "iTXt", 4);
    put32(longer + AT + 8 + LONG, (uint32_t)crc32(0, longer + AT + 4, LONG + 4));
    memcpy(longer + AT + 12 + LONG, file.data + AT, file.size - AT);
    struct decode *decode = open_decode(NULL);
    assert_int_equal(reason_of(decode, longer, file.size + LONG + 12), REASON_NONE);
    assert_int_equal(reason_of(decode, longer, AT + LONG / 2), REASON_TRUNCATED);
    decode_close(&decode);
    free(longer);
    free(file.data);
}

/* A PNG of one pixel with `size` bytes of incompressible image data. */
static struct bytes make_overfull(size_t size)
{
    uint8_t *raw = malloc(size);
    for (size_t i = 0; i < size; i++)
        raw[i] = (uint8_t)(i < 2 ? 0 : next_random());
    uLongf packed = compressBound(size);
    struct bytes file = {calloc(1, 33 + packed + 12), 0};
    memcpy(file.data, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\0\0\0", 29);
    put32(file.data + 29, (uint32_t)crc32(0, file.data + 12, 17));
    assert_int_equal(compress(file.data + 41, &packed, raw, size), Z_OK);
    put32(file.data + 33, (uint32_t)packed);
    memcpy(file.data + 37, "IDAT", 4);
    put32(file.data + 41 + packed, (uint32_t)crc32(0, file.data + 37, (uInt)packed + 4));
    file.size = 45 + packed;
    free(raw);
    return file;
}

/* A small excess of image data is ignored, as by libpng; gigabytes are not inflated for a single
 * pixel. */
static void overfull_png(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 1000, 300000};
    struct decode *decode = open_decode(NULL);
    for (size_t i = 0; i < 3; i++) {
        struct bytes file = make_overfull(sizes[i]);
        assert_int_equal(reason_of(decode, file.data, file.size),
                         i < 2 ? REASON_NONE : REASON_CORRUPT);
        free(file.data);
    }
    decode_close(&decode);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(png_pixels),
    cmocka_unit_test(truncated_png),
    cmocka_unit_test(declared_sizes_cost_nothing),
    cmocka_unit_test(long_chunks_are_skipped),
    cmocka_unit_test(overfull_png),
};
TEST_GROUP(png, NULL, NULL)
