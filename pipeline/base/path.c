/* path.c: opening files by names of any bytes and any length, and showing such names to users. */
#include "base/path.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens directories along `path` until the rest is short enough for one system call. Returns the
 * descriptor that the rest is relative to (the caller closes it unless it is `directory` itself)
 * and copies the rest to `rest`; -1 with errno.
 *
 * A part ends at a '/' and is resolved by the kernel, which therefore treats "..", symbolic links
 * and permissions as it would in one call; O_PATH needs no further permission. */
static int descend(int directory, const char *path, char rest[PATH_MAX])
{
    /* Several trailing slashes mean the same as one. */
    size_t length = strlen(path), trimmed = length;
    while (trimmed > 1 && path[trimmed - 1] == '/' && path[trimmed - 2] == '/')
        trimmed--;
    int at = directory;
    while (trimmed >= PATH_MAX) {
        /* The cut: the last slash that leaves a part of fewer than PATH_MAX bytes and a rest. */
        size_t cut = PATH_MAX - 2;
        while (cut > 0 && path[cut] != '/')
            cut--;
        if (path[cut] != '/') {
            errno = ENAMETOOLONG;
            goto failed;
        }
        memcpy(rest, path, cut + 1);
        rest[cut + 1] = 0;
        while (path[cut] == '/')
            cut++;
        path += cut;
        trimmed -= cut;
        int next = openat(at, rest, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (next < 0)
            goto failed;
        if (at != directory)
            close(at);
        at = next;
    }
    memcpy(rest, path, trimmed);
    rest[trimmed] = 0;
    return at;

failed:
    if (at != directory) {
        int saved = errno;
        close(at);
        errno = saved;
    }
    return -1;
}

int path_open_at(int directory, const char *path, int flags)
{
    if (strlen(path) < PATH_MAX)
        return openat(directory, path, flags | O_CLOEXEC);
    char rest[PATH_MAX];
    int at = descend(directory, path, rest);
    if (at == -1)
        return -1;
    int fd = openat(at, rest, flags | O_CLOEXEC);
    if (at != directory) {
        int saved = errno;
        close(at);
        errno = saved;
    }
    return fd;
}

int path_stat_at(int directory, const char *path, struct stat *st, int flags)
{
    if (strlen(path) < PATH_MAX)
        return fstatat(directory, path, st, flags);
    const int fd =
        path_open_at(directory, path, O_PATH | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
    if (fd < 0)
        return -1;
    const int result = fstat(fd, st);
    close(fd);
    return result;
}

bool utf8_valid(const char *bytes, size_t length)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    for (size_t i = 0; i < length;) {
        /* Eight bytes of ASCII, none of them 0. */
        uint64_t word;
        if (length - i >= sizeof word) {
            memcpy(&word, bytes + i, sizeof word);
            if (!(word & highs) && !((word - ones) & highs)) {
                i += sizeof word;
                continue;
            }
        }
        size_t n = utf8_sequence(bytes + i, length - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

/* Writes \xHH for each of n bytes; returns the length written. */
static size_t escape(char *out, const char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        *out++ = '\\';
        *out++ = 'x';
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    return 4 * n;
}

/* Length of the first character of `bytes` if it stands for itself; 0: it is escaped. */
static size_t plain(const char *bytes, size_t length)
{
    return length > 1 && bytes[0] == '\\' && bytes[1] == 'x' ? 0 : utf8_sequence(bytes, length);
}

size_t path_to_utf8(char *out, size_t size, const char *bytes, size_t length)
{
    size_t at = 0;
    assert(size > 0 && (size - 1) / 4 >= length);
    (void)size;
    for (size_t i = 0; i < length;) {
        size_t n = plain(bytes + i, length - i);
        if (n > 0) {
            memcpy(out + at, bytes + i, n);
            at += n;
            i += n;
        } else {
            at += escape(out + at, bytes + i, 1);
            i++;
        }
    }
    out[at] = 0;
    return at;
}

char *path_utf8(const char *bytes, size_t length)
{
    char *text = malloc(4 * length + 1);
    if (text)
        path_to_utf8(text, 4 * length + 1, bytes, length);
    return text;
}

static int digit_value(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

void path_from_utf8(char *text)
{
    char *to = strstr(text, "\\x");
    for (const char *at = to; at && *at;) {
        const int high = at[0] == '\\' && at[1] == 'x' ? digit_value(at[2]) : -1;
        const int low = high >= 0 ? digit_value(at[3]) : -1;
        *to++ = low >= 0 ? (char)(16 * high + low) : *at;
        at += low >= 0 ? 4 : 1;
    }
    if (to)
        *to = 0;
}

char *path_working_directory(void)
{
    char *bytes = getcwd(NULL, 0);
    char *text = path_utf8(bytes ? bytes : "", bytes ? strlen(bytes) : 0);
    free(bytes);
    return text;
}

/* Writes the first character of bytes, or its escape, to unit; returns how many bytes the character
 * had. */
static size_t take_unit(char unit[16], size_t *written, const char *bytes, size_t length)
{
    size_t n = utf8_sequence(bytes, length);
    if (n == 0 || utf8_is_hidden(bytes, n)) {
        n = n ? n : 1;
        *written = escape(unit, bytes, n);
    } else {
        memcpy(unit, bytes, n);
        *written = n;
    }
    return n;
}

char *path_for_message(char *out, size_t size, const char *path)
{
    static const char dots[] = "...";
    size_t length = strlen(path), total = 0, at = 0, written;
    char unit[16];
    if (size == 0)
        return out;
    for (size_t i = 0; i < length;) {
        i += take_unit(unit, &written, path + i, length - i);
        total += written;
    }
    /* The end of a path distinguishes files, so it gets the larger half. */
    size_t room = size - 1, head = total, tail = 0;
    if (total > room) {
        size_t kept = room > sizeof dots - 1 ? room - (sizeof dots - 1) : 0;
        head = kept / 2;
        tail = kept - head;
    }
    size_t position = 0;
    bool cut = false;
    for (size_t i = 0; i < length;) {
        i += take_unit(unit, &written, path + i, length - i);
        if ((!cut && position + written <= head) || position >= total - tail) {
            memcpy(out + at, unit, written);
            at += written;
        } else if (!cut) {
            cut = true;
            size_t n = room < sizeof dots - 1 ? room : sizeof dots - 1;
            memcpy(out + at, dots, n);
            at += n;
        }
        position += written;
    }
    out[at] = 0;
    return out;
}
