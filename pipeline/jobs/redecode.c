/* redecode.c: area means and digests of the pixels of pictures decoded again. */
#include "jobs/redecode.h"

#include "base/hash.h"
#include "base/minmax.h"
#include "decode/part.h"
#include "decode/scale.h"

#include <stdlib.h>
#include <string.h>

/* A call. */
struct redecode {
    struct stop *stop;
    /* Per row: one of the two. */
    struct alignment_plane *const *planes;
    uint64_t (*digests)[2];
};

/* --- means over areas ------------------------------------------------------------------------ */

/* A grey plane in stored coordinates, summed row by row and rounded once: a colour is not rounded
 * before it becomes grey, as by a scaler. A source pixel covers `out` units of an axis, a plane's
 * pixel `in` units, so a source pixel contributes to at most two of them. */
struct grey {
    uint32_t in_width, in_height, width, height;
    uint32_t y, left; /* the row being filled, and the missing part of it */
    uint64_t *row, *sum;
};

static bool grey_begin(struct grey *grey, const struct image_info *info, uint32_t side)
{
    const struct scale_window to = scale_window(info->out_width, info->out_height, 1, side);
    *grey = (struct grey){.in_width = info->out_width,
                          .in_height = info->out_height,
                          .width = to.width,
                          .height = to.height,
                          .left = info->out_height};
    grey->row = calloc((size_t)grey->width * (grey->height + 1ull), sizeof *grey->row);
    grey->sum = grey->row + grey->width;
    return grey->row != NULL;
}

/* The part of the next source pixel that falls into pixel *at of the plane, of which *left is not
 * covered yet; the rest falls into the next one. */
static inline uint32_t walk(uint32_t *at, uint32_t *left, uint32_t in, uint32_t out)
{
    const uint32_t part = min_u32(*left, out);
    *left -= part;
    if (*left == 0) {
        ++*at;
        *left = in - (out - part);
    }
    return part;
}

static void grey_row(struct grey *grey, const uint8_t *pixels)
{
    const uint32_t in = grey->in_width, out = grey->width, y = grey->y;
    memset(grey->row, 0, out * sizeof *grey->row);
    for (uint32_t x = 0, at = 0, left = in; x < in; x++) {
        const uint8_t *p = pixels + 3 * (size_t)x;
        const uint64_t value = 77u * p[0] + 150u * p[1] + 29u * p[2];
        uint64_t *row = grey->row + at;
        const uint32_t part = walk(&at, &left, in, out);
        row[0] += value * part;
        if (part < out)
            row[1] += value * (out - part);
    }
    const uint32_t part = walk(&grey->y, &grey->left, grey->in_height, grey->height);
    uint64_t *sum = grey->sum + (size_t)y * out;
    for (uint32_t x = 0; x < out; x++) {
        sum[x] += grey->row[x] * part;
        if (part < grey->height)
            sum[x + out] += grey->row[x] * (grey->height - part);
    }
}

/* The index of the stored pixel shown as upright pixel (x, y). */
static size_t stored_index(uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                           uint8_t orientation)
{
    const struct cell_rect at =
        cell_rect_stored((struct cell_rect){x, y, x + 1, y + 1}, width, height, orientation);
    return (size_t)at.y0 * width + at.x0;
}

static void grey_finish(uint8_t *pixels, uint32_t *width, uint32_t *height, const struct grey *grey,
                        uint8_t orientation)
{
    const uint64_t area = (uint64_t)grey->in_width * grey->in_height * 256;
    *width = orientation >= 5 ? grey->height : grey->width;
    *height = orientation >= 5 ? grey->width : grey->height;
    for (uint32_t y = 0; y < *height; y++)
        for (uint32_t x = 0; x < *width; x++) {
            const uint64_t sum =
                grey->sum[stored_index(x, y, grey->width, grey->height, orientation)];
            *pixels++ = (uint8_t)((sum + area / 2) / area);
        }
}

/* --- one picture ----------------------------------------------------------------------------- */

static void hash_upright(struct murmur3 *hash, uint8_t *row, const uint8_t *pixels,
                         const struct image_info *info)
{
    const bool swapped = info->orientation >= 5;
    const uint32_t width = swapped ? info->out_height : info->out_width;
    const uint32_t height = swapped ? info->out_width : info->out_height;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++)
            memcpy(row + 3 * (size_t)x,
                   pixels +
                       3 * stored_index(x, y, info->out_width, info->out_height, info->orientation),
                   3);
        murmur3_update(hash, row, 3 * (size_t)width);
    }
}

