/* test_decode.c: pixels against values computed here, and files that are cut, false or too much.
 * long because: the picture makers serve every test in it. */
#include "base/hash.h"
#include "decode/decode.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

struct bytes {
    uint8_t *data;
    size_t size;
};

struct outcome {
    enum reason reason;
    struct image_info info;
    uint8_t *pixels; /* out_width * out_height * 3, or NULL */
};

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* --- decoding -------------------------------------------------------------------------------- */

/* Decodes in strips with 5 bytes between rows that have to stay as they are. */
static struct outcome decode_fd(struct decode *decode, int fd, const char *path, uint32_t strip)
{
    struct outcome got = {0};
    struct failure failure;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    int64_t mtime = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    got.reason = decode_begin(decode, fd, path, (uint64_t)st.st_size, mtime, &got.info, &failure);
    if (got.reason != REASON_NONE)
        return got;
    size_t row = 3 * (size_t)got.info.out_width, stride = row + 5;
    got.pixels = malloc(row * got.info.out_height);
    uint8_t *rows = malloc(stride * strip);
    assert_non_null(got.pixels);
    assert_non_null(rows);
    memset(rows, 0xa5, stride * strip);
    for (uint32_t y = 0; y < got.info.out_height && got.reason == REASON_NONE;) {
        uint32_t n = got.info.out_height - y < strip ? got.info.out_height - y : strip;
        got.reason = decode_rows(decode, rows, stride, n, &failure);
        for (uint32_t i = 0; i < n && got.reason == REASON_NONE; i++, y++) {
            memcpy(got.pixels + y * row, rows + i * stride, row);
            for (size_t gap = row; gap < stride; gap++)
                assert_int_equal(rows[i * stride + gap], 0xa5);
        }
    }
    uint64_t digest[2];
    if (got.reason == REASON_NONE)
        got.reason = decode_end(decode, digest, &failure);
    if (got.reason != REASON_NONE) {
        decode_abort(decode);
        free(got.pixels);
        got.pixels = NULL;
        assert_int_equal(failure.reason, got.reason);
        assert_true(failure.message[0] != '\0');
    }
    free(rows);
    return got;
}

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("picture", 0);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
    return fd;
}

static struct outcome decode_bytes(struct decode *decode, const void *data, size_t size)
{
    int fd = file_of(data, size);
    struct outcome got = decode_fd(decode, fd, "picture.jpg", 7);
    close(fd);
    return got;
}

static enum reason reason_of(struct decode *decode, const void *data, size_t size)
{
    struct outcome got = decode_bytes(decode, data, size);
    free(got.pixels);
    return got.reason;
}

static struct decode *open_decode(const struct decode_options *options)
{
    struct decode_options usual;
    struct decode *decode;
    struct error err = {0};
    decode_options_default(&usual);
    assert_int_equal(decode_open(&decode, options ? options : &usual, &err), STATUS_OK);
    return decode;
}

/* --- JPEG ------------------------------------------------------------------------------------ */

enum { PROGRESSIVE = 1, ARITHMETIC = 2, SCANS = 4, RESTART = 8, NO_ADOBE = 16 };

static struct bytes make_jpeg(uint32_t width, uint32_t height, J_COLOR_SPACE in, J_COLOR_SPACE out,
                              int flags)
{
    static const jpeg_scan_info separate[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &data, &size);
    info.image_width = width;
    info.image_height = height;
    info.in_color_space = in;
    info.input_components = in == JCS_CMYK ? 4 : in == JCS_RGB ? 3 : 1;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, out);
    jpeg_set_quality(&info, 90, TRUE);
    if (flags & PROGRESSIVE)
        jpeg_simple_progression(&info);
    if (flags & SCANS) {
        info.scan_info = separate;
        info.num_scans = 3;
    }
    info.arith_code = (flags & ARITHMETIC) != 0;
    info.restart_in_rows = flags & RESTART ? 1 : 0;
    if (flags & NO_ADOBE)
        info.write_Adobe_marker = FALSE;
    jpeg_start_compress(&info, TRUE);
    uint8_t *row = malloc((size_t)width * 4);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width * (uint32_t)info.input_components; x++)
            row[x] = (uint8_t)(x * 3 + y * 5 + next_random() % 60);
        JSAMPROW one = row;
        jpeg_write_scanlines(&info, &one, 1);
    }
    free(row);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return (struct bytes){data, size};
}

