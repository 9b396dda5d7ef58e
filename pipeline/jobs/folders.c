/* folders.c: numbers the folders of images in the order of their first image. */
#include "jobs/folders.h"
#include "base/numbering.h"
#include <stdlib.h>
#include <string.h>

void classes_clear(struct classes *classes)
{
    free(classes->of_row);
    *classes = (struct classes){0};
}

enum status folders_read(struct classes *out, struct result *result, const struct path_list *paths,
                         struct error *err)
{
    struct numbering table = {0};
    const uint64_t n = paths ? paths->count : result_images(result);
    *out = (struct classes){.rows = n};
    if (n < 3 || n > UINT32_MAX)
        return STATUS_OK;
    out->of_row = malloc((size_t)n * sizeof *out->of_row);
    enum status status =
        out->of_row ? STATUS_OK
                    : error_memory(err, (size_t)n * sizeof *out->of_row, "the folders of images");
    for (uint64_t row = 0; row < n && status == STATUS_OK; row++) {
        struct result_image image = {.source = 0};
        size_t length = 0;
        if (paths)
            image.path_raw = path_list_at(paths, row, &length);
        else
            status = result_image_at(result, row, &image, err);
        if (status != STATUS_OK)
            break;
        const char *slash = memrchr(image.path_raw, '/', paths ? length : strlen(image.path_raw));
        status = numbering_look(&out->of_row[row], &table, image.source, image.path_raw,
                                slash ? (size_t)(slash - image.path_raw) : 0,
                                "the folders of images", err);
    }
    out->count = table.count;
    free(table.slot);
    if (status != STATUS_OK || out->count < 2 || out->count >= n)
        classes_clear(out);
    return status;
}
