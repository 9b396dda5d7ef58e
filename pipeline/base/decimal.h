/* decimal.h: numbers as text from which they can be restored exactly, in any locale. */
#ifndef CLPIPE_BASE_DECIMAL_H
#define CLPIPE_BASE_DECIMAL_H

#include <stddef.h>

/* Room for any float32, with its NUL. */
#define FLOAT32_TEXT 20

/* Writes the value as %g would, with the fewest digits (at most 9) that restore it when read as a
 * float, or as a double and then rounded; also "nan", "inf", "-inf", "-0". Returns the length. */
size_t format_float32(char out[FLOAT32_TEXT], float value);

/* Room for any double, with its NUL. */
#define FLOAT64_TEXT 32

/* Writes a finite value as %g would, with 15 to 17 digits, the fewest that restore it. Returns out. */
char *format_float64(char out[FLOAT64_TEXT], double value);

#endif
