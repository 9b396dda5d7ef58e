/* duplicates.c: counts images that are exact copies of others, by the digests of their bytes.
 *
 * Digests are sorted in memory. If they do not fit, several passes each sort a part of them, chosen
 * by their leading bits, which are practically random. */
#include "base/held.h"
#include "result/result_internal.h"
#include <stdlib.h>
#include <string.h>

#define MEMORY (128u << 20)
#define BLOCK  65536

struct digest {
    uint64_t word[2];
};

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct digest));
}

/* Counts the copies among the digests whose part is `part` of `parts`. */
static enum status count_part(uint64_t *copies, struct result *result, struct digest *kept,
                              uint64_t room, struct digest *block, unsigned part, unsigned parts,
                              struct error *err)
{
    uint64_t images = result->images->count, count = 0;
    for (uint64_t first = 0; first < images; first += BLOCK) {
        uint64_t rows = images - first < BLOCK ? images - first : BLOCK;
        if (h5_read_rows(result->images->dataset[IMAGE_DIGEST], VALUE_U64, first, rows, block, err))
            return STATUS_FAILED;
        for (uint64_t i = 0; i < rows; i++) {
            if ((block[i].word[0] >> 32) % parts != part)
                continue;
            if (count == room)
                return h5_damaged(err, result->path, "the digests of /images are not random");
            kept[count++] = block[i];
        }
    }
    qsort(kept, count, sizeof *kept, compare);
    for (uint64_t i = 1; i < count; i++)
        *copies += compare(&kept[i - 1], &kept[i]) == 0;
    return STATUS_OK;
}

enum status result_duplicates(struct result *result, uint64_t *copies, struct error *err)
{
    *copies = 0;
    uint64_t images = result_images(result), most = MEMORY / sizeof(struct digest);
    if (images < 2 || !result->has_images)
        return STATUS_OK;
    unsigned parts = (unsigned)((images + most / 2 - 1) / (most / 2));
    /* All copies of a file are in one part. */
    uint64_t room = parts == 1 ? images : most;
    SCOPED_HELD held = {0};
    struct digest *kept = held_array(&held, room, sizeof *kept),
                  *block = held_array(&held, BLOCK, sizeof *block);
    enum status status = held_check(&held, "digests", err);
    for (unsigned part = 0; part < parts && status == STATUS_OK; part++)
        status = count_part(copies, result, kept, room, block, part, parts, err);
    return status;
}
