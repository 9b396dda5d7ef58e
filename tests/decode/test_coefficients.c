/* test_coefficients.c: pixels that decode/dct.c computes from JPEG coefficients equal those of the
 * library's rows, and failures are the same. A stream that decode/stream.c accepts gives the same
 * pixels, and its rows can be decoded without a failure. */
#include "runner.h"

#include "base/clock.h"
#include "base/random.h"
#include "decode/decode.h"
#include "decode/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>

struct bytes {
    unsigned char *data;
    unsigned long size;
};

struct made {
    uint32_t width, height;
    J_COLOR_SPACE in, out;
    int across, down; /* sampling factors of the first component */
    int flags;        /* flags, plus INTERVAL times the number of MCUs between restart markers */
};

enum {
    PROGRESSIVE = 1,
    ARITHMETIC = 2,
    SCANS = 4,
    RESTART = 8,
    COARSE = 16,
    OPTIMIZED = 32,
    INTERVAL = 64
};

static uint32_t next_random(void)
{
    static uint32_t state = RANDOM_START;
    return random_next(&state) >> 8;
}

static struct bytes make(const struct made *made)
{
    static const jpeg_scan_info separate[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    struct bytes file = {NULL, 0};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &file.data, &file.size);
    info.image_width = made->width;
    info.image_height = made->height;
    info.in_color_space = made->in;
    info.input_components = made->in == JCS_CMYK ? 4 : made->in == JCS_RGB ? 3 : 1;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, made->out);
    jpeg_set_quality(&info, made->flags & COARSE ? 12 : 93, TRUE);
    info.comp_info[0].h_samp_factor = made->across;
    info.comp_info[0].v_samp_factor = made->down;
    if (made->flags & PROGRESSIVE)
        jpeg_simple_progression(&info);
    if (made->flags & SCANS) {
        info.scan_info = separate;
        info.num_scans = 3;
    }
    info.arith_code = (made->flags & ARITHMETIC) != 0;
    info.restart_in_rows = made->flags & RESTART ? 1 : 0;
    info.restart_interval = (unsigned)made->flags / INTERVAL;
    info.optimize_coding = (made->flags & OPTIMIZED) != 0;
    jpeg_start_compress(&info, TRUE);
    uint8_t *row = malloc((size_t)made->width * 4);
    assert_non_null(row);
    for (uint32_t y = 0; y < made->height; y++) {
        for (uint32_t x = 0; x < made->width * (uint32_t)info.input_components; x++)
            row[x] = (uint8_t)(x * 3 + y * 5 + next_random() % 90);
        JSAMPROW one = row;
        jpeg_write_scanlines(&info, &one, 1);
    }
    free(row);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return file;
}

static struct decode *open_decode(bool coefficients, unsigned scale)
{
    struct decode_options options;
    struct decode *decode;
    struct error err = {0};
    decode_options_default(&options);
    options.coefficients = coefficients;
    options.scale = scale;
    assert_int_equal(decode_open(&decode, &options, &err), STATUS_OK);
    return decode;
}

struct outcome {
    struct image_info info;
    struct failure failure;
    uint64_t digest[2];
    uint8_t *pixels; /* NULL after a failure */
    bool coefficients;
};

static void make_pixels(struct outcome *got, struct decode *decode)
{
    const struct dct_layout *layout = &got->info.dct;
    void *coefficients = aligned_alloc(128, (dct_bytes(layout) + 127) / 128 * 128);
    uint8_t *samples = malloc(DCT_BLOCK * dct_blocks(layout));
    assert_non_null(coefficients);
    assert_non_null(samples);
    memset(coefficients, 0xa5, dct_bytes(layout));
    got->coefficients = true;
    if (decode_coefficients(decode, coefficients, &got->failure) == REASON_NONE)
        dct_pixels(got->pixels, samples, coefficients, layout);
    free(samples);
    free(coefficients);
}

