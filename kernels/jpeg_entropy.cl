/* jpeg_entropy: decodes the Huffman codes of all JPEG streams in a slot to coefficients in one launch.
 *
 * A group decodes one picture: Klein and Wiseman, "Parallel Huffman decoding with applications to JPEG
 * files" (The Computer Journal 46, 2003); Weissenberger and Schmidt, "Accelerating JPEG decompression on
 * GPUs" (HiPC 2021). Each work-item takes an equal share of the bits.
 *
 *   tables   of FIRST_BITS bits, in local memory; longer codes are rare
 *   guess    a work-item decodes its share as if a block of an MCU's first slot began there. Huffman
 *            codes synchronise: most end in the state in which the next share really begins
 *   repair   a work-item whose first state is not the last state of its predecessor decodes again, until
 *            all links agree
 *   scan     prefix sums of the blocks, and of the DC differences, over the shares
 *   write    all decode once more, with known positions: a block is collected in local memory and stored
 *            as eight vectors; a block that spans two shares is stored value by value
 *   verdict  does every work-item end where the next one began, and is there nothing that libjpeg might
 *            complain about?
 *
 * The first work-item begins in the true state. So if all links hold in the write pass, the result is by
 * induction that of sequential decoding, however the states were found. The host decodes whatever is
 * refused. decode/stream.c is the reference.
 *
 * A segment lies between two restart markers. Its first bit and its blocks are known, so counts and sums
 * restart there; a work-item goes through as many segments as its share touches.
 *
 * No work-item waits for another group, each pass ends with its bits, and every store is guarded by the
 * number of blocks, so hostile streams cost no more than large ones. Bound by the latency of the write
 * pass. */
#include "entropy_part.h"

#ifndef LANES
#error "LANES, the work-items of a group, is missing"
#endif

#define FIRST_BITS 10
#define ROUNDS     12 /* of repair: none of 1,820 photographs needed more */
#define STAGE      36 /* words of local memory for a block, padded against bank conflicts */

/* In bits. No block, of at most 64 * 31 bits, fills a share. With twice as many work-items and half
 * the share, 4 % of some photographs needed more rounds than allowed. */
#define SHARE_LEAST (LANES > 256 ? 4096u : 2048u)

#define TABLES JPEG_STREAM_TABLES
#define SLOTS  JPEG_STREAM_SLOTS

/* Flags a count of blocks that starts at a segment inside the share instead of at the share. */
#define ANEW 0x80000000u

/* A slot of an MCU in one word: the first entries of its tables, the next slot, the component. */
#define SLOT_DC(slot)        ((slot) & 0x1fff)
#define SLOT_AC(slot)        ((slot) >> 13 & 0x1fff)
#define SLOT_NEXT(slot)      ((slot) >> 26 & 7)
#define SLOT_COMPONENT(slot) ((slot) >> 29)

#define INLINE static inline __attribute__((always_inline))

