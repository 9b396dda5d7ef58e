/* codes.c: chooses a row's scale and nearest codes, and bounds the length of the remainder. */
#include "neighbours/codes.h"
#include "base/avx2.h"
#include "base/minmax.h"
#include "kmeans/canonical.h"
#include "kmeans/filter.h"
#include <math.h>
#include <stdlib.h>

#define SAMPLE_ROWS  255
#define SAMPLE_BYTES (8u << 20)

/* Keeps sums of products of codes below 2^31, with one side as 0 to 2 * 128 - 1. */
static int32_t largest_code(uint32_t stride)
{
    int32_t largest = 127;
    while (largest > 1 && (int64_t)largest * (128 + largest) * stride > INT32_MAX)
        largest--;
    return largest;
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

enum status code_space_open(struct code_space *space, struct block_reader *reader,
                            struct error *err)
{
    const uint32_t stride = reader->stride;
    const uint64_t rows = reader->source->rows,
                   fits = max_u64(SAMPLE_BYTES / (stride * sizeof(float)), 1);
    const uint32_t count = (uint32_t)min_u64(min_u64(fits, SAMPLE_ROWS), rows);
    const size_t bytes = ((size_t)stride + count + (size_t)count * stride) * sizeof(float);
    *space = (struct code_space){.stride = stride, .largest = largest_code(stride), .unit = 1};
    space->centre = malloc(bytes);
    if (!space->centre)
        return error_memory(err, bytes, "a sample of rows");
    float *column = space->centre + stride, *sample = column + count;
    double largest = 0;
    for (uint32_t i = 0; i < count; i++)
        if (block_reader_read(reader, rows * i / count, 1, sample + (size_t)i * stride, err) !=
            STATUS_OK)
            return err->status;
    for (uint32_t j = 0; j < stride; j++) {
        for (uint32_t i = 0; i < count; i++)
            column[i] = sample[(size_t)i * stride + j];
        qsort(column, count, sizeof *column, compare_floats);
        const double centre = (double)column[count / 2];
        space->centre[j] = column[count / 2];
        largest =
            fmax(largest, fmax(centre - (double)column[0], (double)column[count - 1] - centre));
    }
    int exponent;
    frexp(largest, &exponent);
    if (largest > 0)
        space->unit = ldexp(1, -exponent);
    /* What follows the centre is no longer needed. */
    float *centre = realloc(space->centre, stride * sizeof *centre);
    space->centre = centre ? centre : space->centre;
    return STATUS_OK;
}

void code_space_close(struct code_space *space)
{
    free(space->centre);
    *space = (struct code_space){0};
}

/* Rounds to the nearest integer while |x| < 2^51. */
static inline double round_small(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

AVX2_TOO static void make_codes(int8_t *codes, struct code_facts *facts,
                                const struct code_space *space, const float *row)
{
    const uint32_t stride = space->stride;
    const double unit = space->unit;
    double most[KMEANS_LANES] = {0};
    for (uint32_t j = 0; j < stride; j += KMEANS_LANES)
        for (uint32_t l = 0; l < KMEANS_LANES; l++) {
            const double z = fabs(((double)row[j + l] - (double)space->centre[j + l]) * unit);
            most[l] = z > most[l] ? z : most[l];
        }
    double largest = 0;
    for (uint32_t l = 0; l < KMEANS_LANES; l++)
        largest = fmax(largest, most[l]);
    const bool wild = largest > 0x1p40;
    const float scale = wild ? 0 : (float)(largest / space->largest);
    const double inverse = scale > 0 ? 1 / (double)scale : 0, top = space->largest;
    double rest[KMEANS_LANES] = {0}, lengths[KMEANS_LANES] = {0};
    int32_t sums[KMEANS_LANES] = {0}, squares[KMEANS_LANES] = {0};
    for (uint32_t j = 0; j < stride; j += KMEANS_LANES)
        for (uint32_t l = 0; l < KMEANS_LANES; l++) {
            const double z = ((double)row[j + l] - (double)space->centre[j + l]) * unit;
            double q = round_small(z * inverse);
            q = q > top ? top : q < -top ? -top : q;
            q = wild ? 0 : q;
            const double e = z - q * (double)scale;
            const int32_t code = (int32_t)q;
            codes[j + l] = (int8_t)code;
            rest[l] += e * e;
            lengths[l] += z * z;
            sums[l] += code;
            squares[l] += code * code;
        }
    int64_t square = 0;
    facts->sum = 0;
    for (uint32_t l = 0; l < KMEANS_LANES; l++) {
        facts->sum += sums[l];
        square += squares[l];
    }
    facts->scale = scale;
    facts->square = (float)((double)scale * (double)scale * (double)square);
    /* The second term covers the rounding of z and e in float64. */
    const double error = sqrt(canonical_lane_sum(rest)) * (1 + 0x1p-30) +
                         sqrt(canonical_lane_sum(lengths)) * 0x1p-48;
    facts->error = wild ? CODES_FAR : float_up(error);
}

void codes_make(int8_t *codes, struct code_facts *facts, const struct code_space *space,
                const float *row)
{
    make_codes(codes, facts, space, row);
}

float codes_reach(const struct code_space *space, const struct code_facts *facts, double squared)
{
    const double length = sqrt(squared) * space->unit;
    if (!(length < (double)CODES_FAR))
        return CODES_FAR * 2;
    return float_up((length + (double)facts->error) * (1 + (double)CODES_SLACK));
}
