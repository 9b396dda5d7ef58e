/* part.h: a part of a picture on its way from the decoder through the device. */
#ifndef CLPIPE_PART_PART_H
#define CLPIPE_PART_PART_H

#include <stdint.h>

/* A half-open rectangle of stored pixels. */
struct cell_rect {
    uint32_t x0, y0, x1, y1;
};

#endif
