/* names.c: one pass for the width of the paths, one to write them. */
#include "file/names.h"
#include "base/path.h"
#include "file/columns.h"
#include <stdlib.h>
#include <string.h>

enum status sources_write(hid_t file, hid_t images, const char *const *sources,
                          const char *const *directories, unsigned count, const char *path,
                          struct error *err)
{
    const char **unknown = directories ? NULL : malloc((count + 1) * sizeof *unknown);
    if (!directories && !unknown)
        return error_memory(err, count * sizeof *unknown, "the sources");
    for (unsigned i = 0; unknown && i < count; i++)
        unknown[i] = "";
    enum status status =
        h5_put_texts(file, images, "sources", sources, count, SOURCE_AXIS, path, err);
    if (!status)
        status = h5_put_texts(file, images, DIRECTORIES, directories ? directories : unknown, count,
                              SOURCE_AXIS, path, err);
    free(unknown);
    return status;
}

static enum status write_source(hid_t file, hid_t images, const char *source, const char *path,
                                struct error *err)
{
    const size_t size = 4 * strlen(source) + 1;
    char *text = malloc(size), *directory = path_working_directory();
    const char *const sources[] = {text}, *const directories[] = {directory};
    if (text)
        path_to_utf8(text, size, source, strlen(source));
    const enum status status =
        text && directory ? sources_write(file, images, sources, directories, 1, path, err)
                          : error_memory(err, size, "a source");
    free(directory);
    free(text);
    return status;
}

enum status names_write(hid_t file, const struct result_names *names, const char *path,
                        struct error *err)
{
    const struct result_image row = {.source = 0};
    struct columns *columns = NULL;
    struct text_size size[TABLE_TEXTS_MOST] = {{0, 0}};
    hid_t images = H5I_INVALID_HID;
    size_t length;
    for (uint64_t i = 0; i < names->count; i++) {
        const char *name = names->path(names->context, i, &length);
        text_size_add(&size[0], path_text_length(name, length));
    }
    enum status status =
        columns_create(&columns, &images, file, &name_table, names->count, false, size, path, err);
    for (uint64_t i = 0; i < names->count && status == STATUS_OK; i++) {
        const char *name = names->path(names->context, i, &length);
        status = columns_add_named(columns, &row, name, (uint32_t)length, err);
    }
    if (status == STATUS_OK)
        status = columns_finish(columns, err);
    columns_close(&columns);
    if (status == STATUS_OK)
        status = write_source(file, images, names->source, path, err);
    h5_close(&images);
    return status;
}
