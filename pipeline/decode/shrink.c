/* shrink.c: means of rectangles, rows first.
 *
 * The rows that form one row of the smaller picture are multiplied by their weights and added to
 * one row of sums, byte by byte. Only complete rows of sums are added up along x, so the slower
 * loop over three-byte pixels runs once per row of the smaller picture. */
#include "decode/shrink.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

/* Columns are skipped only if there are more than this for one of the smaller picture: the sums of
 * all are in memory, and those of one column must fit 32 bits. */
#define COLUMNS_MOST 1024u

void shrink_dimensions(uint32_t *width, uint32_t *height, uint32_t size)
{
    const uint32_t w = *width, h = *height, longest = max_u32(w, h);
    if (longest <= size)
        return;
    *width = max_u32((uint32_t)(((uint64_t)w * size + longest / 2) / longest), 1);
    *height = max_u32((uint32_t)(((uint64_t)h * size + longest / 2) / longest), 1);
}

uint32_t shrink_step(uint32_t count, uint32_t to)
{
    return max_u32(count / to / SHRINK_SAMPLES, 1);
}

uint32_t shrink_lines(uint32_t count, uint32_t step)
{
    return (count - step / 2 + step - 1) / step;
}

bool shrink_begin(struct shrink *shrink, uint32_t width, uint32_t height, uint8_t *out,
                  uint32_t to_width, uint32_t to_height)
{
    shrink->height = height;
    shrink->out = out;
    shrink->to_width = to_width;
    shrink->to_height = to_height;
    shrink->step_y = shrink_step(height, to_height);
    shrink->step_x = width / to_width > COLUMNS_MOST ? shrink_step(width, to_width) : 1;
    shrink->lines = shrink_lines(height, shrink->step_y);
    shrink->columns = shrink_lines(width, shrink->step_x);
    shrink->y = shrink->line = shrink->to_row = shrink->row_weight = 0;
    shrink->pending_count = 0;
    const size_t bytes = ((size_t)shrink->columns * 3 + BOX_BEHIND) * sizeof *shrink->sums;
    if (bytes > shrink->sums_room) {
        free(shrink->sums);
        shrink->sums = calloc(1, bytes);
        shrink->sums_room = shrink->sums ? bytes : 0;
    }
    return shrink->sums && box_place(&shrink->boxes, shrink->columns, to_width);
}

/* Adds the pending rows to the sums: all of them in one pass. */
static void add_pending(struct shrink *shrink)
{
    if (shrink->pending_count == 0)
        return;
    box_add_rows(shrink->sums, shrink->pending, shrink->pending_count, (size_t)shrink->columns * 3,
                 shrink->row_weight == 0);
    for (unsigned r = 0; r < shrink->pending_count; r++)
        shrink->row_weight += shrink->pending[r].weight;
    shrink->pending_count = 0;
}

/* Queues a row; its memory must stay valid until add_pending. */
static void add_line(struct shrink *shrink, const uint8_t *row)
{
    const bool whole = box_is_whole(shrink->lines, shrink->to_height);
    uint64_t from = (uint64_t)shrink->line * BOX_UNIT;
    const uint64_t to = from + BOX_UNIT;
    while (from < to) {
        const uint64_t end = box_end(shrink->lines, shrink->to_height, shrink->to_row);
        const uint64_t until = min_u64(to, end);
        shrink->pending[shrink->pending_count++] =
            (struct box_row){row, (uint16_t)(whole ? 1 : until - from)};
        from = until;
        if (until == end) {
            add_pending(shrink);
            box_add_columns(shrink->out + (size_t)shrink->to_row * shrink->to_width * 3,
                            shrink->sums, &shrink->boxes, shrink->row_weight);
            shrink->to_row++;
            shrink->row_weight = 0;
        }
    }
    shrink->line++;
}

/* Picks the middle pixel of every step_x. */
static const uint8_t *pick_columns(const struct shrink *shrink, uint8_t *picked, const uint8_t *row)
{
    const uint8_t *at = row + (size_t)(shrink->step_x / 2) * 3;
    for (uint32_t x = 0; x < shrink->columns; x++, at += (size_t)shrink->step_x * 3)
        memcpy(picked + (size_t)x * 3, at, 3);
    return picked;
}

bool shrink_rows(struct shrink *shrink, const uint8_t *rgb, size_t stride, uint32_t rows)
{
    uint8_t *picked = NULL;
    if (shrink->step_x > 1 && !(picked = malloc((size_t)shrink->columns * 3)))
        return false;
    rows = min_u32(rows, shrink->height - shrink->y);
    /* The next row to add is the middle one of its step. */
    for (;;) {
        const uint64_t next = (uint64_t)shrink->line * shrink->step_y + shrink->step_y / 2;
        if (shrink->line == shrink->lines || next >= (uint64_t)shrink->y + rows)
            break;
        const uint8_t *row = rgb + (size_t)(next - shrink->y) * stride;
        add_line(shrink, picked ? pick_columns(shrink, picked, row) : row);
        if (picked)
            add_pending(shrink);
    }
    add_pending(shrink);
    shrink->y += rows;
    free(picked);
    return true;
}

bool shrink_is_done(const struct shrink *shrink)
{
    return shrink->to_row == shrink->to_height;
}

bool shrink_coefficients(struct shrink *shrink, const void *coefficients,
                         const struct dct_layout *layout, uint8_t *out, uint32_t to_width,
                         uint32_t to_height)
{
    uint32_t width, height;
    const uint8_t *pixels = reduced_pixels(&shrink->reduced, &width, &height, coefficients, layout,
                                           to_width, to_height);
    return pixels && shrink_begin(shrink, width, height, out, to_width, to_height) &&
           shrink_rows(shrink, pixels, (size_t)width * 3, height);
}

void shrink_clear(struct shrink *shrink)
{
    free(shrink->sums);
    box_clear(&shrink->boxes);
    reduced_clear(&shrink->reduced);
    *shrink = (struct shrink){.height = 0};
}
