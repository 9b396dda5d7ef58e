/* path_list.c: maps or reads a list, notes where its paths begin, and indexes them by a hash of
 * their bytes; equal hashes are compared by bytes. */
#include "jobs/path_list.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "sources/filelist.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *list_name(char shown[256], const struct path_list *list)
{
    if (strcmp(list->name, "-") == 0)
        return "the list on standard input";
    return path_for_message(shown, 256, list->name);
}

/* --- bytes ----------------------------------------------------------------------------------- */

static enum status read_bytes(struct path_list *list, struct error *err)
{
    char shown[256];
    struct stat st;
    if (strcmp(list->name, "-") == 0)
        return read_to_end(&list->bytes, &list->size, STDIN_FILENO, list_name(shown, list), err);
    const int fd = open(list->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, STATUS_USAGE, "there is no list of paths %s", list_name(shown, list));
    if (fd < 0)
        return error_errno(err, STATUS_FAILED, errno, "open", "cannot read %s",
                           list_name(shown, list));
    enum status status = STATUS_OK;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        status = error_set(err, STATUS_USAGE, "%s is a directory, not a list of paths",
                           list_name(shown, list));
    } else if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        /* Private: pages are copied only where a path is rewritten. */
        void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            list->bytes = bytes;
            list->size = (size_t)st.st_size;
            list->mapped = true;
        }
    }
    if (status == STATUS_OK && !list->mapped)
        status = read_to_end(&list->bytes, &list->size, fd, list_name(shown, list), err);
    close(fd);
    return status;
}

/* --- paths ----------------------------------------------------------------------------------- */

static enum status split(struct path_list *list, struct error *err)
{
    struct filelist_form form = {.size = 0};
    char shown[256];
    size_t end = list->size;
    filelist_look(&form, list->bytes, list->size);
    const char separator = form.has_nul ? 0 : '\n';
    enum status status = filelist_check(&form, list_name(shown, list), err);
    if (status != STATUS_OK)
        return status;
    while (end > 0 &&
           (list->bytes[end - 1] == separator || filelist_line(&form, list->bytes, end) < end))
        end--;
    for (size_t at = filelist_mark(&form); at < end;) {
        const char *stop = memchr(list->bytes + at, separator, end - at);
        size_t length = stop ? (size_t)(stop - list->bytes) - at : end - at;
        const size_t next = at + length + 1;
        length = filelist_line(&form, list->bytes + at, length);
        if (length == 0 || length > FILELIST_PATH_MAX)
            return error_set(err, STATUS_FAILED, "%s is not a list of paths: path %llu %s",
                             list_name(shown, list), (unsigned long long)list->count + 1,
                             length == 0 ? "is empty" : "is longer than 1 MiB");
        if (list->count == UINT32_MAX - 1)
            return error_set(err, STATUS_FAILED, "%s has more than 4 billion paths",
                             list_name(shown, list));
        uint64_t *start = array_with_room(list->start, list->count, sizeof *start);
        list->start = start ? start : list->start;
        uint32_t *lengths = array_with_room(list->length, list->count, sizeof *lengths);
        list->length = lengths ? lengths : list->length;
        if (!start || !lengths)
            return error_memory(err, array_bytes(list->count, sizeof *start), "a list of paths");
        if (strncmp(list->bytes + at, "./", length < 2 ? length : 2) == 0 ||
            memmem(list->bytes + at, length, "//", 2))
            length = filelist_normalize(list->bytes + at, length);
        list->start[list->count] = at;
        list->length[list->count++] = (uint32_t)length;
        at = next;
    }
    if (list->count == 0)
        return error_set(err, STATUS_FAILED, "%s holds no paths", list_name(shown, list));
    return STATUS_OK;
}

/* The slot of a path, or the free one where it would go. */
static size_t find_slot(const struct path_list *list, const char *path, size_t length)
{
    uint64_t digest[2];
    murmur3_of(digest, path, length);
    size_t at = (size_t)digest[0] & (list->slots - 1);
    for (; list->slot[at] != 0; at = (at + 1) & (list->slots - 1)) {
        const uint32_t i = list->slot[at] - 1;
        if (list->length[i] == length && memcmp(list->bytes + list->start[i], path, length) == 0)
            break;
    }
    return at;
}

static enum status index_paths(struct path_list *list, struct error *err)
{
    char shown[256], path[256];
    list->slots = 1024;
    while (list->slots < 2 * list->count)
        list->slots *= 2;
    list->slot = calloc(list->slots, sizeof *list->slot);
    if (!list->slot)
        return error_memory(err, list->slots * sizeof *list->slot, "a list of paths");
    for (uint64_t i = 0; i < list->count; i++) {
        const size_t at = find_slot(list, list->bytes + list->start[i], list->length[i]);
        if (list->slot[at] != 0 && list->repeats)
            continue;
        if (list->slot[at] != 0)
            return error_set(err, STATUS_FAILED,
                             "%s names '%s' twice, for rows %u and %llu (rows count from 0): each "
                             "path may occur once",
                             list_name(shown, list), path_list_shown(path, sizeof path, list, i),
                             list->slot[at] - 1, (unsigned long long)i);
        list->slot[at] = (uint32_t)i + 1;
    }
    return STATUS_OK;
}

enum status path_list_open(struct path_list *out, const char *file, bool repeats, struct error *err)
{
    *out = (struct path_list){.name = file, .repeats = repeats};
    enum status status = read_bytes(out, err);
    if (status == STATUS_OK)
        status = split(out, err);
    if (status == STATUS_OK)
        status = index_paths(out, err);
    return status;
}

enum status path_list_of_memory(struct path_list *out, const char *name, char *bytes, size_t size,
                                struct error *err)
{
    *out = (struct path_list){.name = name, .bytes = bytes, .size = size};
    const enum status status = split(out, err);
    return status == STATUS_OK ? index_paths(out, err) : status;
}

enum status path_list_open_for(struct path_list *out, const char *file, const char *input,
                               uint64_t rows, bool own_paths, struct error *err)
{
    char shown[256];
    const char *shown_input = PATH_TEXT(input);
    if (own_paths)
        return error_set(err, STATUS_USAGE,
                         "%s is a clpipe file, which has the paths of its rows: leave out the list",
                         shown_input);
    enum status status = path_list_open(out, file, false, err);
    if (status == STATUS_OK && out->count != rows)
        status = error_set(err, STATUS_FAILED,
                           "%s has %s, but %s has %s: there must be one path for each row",
                           list_name(shown, out), NUMBER_OF(out->count, "path"), shown_input,
                           NUMBER_OF(rows, "row"));
    return status;
}

const char *path_list_path(const void *list, uint64_t i, size_t *length)
{
    return path_list_at(list, i, length);
}

void path_list_close(struct path_list *list)
{
    if (list->mapped)
        munmap(list->bytes, list->size);
    else
        free(list->bytes);
    free(list->start);
    free(list->length);
    free(list->slot);
    *list = (struct path_list){0};
}

const char *path_list_at(const struct path_list *list, uint64_t i, size_t *length)
{
    *length = list->length[i];
    return list->bytes + list->start[i];
}

uint64_t path_list_find(const struct path_list *list, const char *path, size_t length)
{
    const uint32_t found = list->slot[find_slot(list, path, length)];
    return found ? found - 1 : PATH_LIST_NONE;
}

char *path_list_shown(char *out, size_t size, const struct path_list *list, uint64_t i)
{
    size_t length;
    const char *path = path_list_at(list, i, &length);
    char *copy = strndup(path, length);
    path_for_message(out, size, copy ? copy : "?");
    free(copy);
    return out;
}
