/* picture_file.c: decodes a picture as an ingest does, and writes BMP files. */
#include "cli/picture_file.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/path.h"
#include "cli/sink.h"
#include "decode/decode.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BMP_HEADER 54u

/* Decodes an opened file; stores a failure in *failure. */
static enum status decode_all(struct picture_file *out, struct decode *decode,
                              const struct blob *blob, const char *path, struct failure *failure,
                              struct error *err)
{
    struct image_info info;
    uint64_t digest[2];
    if (decode_begin(decode, blob, path, &info, failure) != REASON_NONE)
        return STATUS_OK;
    const size_t stride = (size_t)info.out_width * 3;
    out->pixels = malloc(stride * info.out_height);
    enum status status = STATUS_OK;
    if (!out->pixels)
        status = error_memory(err, stride * info.out_height, "a picture");
    if (status != STATUS_OK ||
        decode_rows(decode, out->pixels, stride, info.out_height, failure) != REASON_NONE ||
        decode_end(decode, digest, failure) != REASON_NONE)
        decode_abort(decode);
    out->width = info.out_width;
    out->height = info.out_height;
    out->orientation = info.orientation;
    return status;
}

enum status picture_file_read(struct picture_file *out, const char *path, struct error *err)
{
    *out = (struct picture_file){0};
    char shown[256];
    path_for_message(shown, sizeof shown, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st = {0};
    if (fd < 0)
        return error_errno(err, errno == ENOENT || errno == ENOTDIR ? STATUS_USAGE : STATUS_FAILED,
                           errno, "open", "cannot read the image %s", shown);
    struct decode *decode = NULL;
    struct failure failure = {.reason = REASON_NONE};
    struct decode_options options;
    decode_options_default(&options);
    enum status status = STATUS_OK;
    if (fstat(fd, &st) != 0)
        status = error_errno(err, STATUS_FAILED, errno, "fstat", "cannot read the image %s", shown);
    else if (!S_ISREG(st.st_mode))
        status = error_set(err, STATUS_FAILED, "%s is not a regular file", shown);
    if (status == STATUS_OK)
        status = decode_open(&decode, &options, err);
    struct blob blob = blob_of_file(fd, (uint64_t)st.st_size, clock_file_time(&st.st_mtim));
    if (status == STATUS_OK)
        status = decode_all(out, decode, &blob, path, &failure, err);
    if (status == STATUS_OK && failure.reason != REASON_NONE)
        status = error_set(err, STATUS_FAILED, "cannot decode %s: %s (%s)", shown, failure.message,
                           reason_name(failure.reason));
    decode_close(&decode);
    blob_close(&blob);
    if (status != STATUS_OK)
        picture_file_clear(out);
    return status;
}

void picture_file_clear(struct picture_file *picture)
{
    free(picture->pixels);
    *picture = (struct picture_file){0};
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* The stored pixel at (x, y) of the upright picture. */
static const uint8_t *upright_pixel(const struct picture_file *picture, uint32_t x, uint32_t y)
{
    const uint8_t orientation = picture->orientation;
    const bool swapped = orientation >= 5;
    uint32_t column = swapped ? y : x, row = swapped ? x : y;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = picture->width - 1 - column;
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        row = picture->height - 1 - row;
    return picture->pixels + ((size_t)row * picture->width + column) * 3;
}

enum status picture_file_write_bmp(const char *path, const struct picture_file *picture,
                                   struct error *err)
{
    const bool swapped = picture->orientation >= 5;
    const uint32_t width = swapped ? picture->height : picture->width;
    const uint32_t height = swapped ? picture->width : picture->height;
    const uint64_t stride = ((uint64_t)width * 3 + 3) / 4 * 4;
    if (stride * height > UINT32_MAX - BMP_HEADER)
        return error_set(err, STATUS_FAILED, "an image of %u x %u pixels is too large for BMP",
                         width, height);
    uint8_t header[BMP_HEADER] = {'B', 'M'};
    put_u32(header + 2, (uint32_t)(BMP_HEADER + stride * height));
    put_u32(header + 10, BMP_HEADER);
    put_u32(header + 14, 40); /* BITMAPINFOHEADER */
    put_u32(header + 18, width);
    put_u32(header + 22, height); /* positive: bottom row first */
    header[26] = 1;               /* planes */
    header[28] = 24;              /* bits */
    put_u32(header + 34, (uint32_t)(stride * height));
    uint8_t *row = calloc(1, stride);
    if (!row)
        return error_memory(err, stride, "a row of a BMP");
    struct sink sink;
    enum status status = sink_open(&sink, path, err);
    if (status == STATUS_OK) {
        sink_write(&sink, header, sizeof header);
        for (uint32_t y = height; y-- > 0 && !sink.closed;) {
            for (uint32_t x = 0; x < width; x++) {
                const uint8_t *rgb = upright_pixel(picture, x, y);
                for (int c = 0; c < 3; c++)
                    row[3 * (size_t)x + (size_t)c] = rgb[2 - c];
            }
            sink_write(&sink, row, stride);
        }
        status = sink_close(&sink, true, err);
    }
    free(row);
    return status;
}
