/* original.c: identifies files with stat(), considering the file system. */
#include "jobs/original.h"

#include "base/clock.h"
#include "base/path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one file ---------------------------------------------------------------------------------- */

/* *length: bytes of `path` that name a file: all, or up to the end of the archive's name. */
static enum original_state check(struct stat *st, size_t *length, const char *path,
                                 const struct result_image *image)
{
    char *file = strdup(path), *slash;
    int failed;
    while (file && (failed = path_stat_at(AT_FDCWD, file, st, 0)) && errno == ENOTDIR &&
           (slash = strrchr(file, '/')))
        *slash = 0;
    *length = file ? strlen(file) : 0;
    free(file);
    if (*length == 0 || failed)
        return ORIGINAL_GONE;
    const bool member = path[*length] != 0;
    const bool same = image->bytes == 0 || ((member || (uint64_t)st->st_size == image->bytes) &&
                                            clock_file_time(&st->st_mtim) == image->mtime_ns);
    return S_ISREG(st->st_mode) && same ? ORIGINAL_THERE : ORIGINAL_CHANGED;
}

enum original_state original_check(const char *path, const struct result_image *image, bool *member)
{
    struct stat st;
    size_t file;
    const enum original_state state = check(&st, &file, path, image);
    if (member)
        *member = file > 0 && path[file];
    return state;
}

char *original_name(const char *path)
{
    char *real = NULL, *out = NULL;
    size_t cut = strlen(path);
    do {
        while (cut > 0 && path[cut - 1] != '/')
            cut--;
        /* Up to the last slash; for the root the slash itself. */
        char *directory = cut > 0 ? strndup(path, cut > 1 ? cut - 1 : 1) : strdup(".");
        real = directory ? realpath(directory, NULL) : NULL;
        const int number = errno;
        free(directory);
        if (!real && (number != ENOTDIR || cut <= 1))
            return NULL;
        if (!real)
            cut--; /* inside an archive: use the archive's directory */
    } while (!real);
    if (asprintf(&out, "%s/%s", strcmp(real, "/") == 0 ? "" : real, path + cut) < 0)
        out = NULL;
    free(real);
    return out;
}

void original_look(struct original *out, const char *path, const struct result_image *image)
{
    struct statfs fs;
    struct statx more;
    size_t length;
    *out = (struct original){.state = ORIGINAL_GONE};
    const enum original_state state = check(&out->st, &length, path, image);
    char *file = strndup(path, length);
    out->name = original_name(path);
    if (state == ORIGINAL_THERE && file && statfs(file, &fs) == 0) {
        out->system = file_system_of(&fs);
        if (out->name && path[length])
            out->member = strlen(out->name) - (strlen(path) - length) + 1;
        out->real = out->member ? NULL : realpath(file, NULL);
        if (out->system == FILE_SYSTEM_UNTRUSTED &&
            statx(AT_FDCWD, file, 0, STATX_MNT_ID, &more) == 0 && (more.stx_mask & STATX_MNT_ID))
            out->mount = more.stx_mnt_id;
    }
    free(file);
    if (out->name && (out->real || out->member))
        out->state = ORIGINAL_THERE;
    else if (state == ORIGINAL_CHANGED)
        out->state = state;
    if (out->real && out->name && strcmp(out->real, out->name) == 0) {
        free(out->real);
        out->real = NULL;
    }
}

void original_clear(struct original *original)
{
    free(original->name);
    free(original->real);
    *original = (struct original){.state = ORIGINAL_GONE};
}

static const char *real_of(const struct original *original)
{
    return original->real ? original->real : original->name;
}

bool original_same(const struct original *before, const struct original *now)
{
    const struct stat *a = &before->st, *b = &now->st;
    return before->state == ORIGINAL_THERE && now->state == ORIGINAL_THERE &&
           before->member == now->member && a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_nlink == b->st_nlink && a->st_size == b->st_size &&
           clock_file_time(&a->st_mtim) == clock_file_time(&b->st_mtim) &&
           clock_file_time(&a->st_ctim) == clock_file_time(&b->st_ctim) &&
           strcmp(before->name, now->name) == 0 && strcmp(real_of(before), real_of(now)) == 0;
}

/* --- two files --------------------------------------------------------------------------------- */

/* Could a file system that ignores case treat both as one name? All non-ASCII letters count as
 * equal. */
static bool may_be_one_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b) && !(*a & *b & 0x80))
            return false;
    return *a == *b;
}

enum originals originals_compare(const struct original *a, const struct original *b)
{
    const struct stat *one = &a->st, *two = &b->st;
    const char *name = real_of(a), *other = real_of(b);
    const bool untrusted = a->system == FILE_SYSTEM_UNTRUSTED || b->system == FILE_SYSTEM_UNTRUSTED;
    const bool local = (a->system == FILE_SYSTEM_LOCAL || a->system == FILE_SYSTEM_STACKED) &&
                       (b->system == FILE_SYSTEM_LOCAL || b->system == FILE_SYSTEM_STACKED);
    const bool inode = one->st_dev == two->st_dev && one->st_ino == two->st_ino;
    if (strcmp(name, other) == 0)
        return ORIGINALS_ONE;
    if (inode && a->member && b->member && strcmp(name + a->member, other + b->member) != 0)
        return ORIGINALS_TWO; /* different members of an archive */
    if (inode)
        return untrusted ? ORIGINALS_UNCERTAIN : ORIGINALS_ONE;
    if (untrusted)
        return a->mount && a->mount == b->mount && !may_be_one_name(name, other)
                   ? ORIGINALS_TWO
                   : ORIGINALS_UNCERTAIN;
    if (one->st_dev == two->st_dev ||
        (local && a->system == FILE_SYSTEM_LOCAL && b->system == FILE_SYSTEM_LOCAL))
        return ORIGINALS_TWO;
    /* A file in a lower layer has the same times in the upper one. */
    return local && clock_file_time(&one->st_ctim) != clock_file_time(&two->st_ctim)
               ? ORIGINALS_TWO
               : ORIGINALS_UNCERTAIN;
}

/* --- bytes ------------------------------------------------------------------------------------- */

static uint32_t number(const uint8_t *bytes, unsigned count, bool big)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | bytes[big ? i : count - 1 - i];
    return value;
}

bool original_has_more(const struct blob *blob)
{
    static const struct {
        unsigned at;
        const char *magic, *mark;
    } kinds[] = {{0, "GIF8", "NETSCAPE2.0"},
                 {1, "PNG", "acTL"},
                 {8, "WEBP", "ANIM"},
                 {4, "ftyp", "msf1"},
                 {4, "ftyp", "avis"}};
    uint8_t head[1024], entry[4] = {0};
    const ssize_t size = blob_read(blob, head, sizeof head, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && size > 16; i++)
        if (memcmp(head + kinds[i].at, kinds[i].magic, strlen(kinds[i].magic)) == 0 &&
            memmem(head, (size_t)size, kinds[i].mark, strlen(kinds[i].mark)))
            return true;
    const bool big = size > 8 && memcmp(head, "MM", 2) == 0;
    if (size <= 8 || (!big && memcmp(head, "II", 2) != 0))
        return false;
    /* TIFF: is there a second directory? Assumed for BigTIFF. */
    if (number(head + 2, 2, big) != 42)
        return number(head + 2, 2, big) == 43;
    const uint64_t at = number(head + 4, 4, big);
    return blob_read(blob, entry, 2, at) == 2 &&
           blob_read(blob, entry, 4, at + 2 + 12 * number(entry, 2, big)) == 4 &&
           number(entry, 4, big) != 0;
}
