/* fuzz_decode.c: the decoders, through the interface that ingest uses.
 *
 * Each input (one in four, or all if fuzz_thorough) is decoded twice by one decoder, in different
 * strips and into memory with other contents; a JPEG, whose library keeps tables, is decoded after
 * another JPEG. Outcome and pixels must be the same, so that nothing depends on earlier state. The
 * coefficients of a JPEG, if available, must give the same pixels, and so must its stream if the
 * plain C decoder accepts it. If the sanitizer counts allocations, the codec must not exceed the
 * memory that it announced. */
#include "fuzz.h"

#include "base/clock.h"
#include "base/hash.h"
#include "decode/codec.h"
#include "decode/decode.h"
#include "decode/stream.h"

#include <stdio.h> /* jpeglib.h needs FILE */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <zlib.h>

/* Large enough for several tiles, strips and blocks, but small enough to be fast. */
#define MOST_PIXELS (1u << 12)
#define MOST_SCANS  10u
/* Limit for the memory that a codec allocates between its header and its first row, which must not
 * grow with the picture. */
#define MOST_FOR_HEADER (4u << 20)
/* libtiff adds missing offsets and sizes for up to a million strips, and keeps all tags. */
#define MOST_FOR_TIFF (40u << 20)
/* A colour transform has a limit of its own. */
#define MOST_FOR_ICC (44u << 20)
/* Allowance for rounding, tables and similar memory that info.memory does not include. */
#define MEMORY_SLACK (1u << 20)

/* --- allocations ----------------------------------------------------------------------------- */

#if defined __SANITIZE_ADDRESS__
#define COUNTED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define COUNTED 1
#endif
#endif

#ifdef COUNTED
/* From <sanitizer/allocator_interface.h>, which gcc does not install everywhere. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *at);

static int64_t held, most_held;
static bool ours; /* the current allocations are not made by the codec */

static void on_malloc(const volatile void *at, size_t size)
{
    (void)at;
    held += ours ? 0 : (int64_t)size;
    if (held > most_held)
        most_held = held;
}

static void on_free(const volatile void *at)
{
    if (at && !ours)
        held -= (int64_t)__sanitizer_get_allocated_size(at);
}

static void count_codec(bool yes)
{
    ours = !yes;
}

