/* pnm.c: Netpbm's PBM, PGM, PPM (plain and raw) and PAM, after its manual pages.
 *
 * Read sequentially through a small buffer. Samples with maxval m up to 65535 become (v * 255 + m /
 * 2) / m, which for 255 and 65535 equals the other formats. A sample above the maxval is an error.
 * Only the first of several pictures in a file is read. */
#include "decode/codec.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 49152 }; /* bytes; a multiple of every pixel's size */

struct pnm {
    struct input *input;
    uint32_t width, height, depth, maxval;
    bool plain, bitmap; /* plain: decimal text; bitmap: PBM, 1 is black */
    uint8_t piece[PIECE];
};

/* --- words ----------------------------------------------------------------------------------- */

/* The first byte that is not a blank or in a comment, or -1. */
static int skip_blanks(struct input *input)
{
    int c = input_byte(input);
    while (is_blank(c) || c == '#') {
        if (c == '#') {
            while (c >= 0 && c != '\n' && c != '\r')
                c = input_byte(input);
        } else {
            c = input_byte(input);
        }
    }
    return c;
}

/* Reads a decimal number and the one byte after it. */
static enum reason read_number(uint32_t *out, struct input *input, struct failure *failure)
{
    int c = skip_blanks(input);
    uint64_t value = 0;
    if (c < 0)
        return codec_short(input, failure, "the file ends early");
    if (c < '0' || c > '9')
        return failure_set(failure, REASON_CORRUPT, "a number is missing");
    for (; c >= '0' && c <= '9'; c = input_byte(input)) {
        value = 10 * value + (uint64_t)(c - '0');
        if (value > UINT32_MAX)
            return failure_set(failure, REASON_CORRUPT, "a number that is too large");
    }
    if (c >= 0 && !is_blank(c) && c != '#')
        return failure_set(failure, REASON_CORRUPT, "a number is not followed by white space");
    if (c == '#')
        input->position--;
    *out = (uint32_t)value;
    return input->error_number ? codec_short(input, failure, "") : REASON_NONE;
}

/* --- headers --------------------------------------------------------------------------------- */

static enum reason read_pnm_header(struct pnm *pnm, int kind, struct failure *failure)
{
    pnm->plain = kind <= 3;
    pnm->bitmap = kind == 1 || kind == 4;
    pnm->depth = kind == 3 || kind == 6 ? 3 : 1;
    pnm->maxval = 1;
    if (read_number(&pnm->width, pnm->input, failure) != REASON_NONE ||
        read_number(&pnm->height, pnm->input, failure) != REASON_NONE)
        return failure->reason;
    return pnm->bitmap ? REASON_NONE : read_number(&pnm->maxval, pnm->input, failure);
}

/* Reads a line without its end, truncated at `room`; false at the end of the file. */
static bool read_line(struct input *input, char *line, size_t room)
{
    size_t length = 0;
    int c;
    while ((c = input_byte(input)) >= 0 && c != '\n') {
        if (length + 1 < room && c != '\r')
            line[length++] = (char)c;
    }
    line[length] = '\0';
    return c >= 0;
}

static enum reason read_pam_header(struct pnm *pnm, struct failure *failure)
{
    static const char *const names[] = {"WIDTH", "HEIGHT", "DEPTH", "MAXVAL"};
    uint32_t *const values[] = {&pnm->width, &pnm->height, &pnm->depth, &pnm->maxval};
    char line[256], word[32];
    pnm->plain = pnm->bitmap = false;
    pnm->width = pnm->height = pnm->depth = pnm->maxval = 0;
    while (read_line(pnm->input, line, sizeof line)) {
        const char *at = line + strspn(line, " \t");
        size_t length = strcspn(at, " \t");
        if (*at == '\0' || *at == '#')
            continue;
        if (length >= sizeof word)
            return failure_set(failure, REASON_CORRUPT, "an unknown line in the header");
        memcpy(word, at, length);
        word[length] = '\0';
        at += length;
        at += strspn(at, " \t");
        if (strcmp(word, "ENDHDR") == 0)
            return pnm->depth >= 1 && pnm->depth <= 4
                       ? REASON_NONE
                       : failure_set(failure, REASON_UNSUPPORTED, "%u samples per pixel",
                                     pnm->depth);
        if (strcmp(word, "TUPLTYPE") == 0) {
            if (strncmp(at, "CMYK", 4) == 0)
                return failure_set(failure, REASON_UNSUPPORTED, "tuples of CMYK");
            continue;
        }
        size_t i = 0;
        while (i < 4 && strcmp(word, names[i]) != 0)
            i++;
        char *end;
        unsigned long long value = strtoull(at, &end, 10);
        if (i == 4 || *at < '0' || *at > '9' || end[strspn(end, " \t")] || value > UINT32_MAX)
            return failure_set(failure, REASON_CORRUPT, "an unknown line in the header");
        *values[i] = (uint32_t)value;
    }
    return codec_short(pnm->input, failure, "the file ends within the header");
}

static uint32_t sample_bytes(const struct pnm *pnm)
{
    return pnm->maxval > 255 ? 2 : 1;
}