static void forget(const struct redecode *pictures, uint64_t i)
{
    if (pictures->planes)
        pictures->planes[i]->width = 0;
    else
        pictures->digests[i][0] = pictures->digests[i][1] = 0;
}

/* A picture whose upright pixels are hashed is held as a whole if it is rotated. */
static bool is_held(const struct redecode *pictures, const struct image_info *info)
{
    return pictures->digests && info->orientation > 1;
}

static bool is_fine(const struct redecode *pictures)
{
    return pictures->planes && pictures->planes[0]->fine;
}

static uint64_t held_bytes(void *context, const struct image_info *info)
{
    return is_fine(context)         ? ALIGNMENT_FINE * ALIGNMENT_FINE * sizeof(uint64_t)
           : is_held(context, info) ? 3ull * info->out_width * info->out_height
                                    : 0;
}

static bool take_picture(void *context, uint64_t i, struct decode *decode,
                         const struct image_info *info)
{
    struct redecode *pictures = context;
    const size_t stride = 3 * (size_t)info->out_width;
    const bool whole = is_held(pictures, info);
    const uint32_t strip = min_u32((uint32_t)max_u64(REOPEN_STRIP / stride, 1), info->out_height);
    const uint32_t room = whole ? info->out_height : strip;
    struct failure failure = {.reason = REASON_NONE};
    struct murmur3 hash;
    uint64_t digest[2];
    static const uint32_t sides[2] = {ALIGNMENT_SIDE, ALIGNMENT_FINE};
    const uint32_t greys = pictures->planes ? is_fine(pictures) ? 2 : 1 : 0;
    struct grey grey[2] = {{0}};
    struct scaler colour = {0};
    uint8_t *rows = malloc(stride * room + (whole ? 3 * (size_t)info->out_height : 0));
    bool good = rows;
    murmur3_init(&hash);
    for (uint32_t k = 0; k < greys && good; k++)
        good = grey_begin(&grey[k], info, sides[k]);
    if (good && greys > 0)
        good = scaler_begin(&colour, info->out_width, info->out_height, info->orientation,
                            ALIGNMENT_COLOUR);
    for (uint32_t y = 0; y < info->out_height && good; y += strip) {
        const uint32_t count = min_u32(strip, info->out_height - y);
        uint8_t *to = rows + (whole ? y * stride : 0);
        good = !stop_overdue(pictures->stop) &&
               decode_rows(decode, to, stride, count, &failure) == REASON_NONE;
        for (uint32_t r = 0; r < greys * count && good; r++)
            grey_row(&grey[r % greys], to + r / greys * stride);
        if (good && greys > 0)
            scaler_rows(&colour, to, stride, count);
        if (good && pictures->digests && !whole)
            murmur3_update(&hash, to, stride * count);
    }
    if (good && greys > 0) {
        struct alignment_plane *plane = pictures->planes[i];
        const bool swapped = info->orientation >= 5;
        grey_finish(plane->pixel, &plane->width, &plane->height, &grey[0], info->orientation);
        plane->colour_width = swapped ? colour.window.height : colour.window.width;
        plane->colour_height = swapped ? colour.window.width : colour.window.height;
        memcpy(plane->colour, colour.pixels,
               3 * (size_t)plane->colour_width * plane->colour_height);
        if (greys > 1)
            grey_finish(plane->fine, &plane->fine_width, &plane->fine_height, &grey[1],
                        info->orientation);
    }
    if (good && pictures->digests) {
        if (whole)
            hash_upright(&hash, rows + stride * room, rows, info);
        murmur3_final(&hash, pictures->digests[i]);
    }
    free(rows);
    for (uint32_t k = 0; k < greys; k++)
        free(grey[k].row);
    scaler_clear(&colour);
    good = good && decode_end(decode, digest, &failure) == REASON_NONE;
    if (!good)
        forget(pictures, i);
    return good;
}

enum status redecode_read(struct reopen *reopen, struct stop *stop, const uint64_t *rows,
                          uint64_t count, struct alignment_plane *const *planes,
                          uint64_t (*digests)[2], struct error *err)
{
    struct redecode pictures = {stop, planes, digests};
    const struct reopen_use use = {.side = !planes || count == 0 ? 0
                                           : planes[0]->fine     ? ALIGNMENT_FINE
                                                                 : 2 * ALIGNMENT_SIDE,
                                   .memory = held_bytes,
                                   .decode = take_picture,
                                   .context = &pictures,
                                   .phase = digests ? "comparing pixels" : NULL};
    for (uint64_t i = 0; i < count; i++)
        forget(&pictures, i);
    return reopen_rows(reopen, rows, count, &use, err);
}
