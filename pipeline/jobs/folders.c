/* folders.c: numbers the folders of images in the order of their first image. */
#include "jobs/folders.h"
#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

struct folder_slot {
    uint64_t digest[2];
    uint32_t number; /* from 1 on; 0: free */
};

static size_t find_slot(const struct folder_numbers *table, const uint64_t digest[2])
{
    size_t at = (size_t)digest[0] & (table->slots - 1);
    while (table->slot[at].number != 0 &&
           memcmp(table->slot[at].digest, digest, sizeof table->slot[at].digest) != 0)
        at = (at + 1) & (table->slots - 1);
    return at;
}

static enum status grow(struct folder_numbers *table, struct error *err)
{
    struct folder_numbers larger = {.slots = table->slots ? 2 * table->slots : 256,
                                    .count = table->count};
    larger.slot = calloc(larger.slots, sizeof *larger.slot);
    if (!larger.slot)
        return error_memory(err, larger.slots * sizeof *larger.slot, "the folders of images");
    for (size_t i = 0; i < table->slots; i++)
        if (table->slot[i].number != 0)
            larger.slot[find_slot(&larger, table->slot[i].digest)] = table->slot[i];
    free(table->slot);
    *table = larger;
    return STATUS_OK;
}

enum status folder_number(uint32_t *number, struct folder_numbers *table, uint16_t source,
                          const char *folder, size_t length, struct error *err)
{
    uint64_t digest[2];
    enum status status = STATUS_OK;
    murmur3_of_path(digest, source, folder, length);
    if (2 * ((size_t)table->count + 1) > table->slots)
        status = grow(table, err);
    if (status != STATUS_OK)
        return status;
    struct folder_slot *slot = &table->slot[find_slot(table, digest)];
    if (slot->number == 0)
        *slot = (struct folder_slot){{digest[0], digest[1]}, ++table->count};
    *number = slot->number - 1;
    return STATUS_OK;
}

void classes_clear(struct classes *classes)
{
    free(classes->of_row);
    *classes = (struct classes){0};
}

enum status folders_read(struct classes *out, struct result *result, const struct path_list *paths,
                         struct error *err)
{
    struct folder_numbers table = {0};
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
        status = folder_number(&out->of_row[row], &table, image.source, image.path_raw,
                               slash ? (size_t)(slash - image.path_raw) : 0, err);
    }
    out->count = table.count;
    free(table.slot);
    if (status != STATUS_OK || out->count < 2 || out->count >= n)
        classes_clear(out);
    return status;
}