static enum reason pnm_begin(void *state, struct input *input, const struct decode_options *options,
                             struct image_info *info, struct failure *failure)
{
    struct pnm *pnm = state;
    char magic[2];
    pnm->input = input;
    input_read(input, magic, 2);
    int kind = magic[1] - '0';
    if (kind == 7 && input_peek(input, 1) && input->buffer[input->position] != '\n')
        return failure_set(failure, REASON_UNSUPPORTED, "a thumbnail of xv, or not a PAM");
    if ((kind == 7 ? read_pam_header(pnm, failure) : read_pnm_header(pnm, kind, failure)) !=
        REASON_NONE)
        return failure->reason;
    if (pnm->maxval == 0 || pnm->maxval > 65535)
        return failure_set(failure, REASON_CORRUPT, "a maxval of %u", pnm->maxval);
    if (codec_set_size(info, pnm->width, pnm->height, options, failure) != REASON_NONE)
        return failure->reason;
    uint64_t left = input->blob.bytes - (input->total - (input->end - input->position));
    uint64_t row = kind == 4 ? ((uint64_t)pnm->width + 7) / 8
                             : (uint64_t)pnm->width * pnm->depth * sample_bytes(pnm);
    if (!pnm->plain && row * pnm->height > left)
        return failure_set(failure, REASON_TRUNCATED, "the file ends early");
    info->channels = (uint8_t)pnm->depth;
    return REASON_NONE;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Reads a digit of a plain PBM: blanks between them are optional. */
static enum reason read_bit(uint32_t *out, struct input *input, struct failure *failure)
{
    int c = skip_blanks(input);
    if (c < 0)
        return codec_short(input, failure, "the file ends early");
    if (c != '0' && c != '1')
        return failure_set(failure, REASON_CORRUPT, "neither 0 nor 1");
    *out = (uint32_t)(c - '0');
    return REASON_NONE;
}

static enum reason over_maxval(const struct pnm *pnm, uint32_t v, struct failure *failure)
{
    return failure_set(failure, REASON_CORRUPT, "a sample of %u with a maxval of %u", v,
                       pnm->maxval);
}

/* Converts the samples v of a pixel. */
static void put_pixel(uint8_t *dst, const struct pnm *pnm, const uint32_t *v)
{
    uint32_t a = pnm->depth % 2 ? 255 : pixel_scale(v[pnm->depth - 1], pnm->maxval);
    uint8_t colour = pixel_scale(v[0], pnm->maxval);
    for (uint32_t c = 0; c < 3; c++) {
        if (c > 0 && pnm->depth >= 3)
            colour = pixel_scale(v[c], pnm->maxval);
        dst[c] = pixel_over(pnm->bitmap ? 255u - colour : colour, a, pnm->input->colours->mode);
    }
}

static enum reason read_plain_row(uint8_t *dst, struct pnm *pnm, struct failure *failure)
{
    for (uint32_t x = 0; x < pnm->width; x++, dst += 3) {
        uint32_t v[4] = {0};
        for (uint32_t s = 0; s < pnm->depth; s++) {
            enum reason reason = pnm->bitmap ? read_bit(&v[s], pnm->input, failure)
                                             : read_number(&v[s], pnm->input, failure);
            if (reason != REASON_NONE)
                return reason;
            if (v[s] > pnm->maxval)
                return over_maxval(pnm, v[s], failure);
        }
        put_pixel(dst, pnm, v);
    }
    return REASON_NONE;
}

static enum reason read_raw_row(uint8_t *dst, struct pnm *pnm, struct failure *failure)
{
    uint32_t bytes = sample_bytes(pnm), size = pnm->depth * bytes, most = PIECE / size;
    for (uint32_t x = 0; x < pnm->width;) {
        uint32_t count = pnm->width - x < most ? pnm->width - x : most;
        size_t want = (size_t)count * size;
        if (pnm->bitmap)
            want = (count + 7) / 8;
        if (input_read(pnm->input, pnm->piece, want) != want)
            return codec_short(pnm->input, failure, "the file ends early");
        const uint8_t *src = pnm->piece;
        for (uint32_t i = 0; i < count; i++, dst += 3) {
            uint32_t v[4] = {0};
            if (pnm->bitmap)
                v[0] = src[i / 8] >> (7 - i % 8) & 1;
            for (uint32_t s = 0; s < pnm->depth && !pnm->bitmap; s++, src += bytes) {
                v[s] = bytes == 2 ? (uint32_t)src[0] << 8 | src[1] : src[0];
                if (v[s] > pnm->maxval)
                    return over_maxval(pnm, v[s], failure);
            }
            put_pixel(dst, pnm, v);
        }
        x += count;
    }
    return REASON_NONE;
}

static enum reason pnm_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                            struct failure *failure)
{
    struct pnm *pnm = state;
    bool direct = !pnm->plain && pnm->depth == 3 && pnm->maxval == 255;
    for (uint32_t i = 0; i < rows; i++, dst += stride) {
        if (direct) {
            size_t row = 3 * (size_t)pnm->width;
            if (input_read(pnm->input, dst, row) != row)
                return codec_short(pnm->input, failure, "the file ends early");
        } else if ((pnm->plain ? read_plain_row(dst, pnm, failure)
                               : read_raw_row(dst, pnm, failure)) != REASON_NONE) {
            return failure->reason;
        }
    }
    return REASON_NONE;
}

const struct codec codec_pnm = {
    .state_bytes = sizeof(struct pnm),
    .begin = pnm_begin,
    .rows = pnm_rows,
};