/* Decodes a file completely, from coefficients where available. */
static struct outcome go(struct decode *decode, const void *data, size_t size)
{
    struct outcome got = {.pixels = NULL};
    struct stat st;
    int fd = memfd_create("picture", 0);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
    assert_int_equal(fstat(fd, &st), 0);
    const struct blob blob = blob_of_range(fd, 0, size, size, clock_file_time(&st.st_mtim));
    if (decode_begin(decode, &blob, "picture.jpg", &got.info, &got.failure) == REASON_NONE) {
        const size_t row = (size_t)got.info.out_width * 3;
        got.pixels = malloc(row * got.info.out_height + 1);
        assert_non_null(got.pixels);
        if (got.info.dct.colour != DCT_NONE)
            make_pixels(&got, decode);
        else
            decode_rows(decode, got.pixels, row, got.info.out_height, &got.failure);
        if (got.failure.reason == REASON_NONE)
            decode_end(decode, got.digest, &got.failure);
        if (got.failure.reason != REASON_NONE) {
            decode_abort(decode);
            free(got.pixels);
            got.pixels = NULL;
        }
    }
    close(fd);
    return got;
}

/* Streams accepted and refused among the files given to `compare`. */
static struct decode *streams;
static unsigned accepted, refused, refused_wrongly;

static void check_stream(const struct outcome *rows, const void *data, size_t size,
                         const char *what)
{
    struct image_info info;
    struct failure failure;
    uint64_t digest[2];
    struct stat st;
    int fd = memfd_create("picture", 0);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
    assert_int_equal(fstat(fd, &st), 0);
    const struct blob blob = blob_of_range(fd, 0, size, size, clock_file_time(&st.st_mtim));
    if (decode_begin(streams, &blob, "picture.jpg", &info, &failure) != REASON_NONE) {
        close(fd);
        return;
    }
    const size_t row = (size_t)info.out_width * 3, room = (info.stream_bytes + 127) / 128 * 128;
    uint8_t *payload = info.stream_bytes > 0 ? aligned_alloc(128, room) : NULL;
    if (payload)
        memset(payload, 0xa5, room);
    if (payload && decode_stream(streams, payload)) {
        void *blocks = aligned_alloc(128, (dct_bytes(&info.dct) + 127) / 128 * 128);
        uint8_t *samples = malloc(DCT_BLOCK * dct_blocks(&info.dct));
        uint8_t *pixels = malloc(row * info.out_height);
        assert_true(blocks && samples && pixels);
        if (stream_coefficients(blocks, payload)) {
            accepted++;
            if (!rows->pixels)
                fail_msg("%s: accepted as a stream, but %s \"%s\" by rows", what,
                         reason_name(rows->failure.reason), rows->failure.message);
            dct_pixels(pixels, samples, blocks, &info.dct);
            assert_memory_equal(pixels, rows->pixels, row * info.out_height);
            assert_int_equal(decode_end(streams, digest, &failure), REASON_NONE);
            assert_memory_equal(digest, rows->digest, sizeof digest);
        } else {
            refused++;
            refused_wrongly += rows->pixels != NULL;
        }
        free(blocks);
        free(samples);
        free(pixels);
    }
    free(payload);
    decode_abort(streams);
    close(fd);
}

/* Checks that both decoders give the same result; returns whether coefficients were available. */
static bool compare(struct decode *rows, struct decode *coefficients, const void *data, size_t size,
                    const char *what)
{
    struct outcome a = go(rows, data, size), b = go(coefficients, data, size);
    const bool had = b.coefficients;
    assert_false(a.coefficients);
    if (a.failure.reason != b.failure.reason || strcmp(a.failure.message, b.failure.message) != 0)
        fail_msg("%s: %s \"%s\" by rows, %s \"%s\" by coefficients", what,
                 reason_name(a.failure.reason), a.failure.message, reason_name(b.failure.reason),
                 b.failure.message);
    if (a.pixels) {
        const size_t bytes = (size_t)a.info.out_width * a.info.out_height * 3;
        assert_memory_equal(a.digest, b.digest, sizeof a.digest);
        for (size_t i = 0; i < bytes; i++) {
            if (a.pixels[i] != b.pixels[i])
                fail_msg("%s: byte %zu is %u by rows, %u by coefficients", what, i, a.pixels[i],
                         b.pixels[i]);
        }
    }
    if (had)
        check_stream(&a, data, size, what);
    free(a.pixels);
    free(b.pixels);
    return had;
}