static void count_from_here(void)
{
    static bool installed;
    if (!installed)
        fuzz_check(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
    installed = true;
    held = most_held = 0;
}

static void check_held(uint64_t most)
{
    fuzz_check(most_held <= (int64_t)most);
}
#else
static void count_codec(bool yes)
{
    (void)yes;
}

static void count_from_here(void)
{
}

static void check_held(uint64_t most)
{
    (void)most;
}
#endif

/* --- one decoding ---------------------------------------------------------------------------- */

struct outcome {
    enum reason reason;
    struct image_info info;
    uint64_t pixels[2], digest[2];
};

/* Decodes all rows in strips given by `choice`; bytes after each row must not change. */
static enum reason all_rows(struct decode *decode, const struct image_info *info, uint8_t fill,
                            struct fuzz_choice *choice, struct murmur3 *hash,
                            struct failure *failure)
{
    size_t row = 3 * (size_t)info->out_width, stride = row + fuzz_choose(choice, 9);
    uint32_t height = info->out_height, most = 1 + fuzz_choose(choice, height);
    count_codec(false);
    uint8_t *strip = malloc(stride * most);
    count_codec(true);
    fuzz_check(strip);
    enum reason reason = REASON_NONE;
    for (uint32_t y = 0; y < height && reason == REASON_NONE;) {
        uint32_t rows = 1 + fuzz_choose(choice, most);
        rows = rows < height - y ? rows : height - y;
        memset(strip, fill, stride * rows);
        reason = decode_rows(decode, strip, stride, rows, failure);
        for (uint32_t i = 0; i < rows && reason == REASON_NONE; i++) {
            for (size_t pad = row; pad < stride; pad++)
                fuzz_check(strip[i * stride + pad] == fill);
            murmur3_update(hash, strip + i * stride, row);
        }
        y += rows;
    }
    count_codec(false);
    free(strip);
    count_codec(true);
    return reason;
}

/* Makes the pixels from DCT coefficients. */
static enum reason all_coefficients(struct decode *decode, const struct image_info *info,
                                    uint8_t fill, struct murmur3 *hash, struct failure *failure)
{
    const struct dct_layout *layout = &info->dct;
    const size_t bytes = (size_t)dct_bytes(layout);
    const size_t pixel_bytes = (size_t)info->out_width * info->out_height * 3;
    fuzz_check(layout->width == info->out_width && layout->height == info->out_height);
    count_codec(false);
    uint8_t *coefficients = aligned_alloc(16, (bytes + 15) / 16 * 16);
    uint8_t *pixels = malloc(pixel_bytes), *samples = malloc(bytes / 2);
    count_codec(true);
    fuzz_check(coefficients && pixels && samples);
    memset(coefficients, fill, bytes);
    enum reason reason = decode_coefficients(decode, coefficients, failure);
    if (reason == REASON_NONE) {
        dct_pixels(pixels, samples, coefficients, layout);
        murmur3_update(hash, pixels, pixel_bytes);
    }
    count_codec(false);
    free(coefficients);
    free(pixels);
    free(samples);
    count_codec(true);
    return reason;
}

static void check_info(const struct image_info *info, const struct decode_options *options)
{
    fuzz_check(info->width > 0 && info->height > 0 && info->out_width > 0 && info->out_height > 0);
    fuzz_check((uint64_t)info->width * info->height <= options->max_pixels);
    fuzz_check(info->out_width <= info->width && info->out_height <= info->height);
    fuzz_check(info->orientation >= 1 && info->orientation <= 8);
    fuzz_check(info->channels >= 1 && info->channels <= 4);
    fuzz_check(memchr(info->format, 0, sizeof info->format) && info->format[0]);
}

static void decode_once(struct outcome *out, struct decode *decode, int fd, const struct stat *st,
                        const struct decode_options *options, uint8_t fill,
                        struct fuzz_choice *choice)
{
    struct failure failure;
    struct murmur3 hash;
    memset(out, 0, sizeof *out);
    murmur3_init(&hash);
    const uint64_t size = (uint64_t)st->st_size;
    const struct blob blob = blob_of_range(fd, 0, size, size, clock_file_time(&st->st_mtim));
    count_from_here();
    out->reason = decode_begin(decode, &blob, "x.jpg", &out->info, &failure);
    bool tiff = strcmp(out->info.format, "tiff") == 0;
    check_held((tiff ? MOST_FOR_TIFF : MOST_FOR_HEADER) + (options->icc ? MOST_FOR_ICC : 0));
    fuzz_check(out->reason == failure.reason);
    if (out->reason == REASON_NONE) {
        check_info(&out->info, options);
        const bool rows = out->info.dct.colour == DCT_NONE;
        fuzz_check(rows || options->coefficients);
        out->reason = rows ? all_rows(decode, &out->info, fill, choice, &hash, &failure)
                           : all_coefficients(decode, &out->info, fill, &hash, &failure);
        /* Hidden frames may need more memory; older versions of libjxl cannot refuse them. */
        if (strcmp(out->info.format, "jxl") != 0)
            check_held(out->info.memory + MEMORY_SLACK);
        if (out->reason == REASON_NONE)
            out->reason = decode_end(decode, out->digest, &failure);
        if (out->reason != REASON_NONE)
            decode_abort(decode);
    }
    murmur3_final(&hash, out->pixels);
    fuzz_check(out->reason == failure.reason && out->reason < REASON_COUNT);
    fuzz_check(out->reason == REASON_NONE || failure.message[0]);
    fuzz_check(memchr(failure.message, 0, sizeof failure.message));
    /* A generated file cannot change, vanish or be unreadable. */
    fuzz_check(out->reason != REASON_CHANGED && out->reason != REASON_UNREADABLE &&
               out->reason != REASON_VANISHED);
}

/* Makes a JPEG with its own tables, which must not affect the next file. */
static void draw_another(unsigned char **data, unsigned long *size)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, data, size);
    info.image_width = info.image_height = 16;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 7, TRUE);
    info.optimize_coding = TRUE;
    info.restart_interval = 1;
    jpeg_start_compress(&info, TRUE);
    JSAMPLE row[16 * 3];
    while (info.next_scanline < info.image_height) {
        for (unsigned i = 0; i < sizeof row; i++)
            row[i] = (JSAMPLE)(i * 37 + info.next_scanline * 11);
        jpeg_write_scanlines(&info, (JSAMPARRAY) & (JSAMPROW){row}, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
}

static void decode_another(struct decode *decode, const struct decode_options *options)
{
    static int fd = -1;
    if (fd < 0) {
        unsigned char *data = NULL;
        unsigned long size = 0;
        draw_another(&data, &size);
        fd = memfd_create("another", MFD_CLOEXEC);
        fuzz_check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        free(data);
    }
    struct stat st;
    struct outcome outcome;
    struct fuzz_choice choice = {1};
    fuzz_check(fstat(fd, &st) == 0);
    decode_once(&outcome, decode, fd, &st, options, 0x55, &choice);
    fuzz_check(outcome.reason == REASON_NONE);
}

/* If the stream decoder accepts a file, so does the library, with the same pixels. */
static void check_stream(const struct outcome *rows, int fd, const struct stat *st,
                         struct decode_options options)
{
    struct decode *decode;
    struct error err;
    struct image_info info;
    struct failure failure;
    const uint64_t size = (uint64_t)st->st_size;
    const struct blob blob = blob_of_range(fd, 0, size, size, clock_file_time(&st->st_mtim));
    options.coefficients = options.streams = true;
    fuzz_check(decode_open(&decode, &options, &err) == STATUS_OK);
    if (decode_begin(decode, &blob, "x.jpg", &info, &failure) != REASON_NONE)
        goto out;
    if (info.stream_bytes > 0) {
        const size_t bytes = (size_t)dct_bytes(&info.dct);
        const size_t pixel_bytes = (size_t)info.out_width * info.out_height * 3;
        uint8_t *payload = aligned_alloc(16, (size_t)(info.stream_bytes + 15) / 16 * 16);
        uint8_t *coefficients = aligned_alloc(16, (bytes + 15) / 16 * 16);
        uint8_t *pixels = malloc(pixel_bytes), *samples = malloc(bytes / 2);
        fuzz_check(payload && coefficients && pixels && samples);
        if (decode_stream(decode, payload) && stream_coefficients(coefficients, payload)) {
            struct murmur3 hash;
            uint64_t digest[2];
            dct_pixels(pixels, samples, coefficients, &info.dct);
            murmur3_init(&hash);
            murmur3_update(&hash, pixels, pixel_bytes);
            murmur3_final(&hash, digest);
            fuzz_check(rows->reason == REASON_NONE);
            fuzz_check(memcmp(digest, rows->pixels, sizeof digest) == 0);
        }
        free(payload);
        free(coefficients);
        free(pixels);
        free(samples);
    }
    decode_abort(decode);
out:
    decode_close(&decode);
}

/* Decodes a file by its coefficients; outcome and pixels must equal those of decoding rows. */
static void check_coefficients(const struct outcome *rows, int fd, const struct stat *st,
                               struct decode_options options, struct fuzz_choice *choice)
{
    static int agree = -1;
    struct decode *decode;
    struct error err;
    struct outcome outcome;
    if (agree < 0)
        agree = decode_coefficients_agree();
    if (!agree)
        return;
    options.coefficients = true;
    fuzz_check(decode_open(&decode, &options, &err) == STATUS_OK);
    decode_once(&outcome, decode, fd, st, &options, 0xa5, choice);
    decode_close(&decode);
    fuzz_check(outcome.reason == rows->reason);
    if (rows->reason == REASON_NONE)
        fuzz_check(memcmp(outcome.pixels, rows->pixels, sizeof outcome.pixels) == 0);
    check_stream(rows, fd, st, options);
}

void fuzz_decode(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    int format = format_recognise(data, size < FORMAT_BYTES ? size : FORMAT_BYTES);
    const char *name = format < 0 ? "" : format_at((unsigned)format)->name;
    bool is_jpeg = strcmp(name, "jpeg") == 0;
    if (strcmp(target->name, "decode") != 0 && strcmp(target->name, name) != 0)
        return;
    struct fuzz_choice choice = fuzz_choice(data, size);
    struct decode_options options = {.alpha = (enum alpha_mode)fuzz_choose(&choice, 3),
                                     .max_pixels = MOST_PIXELS,
                                     .max_scans = MOST_SCANS,
                                     .scale = 1u << fuzz_choose(&choice, 4)};
    options.icc = decode_icc_library() && fuzz_choose(&choice, 2) == 1;
    bool again = fuzz_choose(&choice, 4) == 0 || fuzz_thorough;
    struct stat st;
    struct error err;
    struct decode *decode;
    int fd = fuzz_file(data, size);
    fuzz_check(fstat(fd, &st) == 0);
    fuzz_check(decode_open(&decode, &options, &err) == STATUS_OK);
    struct outcome first, second;
    decode_once(&first, decode, fd, &st, &options, 0x00, &choice);
    if (again && is_jpeg)
        decode_another(decode, &options);
    if (again)
        decode_once(&second, decode, fd, &st, &options, 0xff, &choice);
    decode_close(&decode);
    fuzz_check(!again || first.reason == second.reason);
    if (again && is_jpeg)
        check_coefficients(&first, fd, &st, options, &choice);
    if (first.reason != REASON_NONE)
        return;
    struct murmur3 whole;
    uint64_t digest[2];
    murmur3_init(&whole);
    murmur3_update(&whole, data, size);
    murmur3_final(&whole, digest);
    fuzz_check(memcmp(digest, first.digest, sizeof digest) == 0);
    if (again) {
        fuzz_check(memcmp(&first.info, &second.info, sizeof first.info) == 0);
        fuzz_check(memcmp(first.pixels, second.pixels, sizeof first.pixels) == 0);
        fuzz_check(memcmp(digest, second.digest, sizeof digest) == 0);
    }
}

/* Corrects the CRC of every complete chunk of a PNG. */
void fuzz_seal_image(uint8_t *data, size_t size)
{
    if (size < 8 || memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0)
        return;
    for (size_t at = 8; size - at >= 12;) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12)
            return;
        uLong crc = crc32(0, data + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++)
            data[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}
