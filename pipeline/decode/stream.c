/* stream.c: stream headers, and sequential Huffman decoding in plain C (ITU T.81, F.2.2). */
#include "decode/stream.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof(struct stream_head) == 1728 && sizeof(struct stream_head) % 16 == 0,
               "kernels know the layout of the head");

#define SYMBOL_BITS_MOST 16
#define AC_LAST          63u

/* --- the header ------------------------------------------------------------------------------ */

void stream_begin(struct stream_head *head, const struct dct_layout *layout,
                  uint32_t restart_interval)
{
    memset(head, 0, sizeof *head);
    const uint32_t across = layout->colour == DCT_GREY ? 1 : layout->across;
    const uint32_t down = layout->colour == DCT_GREY ? 1 : layout->down;
    const uint32_t mcus_down = layout->blocks_down[0] / down;
    head->mcus_across = layout->blocks_across[0] / across;
    head->blocks = (uint32_t)dct_blocks(layout);
    uint32_t first = 0;
    for (unsigned c = 0; c < (layout->colour == DCT_GREY ? 1 : DCT_COMPONENTS); c++) {
        const uint32_t h = c ? 1 : across, v = c ? 1 : down;
        for (uint32_t i = 0; i < h * v; i++)
            head->slot[head->slots++] =
                (struct stream_slot){.component = c,
                                     .first = first + i / h * layout->blocks_across[c] + i % h,
                                     .row = v * layout->blocks_across[c],
                                     .column = h};
        first += (uint32_t)dct_component_blocks(layout, c);
    }
    const uint32_t mcus = head->mcus_across * mcus_down;
    const uint32_t interval = restart_interval && restart_interval < mcus ? restart_interval : mcus;
    head->interval = interval * head->slots;
    head->segments = (mcus + interval - 1) / interval;
    head->borders = sizeof *head;
    head->data =
        head->borders + (uint32_t)((head->segments + 1ull) * sizeof(uint32_t) + 15) / 16 * 16;
}

uint64_t stream_bytes(const struct stream_head *head, uint64_t data_bytes)
{
    return head->data + data_bytes + STREAM_PADDING;
}

/* The rules of jpeg_make_d_derived_tbl in libjpeg: no code consists of ones only, and DC
 * differences have at most 15 bits. Returns the number of symbols; 0: invalid. */
static unsigned count_symbols(const uint8_t counts[16], const uint8_t *symbols, bool dc)
{
    uint32_t code = 0;
    unsigned number = 0;
    for (unsigned length = 1; length <= SYMBOL_BITS_MOST; length++) {
        code += counts[length - 1];
        number += counts[length - 1];
        if (code >= 1u << length || number > 256)
            return 0;
        code <<= 1;
    }
    for (unsigned i = 0; i < number && dc; i++) {
        if (symbols[i] > 15)
            return 0;
    }
    return number;
}

/* The index of a table, which is added if missing; STREAM_TABLES: invalid or too many tables. */
static uint32_t find_table(struct stream_head *head, const uint8_t counts[16],
                           const uint8_t *symbols, bool dc)
{
    uint8_t table[STREAM_TABLE] = {0};
    const unsigned number = count_symbols(counts, symbols, dc);
    if (number == 0)
        return STREAM_TABLES;
    memcpy(table, counts, 16);
    memcpy(table + 16, symbols, number);
    for (uint32_t i = 0; i < head->tables; i++) {
        if ((head->dc_tables >> i & 1) == dc && memcmp(head->table[i], table, sizeof table) == 0)
            return i;
    }
    if (head->tables == STREAM_TABLES)
        return STREAM_TABLES;
    memcpy(head->table[head->tables], table, sizeof table);
    head->dc_tables |= (uint32_t)dc << head->tables;
    return head->tables++;
}

bool stream_set_tables(struct stream_head *head, unsigned component, const uint8_t dc_counts[16],
                       const uint8_t *dc_symbols, const uint8_t ac_counts[16],
                       const uint8_t *ac_symbols)
{
    const uint32_t dc = find_table(head, dc_counts, dc_symbols, true);
    const uint32_t ac = find_table(head, ac_counts, ac_symbols, false);
    for (uint32_t i = 0; i < head->slots; i++) {
        if (head->slot[i].component == component) {
            head->slot[i].dc = dc;
            head->slot[i].ac = ac;
        }
    }
    return dc < STREAM_TABLES && ac < STREAM_TABLES;
}

/* --- the reference --------------------------------------------------------------------------- */

