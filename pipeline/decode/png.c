/* png.c: PNG through libpng. Raw rows are converted here as docs/features.md says, because libpng's
 * conversions round differently (and can composite in linear light).
 *
 * RGB rows of 8 bits without transparency are decoded into the caller's memory. An interlaced
 * picture needs a buffer of all raw rows, counted in info.memory. libpng allocates what a chunk's
 * length declares; so only chunks of bounded size that pixels depend on are kept, and lengths past
 * the end of the file fail at once. Only little data is accepted after the last row: libpng would
 * inflate all of it. Colour profiles are read here, too. */
#include "decode/codec.h"
#include "decode/exif.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

/* The chunks before the picture's data must begin within the first INPUT_BUFFER bytes to be
 * found. */
#define ICCP_MAX (ICC_PROFILE_MAX + 1024)

struct png {
    png_structp read;
    png_infop info;
    struct input *input;
    struct failure *failure;
    bool short_of_data;
    uint64_t allowance; /* bytes that may still be read */
    uint32_t width, height, row;
    int depth, type;
    size_t raw_bytes; /* per row */
    uint8_t *raw;     /* one row, or all of them if interlaced */
    bool interlaced, direct, started;
    /* Transparency: of palette entries, or one transparent colour (samples of `depth` bits). */
    uint8_t palette[256][4];
    bool has_key, has_palette_alpha;
    uint16_t key[3];
    uint64_t profile_at; /* file offset of iCCP's content, or 0 */
    uint32_t profile_length;
};

static const char *library_name(void)
{
    return "libpng " PNG_LIBPNG_VER_STRING;
}

static void on_error(png_structp read, png_const_charp message)
{
    struct png *png = png_get_error_ptr(read);
    if (png->failure->reason == REASON_NONE) {
        if (strstr(message, "emory"))
            failure_set(png->failure, REASON_OUT_OF_MEMORY, "%s", message);
        else if (png->short_of_data)
            codec_short(png->input, png->failure, message);
        else if (strstr(message, "Not enough"))
            failure_set(png->failure, REASON_TRUNCATED, "%s", message);
        else if (strstr(message, "unhandled critical chunk"))
            failure_set(png->failure, REASON_UNSUPPORTED, "%s", message);
        else
            failure_set(png->failure, REASON_CORRUPT, "%s", message);
    }
    png_longjmp(read, 1);
}

static void on_warning(png_structp read, png_const_charp message)
{
    (void)read;
    (void)message;
}

static void on_read(png_structp read, png_bytep out, size_t size)
{
    struct png *png = png_get_io_ptr(read);
    if (size > png->allowance) {
        failure_set(png->failure, REASON_CORRUPT, "far more data than the picture has pixels");
        png_error(read, "too much data");
    }
    png->allowance -= size;
    if (input_read(png->input, out, size) == size)
        return;
    png->short_of_data = true;
    png_error(read, "the file ends early");
}

static void png_reset(void *state)
{
    struct png *png = state;
    png_destroy_read_struct(&png->read, &png->info, NULL);
    free(png->raw);
    *png = (struct png){.read = NULL};
}

/* Checks the header's size against --max-pixels first. The header must be the first chunk: libpng
 * skips unknown chunks, even before it. Other damage to the header is found by libpng. */
static enum reason check_size(struct png *png, const struct decode_options *options,
                              struct image_info *info, struct failure *failure)
{
    if (input_peek(png->input, 24) < 24)
        return REASON_NONE;
    const uint8_t *name = png->input->buffer + png->input->position + 12, *p = name + 4;
    if (memcmp(name, "IHDR", 4) != 0)
        return failure_set(failure, REASON_CORRUPT, "it does not begin with a header");
    const uint64_t width = big_endian(p, 4), height = big_endian(p + 4, 4);
    return width > 0 && width <= INT32_MAX && height > 0 && height <= INT32_MAX
               ? codec_set_size(info, width, height, options, failure)
               : REASON_NONE;
}

/* Scans the chunks before the first IDAT in the buffer: fails for lengths past the end of the file
 * before libpng allocates them; finds orientation and profile. */
