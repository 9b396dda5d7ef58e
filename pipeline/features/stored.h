/* stored.h: types of stored values, and conversions.
 *
 *   float16  binary16 of IEEE 754, rounded to nearest even: the error is at most
 *            2^-11 of a value, or 2^-25 where that is more
 *   uint8    code q = zero + sign(v) rint(scale sqrt(|v|)), evaluated in float64, rint to even; read as
 *            t |t| with t = (q - zero) / scale in float64, rounded to float32. zero is 0 and scale 255,
 *            for values with a sign (normalize=unit) 128 and 127. With s = sqrt(|v|), |v| at most 1,
 *            the error is at most (s + 1 / (4 scale)) / scale
 *
 * The square root preserves more digits of small values, which dominate histograms. Any thread. */
#ifndef CLPIPE_FEATURES_STORED_H
#define CLPIPE_FEATURES_STORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum feature_store { STORE_FLOAT32, STORE_FLOAT16, STORE_UINT8 };

/* "float32"...; feature_store_parse is the inverse: false: no such type. */
const char *feature_store_name(enum feature_store store);
bool feature_store_parse(enum feature_store *out, const char *text);
/* The type named in a canonical spec. */
enum feature_store feature_store_of_spec(const char *spec);

/* Bytes per value; counts are uint32 and have 4 with any type. */
size_t stored_size(enum feature_store store);
/* The constants of uint8: offset and scale. */
uint32_t stored_zero(bool is_signed);
uint32_t stored_scale(bool is_signed);

/* Converts `count` values; is_signed only matters for uint8. STORE_FLOAT32 copies. */
void stored_encode(void *to, enum feature_store store, bool is_signed, const float *values,
                   size_t count);
void stored_decode(float *values, enum feature_store store, bool is_signed, const void *from,
                   size_t count);

#endif
