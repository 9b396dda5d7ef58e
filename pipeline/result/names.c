/* names.c: writes paths, converted to texts one at a time, and sources. */
#include "result/names.h"
#include "base/path.h"
#include <stdlib.h>
#include <string.h>

enum status sources_write(hid_t file, hid_t images, const char *const *sources,
                          const char *const *directories, unsigned count, struct error *err)
{
    const enum status status =
        h5_put_texts(file, images, "sources", sources, count, SOURCE_AXIS, err);
    return status ? status
                  : h5_put_texts(file, images, DIRECTORIES, directories, count, SOURCE_AXIS, err);
}

static enum status write_source(hid_t file, hid_t images, const char *source, struct error *err)
{
    char *text = path_utf8(source, strlen(source)), *directory = path_working_directory();
    const char *const sources[] = {text}, *const directories[] = {directory};
    const enum status status = text && directory
                                   ? sources_write(file, images, sources, directories, 1, err)
                                   : error_memory(err, 4 * strlen(source) + 1, "a source");
    free(directory);
    free(text);
    return status;
}

struct naming {
    const struct result_names *names;
    char *text;
    size_t room;
};

static const void *path_of_row(void *context, uint64_t row, size_t *bytes)
{
    struct naming *naming = context;
    size_t length;
    const char *name = naming->names->path(naming->names->context, row, &length);
    if (4 * length + 1 > naming->room) {
        free(naming->text);
        naming->room = 8 * length + 256;
        if (!(naming->text = malloc(naming->room)))
            return NULL;
    }
    *bytes = path_to_utf8(naming->text, naming->room, name, length);
    return naming->text;
}

/* All are of the only source. */
static const void *source_of_row(void *context, uint64_t row, size_t *bytes)
{
    static const uint16_t source = 0;
    (void)context, (void)row;
    *bytes = sizeof source;
    return &source;
}

enum status names_write(hid_t file, const struct result_names *names, struct error *err)
{
    struct naming naming = {.names = names};
    H5_SCOPED hid_t images = H5I_INVALID_HID;
    const bool failed = h5_create_group(&images, file, image_table.group, err) ||
                        h5_put_column(file, images, "path", VALUE_TEXT, names->count, NULL,
                                      image_table.axis, path_of_row, &naming, err) ||
                        h5_put_column(file, images, "source", VALUE_U16, names->count, NULL,
                                      image_table.axis, source_of_row, NULL, err);
    free(naming.text);
    return failed ? STATUS_FAILED : write_source(file, images, names->source, err);
}
