/* parse.h: numbers, sizes and durations as users write them. On anything other than exactly one
 * value (empty text, trailing text, overflow, sign) functions return false and leave *out
 * unchanged. */
#ifndef CLPIPE_BASE_PARSE_H
#define CLPIPE_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decimal number from min to max, both included. */
bool parse_u64(uint64_t *out, const char *text, uint64_t min, uint64_t max);

/* A size in bytes: a decimal number with an optional suffix K, M, G or T (powers of 1024; k, KiB,
 * KB and similar are synonyms), with which the number may have a fraction; rounded down. */
bool parse_size(uint64_t *out, const char *text);

/* Seconds: a decimal number, optionally with a suffix s, m, h or d, HH:MM:SS or
 * DAYS-HH[:MM[:SS]]. */
bool parse_seconds(double *out, const char *text);

/* A finite non-negative decimal floating-point number. */
bool parse_double(double *out, const char *text);

/* A number, or a percentage of one. */
struct share {
    double number;
    bool per_cent;
};

/* "12", or "0.5%" up to "100%". */
bool parse_share(struct share *out, const char *text);

/* Whether `count` of `total` is no more than the share. */
bool share_covers(const struct share *share, uint64_t count, uint64_t total);

/* Text for users, like "1.5 GB" (powers of 1000, at most 3 significant digits); returns buffer. */
char *format_bytes(char *buffer, size_t size, uint64_t bytes);

/* "0.82 s", "12 s", "3 min 20 s", "2 h 05 min"; returns buffer. */
char *format_duration(char *buffer, size_t size, double seconds);

/* "12,345"; returns buffer. */
char *format_count(char *buffer, size_t size, uint64_t count);

/* "1 image", "12,345 images", "2 batches"; returns buffer. */
char *format_number_of(char *buffer, size_t size, uint64_t count, const char *noun);

/* The same as expressions. The text lives until the end of the enclosing block. */
#define BYTES_TEXT(bytes)      format_bytes((char[32]){0}, 32, bytes)
#define DURATION_TEXT(seconds) format_duration((char[32]){0}, 32, seconds)
#define COUNT_TEXT(count)      format_count((char[32]){0}, 32, count)
#define NUMBER_OF(count, noun) format_number_of((char[64]){0}, 64, count, noun)

/* first, first + step, ... up to last; one value is a range, too. */
struct number_range {
    uint64_t first, last, step;
};

/* "2:64", "2:64:2"; returns buffer. */
char *format_range(char *buffer, size_t size, const struct number_range *range);

#endif
