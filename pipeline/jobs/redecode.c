/* redecode.c: area means and digests of the pixels of pictures decoded again. */
#include "jobs/redecode.h"

#include "base/hash.h"
#include "base/minmax.h"

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

/* A plane in stored coordinates, summed row by row. A source pixel covers `out` units of an axis, a
 * plane's pixel `in` units, so a source pixel contributes to at most two of them. */
struct shrink {
    uint32_t in_width, in_height, width, height, channels;
    uint32_t y, left; /* the row being filled, and the missing part of it */
    uint64_t *row, *sum;
};

static bool shrink_begin(struct shrink *shrink, const struct image_info *info, uint32_t side,
                         uint32_t channels)
{
    const uint32_t width = info->out_width, height = info->out_height;
    const uint32_t longer = max_u32(width, height);
    shrink->channels = channels;
    shrink->left = height;
    shrink->in_width = shrink->width = width;
    shrink->in_height = shrink->height = height;
    if (longer > side) {
        shrink->width = (uint32_t)(((uint64_t)width * side + longer / 2) / longer);
        shrink->height = (uint32_t)(((uint64_t)height * side + longer / 2) / longer);
        shrink->width = max_u32(shrink->width, 1);
        shrink->height = max_u32(shrink->height, 1);
    }
    const size_t row = (size_t)shrink->width * channels;
    shrink->row = calloc(row * (shrink->height + 1ull), sizeof *shrink->row);
    shrink->sum = shrink->row + row;
    return shrink->row != NULL;
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

static void shrink_row(struct shrink *shrink, const uint8_t *pixels)
{
    const uint32_t channels = shrink->channels, in = shrink->in_width, out = shrink->width;
    const uint32_t stride = out * channels, y = shrink->y;
    memset(shrink->row, 0, stride * sizeof *shrink->row);
    for (uint32_t x = 0, at = 0, left = in; x < in; x++) {
        const uint8_t *p = pixels + 3 * (size_t)x;
        const uint32_t grey = 77u * p[0] + 150u * p[1] + 29u * p[2];
        uint64_t *row = shrink->row + (size_t)at * channels;
        const uint32_t part = walk(&at, &left, in, out);
        for (uint32_t c = 0; c < channels; c++) {
            const uint64_t value = channels == 1 ? grey : 256u * p[c];
            row[c] += value * part;
            if (part < out)
                row[c + channels] += value * (out - part);
        }
    }
    const uint32_t part = walk(&shrink->y, &shrink->left, shrink->in_height, shrink->height);
    uint64_t *sum = shrink->sum + (size_t)y * stride;
    for (uint32_t x = 0; x < stride; x++) {
        sum[x] += shrink->row[x] * part;
        if (part < shrink->height)
            sum[x + stride] += shrink->row[x] * (shrink->height - part);
    }
}

/* The stored pixel shown as upright pixel (x, y). */
static void turn_back(uint32_t *sx, uint32_t *sy, uint32_t x, uint32_t y, uint32_t width,
                      uint32_t height, uint8_t orientation)
{
    *sx = orientation >= 5 ? y : x;
    *sy = orientation >= 5 ? x : y;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        *sx = width - 1 - *sx;
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        *sy = height - 1 - *sy;
}

static void shrink_finish(uint8_t *pixels, uint32_t *width, uint32_t *height,
                          const struct shrink *shrink, uint8_t orientation)
{
    const uint64_t area = (uint64_t)shrink->in_width * shrink->in_height * 256;
    *width = orientation >= 5 ? shrink->height : shrink->width;
    *height = orientation >= 5 ? shrink->width : shrink->height;
    for (uint32_t y = 0; y < *height; y++) {
        for (uint32_t x = 0; x < *width; x++) {
            uint32_t sx, sy;
            turn_back(&sx, &sy, x, y, shrink->width, shrink->height, orientation);
            const uint64_t *sum =
                shrink->sum + ((size_t)sy * shrink->width + sx) * shrink->channels;
            for (uint32_t c = 0; c < shrink->channels; c++)
                *pixels++ = (uint8_t)((sum[c] + area / 2) / area);
        }
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
        for (uint32_t x = 0; x < width; x++) {
            uint32_t sx, sy;
            turn_back(&sx, &sy, x, y, info->out_width, info->out_height, info->orientation);
            memcpy(row + 3 * (size_t)x, pixels + 3 * ((size_t)sy * info->out_width + sx), 3);
        }
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
    const uint32_t strip =
        min_u32((uint32_t)max_u64(DECODE_AGAIN_STRIP / stride, 1), info->out_height);
    const uint32_t room = whole ? info->out_height : strip;
    struct failure failure = {.reason = REASON_NONE};
    struct murmur3 hash;
    uint64_t digest[2];
    static const uint32_t sides[3] = {ALIGNMENT_SIDE, ALIGNMENT_COLOUR, ALIGNMENT_FINE};
    const uint32_t shrinks = pictures->planes ? is_fine(pictures) ? 3 : 2 : 0;
    struct shrink shrink[3] = {{0}};
    uint8_t *rows = malloc(stride * room + (whole ? 3 * (size_t)info->out_height : 0));
    bool good = rows;
    murmur3_init(&hash);
    for (uint32_t k = 0; k < shrinks && good; k++)
        good = shrink_begin(&shrink[k], info, sides[k], k == 1 ? 3 : 1);
    for (uint32_t y = 0; y < info->out_height && good; y += strip) {
        const uint32_t count = min_u32(strip, info->out_height - y);
        uint8_t *to = rows + (whole ? y * stride : 0);
        good = !stop_overdue(pictures->stop) &&
               decode_rows(decode, to, stride, count, &failure) == REASON_NONE;
        for (uint32_t r = 0; r < shrinks * count && good; r++)
            shrink_row(&shrink[r % shrinks], to + r / shrinks * stride);
        if (good && pictures->digests && !whole)
            murmur3_update(&hash, to, stride * count);
    }
    if (good && shrinks > 0) {
        struct alignment_plane *plane = pictures->planes[i];
        shrink_finish(plane->pixel, &plane->width, &plane->height, &shrink[0], info->orientation);
        shrink_finish(plane->colour, &plane->colour_width, &plane->colour_height, &shrink[1],
                      info->orientation);
        if (shrinks > 2)
            shrink_finish(plane->fine, &plane->fine_width, &plane->fine_height, &shrink[2],
                          info->orientation);
    }
    if (good && pictures->digests) {
        if (whole)
            hash_upright(&hash, rows + stride * room, rows, info);
        murmur3_final(&hash, pictures->digests[i]);
    }
    free(rows);
    for (uint32_t k = 0; k < shrinks; k++)
        free(shrink[k].row);
    good = good && decode_end(decode, digest, &failure) == REASON_NONE;
    if (!good)
        forget(pictures, i);
    return good;
}

enum status redecode_read(struct decode_again *again, struct stop *stop, const uint64_t *rows,
                          uint64_t count, struct alignment_plane *const *planes,
                          uint64_t (*digests)[2], struct error *err)
{
    struct redecode pictures = {stop, planes, digests};
    const struct decode_again_use use = {.side = !planes || count == 0 ? 0
                                                 : planes[0]->fine     ? ALIGNMENT_FINE
                                                                       : 2 * ALIGNMENT_SIDE,
                                         .memory = held_bytes,
                                         .picture = take_picture,
                                         .context = &pictures,
                                         .phase = digests ? "comparing pixels" : NULL};
    for (uint64_t i = 0; i < count; i++)
        forget(&pictures, i);
    return decode_again_rows(again, rows, count, &use, err);
}
