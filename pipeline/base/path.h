/* path.h: file names are bytes. Nothing here assumes an encoding or a length below PATH_MAX. */
#ifndef CLPIPE_BASE_PATH_H
#define CLPIPE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* openat() for relative paths of any length: paths longer than the kernel accepts are opened in
 * parts. Returns a descriptor or -1 with errno. Adds O_CLOEXEC. */
int path_open_at(int directory, const char *path, int flags);

/* fstatat() for relative paths of any length; flags as fstatat. Returns 0 or -1 with errno. */
int path_stat_at(int directory, const char *path, struct stat *st, int flags);

/* True if the bytes are valid UTF-8 (RFC 3629: no surrogates, no overlong forms) without NUL. */
bool utf8_valid(const char *bytes, size_t length);

/* Writes a name as UTF-8, reversibly: each byte outside a valid sequence, and a backslash before an
 * x, becomes \xHH (lower-case hexadecimal); the rest is copied. Returns the length without the NUL;
 * size must be at least 4 * length + 1. */
size_t path_to_utf8(char *out, size_t size, const char *bytes, size_t length);

/* The same text in allocated memory. NULL: out of memory. */
char *path_utf8(const char *bytes, size_t length);

/* The inverse of path_to_utf8, in place. */
void path_from_utf8(char *text);

/* The working directory without symbolic links, as from path_to_utf8; "": it has no name. The
 * caller frees it; NULL: out of memory. */
char *path_working_directory(void);

/* For messages: UTF-8 with \xHH for all other bytes and for hidden characters (text.h), the middle
 * replaced by "..." to fit size. Returns out. */
char *path_for_message(char *out, size_t size, const char *path);

/* The same as an expression, in at most 255 bytes, or size - 1. The text lives until the end of the
 * enclosing block. */
#define PATH_TEXT(path)          PATH_TEXT_IN(256, path)
#define PATH_TEXT_IN(size, path) path_for_message((char[size]){0}, size, path)

#endif
