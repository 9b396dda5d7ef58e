/* quality_slot: the words of the kind quality of all pictures in a slot, one launch.
 *
 * On a CPU a work-item takes a picture, and vectorised loops read rows of luma that it has made; elsewhere
 * QUALITY_ITEMS work-items take every QUALITY_ITEMS-th column each, make luma as they need it, and add to
 * the words with atomics. Sums of integers: the same either way.
 */
#include "quality_part.h"

static inline uint luma_of(__global const uchar *p)
{
    return (77 * p[0] + 150 * p[1] + 29 * p[2] + 128) >> 8;
}

#ifdef CPU
#define ITEMS 1u
#define ADD(words, i, n) ((words)[i] += (n))
typedef __private const uchar *line;
static inline uint luma_at(line row, uint x)
{
    return row[x];
}
#else
#define ITEMS QUALITY_ITEMS
#define ADD(words, i, n) atomic_add(&(words)[i], n)
typedef __global const uchar *line;
static inline uint luma_at(line row, uint x)
{
    return luma_of(row + 3 * x);
}
#endif

static inline uint chroma(__global const uchar *p)
{
    return max(max(p[0], p[1]), p[2]) - min(min(p[0], p[1]), p[2]);
}

static void tones(__global uint *words, __global const uchar *pixels, const struct quality_part *part,
                  uint item)
{
    uint sum = 0, coloured = 0;
#ifdef CPU
    uint count[2][256]; /* two, since equal neighbours would wait for each other */
    uchar luma[QUALITY_SIDE_MOST];
    for (uint i = 0; i < 256; i++)
        count[0][i] = count[1][i] = 0;
#endif
    for (uint y = 0; y < part->height; y += QUALITY_TONES) {
        __global const uchar *row = pixels + y * part->stride;
        for (uint x = item; x < part->width; x += ITEMS) {
            const uint c = chroma(row + 3 * x);
            sum += c;
            coloured += c >= QUALITY_COLOUR;
        }
#ifdef CPU
        for (uint x = 0; x < part->width; x++)
            luma[x] = luma_of(row + 3 * x);
        for (uint x = 0; x < part->width; x++)
            count[x & 1][luma[x]]++;
#else
        for (uint x = item; x < part->width; x += ITEMS)
            atomic_inc(&words[luma_at(row, x)]);
#endif
    }
#ifdef CPU
    for (uint i = 0; i < 256; i++)
        words[i] = count[0][i] + count[1][i];
#endif
    ADD(words, QUALITY_AT_COLOUR, sum);
    ADD(words, QUALITY_AT_COLOUR + 1, coloured);
}

/* Five taps: the span between the outer ones, and the largest step between neighbours; `count` places in
 * a row, tap i of place x at rows[i][x + i * apart]. */
static void edges(__global uint *words, line a, line b, line c, line d, line e, uint apart, uint count,
                  uint item)
{
    uint number[QUALITY_CLASSES] = {0}, spans[QUALITY_CLASSES] = {0}, steps[QUALITY_CLASSES] = {0};
    for (uint x = item; x < count; x += ITEMS) {
        const uint p = luma_at(a, x), q = luma_at(b, x + apart), r = luma_at(c, x + 2 * apart);
        const uint s = luma_at(d, x + 3 * apart), t = luma_at(e, x + 4 * apart);
        const uint span = abs_diff(p, t);
        const uint step = max(max(abs_diff(p, q), abs_diff(q, r)), max(abs_diff(r, s), abs_diff(s, t)));
        for (uint k = 0; k < QUALITY_CLASSES; k++) {
            const uint in = span >= QUALITY_SPAN << k ? 1 : 0;
            number[k] += in;
            spans[k] += in * span;
            steps[k] += in * step;
        }
    }
    if (item == 0)
        ADD(words, 0, count);
    for (uint k = 0; k < QUALITY_CLASSES; k++) {
        ADD(words, 1 + 3 * k, number[k]);
        ADD(words, 2 + 3 * k, spans[k]);
        ADD(words, 3 + 3 * k, steps[k]);
    }
}

/* Pixels of a line that differ from the corner; stops where `most` do. */
static uint differing(__global const uchar *p, uint step, uint length, const uint corner[4], uint most)
{
    uint count = 0;
    for (uint i = 0; i < length && count < most; i++, p += step)
        count += abs_diff(luma_of(p), corner[3]) > QUALITY_FLAT ||
                 max(max(abs_diff((uint)p[0], corner[0]), abs_diff((uint)p[1], corner[1])),
                     abs_diff((uint)p[2], corner[2])) > QUALITY_FLAT_CHANNEL;
    return count;
}

/* The number of lines from an edge on that are like its corner, if they end at a straight line: the
 * fourth line after them, beyond what JPEG leaves beside an edge, differs in half of its pixels. */
static uint border(__global const uchar *first, int line_step, uint pixel_step, uint lines, uint length)
{
    const uint corner[4] = {first[0], first[1], first[2], luma_of(first)};
    uint n = 0;
    while (n < lines && differing(first + (int)n * line_step, pixel_step, length, corner, 1) == 0)
        n++;
    const uint most = (length + 1) / 2;
    return n + 3 < lines &&
                   differing(first + (int)(n + 3) * line_step, pixel_step, length, corner, most) == most
               ? n
               : 0;
}

static void borders(__global uint *words, __global const uchar *pixels, const struct quality_part *part,
                    uint item)
{
    const uint w = part->width, h = part->height, stride = part->stride;
    for (uint side = item; side < 4; side += ITEMS) {
        const bool across = side & 1, far = side & 2;
        __global const uchar *first = pixels + (far ? across ? (h - 1) * stride : 3 * (w - 1) : 0);
        const int step = across ? (int)stride : 3;
        words[side] = border(first, far ? -step : step, across ? 3 : stride, across ? h : w, across ? w : h);
    }
}

__kernel void quality_slot(__global const uchar *in, __global const struct quality_part *parts, uint count,
                           uint items, __global uint *values)
{
    const uint at = (uint)get_global_id(0);
    if (at >= items || at / ITEMS >= count)
        return;
    const struct quality_part part = parts[at / ITEMS];
    const uint item = at % ITEMS;
    if (part.height == 0)
        return;
    __global const uchar *pixels = in + part.offset;
    __global uint *words = values + part.words;
    tones(words, pixels, &part, item);
    borders(words + QUALITY_AT_BORDERS, pixels, &part, item);
    if (item == 0) {
        words[QUALITY_AT_SIZE] = part.width;
        words[QUALITY_AT_SIZE + 1] = part.height;
    }
#ifdef CPU
    uchar luma[QUALITY_ROWS][QUALITY_SIDE_MOST];
#endif
    for (uint y = 0; y + QUALITY_ROWS <= part.height; y += QUALITY_GROUP) {
        line row[QUALITY_ROWS];
        for (uint i = 0; i < QUALITY_ROWS; i++) {
            __global const uchar *p = pixels + (y + i) * part.stride;
#ifdef CPU
            for (uint x = 0; x < part.width; x++)
                luma[i][x] = luma_of(p + 3 * x);
            row[i] = luma[i];
#else
            row[i] = p;
#endif
        }
        for (uint s = 1; s <= QUALITY_SCALES; s++) {
            __global uint *to = words + QUALITY_AT_EDGES + (s - 1) * QUALITY_EDGE_WORDS;
            if (part.width > 4 * s)
                edges(to, row[4], row[4], row[4], row[4], row[4], s, part.width - 4 * s, item);
            edges(to, row[4 - 2 * s], row[4 - s], row[4], row[4 + s], row[4 + 2 * s], 0, part.width, item);
        }
    }
}
