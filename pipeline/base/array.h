/* array.h: arrays that grow by one element at a time. */
#ifndef CLPIPE_BASE_ARRAY_H
#define CLPIPE_BASE_ARRAY_H

#include "base/error.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of an array of `count` elements when it has room for one more. */
static inline size_t array_bytes(uint64_t count, size_t size)
{
    return (count ? 2 * (size_t)count : 1) * size;
}

/* Returns `array`, which has `count` elements of `size` bytes, with room for one more. Its capacity
 * is the next power of two, and it moves when that is full. NULL: no memory; the array is
 * unchanged. */
static inline void *array_with_room(void *array, uint64_t count, size_t size)
{
    return count & (count - 1) ? array : realloc(array, array_bytes(count, size));
}

/* The same for the array to which the pointer at `array` points; `what`: its name in the message. */
static inline enum status array_grow(void *array, uint64_t count, size_t size, const char *what,
                                     struct error *err)
{
    void *held;
    memcpy(&held, array, sizeof held);
    if (!(held = array_with_room(held, count, size)))
        return error_memory(err, array_bytes(count, size), what);
    memcpy(array, &held, sizeof held);
    return STATUS_OK;
}

#endif
