/* test_decode.c: pixels of JPEG files and of the collection compared with expected values; and
 * files that are truncated, too large or changing. */
#include "test_decode_common.h"

#include "base/hash.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

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

/* Decodes with libjpeg alone, to the colour space `space`. */
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

/* A JPEG that is cut anywhere is `truncated` unless all of its pixels are present. */
static void truncated_jpeg(void **state)
{
    (void)state;
    static const int kinds[] = {0,     RESTART,    PROGRESSIVE,
                                SCANS, ARITHMETIC, ARITHMETIC | PROGRESSIVE};
    struct decode *decode = open_decode(NULL);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct bytes file = make_jpeg(33, 40, JCS_RGB, JCS_YCbCr, kinds[k]);
        uint8_t *whole = plain_decode(file, JCS_RGB);
        const size_t step = test_brief() ? 3 : 1;
        for (size_t cut = 3; cut <= file.size; cut += cut + 30 < file.size ? step : 1) {
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

/* --- files ----------------------------------------------------------------------------------- */

static void changes_are_noticed(void **state)
{
    (void)state;
    struct bytes file = make_jpeg(16, 16, JCS_RGB, JCS_YCbCr, 0);
    struct decode *decode = open_decode(NULL);
    int fd = file_of(file.data, file.size);
    struct image_info info;
    struct failure failure;
    const struct blob larger = blob_of_range(fd, 0, file.size + 1, file.size + 1, 0);
    assert_int_equal(decode_begin(decode, &larger, "a.jpg", &info, &failure), REASON_CHANGED);
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

/* Where the exact pixels of the collection's files are known, decoding gives them with any strip
 * height. */
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
            if (i < 2 && compared % 8 != 0) /* every eighth file with all strip heights */
                continue;
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            assert_true(fd >= 0);
            struct outcome got = decode_fd(decode, fd, path, strips[i]);
            close(fd);
            if (got.reason != REASON_NONE)
                fail_msg("%s: %s", path, reason_name(got.reason));
            struct sha256 sha;
            char hex[65];
            sha256_init(&sha);
            sha256_update(&sha, got.pixels, 3 * (size_t)got.info.width * got.info.height);
            sha256_hex(hex, &sha);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cmyk_is_multiplied),  cmocka_unit_test(truncated_jpeg),
    cmocka_unit_test(scans_are_capped),    cmocka_unit_test(pixels_are_capped),
    cmocka_unit_test(changes_are_noticed), cmocka_unit_test(known_pixels),
};
TEST_GROUP(decode, NULL, NULL)
