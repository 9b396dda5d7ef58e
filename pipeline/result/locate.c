/* locate.c: makes absolute paths from sources and relative paths. */
#include "result/locate.h"
#include "base/path.h"
#include "base/source_name.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool leads(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Resolves a source relative to a directory; both are texts. */
static enum status set_source(struct locator *locator, const char *source, const char *directory,
                              struct error *err)
{
    free(locator->source);
    free(locator->base);
    locator->source = source_path(source, directory);
    locator->base = strdup(directory);
    if (!locator->source || !locator->base)
        return error_memory(err, strlen(source) + 1, "a file name");
    path_from_utf8(locator->base);
    return STATUS_OK;
}

/* A source's path: in the directory where it was given or, if it exists only there, in the working
 * directory. */
static enum status find_source(struct locator *locator, unsigned number,
                               const struct result *result, struct error *err)
{
    const char *source = result->sources[number], *directory = result->directories[number];
    const bool list = source_is_list(source);
    struct stat st;
    if (locator->source && locator->source_of == number)
        return STATUS_OK;
    locator->source_of = (uint16_t)number;
    locator->is_list = list;
    enum status status =
        set_source(locator, source, directory[0] ? directory : locator->working, err);
    if (!status && !leads(list ? locator->base : locator->source)) {
        char *here = source_path(source, locator->working);
        if (!here)
            status = error_memory(err, strlen(source) + 1, "a file name");
        else if (list || leads(here))
            status = set_source(locator, source, locator->working, err);
        free(here);
    }
    locator->source_is_directory =
        !status && stat(locator->source, &st) == 0 && S_ISDIR(st.st_mode);
    return status;
}

enum status locate_image(struct locator *locator, const char **path, const struct result *result,
                         unsigned source, const char *path_raw, struct error *err)
{
    if (source >= result->source_count)
        return error_set(err, STATUS_FAILED,
                         "an image has no valid source: the file is damaged, see clpipe verify");
    if (!locator->working && !((locator->working = path_working_directory()) && *locator->working))
        return error_errno(err, STATUS_FAILED, errno, "getcwd",
                           "the working directory has no name");
    enum status status = find_source(locator, source, result, err);
    if (status != STATUS_OK)
        return status;
    const size_t size = strlen(locator->base) + strlen(locator->source) + strlen(path_raw) + 3;
    if (size > locator->size) {
        char *grown = realloc(locator->path, size);
        if (!grown)
            return error_memory(err, size, "a file name");
        locator->path = grown;
        locator->size = size;
    }
    const bool list = locator->is_list, directory = !list && locator->source_is_directory;
    const char *base = list ? locator->base : locator->source, *below = path_raw;
    while (list && below[0] == '.' && below[1] == '/')
        below += 2;
    size_t length = strlen(base);
    while (length > 0 && base[length - 1] == '/')
        length--;
    if (list && below[0] == '/')
        length = 0;
    /* A member of an archive, which is not a file, has a path below the archive. */
    if (!list && !directory)
        below += archive_prefix(path_raw);
    const bool itself = !list && !directory && below == path_raw;
    snprintf(locator->path, locator->size, "%.*s%s%s", (int)length, base,
             itself || below[0] == '/' ? "" : "/", itself ? "" : below);
    *path = locator->path;
    return STATUS_OK;
}

void locator_clear(struct locator *locator)
{
    free(locator->working);
    free(locator->source);
    free(locator->base);
    free(locator->path);
    *locator = (struct locator){0};
}
