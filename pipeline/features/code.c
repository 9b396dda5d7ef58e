/* code.c: from cells to bits, in exact integers, and the reference for the kernel's sums. */
#include "features/code.h"
#include "base/avx2.h"

#include <pthread.h>
#include <string.h>

/* floor(1024 cos(pi k / 64) + 1/2) for k of 0 to 32. */
static const int16_t cosine[CODE_CELLS + 1] = {
    1024, 1023, 1019, 1013, 1004, 993, 980, 964, 946, 926, 903, 878, 851, 822, 792, 759, 724,
    688,  650,  610,  569,  526,  483, 438, 392, 345, 297, 249, 200, 150, 100, 50,  0};

#define FREQUENCIES 23u /* frequencies with a bit, vertical and horizontal: 0 to 22 */

/* 1024 cos(pi (2 i + 1) u / 64), rounded. */
static int32_t basis(uint32_t u, uint32_t i)
{
    uint32_t k = (2 * i + 1) * u % (4 * CODE_CELLS);
    if (k > 2 * CODE_CELLS)
        k = 4 * CODE_CELLS - k;
    return k > CODE_CELLS ? -cosine[2 * CODE_CELLS - k] : cosine[k];
}

/* Loops over the bits in order: by u + v, then by u. */
#define FOR_EACH_BIT(bit, u, v)                                                                    \
    for (uint32_t bit = 0, u = 0, v = 1;                                                           \
         bit<CODE_BITS; bit++, v> 0 ? (void)(u++, v--) : (void)(v = u + 1, u = 0))

/* Four columns at a time. All numbers are integers below 2^53, so doubles are exact, and every
 * processor multiplies them fast. */
typedef double four __attribute__((vector_size(32)));
#define FOURS           (CODE_CELLS / 4)
#define FREQUENCY_FOURS ((FREQUENCIES + 3) / 4)

static double factors[FREQUENCIES][CODE_CELLS / 2]; /* basis */
static uint16_t place[CODE_BITS];                   /* index of a bit's coefficient, row by row */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t u = 0; u < FREQUENCIES; u++)
        for (uint32_t i = 0; i < CODE_CELLS / 2; i++)
            factors[u][i] = basis(u, i);
    FOR_EACH_BIT(bit, u, v)
    place[bit] = (uint16_t)(v * CODE_CELLS + u);
}

/* out = sum over i of factor[i] in[-i], `count` rows, the first `fours` vectors of each: a
 * constant, so sums stay in registers. */
ALWAYS_INLINE void weigh(four *out, const double *factor, const four (*in)[FOURS], uint32_t count,
                         uint32_t fours)
{
    four sum[FOURS] = {{0}};
    for (uint32_t i = 0; i < count; i++) {
        const four all = {factor[i], factor[i], factor[i], factor[i]};
        for (uint32_t j = 0; j < fours; j++)
            sum[j] += all * (in - i)[0][j];
    }
    for (uint32_t j = 0; j < fours; j++)
        out[j] = sum[j];
}

/* The cosine transform of each column of `in`, frequencies from 0; overwrites `in`.
 *
 * Basis u of n values is symmetric for even u and antisymmetric for odd u, so odd frequencies need
 * only the differences of opposite values, and even ones only the sums: a transform of n / 2 values
 * with frequencies u / 2. If `sloping`, frequency u is computed only for the first FREQUENCIES - u
 * columns. */
ALWAYS_INLINE void transform(four out[FREQUENCIES][FOURS], four in[CODE_CELLS][FOURS], bool sloping)
{
    const uint32_t fours = sloping ? FREQUENCY_FOURS : FOURS;
    uint32_t size = CODE_CELLS;
    for (uint32_t step = 1; step < CODE_CELLS; step *= 2, size /= 2) {
        for (uint32_t i = 0; i < size / 2; i++) {
            for (uint32_t j = 0; j < fours; j++) {
                const four a = in[i][j], b = in[size - 1 - i][j];
                in[i][j] = a + b;
                in[size - 1 - i][j] = a - b;
            }
        }
        for (uint32_t u = step; u < FREQUENCIES; u += 2 * step) {
            const four(*last)[FOURS] = (const four(*)[FOURS]) & in[size - 1];
            if (sloping && FREQUENCIES - u <= 4 * FREQUENCY_FOURS / 2)
                weigh(out[u], factors[u], last, size / 2, FREQUENCY_FOURS / 2);
            else
                weigh(out[u], factors[u], last, size / 2, fours);
        }
    }
    for (uint32_t j = 0; j < fours; j++)
        out[0][j] = 1024 * in[0][j];
}

AVX2_TOO static void finish(uint8_t code[CODE_BYTES], const uint32_t words[CODE_WORDS])
{
    union {
        four rows[CODE_CELLS][FOURS];
        double cell[CODE_CELLS][CODE_CELLS];
    } in, out;
    for (uint32_t i = 0; i < CODE_CELLS; i++)
        for (uint32_t j = 0; j < CODE_CELLS; j++)
            in.cell[i][j] = (int32_t)(words[i * CODE_CELLS + j] >> CODE_SHIFT);
    transform(out.rows, in.rows, false);
    for (uint32_t u = 0; u < 4 * FREQUENCY_FOURS; u++)
        for (uint32_t j = 0; j < CODE_CELLS; j++)
            in.cell[j][u] = u < FREQUENCIES ? out.cell[u][j] : 0;
    transform(out.rows, in.rows, true);
    for (uint32_t i = 0; i < CODE_BYTES; i++) {
        uint32_t byte = 0;
        for (uint32_t bit = 8 * i; bit < 8 * i + 8; bit++)
            byte = byte << 1 | (((const double *)out.cell)[place[bit]] > 0);
        code[i] = (uint8_t)byte;
    }
}

void code_finish(uint8_t code[CODE_BYTES], const uint32_t words[CODE_WORDS])
{
    pthread_once(&tables_once, make_tables);
    finish(code, words);
}

void code_mirror_mask(uint8_t mask[CODE_BYTES])
{
    memset(mask, 0, CODE_BYTES);
    FOR_EACH_BIT(bit, u, v)
    mask[bit / 8] |= (uint8_t)((v % 2) << (7 - bit % 8));
}

void code_count_reference(uint32_t *words, const uint8_t *pixels, size_t stride,
                          struct cell_rect rect, uint32_t width, uint32_t height,
                          uint8_t orientation)
{
    const bool swapped = orientation >= 5;
    const uint64_t upright_width = swapped ? height : width;
    const uint64_t upright_height = swapped ? width : height;
    for (uint32_t i = 0; i < CODE_CELLS * CODE_DOWN; i++) {
        for (uint32_t j = 0; j < CODE_CELLS * CODE_ACROSS; j++) {
            const uint32_t up_y =
                (uint32_t)((2 * i + 1) * upright_height / (2 * CODE_CELLS * CODE_DOWN));
            const uint32_t up_x =
                (uint32_t)((2 * j + 1) * upright_width / (2 * CODE_CELLS * CODE_ACROSS));
            const struct cell_rect at = cell_rect_stored(
                (struct cell_rect){up_x, up_y, up_x + 1, up_y + 1}, width, height, orientation);
            if (at.x0 < rect.x0 || at.x0 >= rect.x1 || at.y0 < rect.y0 || at.y0 >= rect.y1)
                continue;
            const uint8_t *p = pixels + (at.y0 - rect.y0) * stride + 3 * (size_t)(at.x0 - rect.x0);
            words[i / CODE_DOWN * CODE_CELLS + j / CODE_ACROSS] +=
                77u * p[0] + 150u * p[1] + 29u * p[2];
        }
    }
}