static enum reason look_ahead(struct png *png, struct image_info *info, struct failure *failure)
{
    size_t have = input_peek(png->input, INPUT_BUFFER);
    const uint8_t *data = png->input->buffer + png->input->position;
    uint64_t at = 8;
    while (at + 8 <= have) {
        const uint32_t length = big_endian(data + at, 4);
        const uint8_t *name = data + at + 4;
        if (memcmp(name, "IDAT", 4) == 0)
            return REASON_NONE;
        if (length > 0x7fffffff)
            return failure_set(failure, REASON_CORRUPT, "a chunk of %u bytes", length);
        if (at + 12 + length > png->input->blob.bytes)
            return failure_set(failure, REASON_TRUNCATED,
                               "a chunk of %u bytes reaches beyond the end of the file", length);
        if (memcmp(name, "eXIf", 4) == 0 && at + 8 + length <= have)
            info->orientation = exif_orientation(name + 4, length);
        if (memcmp(name, "iCCP", 4) == 0 && png->profile_at == 0) {
            png->profile_at = at + 8;
            png->profile_length = length;
        }
        at += 12ull + length;
    }
    return REASON_NONE;
}

/* Inflates the profile in iCCP, after a name and a method; its first bytes have its size. NULL:
 * damaged, too large, or no memory. */
static uint8_t *inflate_profile(const uint8_t *chunk, size_t length, size_t *size, bool *no_memory)
{
    const uint8_t *name_end = memchr(chunk, 0, length < 80 ? length : 80);
    if (!name_end || (size_t)(name_end - chunk) + 2 > length || name_end[1] != 0)
        return NULL;
    uint8_t head[4];
    uint8_t *profile = NULL;
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)name_end + 2,
                       .avail_in = (uInt)(chunk + length - name_end - 2),
                       .next_out = head,
                       .avail_out = sizeof head};
    if (inflateInit(&stream) != Z_OK) {
        *no_memory = true;
        return NULL;
    }
    int code = inflate(&stream, Z_SYNC_FLUSH);
    if (stream.avail_out == 0)
        *size = big_endian(head, 4);
    if (code == Z_OK && *size > sizeof head && *size <= ICC_PROFILE_MAX) {
        profile = malloc(*size);
        *no_memory = !profile;
    }
    if (profile) {
        memcpy(profile, head, sizeof head);
        stream.next_out = profile + sizeof head;
        stream.avail_out = (uInt)(*size - sizeof head);
        code = inflate(&stream, Z_SYNC_FLUSH);
        if ((code != Z_OK && code != Z_STREAM_END) || stream.avail_out > 0) {
            free(profile);
            profile = NULL;
        }
    }
    *no_memory = *no_memory || code == Z_MEM_ERROR;
    inflateEnd(&stream);
    return profile;
}

/* Like libpng, ignores a profile with a wrong checksum. */
static enum reason read_profile(struct png *png, uint64_t *memory, struct failure *failure)
{
    size_t length = png->profile_length, size = 0;
    if (png->profile_at == 0 || length > ICCP_MAX)
        return REASON_NONE;
    uint8_t *chunk = malloc(length + 4), *profile = NULL;
    bool no_memory = !chunk;
    if (chunk && input_at(png->input, png->profile_at, chunk, length + 4) == length + 4) {
        const uint32_t sum = big_endian(chunk + length, 4);
        if (crc32(crc32(0, (const uint8_t *)"iCCP", 4), chunk, (uInt)length) == sum)
            profile = inflate_profile(chunk, length, &size, &no_memory);
    }
    free(chunk);
    *memory += length + (size <= ICC_PROFILE_MAX ? size : 0);
    if (no_memory)
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a colour profile");
    else if (png->input->error_number)
        codec_short(png->input, failure, "");
    else if (profile)
        colours_profile(png->input->colours, memory, profile, size,
                        png->type & PNG_COLOR_MASK_COLOR ? ICC_RGB : ICC_GREY, failure);
    free(profile);
    return failure->reason;
}