/* Coefficients are used only with libjpeg-turbo's SIMD code for x86. */
static void need_agreement(void)
{
    if (!decode_coefficients_agree()) {
        print_message("this JPEG library computes pixels in a different way\n");
        skip();
    }
}

static void the_library_agrees(void **state)
{
    (void)state;
#if defined __x86_64__ && defined LIBJPEG_TURBO_VERSION
    if (!getenv("JSIMD_FORCENONE"))
        assert_true(decode_coefficients_agree());
#endif
    need_agreement();
}

static void pixels_equal_those_of_rows(void **state)
{
    (void)state;
    need_agreement();
    static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}};
    struct decode *rows = open_decode(false, 1), *coefficients = open_decode(true, 1);
    for (uint32_t size = 0; size < 60; size++) {
        for (unsigned s = 0; s < 5; s++) {
            struct made made = {.width = 5 + size * 11 % 67,
                                .height = 1 + size * size % 83,
                                .in = s == 3 ? JCS_GRAYSCALE : JCS_RGB,
                                .out = s == 3   ? JCS_GRAYSCALE
                                       : s == 4 ? JCS_RGB
                                                : JCS_YCbCr,
                                .across = s == 3  ? 1 + (int)size % 3
                                          : s < 3 ? samplings[s][0]
                                                  : 2,
                                .down = s == 3  ? 1 + (int)size % 2
                                        : s < 3 ? samplings[s][1]
                                                : 2,
                                .flags = (size % 3 ? 0 : RESTART) | (size % 4 ? 0 : COARSE) |
                                         (size % 5 < 2 ? OPTIMIZED : 0) |
                                         (size % 7 == 3 ? INTERVAL * (1 + (int)size % 4) : 0)};
            struct bytes file = make(&made);
            char what[64];
            snprintf(what, sizeof what, "%ux%u, %dx%d, colours %d", made.width, made.height,
                     made.across, made.down, (int)made.out);
            assert_true(compare(rows, coefficients, file.data, file.size, what));
            free(file.data);
        }
    }
    assert_int_equal(refused, 0);
    assert_int_equal(accepted, 250); /* all but grey pictures with sampling factors */
    decode_close(&rows);
    decode_close(&coefficients);
}

/* Files that the plain C decoder cannot decode, or where a stream saves nothing, are not offered as
 * streams. */
static void other_files_are_not_offered(void **state)
{
    (void)state;
    static const struct made others[] = {{40, 30, JCS_RGB, JCS_YCbCr, 2, 2, PROGRESSIVE},
                                         {40, 30, JCS_RGB, JCS_YCbCr, 2, 2, SCANS},
                                         {40, 30, JCS_RGB, JCS_YCbCr, 2, 2, ARITHMETIC},
                                         {40, 30, JCS_RGB, JCS_YCbCr, 1, 2, 0},
                                         {40, 30, JCS_RGB, JCS_YCbCr, 4, 1, 0},
                                         {4, 30, JCS_RGB, JCS_YCbCr, 2, 2, 0},
                                         {3, 30, JCS_RGB, JCS_YCbCr, 2, 1, 0},
                                         {40, 30, JCS_CMYK, JCS_CMYK, 1, 1, 0},
                                         {40, 30, JCS_CMYK, JCS_YCCK, 1, 1, 0}};
    struct decode *rows = open_decode(false, 1), *coefficients = open_decode(true, 1);
    struct decode *scaled = open_decode(true, 2);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct bytes file = make(&others[i]);
        assert_false(compare(rows, coefficients, file.data, file.size, "not offered"));
        free(file.data);
    }
    static const struct made usual = {40, 30, JCS_RGB, JCS_YCbCr, 2, 2, 0};
    struct bytes file = make(&usual);
    assert_true(compare(rows, coefficients, file.data, file.size, "offered"));
    struct outcome got = go(scaled, file.data, file.size);
    assert_non_null(got.pixels);
    assert_false(got.coefficients);
    free(got.pixels);
    free(file.data);
    decode_close(&scaled);
    decode_close(&rows);
    decode_close(&coefficients);
}

