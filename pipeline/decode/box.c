/* box.c: sums of rows in loops that compilers vectorize; of columns, on x86, with SSE2. */
#include "decode/box.h"

#include "base/avx2.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* --- rows ------------------------------------------------------------------------------------ */

#define BLOCK 1024u /* sums added up at a time, to stay in the first-level cache */

AVX2_TOO static void add_rows(uint16_t *sums, const struct box_row *rows, unsigned row_count,
                              size_t count)
{
    for (size_t start = 0; start < count; start += BLOCK) {
        const size_t end = count - start < BLOCK ? count : start + BLOCK;
        for (unsigned r = 0; r < row_count; r++) {
            const uint8_t *bytes = rows[r].bytes;
            const uint16_t weight = rows[r].weight;
            if (weight == 1)
                for (size_t i = start; i < end; i++)
                    sums[i] = (uint16_t)(sums[i] + bytes[i]);
            else
                for (size_t i = start; i < end; i++)
                    sums[i] = (uint16_t)(sums[i] + bytes[i] * weight);
        }
    }
}

void box_add_rows(uint16_t *sums, const struct box_row *rows, unsigned row_count, size_t count,
                  bool begin)
{
    if (begin)
        memset(sums, 0, count * sizeof *sums);
    add_rows(sums, rows, row_count, count);
}

/* --- boundaries ------------------------------------------------------------------------------ */

bool box_is_whole(uint32_t from, uint32_t to)
{
    return from / to >= 2;
}

uint64_t box_end(uint32_t from, uint32_t to, uint32_t box)
{
    const uint64_t end = (box + (uint64_t)1) * from * BOX_UNIT / to;
    return box_is_whole(from, to) ? (end + BOX_UNIT / 2) / BOX_UNIT * BOX_UNIT : end;
}

/* --- columns --------------------------------------------------------------------------------- */

bool box_place(struct box_columns *columns, uint32_t from, uint32_t to)
{
    const uint64_t units = (uint64_t)from * BOX_UNIT;
    /* The widest box: its whole columns and a partial one at each end. */
    const uint64_t widest = ((units + to - 1) / to + BOX_UNIT - 2) / BOX_UNIT + 1;
    const uint32_t pairs = (uint32_t)((widest + 1) / 2);
    const size_t bytes = (to + (size_t)1) * sizeof *columns->first + to * sizeof *columns->scale +
                         2 * (size_t)to * pairs * sizeof *columns->weight;
    if (bytes > columns->room) {
        box_clear(columns);
        columns->first = malloc(bytes);
        columns->room = columns->first ? bytes : 0;
        if (!columns->first)
            return false;
    }
    const bool whole = box_is_whole(from, to);
    columns->to = to;
    columns->pairs = pairs;
    columns->least = whole && from / to < BOX_WHOLE_MOST ? from / to : 0;
    columns->scale = (float *)(void *)(columns->first + to + 1);
    columns->weight = (uint16_t *)(void *)(columns->scale + to);
    uint64_t begin = 0;
    for (uint32_t x = 0; x < to; x++) {
        const uint64_t end = box_end(from, to, x);
        columns->first[x] = (uint32_t)(begin / BOX_UNIT);
        columns->scale[x] = 1.0f / (float)(end - begin);
        for (uint32_t i = 0; i < 2 * pairs; i++) {
            const uint64_t left = (columns->first[x] + (uint64_t)i) * BOX_UNIT;
            const uint64_t right = left + BOX_UNIT;
            const uint64_t a = left > begin ? left : begin, b = right < end ? right : end;
            columns->weight[2 * (size_t)pairs * x + i] = (uint16_t)(b > a ? b - a : 0);
        }
        begin = end;
    }
    columns->first[to] = from;
    return true;
}

void box_clear(struct box_columns *columns)
{
    free(columns->first);
    *columns = (struct box_columns){0};
}

#if defined(__x86_64__)
static __m128i load_four(const uint16_t *sums)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)sums);
}

/* The mean of four sums as bytes; the last one is not used. */
static void put_mean(uint8_t *out, __m128i sum, float scale)
{
    const __m128 mean = _mm_mul_ps(_mm_cvtepi32_ps(sum), _mm_set1_ps(scale));
    __m128i bytes = _mm_cvttps_epi32(_mm_add_ps(mean, _mm_set1_ps(0.5f)));
    bytes = _mm_packs_epi32(bytes, bytes);
    bytes = _mm_packus_epi16(bytes, bytes);
    const int four = _mm_cvtsi128_si32(bytes);
    memcpy(out, &four, sizeof four);
}