/* What libjpeg itself gives, in `space`. */
static uint8_t *plain_decode(struct bytes file, J_COLOR_SPACE space)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file.data, file.size);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = space;
    jpeg_start_decompress(&info);
    size_t row = (size_t)info.output_width * (size_t)info.output_components;
    uint8_t *pixels = malloc(row * info.output_height);
    while (info.output_scanline < info.output_height) {
        JSAMPROW one = pixels + info.output_scanline * row;
        jpeg_read_scanlines(&info, &one, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return pixels;
}

static void cmyk_is_multiplied(void **state)
{
    (void)state;
    struct decode *decode = open_decode(NULL);
    static const struct {
        J_COLOR_SPACE space;
        int flags;
    } cases[] = {{JCS_CMYK, 0}, {JCS_YCCK, 0}, {JCS_CMYK, NO_ADOBE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = make_jpeg(37, 21, JCS_CMYK, cases[i].space, cases[i].flags);
        uint8_t *raw = plain_decode(file, JCS_CMYK);
        struct outcome got = decode_bytes(decode, file.data, file.size);
        assert_int_equal(got.reason, REASON_NONE);
        assert_int_equal(got.info.channels, 4);
        for (size_t p = 0; p < 37 * 21; p++) {
            uint32_t flip = cases[i].flags & NO_ADOBE ? 255 : 0;
            for (size_t c = 0; c < 3; c++)
                assert_int_equal(got.pixels[3 * p + c],
                                 ((raw[4 * p + c] ^ flip) * (raw[4 * p + 3] ^ flip) + 127) / 255);
        }
        free(got.pixels);
        free(raw);
        free(file.data);
    }
    decode_close(&decode);
}

/* A JPEG cut anywhere is `truncated`, or all of its pixels are there. */
static void cut_jpeg(void **state)
{
    (void)state;
    static const int kinds[] = {0,     RESTART,    PROGRESSIVE,
                                SCANS, ARITHMETIC, ARITHMETIC | PROGRESSIVE};
    struct decode *decode = open_decode(NULL);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct bytes file = make_jpeg(33, 40, JCS_RGB, JCS_YCbCr, kinds[k]);
        uint8_t *whole = plain_decode(file, JCS_RGB);
        for (size_t cut = 3; cut <= file.size; cut++) {
            struct outcome got = decode_bytes(decode, file.data, cut);
            if (cut == file.size || (cut == file.size - 2 && !(kinds[k] & ARITHMETIC)))
                assert_int_equal(got.reason, REASON_NONE);
            if (got.reason == REASON_NONE)
                assert_memory_equal(got.pixels, whole, 33 * 40 * 3);
            else
                assert_int_equal(got.reason, REASON_TRUNCATED);
            free(got.pixels);
        }
        free(whole);
        free(file.data);
    }
    assert_int_equal(reason_of(decode, "\xff\xd8", 2), REASON_UNKNOWN_FORMAT);
    assert_int_equal(reason_of(decode, "", 0), REASON_EMPTY);
    decode_close(&decode);
}

static void scans_are_capped(void **state)
{
    (void)state;
    struct decode_options options;
    decode_options_default(&options);
    struct bytes many = make_jpeg(40, 40, JCS_RGB, JCS_YCbCr, PROGRESSIVE);
    struct bytes three = make_jpeg(40, 40, JCS_RGB, JCS_YCbCr, SCANS);
    struct bytes one = make_jpeg(40, 40, JCS_RGB, JCS_YCbCr, 0);
    static const enum reason over = REASON_TOO_MANY_SCANS, ok = REASON_NONE;
    const enum reason expected[][3] = {{over, over, ok}, {over, ok, ok}, {ok, ok, ok}};
    static const uint32_t limits[] = {2, 3, 10};
    for (size_t i = 0; i < 3; i++) {
        options.max_scans = limits[i];
        struct decode *decode = open_decode(&options);
        assert_int_equal(reason_of(decode, many.data, many.size), expected[i][0]);
        assert_int_equal(reason_of(decode, three.data, three.size), expected[i][1]);
        assert_int_equal(reason_of(decode, one.data, one.size), expected[i][2]);
        decode_close(&decode);
    }
    free(many.data);
    free(three.data);
    free(one.data);
}

static void pixels_are_capped(void **state)
{
    (void)state;
    struct decode_options options;
    decode_options_default(&options);
    struct bytes file = make_jpeg(40, 30, JCS_RGB, JCS_YCbCr, 0);
    options.max_pixels = 40 * 30;
    struct decode *decode = open_decode(&options);
    assert_int_equal(reason_of(decode, file.data, file.size), REASON_NONE);
    decode_close(&decode);
    options.max_pixels--;
    decode = open_decode(&options);
    assert_int_equal(reason_of(decode, file.data, file.size), REASON_TOO_LARGE);
    decode_close(&decode);
    free(file.data);
}

/* --- PNG ------------------------------------------------------------------------------------- */

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
    /* The key occurs; with 16 bits a neighbour that has the same upper bytes does as well. */
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

/* Every colour type, depth, interlace and transparency that PNG has, in every alpha mode. */
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

/* A PNG cut anywhere is `truncated`, or all of its pixels are there: only IEND may be missing. */
static void cut_png(void **state)
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

/* A PNG of a header and the beginning of one more chunk. */
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

/* What a header promises costs nothing before decode_rows. */
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
    assert_int_equal(decode_begin(decode, fd, "a.png", file.size,
                                  st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
                                  &info, &failure),
                     REASON_NONE);
    assert_true(info.memory >= UINT64_C(268435456) * 8);
    assert_true(heap_bytes() < before + (1u << 20));
    decode_abort(decode);
    close(fd);
    file = make_stub(268435457, "IDAT", 100);
    assert_int_equal(reason_of(decode, file.data, file.size), REASON_TOO_LARGE);
    decode_close(&decode);
}

