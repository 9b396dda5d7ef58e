/* names.c: one pass for the width of the paths, one to write them. */
#include "result/names.h"
#include "base/path.h"
#include "result/columns.h"
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
    const enum status status = text && directory
                                   ? sources_write(file, images, sources, directories, 1, path, err)
                                   : error_memory(err, size, "a source");
    free(directory);
    free(text);
    return status;
}

/* The paths as texts. */
static enum status write_paths(hid_t file, hid_t images, const struct result_names *names,
                               const char *path, struct error *err)
{
    struct text_size size = {0, 0};
    struct column_writer column;
    size_t length;
    char *text = NULL;
    for (uint64_t i = 0; i < names->count; i++) {
        const char *name = names->path(names->context, i, &length);
        text_size_add(&size, path_text_length(name, length));
    }
    enum status status = column_create(&column, file, images, "path", VALUE_TEXT, names->count,
                                       &size, image_table.axis, path, err);
    /* A text is never shorter than the name it stands for. */
    if (status == STATUS_OK && !(text = malloc(4 * (size_t)size.width + 1)))
        status = error_memory(err, 4 * (size_t)size.width + 1, "a path");
    for (uint64_t i = 0; i < names->count && status == STATUS_OK; i++) {
        const char *name = names->path(names->context, i, &length);
        length = path_to_utf8(text, 4 * (size_t)size.width + 1, name, length);
        status = column_add(&column, text, length, err);
    }
    if (status == STATUS_OK)
        status = column_finish(&column, err);
    column_clear(&column);
    free(text);
    return status;
}

enum status names_write(hid_t file, const struct result_names *names, const char *path,
                        struct error *err)
{
    const uint16_t source = 0;
    struct column_writer column = {.dataset = H5I_INVALID_HID};
    H5_SCOPED hid_t images = H5I_INVALID_HID;
    if (h5_create_group(&images, file, image_table.group, path, err))
        return STATUS_FAILED;
    enum status status = write_paths(file, images, names, path, err);
    if (status == STATUS_OK)
        status = column_create(&column, file, images, "source", VALUE_U16, names->count, NULL,
                               image_table.axis, path, err);
    for (uint64_t i = 0; i < names->count && status == STATUS_OK; i++)
        status = column_add(&column, &source, sizeof source, err);
    if (status == STATUS_OK)
        status = column_finish(&column, err);
    column_clear(&column);
    if (status == STATUS_OK)
        status = write_source(file, images, names->source, path, err);
    return status;
}