__constant uchar natural_order[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct picture {
    ushort first[TABLES << FIRST_BITS]; /* entries by the next bits; 0: a longer code */
    uint limit[TABLES][17];  /* codes up to that length, as 16 bits, are below */
    int offset[TABLES][17];  /* from a code of that length to its symbol */
    uchar symbol[TABLES][256];
    uchar natural[64];
    uint slot[SLOTS], first_block[SLOTS], row[SLOTS], column[SLOTS];
    uint changed[2];
    uint verdict;
};

/* --- codes ----------------------------------------------------------------------------------- */

/* An entry: bits of code and value together (5), bits of the value (4), coefficients to advance (7;
 * 64: end of block). */
INLINE uint make_entry(uint symbol, uint length, bool dc)
{
    const uint bits = symbol & 15, run = symbol >> 4;
    const uint advance = dc ? 1 : bits ? run + 1 : run == 15 ? 16 : 64;
    return (length + bits) | bits << 5 | advance << 9;
}

#define ENTRY_TOTAL(entry)   ((entry) & 31)
#define ENTRY_BITS(entry)    ((entry) >> 5 & 15)
#define ENTRY_ADVANCE(entry) ((entry) >> 9)

/* The entry of a code longer than FIRST_BITS, by independent comparisons. */
INLINE uint long_entry(__local const struct picture *picture, uint window, uint base, bool dc,
                       uint *wrong)
{
    const uint table = base >> FIRST_BITS, bits = window >> 16;
    uint length = FIRST_BITS + 1;
#pragma unroll
    for (uint i = FIRST_BITS + 1; i < 16; i++)
        length += bits >= picture->limit[table][i];
    if (bits >= picture->limit[table][16]) {
        *wrong |= JPEG_NO_CODE;
        return make_entry(0, 16, dc);
    }
    const int at = (int)(bits >> (16 - length)) + picture->offset[table][length];
    return make_entry(picture->symbol[table][at & 255], length, dc);
}

/* The value that follows a code: bits with a leading 0 are negative. */
INLINE int value_of(uint window, uint entry)
{
    const uint bits = ENTRY_BITS(entry), left = window << (ENTRY_TOTAL(entry) - bits);
    return (int)(left >> 1 >> (31 - bits)) + ((int)left < 0 ? 0 : 1 - (1 << bits));
}

/* --- a window on the bits: two words, and the next one --------------------------------------- */

struct window {
    uint high, low, next;
};

INLINE uint swap_bytes(uint word)
{
    return as_uint(as_uchar4(word).wzyx);
}

INLINE struct window open_window(__global const uint *words, uint bit)
{
    const uint at = bit >> 5;
    struct window window;
    window.high = swap_bytes(words[at]);
    window.low = swap_bytes(words[at + 1]);
    window.next = words[at + 2];
    return window;
}

/* The 32 bits starting at `bit`. */
INLINE uint look(const struct window *window, uint bit)
{
    const uint shift = bit & 31;
    return window->high << shift | window->low >> 1 >> (31 - shift);
}

/* Moves from bit `bit` to bit `to`, at most 31 bits ahead. */
INLINE void move_window(struct window *window, __global const uint *words, uint bit, uint to)
{
    if ((bit ^ to) & 32) {
        window->high = window->low;
        window->low = swap_bytes(window->next);
        window->next = words[(to >> 5) + 2];
    }
}

/* --- guess and repair ------------------------------------------------------------------------ */

/* Decoder state: the bit, and slot << 8 | zigzag index; blocks and sums of DC differences since the
 * share, or the last segment, began. */
struct place {
    uint bit, state;
    uint blocks;
    int sum[3];
};

/* The segment that contains a bit. */
INLINE uint find_segment(__global const uint *borders, uint segments, uint bit)
{
    uint found = 0;
    for (uint high = segments; high - found > 1;) {
        const uint middle = (found + high) / 2;
        if (borders[middle] <= bit)
            found = middle;
        else
            high = middle;
    }
    return found;
}

/* Decodes the symbols that begin before bit `end`. */
INLINE void walk(struct place *place, __local const struct picture *picture,
                 __global const uint *words, __global const uint *borders, uint segments,
                 uint interval, uint slots, uint end)
{
    uint bit = place->bit, slot = place->state >> 8, zigzag = place->state & 255, blocks = 0, wrong = 0;
    int sum0 = 0, sum1 = 0, sum2 = 0;
    uint segment = find_segment(borders, segments, bit);
    for (;;) {
        const uint border = borders[segment + 1], stop = min(end, border);
        struct window window = open_window(words, bit);
        uint info = picture->slot[slot], next = picture->slot[SLOT_NEXT(info)];
        uint base = zigzag ? SLOT_AC(info) : SLOT_DC(info);
        while (bit < stop) {
            const uint bits = look(&window, bit);
            uint entry = picture->first[base + (bits >> (32 - FIRST_BITS))];
            if (entry == 0)
                entry = long_entry(picture, bits, base, zigzag == 0, &wrong);
            const uint to = bit + ENTRY_TOTAL(entry);
            move_window(&window, words, bit, to);
            bit = to;
            const int difference = zigzag ? 0 : value_of(bits, entry);
            const uint component = SLOT_COMPONENT(info);
            sum0 += component == 0 ? difference : 0;
            sum1 += component == 1 ? difference : 0;
            sum2 += component == 2 ? difference : 0;
            zigzag += ENTRY_ADVANCE(entry);
            const bool ended = zigzag > 63;
            blocks += ended;
            zigzag = ended ? 0 : zigzag;
            if (ended) {
                info = next;
                next = picture->slot[SLOT_NEXT(info)];
            }
            base = zigzag ? SLOT_AC(info) : SLOT_DC(info);
        }
        slot = SLOT_NEXT(info);
        slot = (slot ? slot : slots) - 1;
        if (bit < border || segment + 1 >= segments)
            break;
        bit = border;
        slot = zigzag = 0;
        segment++;
        blocks = ANEW | segment * interval;
        sum0 = sum1 = sum2 = 0;
        if (bit >= end)
            break;
    }
    place->bit = bit;
    place->state = slot << 8 | zigzag;
    place->blocks = blocks;
    place->sum[0] = sum0;
    place->sum[1] = sum1;
    place->sum[2] = sum2;
}

/* --- write ----------------------------------------------------------------------------------- */

/* Stores the blocks of a share that begins at `place`, with the counts and sums of all blocks
 * before it, and ends before bit `end`; repair found it to end at `last`. stage: local memory for
 * one block, all zero. Returns the bits of a verdict. */
INLINE uint write_share(struct place place, const struct place *last, uint end,
                        __local const struct picture *picture, __global const uint *words,
                        __global const uint *borders, uint segments, uint interval, uint blocks,
                        uint slots, uint mcus_across, __global short *out, __local uint4 *stage)
{
    uint bit = place.bit, slot = place.state >> 8, zigzag = place.state & 255, block = place.blocks;
    uint wrong = 0;
    int sum0 = (short)place.sum[0], sum1 = (short)place.sum[1], sum2 = (short)place.sum[2];
    __local short *staged = (__local short *)stage;
    const uint whole = min(last->blocks, blocks); /* later blocks are shared with the next share */
    uint segment = find_segment(borders, segments, bit);
    const uint mcu = block / slots;
    uint y = mcu / mcus_across, x = mcu - y * mcus_across;
    if (slot != block - mcu * slots)
        return JPEG_LINK_WRONG;
    for (;;) {
        const bool ending = segment + 1 >= segments;
        const uint border = borders[segment + 1];
        const uint segment_end = ending ? blocks : (segment + 1) * interval;
        if (block == segment_end && zigzag == 0 && !ending && bit < end) {
            if (bit > border || border - bit >= 8)
                return wrong | JPEG_BITS_WRONG;
            bit = border;
            segment++;
            sum0 = sum1 = sum2 = 0;
            continue;
        }
        uint stop = block < segment_end ? min(end, border) : 0;
        struct window window = open_window(words, bit);
        uint info = picture->slot[slot], next_slot = SLOT_NEXT(info);
        uint base = zigzag ? SLOT_AC(info) : SLOT_DC(info);
        uint at = picture->first_block[slot] + y * picture->row[slot] + x * picture->column[slot];
        bool shared = zigzag != 0 || block >= whole;
        while (bit < stop) {
            const uint bits = look(&window, bit);
            uint entry = picture->first[base + (bits >> (32 - FIRST_BITS))];
            if (entry == 0)
                entry = long_entry(picture, bits, base, zigzag == 0, &wrong);
            const uint to = bit + ENTRY_TOTAL(entry), advance = ENTRY_ADVANCE(entry);
            move_window(&window, words, bit, to);
            bit = to;
            int value = value_of(bits, entry);
            if (zigzag == 0) {
                const uint component = SLOT_COMPONENT(info);
                value += component == 0 ? sum0 : component == 1 ? sum1 : sum2;
                wrong |= value == (short)value ? 0 : JPEG_MEAN_TOO_LARGE;
                value = (short)value;
                sum0 = component == 0 ? value : sum0;
                sum1 = component == 1 ? value : sum1;
                sum2 = component == 2 ? value : sum2;
            }
            if (zigzag == 0 || ENTRY_BITS(entry) != 0) {
                const uint index = picture->natural[(zigzag + advance - 1) & 63];
                if (shared)
                    out[(size_t)at * 64 + index] = (short)value;
                else
                    staged[index] = (short)value;
            }
            zigzag += advance;
            wrong |= zigzag > 64 && advance != 64 ? JPEG_BEYOND_BLOCK : 0;
            base = SLOT_AC(info);
            if (zigzag > 63) {
                if (!shared) {
                    __global uint4 *stored = (__global uint4 *)(out + (size_t)at * 64);
#pragma unroll
                    for (uint i = 0; i < 8; i++) {
                        stored[i] = stage[i];
                        stage[i] = (uint4)(0);
                    }
                }
                zigzag = 0;
                block++;
                stop = block < segment_end ? stop : 0;
                shared = block >= whole;
                slot = next_slot;
                x += slot == 0;
                if (x == mcus_across) {
                    x = 0;
                    y++;
                }
                info = picture->slot[slot];
                next_slot = SLOT_NEXT(info);
                base = SLOT_DC(info);
                at = picture->first_block[slot] + y * picture->row[slot] + x * picture->column[slot];
            }
        }
        if (block == segment_end && zigzag == 0 && !ending && bit < end)
            continue;
        if (block == blocks)
            return wrong | (bit > border ? JPEG_BITS_WRONG : 0);
        if (bit < end)
            return wrong | JPEG_TOO_SHORT;
        break;
    }
    if (bit != last->bit || (slot << 8 | zigzag) != last->state || block != last->blocks)
        wrong |= JPEG_LINK_WRONG;
    return wrong;
}

/* --- the kernels ----------------------------------------------------------------------------- */

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
jpeg_entropy(__global const uchar *in, __global const struct jpeg_stream_part *parts,
             uint list_entries, uint large, __global uchar *out, __global uint *verdicts)
{
    __local struct picture picture;
    __local uint end_bit[LANES], end_state[LANES], end_blocks[LANES], end_sum[3][LANES];
    __local uint4 stage[LANES * STAGE / 4];
    const uint lane = (uint)get_local_id(0), group = (uint)get_group_id(0);
    /* Large pictures are in the first list, so that they start first. */
    const uint entry = group < large ? group : list_entries + group - large;
    __global const struct jpeg_stream_part *part = parts + entry;
    __global const struct jpeg_stream *stream =
        (__global const struct jpeg_stream *)(in + part->offset);
    const bool given_up = part->sixteens == 0;
    const uint tables = given_up ? 0 : stream->tables, slots = given_up ? 1 : stream->slots;
    const uint bits = given_up ? 0 : stream->bits, blocks = given_up ? 0 : stream->blocks;
    const uint segments = given_up ? 0 : stream->segments, interval = given_up ? 0 : stream->interval;
    const uint mcus_across = given_up ? 1 : stream->mcus_across;
    __global const uint *words =
        (__global const uint *)(in + part->offset + (given_up ? 0 : stream->data));
    __global const uint *borders =
        (__global const uint *)(in + part->offset + (given_up ? 0 : stream->borders));
    __global short *coefficients = (__global short *)(out + part->out + JPEG_BLOCKS_AT);

    /* Tables. */
    if (lane < tables) {
        uint code = 0, symbols = 0;
        for (uint length = 1; length <= 16; length++) {
            const uint count = stream->table[lane][length - 1];
            picture.offset[lane][length] = (int)symbols - (int)code;
            code += count;
            symbols += count;
            picture.limit[lane][length] = code << (16 - length);
            code <<= 1;
        }
    }
    for (uint i = lane; i < tables * 256; i += LANES)
        picture.symbol[i >> 8][i & 255] = stream->table[i >> 8][16 + (i & 255)];
    for (uint i = lane; i < 64; i += LANES)
        picture.natural[i] = natural_order[i];
    if (lane < slots && !given_up) {
        __global const struct jpeg_stream_slot *slot = &stream->slot[lane];
        picture.slot[lane] = slot->dc << FIRST_BITS | slot->ac << FIRST_BITS << 13 |
                             (lane + 1 == slots ? 0 : lane + 1) << 26 | slot->component << 29;
        picture.first_block[lane] = slot->first;
        picture.row[lane] = slot->row;
        picture.column[lane] = slot->column;
    }
    if (lane < 2)
        picture.changed[lane] = 0;
    if (lane == 0)
        picture.verdict = 0;
    for (uint i = lane; i < JPEG_BLOCKS_AT / 16 && !given_up; i += LANES)
        ((__global uint4 *)(out + part->out))[i] =
            ((__global const uint4 *)stream->quantization)[i];
    for (uint i = lane; i < LANES * STAGE / 4; i += LANES)
        stage[i] = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < tables << FIRST_BITS; i += LANES) {
        const uint table = i >> FIRST_BITS;
        const uint code = (i & ((1 << FIRST_BITS) - 1)) << (16 - FIRST_BITS);
        uint length = 1;
        for (uint j = 1; j <= FIRST_BITS; j++)
            length += code >= picture.limit[table][j];
        uint first = 0;
        if (length <= FIRST_BITS) {
            const int at = (int)(code >> (16 - length)) + picture.offset[table][length];
            first = make_entry(picture.symbol[table][at & 255], length,
                               stream->dc_tables >> table & 1);
        }
        picture.first[i] = (ushort)first;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Guess. */
    const uint share = max(SHARE_LEAST, ((bits + LANES - 1) / LANES + 127) / 128 * 128);
    const uint shares = (bits + share - 1) / share;
    const uint end = min(lane * share + share, bits);
    const bool works = lane < shares;
    uint start_bit = lane * share, start_state = 0;
    struct place place;
    place.bit = start_bit;
    place.state = 0;
    place.blocks = 0;
    place.sum[0] = place.sum[1] = place.sum[2] = 0;
    if (works)
        walk(&place, &picture, words, borders, segments, interval, slots, end);
    end_bit[lane] = place.bit;
    end_state[lane] = place.state;
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Repair. */
    uint wrong = lane == 0 && shares == 0 && !given_up ? JPEG_TOO_SHORT : 0;
    bool synchronised = true;
    for (uint round = 0;; round++) {
        const uint before = lane > 0 ? lane - 1 : 0;
        const uint bit = end_bit[before], state = end_state[before];
        const bool differs =
            lane > 0 && works && (bit != start_bit || state != start_state);
        if (lane == 0)
            picture.changed[(round + 1) & 1] = 0;
        if (differs)
            picture.changed[round & 1] = 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        const bool again = picture.changed[round & 1] != 0;
        if (!again)
            break;
        if (round == ROUNDS) {
            synchronised = false;
            break;
        }
        if (differs) {
            place.bit = start_bit = bit;
            place.state = start_state = state;
            walk(&place, &picture, words, borders, segments, interval, slots, end);
            end_bit[lane] = place.bit;
            end_state[lane] = place.state;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* Scan: a share with a restart ignores what comes before it. */
    end_blocks[lane] = place.blocks;
    for (uint i = 0; i < 3; i++)
        end_sum[i][lane] = (uint)place.sum[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = 1; distance < LANES; distance *= 2) {
        uint before = 0, sum0 = 0, sum1 = 0, sum2 = 0;
        const bool adds = lane >= distance && !(end_blocks[lane] & ANEW);
        if (adds) {
            before = end_blocks[lane - distance];
            sum0 = end_sum[0][lane - distance];
            sum1 = end_sum[1][lane - distance];
            sum2 = end_sum[2][lane - distance];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        end_blocks[lane] += before;
        end_sum[0][lane] += sum0;
        end_sum[1][lane] += sum1;
        end_sum[2][lane] += sum2;
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* Write. A block shared by two shares is cleared first. */
    struct place last = place;
    last.blocks = end_blocks[lane] & ~ANEW;
    place.bit = start_bit;
    place.state = start_state;
    place.blocks = 0;
    place.sum[0] = place.sum[1] = place.sum[2] = 0;
    if (lane > 0) {
        place.blocks = end_blocks[lane - 1] & ~ANEW;
        place.sum[0] = (int)end_sum[0][lane - 1];
        place.sum[1] = (int)end_sum[1][lane - 1];
        place.sum[2] = (int)end_sum[2][lane - 1];
    }
    const bool writes = works && synchronised && place.blocks < blocks;
    if (writes && (start_state & 255)) {
        const uint mcu = place.blocks / slots, slot = place.blocks - mcu * slots;
        const uint y = mcu / mcus_across, x = mcu - y * mcus_across;
        const uint at =
            picture.first_block[slot] + y * picture.row[slot] + x * picture.column[slot];
        for (uint i = 0; i < 8; i++)
            ((__global uint4 *)(coefficients + (size_t)at * 64))[i] = (uint4)(0);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (writes) {
        wrong |= write_share(place, &last, end, &picture, words, borders, segments, interval, blocks,
                             slots, mcus_across, coefficients, stage + lane * (STAGE / 4));
        /* The remaining blocks belong to the next share. */
        if (lane + 1 == shares && last.blocks < blocks)
            wrong |= JPEG_TOO_SHORT;
    }
    if (!synchronised)
        wrong |= JPEG_NOT_SYNCHRONISED;

    /* Verdict. */
    if (wrong)
        atomic_or(&picture.verdict, wrong);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0 && picture.verdict)
        verdicts[part->verdict] = picture.verdict;
}

/* Copies a part that is not a stream; one group per part. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
jpeg_copy(__global const uchar *in, __global const struct jpeg_stream_part *parts,
          uint first_entry, __global uchar *out)
{
    __global const struct jpeg_stream_part *part = parts + first_entry + (uint)get_group_id(0);
    __global const uint4 *from = (__global const uint4 *)(in + part->offset);
    __global uint4 *to = (__global uint4 *)(out + part->out);
    for (uint i = (uint)get_local_id(0); i < part->sixteens; i += LANES)
        to[i] = from[i];
}
