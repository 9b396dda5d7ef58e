/* locate.c: from sources and relative paths to absolute ones. */
#include "file/locate.h"
#include "base/path.h"
#include "base/source_name.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A source's name. */
static enum status real_source(struct locator *locator, unsigned number,
                               const struct result *result, struct error *err)
{
    struct stat st;
    if (locator->source && locator->source_of == number)
        return STATUS_OK;
    free(locator->source);
    locator->source = strdup(result_source_name(result, number));
    locator->source_of = (uint16_t)number;
    if (!locator->source)
        return error_memory(err, strlen(result_source_name(result, number)) + 1, "a file name");
    locator->source_is_directory = stat(locator->source, &st) == 0 && S_ISDIR(st.st_mode);
    return STATUS_OK;
}

enum status locate_image(struct locator *locator, const char **path, const struct result *result,
                         unsigned source, const char *path_raw, struct error *err)
{
    if (source >= result_source_count(result))
        return error_set(err, STATUS_FAILED,
                         "an image has no valid source: the file is damaged, see clpipe verify");
    if (!locator->working && !(locator->working = getcwd(NULL, 0)))
        return error_errno(err, STATUS_FAILED, errno, "getcwd",
                           "the working directory has no name");
    enum status status = real_source(locator, source, result, err);
    if (status != STATUS_OK)
        return status;
    const char *name = locator->source;
    const size_t size = strlen(locator->working) + strlen(name) + strlen(path_raw) + 3;
    if (size > locator->size) {
        char *grown = realloc(locator->path, size);
        if (!grown)
            return error_memory(err, size, "a file name");
        locator->path = grown;
        locator->size = size;
    }
    const bool list = source_is_list(name);
    const bool directory = !list && locator->source_is_directory;
    const char *first = list ? path_raw : name;
    while (first[0] == '.' && first[1] == '/')
        first += 2;
    if (strcmp(first, ".") == 0)
        first = "";
    size_t length = strlen(first);
    while (directory && length > 0 && first[length - 1] == '/')
        length--;
    const char *working = first[0] == '/' ? "" : locator->working;
    const bool join = first[0] != '/' && length > 0 && strcmp(working, "/") != 0;
    /* Of a member, that has no file: below its archive. */
    const size_t archive = list || directory ? 0 : archive_prefix(path_raw);
    snprintf(locator->path, locator->size, "%s%s%.*s%s%s", working, join ? "/" : "", (int)length,
             first, directory || archive > 0 ? "/" : "",
             directory || archive > 0 ? path_raw + archive : "");
    *path = locator->path;
    return STATUS_OK;
}

void locator_clear(struct locator *locator)
{
    free(locator->working);
    free(locator->source);
    free(locator->path);
    *locator = (struct locator){0};
}
