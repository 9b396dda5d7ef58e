/* part.c: the geometry of parts. */
#include "decode/part.h"

static uint32_t less(uint32_t value, uint32_t by, uint32_t least)
{
    return value > least + by ? value - by : least;
}

void part_set_rgb(struct part_shape *shape)
{
    shape->payload = PAYLOAD_RGB;
    shape->stride = 3 * (shape->rect.x1 - shape->rect.x0);
    shape->bytes = (uint64_t)shape->stride * (shape->rect.y1 - shape->rect.y0);
}

bool part_is_whole(const struct part_shape *shape)
{
    const struct cell_rect *rect = &shape->rect;
    return rect->x0 == 0 && rect->y0 == 0 && rect->x1 == shape->width && rect->y1 == shape->height;
}

struct cell_rect part_own(const struct part_shape *shape)
{
    struct cell_rect own = shape->rect;
    if (shape->scaled > 0)
        return (struct cell_rect){own.x0, own.y0, own.x0, own.y0};
    if (own.x1 < shape->width)
        own.x1 = less(own.x1, shape->overlap, own.x0);
    if (own.y1 < shape->height)
        own.y1 = less(own.y1, shape->overlap, own.y0);
    return own;
}

void part_shrink(struct part_shape *shape, uint32_t border)
{
    shape->width = less(shape->width, border, 0);
    shape->height = less(shape->height, border, 0);
    shape->rect.x1 = less(shape->rect.x1, border, shape->rect.x0);
    shape->rect.y1 = less(shape->rect.y1, border, shape->rect.y0);
    shape->overlap = less(shape->overlap, border, 0);
}
