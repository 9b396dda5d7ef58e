/* source_name.c: archives and lists by name. */
#include "base/source_name.h"
#include "base/path.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool source_is_list(const char *source)
{
    return source[0] == '@' || strcmp(source, "-") == 0 || source_is_stream(source);
}

bool source_is_stream(const char *source)
{
    return strcmp(source, "tar:-") == 0;
}

bool archive_promised(const char *path, size_t length)
{
    static const char *const endings[] = {".tar",    ".tar.gz",  ".tgz",      ".tar.zst", ".tzst",
                                          ".tar.xz", ".txz",     ".tar.bz2",  ".tbz2",    ".tbz",
                                          ".tar.lz", ".tar.lz4", ".tar.lzma", ".zip"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t size = strlen(endings[i]);
        /* A leading dot begins a name, not an extension. */
        if (length > size && path[length - size - 1] != '/' &&
            strncasecmp(path + length - size, endings[i], size) == 0)
            return true;
    }
    return false;
}

size_t archive_prefix(const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        if (archive_promised(path, (size_t)(slash - path)))
            return (size_t)(slash - path) + 1;
    return 0;
}

bool source_is_sorted(const char *source, bool archives)
{
    return !archives && !source_is_list(source) && !archive_promised(source, strlen(source));
}

bool source_row_follows(const char *a, const char *b)
{
    const size_t length = archive_prefix(a);
    return (length > 0 && strncmp(a, b, length) == 0) || strcmp(a, b) < 0;
}

char *source_path(const char *source, const char *directory)
{
    const bool list = source[0] == '@';
    const char *name = source + list;
    char *path;
    if (source_is_list(name) || !name[0])
        return strdup(source);
    const bool absolute = name[0] == '/', here = strcmp(name, ".") == 0;
    if (asprintf(&path, "%s%s%s%s", list ? "@" : "", absolute ? "" : directory,
                 absolute || here || strcmp(directory, "/") == 0 ? "" : "/", here ? "" : name) < 0)
        return NULL;
    path_from_utf8(path);
    return path;
}
