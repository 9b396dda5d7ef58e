/* values.h: numbers as files store them, converted to float32. */
#ifndef CLPIPE_MATRIX_VALUES_H
#define CLPIPE_MATRIX_VALUES_H

#include <stdbool.h>
#include <stddef.h>

/* kind: 'f' (IEEE 754), 'i' or 'u'; bytes per value: 1, 2, 4 or 8, for floats 2, 4 or 8. */
struct value_format {
    char kind;
    unsigned char bytes;
    bool big_endian;
};

/* False: no such format. */
bool values_known(struct value_format format);
/* Whether stored values need no conversion: float32 in the host's byte order. */
bool values_direct(struct value_format format);
/* Converts `count` values to the nearest float32; larger ones become infinities. Thread-safe. */
void values_convert(float *out, const void *in, size_t count, struct value_format format);

/* Reverses the bytes of each value: 1, 2, 4 or 8. */
void values_swap(void *values, size_t count, size_t bytes);

#endif
