/* code.c: cells to signs, in exact integers, and the reference of what the kernel adds up. */
#include "features/code.h"

#include "code_part.h"

#include <string.h>

/* floor(1024 cos(pi k / 64) + 1/2) for k of 0 to 32. */
static const int16_t cosine[CODE_CELLS + 1] = {
    1024, 1023, 1019, 1013, 1004, 993, 980, 964, 946, 926, 903, 878, 851, 822, 792, 759, 724,
    688,  650,  610,  569,  526,  483, 438, 392, 345, 297, 249, 200, 150, 100, 50,  0};

#define FREQUENCIES 23u /* rows of frequencies that have a bit: 0 to 22 */

/* 1024 cos(pi (2 i + 1) u / 64), rounded. */
static int32_t basis(uint32_t u, uint32_t i)
{
    uint32_t k = (2 * i + 1) * u % (4 * CODE_CELLS);
    if (k > 2 * CODE_CELLS)
        k = 4 * CODE_CELLS - k;
    return k > CODE_CELLS ? -cosine[2 * CODE_CELLS - k] : cosine[k];
}

/* Calls per bit, in their order: by u + v, then by u. */
#define FOR_EACH_BIT(bit, u, v)                                                                    \
    for (uint32_t bit = 0, u = 0, v = 1;                                                           \
         bit<CODE_BITS; bit++, v> 0 ? (u++, v--) : (v = u + 1, u = 0))

void code_finish(uint8_t code[CODE_BYTES], const uint32_t words[CODE_WORDS])
{
    int32_t row[FREQUENCIES][CODE_CELLS] = {{0}};
    int32_t table[FREQUENCIES][CODE_CELLS];
    for (uint32_t u = 0; u < FREQUENCIES; u++)
        for (uint32_t i = 0; i < CODE_CELLS; i++)
            table[u][i] = basis(u, i);
    /* At most 32 * 1024 * 32640, which 32 bits hold. */
    for (uint32_t i = 0; i < CODE_CELLS; i++) {
        int32_t cell[CODE_CELLS];
        for (uint32_t j = 0; j < CODE_CELLS; j++)
            cell[j] = (int32_t)(words[i * CODE_CELLS + j] >> CODE_SHIFT);
        for (uint32_t u = 0; u < FREQUENCIES; u++)
            for (uint32_t j = 0; j < CODE_CELLS; j++)
                row[u][j] += table[u][i] * cell[j];
    }
    memset(code, 0, CODE_BYTES);
    FOR_EACH_BIT(bit, u, v)
    {
        int64_t sum = 0;
        for (uint32_t j = 0; j < CODE_CELLS; j++)
            sum += (int64_t)table[v][j] * row[u][j];
        code[bit / 8] |= (uint8_t)((sum > 0) << (7 - bit % 8));
    }
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
    for (uint32_t i = 0; i < CODE_SAMPLES; i++) {
        for (uint32_t j = 0; j < CODE_SAMPLES; j++) {
            const uint32_t up_y = (uint32_t)((2 * i + 1) * upright_height / (2 * CODE_SAMPLES));
            const uint32_t up_x = (uint32_t)((2 * j + 1) * upright_width / (2 * CODE_SAMPLES));
            uint32_t x = swapped ? up_y : up_x, y = swapped ? up_x : up_y;
            if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
                x = width - 1 - x;
            if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
                y = height - 1 - y;
            if (x < rect.x0 || x >= rect.x1 || y < rect.y0 || y >= rect.y1)
                continue;
            const uint8_t *p = pixels + (y - rect.y0) * stride + 3 * (size_t)(x - rect.x0);
            words[i / CODE_CELL_SAMPLES * CODE_CELLS + j / CODE_CELL_SAMPLES] +=
                77u * p[0] + 150u * p[1] + 29u * p[2];
        }
    }
}