/* The sums of box x's columns, `least` of them or one more; they fit 16 bits. */
static __m128i whole_sum(const uint16_t *sums, const struct box_columns *columns, uint32_t x)
{
    const uint16_t *at = sums + 3 * (size_t)columns->first[x];
    __m128i sum = load_four(at);
    for (uint32_t i = 1; i < columns->least; i++)
        sum = _mm_add_epi16(sum, load_four(at + 3 * i));
    if (columns->first[x + 1] - columns->first[x] > columns->least)
        sum = _mm_add_epi16(sum, load_four(at + 3 * columns->least));
    return sum;
}

/* Boxes of whole columns and rows: (sum + pixels / 2) * (2^16 / pixels) / 2^16. The error from
 * rounding the factor is below half a level. */
static void add_whole_columns(uint8_t *out, const uint16_t *sums, const struct box_columns *columns,
                              uint32_t rows)
{
    const uint32_t pixels[2] = {columns->least * rows, (columns->least + 1) * rows};
    __m128i half[2], factor[2];
    for (unsigned i = 0; i < 2; i++) {
        half[i] = _mm_set1_epi16((short)(pixels[i] / 2));
        factor[i] = _mm_set1_epi16((short)((65536 + pixels[i] / 2) / pixels[i]));
    }
    for (uint32_t x = 0; x < columns->to; x++, out += 3) {
        const unsigned i = columns->first[x + 1] - columns->first[x] > columns->least;
        __m128i mean = _mm_add_epi16(whole_sum(sums, columns, x), half[i]);
        mean = _mm_mulhi_epu16(mean, factor[i]);
        const int four = _mm_cvtsi128_si32(_mm_packus_epi16(mean, mean));
        memcpy(out, &four, sizeof four);
    }
}

/* Adds columns in pairs: interleaved sums times interleaved weights. Writes four bytes. */
void box_add_columns(uint8_t *out, const uint16_t *sums, const struct box_columns *columns,
                     uint32_t row_weight)
{
    const float rows = 1.0f / (float)row_weight;
    const uint16_t *weight = columns->weight;
    if (columns->least > 0 && row_weight < BOX_UNIT) {
        add_whole_columns(out, sums, columns, row_weight);
        return;
    }
    for (uint32_t x = 0; x < columns->to; x++, out += 3) {
        const uint16_t *at = sums + 3 * (size_t)columns->first[x];
        __m128i sum = _mm_setzero_si128();
        for (uint32_t p = 0; p < columns->pairs; p++, at += 6, weight += 2) {
            int two;
            memcpy(&two, weight, sizeof two);
            const __m128i both = _mm_unpacklo_epi16(load_four(at), load_four(at + 3));
            sum = _mm_add_epi32(sum, _mm_madd_epi16(both, _mm_set1_epi32(two)));
        }
        put_mean(out, sum, columns->scale[x] * rows);
    }
}
#else
/* Scalar version of the function above. */
static void add_whole_columns(uint8_t *out, const uint16_t *sums, const struct box_columns *columns,
                              uint32_t rows)
{
    for (uint32_t x = 0; x < columns->to; x++, out += 3) {
        const uint32_t first = columns->first[x], end = columns->first[x + 1];
        const uint32_t pixels = (end - first) * rows, factor = (65536 + pixels / 2) / pixels;
        for (unsigned c = 0; c < 3; c++) {
            uint32_t sum = pixels / 2;
            for (uint32_t i = first; i < end; i++)
                sum += sums[3 * (size_t)i + c];
            out[c] = (uint8_t)(sum * factor >> 16);
        }
    }
}

void box_add_columns(uint8_t *out, const uint16_t *sums, const struct box_columns *columns,
                     uint32_t row_weight)
{
    const float rows = 1.0f / (float)row_weight;
    const uint16_t *weight = columns->weight;
    if (columns->least > 0 && row_weight < BOX_UNIT) {
        add_whole_columns(out, sums, columns, row_weight);
        return;
    }
    for (uint32_t x = 0; x < columns->to; x++, out += 3, weight += 2 * (size_t)columns->pairs) {
        for (unsigned c = 0; c < 3; c++) {
            const uint16_t *at = sums + 3 * (size_t)columns->first[x] + c;
            int32_t sum = 0;
            for (uint32_t i = 0; i < 2 * columns->pairs; i++)
                sum += at[3 * (size_t)i] * weight[i];
            out[c] = (uint8_t)((float)sum * (columns->scale[x] * rows) + 0.5f);
        }
    }
}
#endif
