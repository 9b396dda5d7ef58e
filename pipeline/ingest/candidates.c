/* candidates.c: the smallest keys of a stream: collects up to twice as many, and then drops the
 * larger half. */
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

/* Sorts the items and drops those after the first `most`. */
static void trim(struct candidates *candidates, uint32_t most)
{
    qsort(candidates->item, candidates->count, sizeof *candidates->item, compare);
    while (candidates->count > most)
        free(candidates->item[--candidates->count].path);
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
                            .where = item->entry.where,
                            .bytes = item->entry.bytes,
                            .mtime_ns = item->entry.mtime_ns};
    if (candidates->trimmed && !is_before(&new, &candidates->item[most - 1]))
        return STATUS_OK;
    new.path = malloc(item->path_length + 1);
    if (!new.path)
        return error_memory(err, item->path_length + 1, "a path");
    memcpy(new.path, item->path, item->path_length + 1);
    candidates->item[candidates->count++] = new;
    if (candidates->count == 2 * most) {
        trim(candidates, most);
        candidates->trimmed = true;
    }
    return STATUS_OK;
}

enum status candidates_choose(struct candidates *out, struct walk *walk, uint32_t most,
                              struct stop *stop, struct error *err)
{
    *out = (struct candidates){.item = malloc(2 * (size_t)most * sizeof *out->item)};
    struct walk_item item;
    enum status status;
    if (!out->item)
        return error_memory(err, 2 * (size_t)most * sizeof *out->item, "the files of a sample");
    while ((status = walk_next(walk, &item, err)) == STATUS_OK) {
        if (item.sequence % STOP_EVERY == 0)
            status = stop_check(stop, "choosing the files of a sample", err);
        out->unread += item.entry.failure.reason == REASON_UNREADABLE;
        if (status == STATUS_OK && item.entry.failure.reason == REASON_NONE &&
            item.entry.bytes > 0 && !walk_is_unread(walk, item.source))
            status = offer(out, &item, most, err);
        if (status != STATUS_OK)
            return status;
    }
    if (status != STATUS_END)
        return status;
    trim(out, most);
    return walk_rewind(walk, err);
}

void candidates_clear(struct candidates *candidates)
{
    for (uint32_t i = 0; i < candidates->count; i++)
        free(candidates->item[i].path);
    free(candidates->item);
    *candidates = (struct candidates){.count = 0};
}