/* Truncates each file at every byte, and damages one byte at a time. */
static void failures_equal_those_of_rows(void **state)
{
    (void)state;
    need_agreement();
    static const struct made kinds[] = {{61, 37, JCS_RGB, JCS_YCbCr, 2, 2, 0},
                                        {37, 29, JCS_RGB, JCS_YCbCr, 2, 1, RESTART},
                                        {33, 41, JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, RESTART}};
    struct decode *rows = open_decode(false, 1), *coefficients = open_decode(true, 1);
    unsigned with_coefficients = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct bytes file = make(&kinds[k]);
        char what[64];
        for (unsigned long size = 1; size < file.size; size += size < 700 ? 7 : 3) {
            snprintf(what, sizeof what, "kind %zu of %lu bytes", k, size);
            with_coefficients += compare(rows, coefficients, file.data, size, what);
        }
        for (unsigned long at = 2; at < file.size; at += 5) {
            const unsigned char was = file.data[at];
            file.data[at] = (unsigned char)next_random();
            snprintf(what, sizeof what, "kind %zu with byte %lu %u", k, at, file.data[at]);
            with_coefficients += compare(rows, coefficients, file.data, file.size, what);
            file.data[at] = was;
        }
        free(file.data);
    }
    assert_true(with_coefficients > 500);
    print_message("streams: %u accepted, %u refused, %u of them needlessly\n", accepted, refused,
                  refused_wrongly);
    assert_true(accepted > 350 && refused > 200 && refused_wrongly < refused);
    decode_close(&rows);
    decode_close(&coefficients);
}

/* Both decoders ignore garbage after the last row. */
static void data_after_the_last_row_is_ignored(void **state)
{
    (void)state;
    need_agreement();
    static const struct made usual = {64, 48, JCS_RGB, JCS_YCbCr, 2, 2, 0};
    struct bytes file = make(&usual);
    unsigned char *longer = malloc(file.size + 300);
    assert_non_null(longer);
    struct decode *rows = open_decode(false, 1), *coefficients = open_decode(true, 1);
    for (unsigned cut = 0; cut < 3; cut++) {
        memcpy(longer, file.data, file.size);
        for (unsigned i = 0; i < 300; i++)
            longer[file.size - cut + i] = (unsigned char)(i % 3 ? next_random() : 0xff);
        compare(rows, coefficients, longer, file.size - cut + 300, "garbage behind");
        compare(rows, coefficients, longer, file.size - cut, "no end marker");
    }
    free(longer);
    free(file.data);
    decode_close(&rows);
    decode_close(&coefficients);
}

static int open_streams(void **state)
{
    (void)state;
    struct decode_options options;
    struct error err = {0};
    decode_options_default(&options);
    options.coefficients = options.streams = true;
    return decode_open(&streams, &options, &err) == STATUS_OK ? 0 : -1;
}

static int close_streams(void **state)
{
    (void)state;
    decode_close(&streams);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_library_agrees),
    cmocka_unit_test(pixels_equal_those_of_rows),
    cmocka_unit_test(other_files_are_not_offered),
    cmocka_unit_test(failures_equal_those_of_rows),
    cmocka_unit_test(data_after_the_last_row_is_ignored),
};
TEST_GROUP(coefficients, open_streams, close_streams)
