/* path.h: file names are bytes. Nothing here assumes an encoding or a length below PATH_MAX. */
#ifndef CLPIPE_BASE_PATH_H
#define CLPIPE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* openat() for relative paths of any length: longer ones than the kernel takes are walked by
 * component. Returns a descriptor or -1 with errno. O_CLOEXEC is added. */
int path_open_at(int directory, const char *path, int flags);

/* fstatat() for relative paths of any length; flags as fstatat. Returns 0 or -1 with errno. */
int path_stat_at(int directory, const char *path, struct stat *st, int flags);

/* True if the bytes are valid UTF-8 (RFC 3629: no surrogates, no overlong forms) without NUL. */
bool utf8_valid(const char *bytes, size_t length);

/* Writes bytes as UTF-8 text: what is valid stays, every byte that is not part of a valid sequence
 * becomes \xHH (lower-case hexadecimal). If the whole is valid it is copied as it is, backslashes
 * included. Returns the length without the NUL; size must be at least 4 * length + 1. */
size_t path_to_utf8(char *out, size_t size, const char *bytes, size_t length);

/* For messages: like path_to_utf8, and control characters are escaped too; cut in the middle with
 * "..." to fit size. Returns out. */
char *path_for_message(char *out, size_t size, const char *path);

/* True if the last component's extension is one that promises an image (the contract's list,
 * case-insensitive). A leading dot starts a name, not an extension. */
bool path_promises_image(const char *path);

#endif
