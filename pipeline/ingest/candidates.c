/* candidates.c: the smallest keys of a stream, in a max-heap. */
#include "ingest/candidates.h"

#include "base/hash.h"
#include "decode/decode.h"

#include <stdlib.h>
#include <string.h>

#define STOP_EVERY 1000

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    if (a->unpromised != b->unpromised)
        return b->unpromised;
    return a->hash != b->hash ? a->hash < b->hash : a->sequence < b->sequence;
}

static int compare(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

/* Restores the heap if item i sorts before one of its children. */
static void sift_down(struct candidates *candidates, uint32_t i)
{
    struct candidate *item = candidates->item;
    for (;;) {
        uint32_t last = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2; child++)
            if (child < candidates->count && is_before(&item[last], &item[child]))
                last = child;
        if (last == i)
            return;
        const struct candidate moved = item[i];
        item[i] = item[last];
        item[last] = moved;
        i = last;
    }
}

static void sift_up(struct candidates *candidates, uint32_t i)
{
    struct candidate *item = candidates->item;
    for (; i > 0 && is_before(&item[(i - 1) / 2], &item[i]); i = (i - 1) / 2) {
        const struct candidate moved = item[i];
        item[i] = item[(i - 1) / 2];
        item[(i - 1) / 2] = moved;
    }
}

static uint64_t hash_path(const struct walk_item *item)
{
    uint64_t digest[2];
    murmur3_of(digest, item->path, item->path_length);
    return digest[0];
}

/* Adds an item if it is among the smallest. */
static enum status offer(struct candidates *candidates, const struct walk_item *item, uint32_t most,
                         struct error *err)
{
    struct candidate new = {.unpromised = !format_promised(item->path),
                            .hash = hash_path(item),
                            .sequence = item->sequence,
                            .source = item->source,
                            .where = item->where,
                            .bytes = item->bytes,
                            .mtime_ns = item->mtime_ns};
    const bool full = candidates->count == most;
    candidates->files++;
    if (full && !is_before(&new, &candidates->item[0]))
        return STATUS_OK;
    new.path = malloc(item->path_length + 1);
    if (!new.path)
        return error_memory(err, item->path_length + 1, "a path");
    memcpy(new.path, item->path, item->path_length + 1);
    if (full) {
        free(candidates->item[0].path);
        candidates->item[0] = new;
        sift_down(candidates, 0);
    } else {
        candidates->item[candidates->count] = new;
        sift_up(candidates, candidates->count++);
    }
    return STATUS_OK;
}

enum status candidates_choose(struct candidates *out, struct walk *walk, uint32_t most,
                              struct stop *stop, struct error *err)
{
    *out = (struct candidates){.item = malloc(most * sizeof *out->item)};
    struct walk_item item;
    enum status status;
    if (!out->item)
        return error_memory(err, most * sizeof *out->item, "the files of a sample");
    while ((status = walk_next(walk, &item, err)) == STATUS_OK) {
        if (item.sequence % STOP_EVERY == 0)
            status = stop_check(stop, "choosing the files of a sample", err);
        if (status == STATUS_OK && item.failure.reason == REASON_NONE && item.bytes > 0 &&
            !walk_is_unread(walk, item.source))
            status = offer(out, &item, most, err);
        if (status != STATUS_OK)
            return status;
    }
    if (status != STATUS_END)
        return status;
    qsort(out->item, out->count, sizeof *out->item, compare);
    return walk_rewind(walk, err);
}

void candidates_clear(struct candidates *candidates)
{
    for (uint32_t i = 0; i < candidates->count; i++)
        free(candidates->item[i].path);
    free(candidates->item);
    *candidates = (struct candidates){.count = 0};
}