const uint8_t stream_natural_order[DCT_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct code {
    uint32_t limit[SYMBOL_BITS_MOST + 1]; /* codes of at most that length, left-aligned in 16 bits,
                                           * are below */
    int32_t offset[SYMBOL_BITS_MOST + 1]; /* from a code of that length to its symbol */
    const uint8_t *symbol;
};

struct reader {
    const uint8_t *data;
    uint32_t bit, end; /* end: of the segment */
    struct code code[STREAM_TABLES];
};

static void make_code(struct code *code, const uint8_t table[STREAM_TABLE])
{
    uint32_t next = 0, symbols = 0;
    code->symbol = table + 16;
    for (unsigned length = 1; length <= SYMBOL_BITS_MOST; length++) {
        code->offset[length] = (int32_t)symbols - (int32_t)next;
        next += table[length - 1];
        symbols += table[length - 1];
        code->limit[length] = next << (SYMBOL_BITS_MOST - length);
        next <<= 1;
    }
}

/* The next 16 bits, padding included. */
static uint32_t look(const struct reader *reader)
{
    const uint8_t *at = reader->data + reader->bit / 8;
    const uint32_t three = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    return three >> (8 - reader->bit % 8) & 0xffff;
}

/* The next symbol, or -1: invalid code or end of segment. */
static int read_symbol(struct reader *reader, const struct code *code)
{
    const uint32_t bits = look(reader);
    uint32_t length = 1;
    while (length <= SYMBOL_BITS_MOST && bits >= code->limit[length])
        length++;
    if (length > SYMBOL_BITS_MOST)
        return -1;
    const int32_t at = (int32_t)(bits >> (SYMBOL_BITS_MOST - length)) + code->offset[length];
    reader->bit += length;
    return reader->bit <= reader->end ? code->symbol[at] : -1;
}

/* Reads a value of `bits` bits, at most 15; a leading 0 means negative. */
static int32_t read_value(struct reader *reader, uint32_t bits)
{
    if (bits == 0)
        return 0;
    const int32_t value = (int32_t)(look(reader) >> (16 - bits));
    reader->bit += bits;
    return value >> (bits - 1) ? value : value - (1 << bits) + 1;
}

static bool read_block(struct reader *reader, int16_t block[DCT_BLOCK], int32_t *predicted,
                       const struct stream_slot *slot)
{
    memset(block, 0, DCT_BLOCK * sizeof *block);
    int symbol = read_symbol(reader, &reader->code[slot->dc]);
    if (symbol < 0)
        return false;
    *predicted += read_value(reader, (uint32_t)symbol);
    block[0] = (int16_t)(uint16_t)*predicted;
    if (*predicted != block[0])
        return false;
    for (uint32_t k = 1; k <= AC_LAST; k++) {
        symbol = read_symbol(reader, &reader->code[slot->ac]);
        if (symbol < 0)
            return false;
        const uint32_t run = (uint32_t)symbol >> 4, bits = (uint32_t)symbol & 15;
        if (bits == 0 && run < 15)
            break;
        k += run;
        if (k > AC_LAST)
            return false;
        if (bits > 0)
            block[stream_natural_order[k]] = (int16_t)read_value(reader, bits);
    }
    return reader->bit <= reader->end;
}

bool stream_coefficients(void *out, const void *payload)
{
    const struct stream_head *head = payload;
    const uint32_t *border =
        (const uint32_t *)(const void *)((const uint8_t *)payload + head->borders);
    int16_t *blocks = (int16_t *)(void *)((uint8_t *)out + DCT_TABLE_BYTES);
    struct reader reader = {.data = (const uint8_t *)payload + head->data};
    memcpy(out, head->quantization, DCT_TABLE_BYTES);
    for (uint32_t i = 0; i < head->tables; i++)
        make_code(&reader.code[i], head->table[i]);
    uint32_t block = 0;
    for (uint32_t segment = 0; segment < head->segments; segment++) {
        const bool last = segment + 1 == head->segments;
        const uint32_t end = last ? head->blocks : block + head->interval;
        int32_t predicted[DCT_COMPONENTS] = {0};
        reader.bit = border[segment];
        reader.end = border[segment + 1];
        for (; block < end; block++) {
            const uint32_t mcu = block / head->slots;
            const struct stream_slot *slot = &head->slot[block % head->slots];
            const size_t at = slot->first + (size_t)(mcu / head->mcus_across) * slot->row +
                              (size_t)(mcu % head->mcus_across) * slot->column;
            assert(at < head->blocks);
            /* The zero padding after the data covers one more symbol of the longest kind. */
            if (reader.bit >= reader.end ||
                !read_block(&reader, blocks + at * DCT_BLOCK, &predicted[slot->component], slot))
                return false;
        }
        /* libjpeg skips whole bytes before a restart marker and only warns. */
        if (!last && reader.end - reader.bit >= 8)
            return false;
    }
    return true;
}