/* Metadata of any length is skipped, wherever it stands. */
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

/* A picture of one pixel with `size` bytes of incompressible image data. */
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

/* A little data too much is ignored, as libpng does; nobody inflates gigabytes for one pixel. */
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

/* --- files ----------------------------------------------------------------------------------- */

static void changes_are_noticed(void **state)
{
    (void)state;
    struct bytes file = make_jpeg(16, 16, JCS_RGB, JCS_YCbCr, 0);
    struct decode *decode = open_decode(NULL);
    int fd = file_of(file.data, file.size);
    struct image_info info;
    struct failure failure;
    assert_int_equal(decode_begin(decode, fd, "a.jpg", file.size + 1, 0, &info, &failure),
                     REASON_CHANGED);
    close(fd);
    decode_close(&decode);
    free(file.data);
}

static bool is_readable(const char *name)
{
    const struct format *format;
    for (unsigned i = 0; (format = format_at(i)); i++) {
        if (strcmp(format->name, name) == 0)
            return format->library != NULL;
    }
    return false;
}

/* The pixels of the collection, where they are known exactly; strips make no difference. */
static void known_pixels(void **state)
{
    (void)state;
    FILE *manifest = fopen("../shared/data/nasty/manifest.tsv", "r");
    if (!manifest)
        skip();
    struct decode *decode = open_decode(NULL);
    char *line = NULL;
    size_t room = 0;
    int compared = 0;
    while (getline(&line, &room, manifest) > 0) {
        char *rest = line, *field[8];
        for (int i = 0; i < 8; i++)
            field[i] = strsep(&rest, "\t");
        if (!*field[7] || !is_readable(field[2]))
            continue;
        char path[4096];
        snprintf(path, sizeof path, "../shared/data/nasty/%s", field[0]);
        static const uint32_t strips[] = {1, 5, 4000};
        for (size_t i = 0; i < 3; i++) {
            if (i < 2 && compared % 8 != 0) /* one in eight in every way */
                continue;
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            assert_true(fd >= 0);
            struct outcome got = decode_fd(decode, fd, path, strips[i]);
            close(fd);
            if (got.reason != REASON_NONE)
                fail_msg("%s: %s", path, reason_name(got.reason));
            struct sha256 sha;
            uint8_t digest[32];
            char hex[65];
            sha256_init(&sha);
            sha256_update(&sha, got.pixels, 3 * (size_t)got.info.width * got.info.height);
            sha256_final(&sha, digest);
            sha256_hex(hex, digest);
            if (strcmp(hex, field[7]) != 0)
                fail_msg("%s: other pixels", path);
            free(got.pixels);
        }
        compared++;
    }
    assert_true(compared > 70);
    free(line);
    fclose(manifest);
    decode_close(&decode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cmyk_is_multiplied),
        cmocka_unit_test(cut_jpeg),
        cmocka_unit_test(scans_are_capped),
        cmocka_unit_test(pixels_are_capped),
        cmocka_unit_test(png_pixels),
        cmocka_unit_test(cut_png),
        cmocka_unit_test(declared_sizes_cost_nothing),
        cmocka_unit_test(long_chunks_are_skipped),
        cmocka_unit_test(overfull_png),
        cmocka_unit_test(changes_are_noticed),
        cmocka_unit_test(known_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
