/* test_decode_common.h: decodes files from memory in strips and returns all results. */
#ifndef TEST_DECODE_COMMON_H
#define TEST_DECODE_COMMON_H

#include "runner.h"

#include "base/clock.h"
#include "decode/decode.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

static inline uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* Decodes in strips; the 5 padding bytes after each row must not change. */
static inline struct outcome decode_fd(struct decode *decode, int fd, const char *path,
                                       uint32_t strip)
{
    struct outcome got = {0};
    struct failure failure;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    const uint64_t size = (uint64_t)st.st_size;
    const struct blob blob = blob_of_range(fd, 0, size, size, clock_file_time(&st.st_mtim));
    got.reason = decode_begin(decode, &blob, path, &got.info, &failure);
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

static inline int file_of(const void *data, size_t size)
{
    int fd = memfd_create("picture", 0);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, 0), (ssize_t)size);
    return fd;
}

static inline struct outcome decode_bytes(struct decode *decode, const void *data, size_t size)
{
    int fd = file_of(data, size);
    struct outcome got = decode_fd(decode, fd, "picture.jpg", 7);
    close(fd);
    return got;
}

static inline enum reason reason_of(struct decode *decode, const void *data, size_t size)
{
    struct outcome got = decode_bytes(decode, data, size);
    free(got.pixels);
    return got.reason;
}

static inline struct decode *open_decode(const struct decode_options *options)
{
    struct decode_options usual;
    struct decode *decode;
    struct error err = {0};
    decode_options_default(&usual);
    assert_int_equal(decode_open(&decode, options ? options : &usual, &err), STATUS_OK);
    return decode;
}

#endif
