/* stream_synthetic.c: Huffman coding with synthetic tables. */
#include "decode/stream_synthetic.h"

#include <string.h>

#define AC_SYMBOLS 242u /* end of block, sixteen zeros, 16 runs before values of 1 to 15 bits */
#define DC_SYMBOLS 16u

struct table {
    uint8_t counts[16], symbols[256];
    uint16_t code[256];  /* by symbol */
    uint8_t length[256]; /* by symbol */
};

struct writer {
    uint8_t *data;
    size_t most;
    uint64_t bit;
    bool full;
};

static void list_ac_symbols(uint8_t symbols[256])
{
    unsigned count = 0;
    symbols[count++] = 0;
    for (unsigned bits = 1; bits <= 15; bits++) {
        for (unsigned run = 0; run < 16; run++)
            symbols[count++] = (uint8_t)(run << 4 | bits);
    }
    symbols[count++] = 0xf0;
}

/* Chooses the numbers of codes by length; no kind uses the code of all ones. */
static void choose_counts(uint8_t counts[16], unsigned symbols, enum stream_codes codes)
{
    memset(counts, 0, 16);
    if (codes == STREAM_CODES_EVEN) {
        const unsigned shorter = symbols > 16 ? 200 : 12, length = symbols > 16 ? 8 : 4;
        counts[length - 1] = (uint8_t)shorter;
        counts[length] = (uint8_t)(symbols - shorter);
        return;
    }
    unsigned left = symbols;
    const unsigned first = codes == STREAM_CODES_LONG ? 6 : 2;
    for (unsigned length = first; length < 11; length++, left--)
        counts[length - 1] = 1;
    counts[14] = (uint8_t)(left / 2);
    counts[15] = (uint8_t)(left - left / 2);
}

static void make_table(struct table *table, bool dc, enum stream_codes codes)
{
    const unsigned symbols = dc ? DC_SYMBOLS : AC_SYMBOLS;
    memset(table, 0, sizeof *table);
    for (unsigned i = 0; i < DC_SYMBOLS && dc; i++)
        table->symbols[i] = (uint8_t)i;
    if (!dc)
        list_ac_symbols(table->symbols);
    choose_counts(table->counts, symbols, codes);
    unsigned at = 0, code = 0;
    for (unsigned length = 1; length <= 16; length++) {
        for (unsigned i = 0; i < table->counts[length - 1]; i++, at++, code++) {
            table->code[table->symbols[at]] = (uint16_t)code;
            table->length[table->symbols[at]] = (uint8_t)length;
        }
        code <<= 1;
    }
}

static void put_bits(struct writer *writer, uint32_t value, unsigned count)
{
    for (unsigned i = count; i-- > 0; writer->bit++) {
        if (writer->bit / 8 >= writer->most) {
            writer->full = true;
            return;
        }
        const uint8_t mask = (uint8_t)(0x80u >> writer->bit % 8);
        if (writer->bit % 8 == 0)
            writer->data[writer->bit / 8] = 0;
        writer->data[writer->bit / 8] |= value >> i & 1 ? mask : 0;
    }
}

static void put_symbol(struct writer *writer, const struct table *table, unsigned run,
                       int32_t value)
{
    const uint32_t size = (uint32_t)(value < 0 ? -value : value);
    unsigned bits = 0;
    while (size >> bits)
        bits++;
    const unsigned symbol = run << 4 | bits;
    put_bits(writer, table->code[symbol], table->length[symbol]);
    put_bits(writer, (uint32_t)(value < 0 ? value - 1 : value), bits);
}

static void put_block(struct writer *writer, const int16_t *block, int32_t difference,
                      const struct table *dc, const struct table *ac)
{
    unsigned run = 0;
    put_symbol(writer, dc, 0, difference);
    for (unsigned k = 1; k < DCT_BLOCK; k++) {
        const int16_t value = block[stream_natural_order[k]];
        if (value == 0) {
            run++;
            continue;
        }
        for (; run > 15; run -= 16)
            put_symbol(writer, ac, 15, 0);
        put_symbol(writer, ac, run, value);
        run = 0;
    }
    if (run > 0)
        put_symbol(writer, ac, 0, 0);
}

size_t stream_synthetic(void *out, size_t most, const void *in, const struct dct_layout *layout,
                        uint32_t restart_interval, enum stream_codes codes)
{
    struct stream_head head;
    struct table dc, ac;
    int32_t predicted[DCT_COMPONENTS] = {0};
    const int16_t *blocks = (const int16_t *)(const void *)((const uint8_t *)in + DCT_TABLE_BYTES);
    stream_begin(&head, layout, restart_interval);
    make_table(&dc, true, codes);
    make_table(&ac, false, codes);
    for (unsigned c = 0; c < DCT_COMPONENTS; c++)
        stream_set_tables(&head, c, dc.counts, dc.symbols, ac.counts, ac.symbols);
    memcpy(head.quantization, in, sizeof head.quantization);
    if (stream_bytes(&head, 0) > most)
        return 0;
    uint32_t *border = (uint32_t *)(void *)((uint8_t *)out + head.borders);
    struct writer writer = {.data = (uint8_t *)out + head.data,
                            .most = most - (size_t)stream_bytes(&head, 0)};
    for (uint32_t block = 0; block < head.blocks && !writer.full; block++) {
        const struct stream_slot *slot = &head.slot[block % head.slots];
        const uint32_t mcu = block / head.slots;
        if (block % head.interval == 0) {
            put_bits(&writer, 0xff, (unsigned)(8 - writer.bit % 8) % 8);
            border[block / head.interval] = (uint32_t)writer.bit;
            memset(predicted, 0, sizeof predicted);
        }
        const int16_t *values =
            blocks + DCT_BLOCK * (slot->first + (size_t)(mcu / head.mcus_across) * slot->row +
                                  (size_t)(mcu % head.mcus_across) * slot->column);
        put_block(&writer, values, values[0] - predicted[slot->component], &dc, &ac);
        predicted[slot->component] = values[0];
    }
    put_bits(&writer, 0xff, (unsigned)(8 - writer.bit % 8) % 8);
    if (writer.full)
        return 0;
    head.bits = border[head.segments] = (uint32_t)writer.bit;
    memset(writer.data + writer.bit / 8, 0, STREAM_PADDING);
    memcpy(out, &head, sizeof head);
    return (size_t)stream_bytes(&head, writer.bit / 8);
}
