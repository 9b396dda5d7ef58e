/* names.c: one pass to count the paths that are not UTF-8, one to write all. */
#include "file/names.h"
#include "base/path.h"
#include "file/columns.h"
#include <stdlib.h>
#include <string.h>

static enum status write_source(hid_t file, hid_t images, const char *source, const char *path,
                                struct error *err)
{
    enum status status = STATUS_FAILED;
    const hsize_t one = 1;
    const size_t size = 4 * strlen(source) + 1;
    hid_t dataset = H5I_INVALID_HID;
    char *text = malloc(size);
    if (!text) {
        error_memory(err, size, "a source");
        goto out;
    }
    path_to_utf8(text, size, source, strlen(source));
    if (h5_create_scale(file, SOURCE_AXIS, 1, path, err) ||
        h5_create_dataset(&dataset, images, "sources", VALUE_TEXT, 1, &one, path, err) ||
        h5_attach_scale(file, dataset, 0, SOURCE_AXIS, path, err) ||
        h5_write_rows(dataset, VALUE_TEXT, 0, 1, &text, path, err))
        goto out;
    status = h5_finish_dataset(&dataset, path, err);
out:
    h5_close(&dataset);
    free(text);
    return status;
}

enum status names_write(hid_t file, const struct result_names *names, const char *path,
                        struct error *err)
{
    const struct result_image row = {.source = 0};
    struct columns *columns = NULL;
    hid_t images = H5I_INVALID_HID;
    uint64_t raw = 0, raw_bytes = 0;
    size_t length;
    for (uint64_t i = 0; i < names->count; i++) {
        const char *name = names->path(names->context, i, &length);
        if (!utf8_valid(name, length)) {
            raw++;
            raw_bytes += length;
        }
    }
    enum status status = columns_create(&columns, &images, file, &name_table, names->count, false,
                                        raw, raw_bytes, path, err);
    for (uint64_t i = 0; i < names->count && status == STATUS_OK; i++) {
        const char *name = names->path(names->context, i, &length);
        status = columns_add(columns, &row, name, (uint32_t)length, err);
    }
    if (status == STATUS_OK)
        status = columns_finish(columns, err);
    columns_close(&columns);
    if (status == STATUS_OK)
        status = write_source(file, images, names->source, path, err);
    h5_close(&images);
    return status;
}