_Static_assert(sizeof(png_color) == 3, "three bytes: R, G, B");

static void read_palette(struct png *png)
{
    png_colorp colour = NULL;
    int count = 0;
    for (int i = 0; i < 256; i++)
        png->palette[i][3] = 255;
    png_get_PLTE(png->read, png->info, &colour, &count);
    for (int i = 0; i < count && i < 256; i++)
        memcpy(png->palette[i], &colour[i], 3);
}

static void read_transparency(struct png *png)
{
    png_bytep alpha = NULL;
    png_color_16p key = NULL;
    int count = 0;
    if (!png_get_tRNS(png->read, png->info, &alpha, &count, &key))
        return;
    if (png->type == PNG_COLOR_TYPE_PALETTE) {
        png->has_palette_alpha = alpha && count > 0;
        for (int i = 0; alpha && i < count && i < 256; i++)
            png->palette[i][3] = alpha[i];
    } else if (key) {
        png->has_key = true;
        bool grey = png->type == PNG_COLOR_TYPE_GRAY;
        png->key[0] = grey ? key->gray : key->red;
        png->key[1] = grey ? key->gray : key->green;
        png->key[2] = grey ? key->gray : key->blue;
    }
}

static enum reason png_begin(void *state, struct input *input, const struct decode_options *options,
                             struct image_info *info, struct failure *failure)
{
    struct png *png = state;
    *png = (struct png){.input = input, .failure = failure, .allowance = UINT64_MAX};
    if (check_size(png, options, info, failure) != REASON_NONE ||
        look_ahead(png, info, failure) != REASON_NONE)
        return failure->reason;
    png->read = png_create_read_struct(PNG_LIBPNG_VER_STRING, png, on_error, on_warning);
    png->info = png->read ? png_create_info_struct(png->read) : NULL;
    if (!png->info)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for libpng");
    if (setjmp(png_jmpbuf(png->read)))
        return failure->reason;
    png_set_read_fn(png->read, png, on_read);
    /* Keep only chunks that pixels depend on. */
    png_set_keep_unknown_chunks(png->read, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    static const png_byte unwanted[] =
        "cHRM\0gAMA\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0"
        "sRGB\0tEXt\0tIME\0zTXt\0bKGD\0hIST\0eXIf";
    png_set_keep_unknown_chunks(png->read, PNG_HANDLE_CHUNK_NEVER, unwanted,
                                (int)(sizeof unwanted / 5));
    png_set_user_limits(png->read, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png->read, 0); /* skipped chunks may have any length */
    png_set_benign_errors(png->read, 1);
    png_set_crc_action(png->read, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
    png_read_info(png->read, png->info);
    int interlace;
    png_get_IHDR(png->read, png->info, &png->width, &png->height, &png->depth, &png->type,
                 &interlace, NULL, NULL);
    if (png->type == PNG_COLOR_TYPE_PALETTE)
        read_palette(png);
    read_transparency(png);
    if (png->depth < 8)
        png_set_packing(png->read);
    png->interlaced = interlace != PNG_INTERLACE_NONE;
    if (png->interlaced)
        png_set_interlace_handling(png->read);
    /* The value after png_read_update_info, which allocates rows and must not be called yet. */
    png->raw_bytes =
        (size_t)png->width * png_get_channels(png->read, png->info) * (png->depth == 16 ? 2u : 1u);
    png->direct = !png->interlaced && png->type == PNG_COLOR_TYPE_RGB && png->depth == 8 &&
                  (!png->has_key || options->alpha == ALPHA_DROP);
    bool alpha = png->has_key || png->has_palette_alpha || (png->type & PNG_COLOR_MASK_ALPHA);
    info->width = png->width;
    info->height = png->height;
    info->channels = (uint8_t)((png->type & PNG_COLOR_MASK_COLOR ? 3 : 1) + (alpha ? 1 : 0));
    input->colours->alphas_wanted = alpha && !png->direct ? png->width : 0;
    if (options->icc && read_profile(png, &info->memory, failure) != REASON_NONE)
        return failure->reason;
    info->profile = colours_tell(input->colours, png->profile_at != 0);
    /* libpng's two filtered rows and inflate's window. */
    info->memory += 128u * 1024 + 3ull * png->raw_bytes +
                    (png->interlaced ? (uint64_t)png->raw_bytes * png->height : 0);
    return REASON_NONE;
}

/* Converts one raw row to RGB and alpha. */
static void convert_row(uint8_t *dst, const struct png *png, const uint8_t *src)
{
    uint8_t *alphas = png->input->colours->alphas;
    int bytes = png->depth == 16 ? 2 : 1;
    bool colour = (png->type & PNG_COLOR_MASK_COLOR) != 0;
    bool palette = png->type == PNG_COLOR_TYPE_PALETTE;
    bool alpha_channel = (png->type & PNG_COLOR_MASK_ALPHA) != 0;
    int colours = colour && !palette ? 3 : 1;
    int samples = colours + (alpha_channel ? 1 : 0);
    const uint32_t max = (1u << png->depth) - 1;
    for (uint32_t x = 0; x < png->width; x++, dst += 3) {
        uint32_t v[4] = {0}, a = 255;
        for (int s = 0; s < samples; s++, src += bytes)
            v[s] = bytes == 2 ? (uint32_t)src[0] << 8 | src[1] : src[0];
        if (palette) {
            const uint8_t *entry = png->palette[v[0] & 255];
            memcpy(dst, entry, 3);
            a = entry[3];
        } else {
            if (colours == 1) {
                if (alpha_channel)
                    v[3] = v[1];
                v[1] = v[2] = v[0];
            }
            if (alpha_channel)
                a = pixel_scale(v[3], max);
            else if (png->has_key && v[0] == png->key[0] && v[1] == png->key[1] &&
                     v[2] == png->key[2])
                a = 0;
            for (int i = 0; i < 3; i++)
                dst[i] = pixel_scale(v[i], max);
        }
        if (alphas)
            alphas[x] = (uint8_t)a;
    }
}

/* Reads one row from libpng. With the last row it inflates all remaining data, which may be a
 * thousand times the file: the input is limited to twice the uncompressed size of a row. */
static void read_row(struct png *png, uint8_t *out, bool last)
{
    if (last)
        png->allowance = 2 * (uint64_t)png->raw_bytes + (64u << 10);
    png_read_row(png->read, out, NULL);
}

/* Reads all passes of an interlaced picture into `raw`. */
static enum reason read_interlaced(struct png *png, struct failure *failure)
{
    png->raw = calloc(png->height, png->raw_bytes);
    if (!png->raw)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for an interlaced picture");
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
        for (uint32_t y = 0; y < png->height; y++)
            read_row(png, png->raw + y * png->raw_bytes,
                     pass == PNG_INTERLACE_ADAM7_PASSES - 1 && y == png->height - 1);
    }
    return REASON_NONE;
}

static enum reason png_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                            struct failure *failure)
{
    struct png *png = state;
    png->failure = failure;
    if (setjmp(png_jmpbuf(png->read)))
        return failure->reason;
    if (!png->started) {
        png->started = true;
        png_read_update_info(png->read, png->info);
        if (png->interlaced) {
            if (read_interlaced(png, failure) != REASON_NONE)
                return failure->reason;
        } else if (!png->direct) {
            png->raw = malloc(png->raw_bytes);
            if (!png->raw)
                return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a row");
        }
    }
    for (uint32_t i = 0; i < rows; i++, png->row++) {
        uint8_t *out = dst + i * stride;
        bool last = png->row == png->height - 1;
        if (png->direct) {
            read_row(png, out, last);
        } else if (png->interlaced) {
            convert_row(out, png, png->raw + png->row * png->raw_bytes);
        } else {
            read_row(png, png->raw, last);
            convert_row(out, png, png->raw);
        }
        colours_finish(png->input->colours, out, out, png->width);
    }
    return REASON_NONE;
}

const struct codec codec_png = {
    .library = library_name,
    .state_bytes = sizeof(struct png),
    .begin = png_begin,
    .rows = png_rows,
    .reset = png_reset,
};
