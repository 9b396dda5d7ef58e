/* dct_synthetic.c: layouts and coefficients from random numbers. */
#include "decode/dct_synthetic.h"

#include "base/random.h"

void dct_synthetic_blocks(struct dct_layout *layout)
{
    const uint32_t mcu_across = 8u * layout->across, mcu_down = 8u * layout->down;
    const uint32_t across = (layout->width + mcu_across - 1) / mcu_across;
    const uint32_t down = (layout->height + mcu_down - 1) / mcu_down;
    for (unsigned c = 0; c < (layout->colour == DCT_GREY ? 1 : DCT_COMPONENTS); c++) {
        layout->blocks_across[c] = across * (c ? 1 : layout->across);
        layout->blocks_down[c] = down * (c ? 1 : layout->down);
    }
}

/* A number from 0 to `most`. Discards the low bits, which are the least random. */
static uint32_t below(uint32_t most, uint32_t *state)
{
    return (random_next(state) >> 8) % most;
}

void dct_synthetic_coefficients(void *out, const struct dct_layout *layout, uint32_t largest,
                                uint32_t coarsest, uint32_t *state)
{
    uint16_t *tables = out;
    int16_t *block = (int16_t *)(tables + DCT_COMPONENTS * DCT_BLOCK);
    for (unsigned i = 0; i < DCT_COMPONENTS * DCT_BLOCK; i++)
        tables[i] = (uint16_t)(1 + below(coarsest, state));
    for (uint64_t b = 0; b < dct_blocks(layout); b++, block += DCT_BLOCK) {
        const unsigned some = b % 4 == 0 ? 1 : b % 4 == 1 ? 8 : DCT_BLOCK;
        for (unsigned i = 0; i < DCT_BLOCK; i++) {
            const int32_t value = (int32_t)below(2 * largest + 1, state);
            block[i] = i < some ? (int16_t)(value - (int32_t)largest) : 0;
        }
    }
}
