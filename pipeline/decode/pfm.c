/* pfm.c: Portable FloatMap, as Paul Debevec describes it: "PF" (RGB) or "Pf" (grey), width, height
 * and scale as text, then 32-bit floats, bottom row first; a negative scale says little-endian.
 *
 * 0.0 to 1.0 become 0 to 255, rounded half up; values outside are clamped, NaN is 0. The scale's
 * magnitude is ignored, as by other readers. Rows are read at their offsets. */
#include "decode/codec.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16384 }; /* pixels converted at a time */

struct pfm {
    struct input *input;
    uint32_t width, height, row, samples;
    bool little;
    uint64_t offset;
    uint8_t piece[PIECE * 12];
};

/* Reads the next word of the header and the one blank after it; false if there is none. */
static bool read_word(char *word, size_t room, struct input *input)
{
    size_t length = 0;
    int c = input_byte(input);
    while (is_blank(c))
        c = input_byte(input);
    for (; c >= 0 && !is_blank(c) && length + 1 < room; c = input_byte(input))
        word[length++] = (char)c;
    word[length] = '\0';
    return is_blank(c);
}

static bool read_size(uint32_t *out, const char *word)
{
    if (strspn(word, "0123456789") != strlen(word))
        return false;
    unsigned long long value = strtoull(word, NULL, 10);
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

static enum reason pfm_begin(void *state, struct input *input, const struct decode_options *options,
                             struct image_info *info, struct failure *failure)
{
    struct pfm *pfm = state;
    char magic[8], width[16], height[16], scale[32];
    pfm->input = input;
    pfm->row = 0;
    if (!read_word(magic, sizeof magic, input) || !read_word(width, sizeof width, input) ||
        !read_word(height, sizeof height, input) || !read_word(scale, sizeof scale, input))
        return codec_short(input, failure, "the header is incomplete");
    if (strspn(scale, "0123456789+-.eE") != strlen(scale) || !read_size(&pfm->width, width) ||
        !read_size(&pfm->height, height))
        return failure_set(failure, REASON_CORRUPT, "the header has no size and scale");
    if (codec_set_size(info, pfm->width, pfm->height, options, failure) != REASON_NONE)
        return failure->reason;
    pfm->samples = magic[1] == 'F' ? 3 : 1;
    pfm->little = scale[0] == '-';
    pfm->offset = input->total - (input->end - input->position);
    if (pfm->offset + 4ull * pfm->samples * pfm->width * pfm->height > input->blob.bytes)
        return failure_set(failure, REASON_TRUNCATED, "the file ends early");
    info->channels = (uint8_t)pfm->samples;
    return REASON_NONE;
}

static uint8_t sample(const uint8_t *p, bool little)
{
    const uint32_t bits = little ? little_endian(p, 4) : big_endian(p, 4);
    float v;
    memcpy(&v, &bits, sizeof v);
    if (!(v > 0)) /* also false for NaN */
        return 0;
    return v >= 1 ? 255 : (uint8_t)((double)v * 255 + 0.5);
}

static enum reason pfm_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                            struct failure *failure)
{
    struct pfm *pfm = state;
    uint64_t pixel = 4ull * pfm->samples;
    for (uint32_t i = 0; i < rows; i++, pfm->row++, dst += stride) {
        uint64_t at = pfm->offset + (pfm->height - 1 - pfm->row) * pixel * pfm->width;
        for (uint32_t x = 0; x < pfm->width; x += PIECE) {
            uint32_t count = pfm->width - x < PIECE ? pfm->width - x : PIECE;
            size_t bytes = (size_t)(count * pixel);
            if (input_at(pfm->input, at + x * pixel, pfm->piece, bytes) != bytes) {
                if (pfm->input->error_number)
                    return codec_short(pfm->input, failure, "");
                return failure_set(failure, REASON_TRUNCATED, "the file ends early");
            }
            for (uint32_t p = 0; p < count; p++) {
                for (uint32_t c = 0; c < 3; c++)
                    dst[3 * ((size_t)x + p) + c] = sample(
                        pfm->piece + pixel * p + (pfm->samples == 3 ? 4 * c : 0), pfm->little);
            }
        }
    }
    return REASON_NONE;
}

const struct codec codec_pfm = {
    .state_bytes = sizeof(struct pfm),
    .begin = pfm_begin,
    .rows = pfm_rows,
};
