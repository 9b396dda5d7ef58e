/* path.c: opening files by names of any bytes and any length, and showing such names to users. */
#include "base/path.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A long path is opened in parts. A part ends at a '/' and is resolved by the kernel, which therefore
 * treats "..", symbolic links and permissions as it would in one call; O_PATH needs no further
 * permission. */
int path_open_at(int directory, const char *path, int flags)
{
    size_t length = strlen(path);
    if (length < PATH_MAX)
        return openat(directory, path, flags | O_CLOEXEC);
    /* Several trailing slashes mean the same as one. */
    while (length > 1 && path[length - 1] == '/' && path[length - 2] == '/')
        length--;
    for (int at = directory, next;; at = next) {
        char part[PATH_MAX];
        const bool last = length < PATH_MAX;
        /* The last slash that leaves a part of fewer than PATH_MAX bytes and a rest. */
        size_t size = last ? length : PATH_MAX - 1;
        while (!last && size > 0 && path[size - 1] != '/')
            size--;
        memcpy(part, path, size);
        part[size] = 0;
        errno = ENAMETOOLONG;
        next = size == 0 ? -1 : openat(at, part, (last ? flags : O_PATH | O_DIRECTORY) | O_CLOEXEC);
        const int code = errno;
        if (at != directory)
            close(at);
        errno = code;
        if (next < 0 || last)
            return next;
        while (path[size] == '/')
            size++;
        path += size;
        length -= size;
    }
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
