/* heif_items.c: reads the item references and properties of ISO/IEC 14496-12 (boxes 'iref' and
 * 'iprp' of a 'meta' box).
 *
 * Only references that decoding follows are read: from a derived picture to its parts ('dimg'), and
 * from auxiliary pictures ('auxl', in the opposite direction). Inconsistent boxes are read as
 * libheif does: a box ends where its parent does, whatever its size. */
#include "decode/heif_items.h"

#include "base/array.h"
#include "base/compare.h"
#include "decode/pixel.h"

#include <stdlib.h>
#include <string.h>

/* Limits on bytes of references, and on pictures that one picture needs: a grid has at most 65,536
 * parts. */
#define MOST_BYTES      (300u << 10)
#define MOST_NEEDS      (150u << 10)
#define MOST_PARTS      (1u << 17)
#define MOST_BOXES      10000u
#define MOST_PROPERTIES 4096u

/* Decoding `whole` needs `part`, which is the sort key. */
struct need {
    uint32_t part, whole;
};

struct needs {
    struct need *need;
    size_t count;
    bool no_memory, too_many;
};

struct box {
    uint64_t content, end; /* file offsets */
    char type[4];
};

/* The box at `at`, within `end`. */
static bool read_box(struct box *box, struct input *input, uint64_t at, uint64_t end)
{
    uint8_t head[16];
    if (end - at < 8 || input_at(input, at, head, 8) < 8)
        return false;
    uint64_t size = big_endian(head, 4), length = 8;
    memcpy(box->type, head + 4, 4);
    if (size == 1) {
        if (end - at < 16 || input_at(input, at + 8, head + 8, 8) < 8)
            return false;
        size = (uint64_t)big_endian(head + 8, 4) << 32 | big_endian(head + 12, 4);
        length = 16;
    } else if (size == 0) {
        size = end - at;
    }
    if (size < length)
        return false;
    box->content = at + length;
    box->end = size < end - at ? at + size : end;
    return true;
}

static void add(struct needs *needs, uint32_t whole, uint32_t part)
{
    if (needs->count == MOST_NEEDS) {
        needs->too_many = true;
        return;
    }
    struct need *more = array_with_room(needs->need, needs->count, sizeof *more);
    if (!more) {
        needs->no_memory = true;
        return;
    }
    needs->need = more;
    needs->need[needs->count++] = (struct need){.part = part, .whole = whole};
}

/* Reads the content of 'iref': version and flags, then boxes "from, count, to...". false: too
 * large. */
static bool read_references(struct needs *needs, struct input *input, const struct box *iref)
{
    uint64_t size = iref->end - iref->content;
    if (size > MOST_BYTES)
        return false;
    uint8_t *data = malloc((size_t)size + 1);
    if (!data) {
        needs->no_memory = true;
        return true;
    }
    size = input_at(input, iref->content, data, (size_t)size);
    unsigned id = size >= 4 && data[0] > 0 ? 4 : 2;
    /* An entry's size is ignored, as in libheif; its counts define its length. */
    for (uint64_t at = 4; at < size && size - at >= 8;) {
        const uint8_t *type = data + at + 4;
        bool derived = memcmp(type, "dimg", 4) == 0, auxiliary = memcmp(type, "auxl", 4) == 0;
        at += 8 + (big_endian(data + at, 4) == 1 ? 8 : 0) + (memcmp(type, "uuid", 4) == 0 ? 16 : 0);
        if (at > size || size - at < id + 2)
            break;
        uint32_t from = big_endian(data + at, id), count = big_endian(data + at + id, 2);
        at += id + 2;
        for (; count > 0 && size - at >= id; count--, at += id) {
            uint32_t to = big_endian(data + at, id);
            if (derived)
                add(needs, from, to);
            if (auxiliary)
                add(needs, to, from);
        }
    }
    free(data);
    return true;
}

struct property {
    char type[4];
    uint8_t value; /* its first byte, which is all of irot and imir */
};

/* Moves sizes to the front of each item's list, and reads the primary item's transformations. */
static void order_lists(struct heif_items *items, const struct property *property, unsigned count,
                        uint32_t primary)
{
    uint8_t *data = items->lists;
    const unsigned id = data[0] > 0 ? 4 : 2, wide = data[3] & 1 ? 2 : 1;
    size_t at = 8;
    for (uint32_t left = big_endian(data + 4, 4); left > 0 && items->size - at > id; left--) {
        const bool is_primary = big_endian(data + at, id) == primary;
        const unsigned entries = data[at + id];
        uint8_t *entry = data + at + id + 1;
        if ((items->size - at - id - 1) / wide < entries)
            return;
        at += id + 1 + (size_t)entries * wide;
        unsigned sizes = 0;
        int mirrored = -1; /* index of the last transformation if it is a mirroring */
        for (unsigned i = 0; i < entries; i++) {
            uint8_t *own = entry + i * wide, copy[2] = {own[0], own[wide - 1]};
            const uint32_t index = big_endian(own, wide) & (wide == 2 ? 0x7fff : 0x7f);
            if (index == 0 || index > count)
                continue;
            const struct property *of = &property[index - 1];
            if (memcmp(of->type, "ispe", 4) == 0) {
                memmove(entry + wide, entry, i * wide);
                memcpy(entry, copy, wide);
                mirrored += mirrored >= 0;
                sizes++;
            } else if (memcmp(of->type, "irot", 4) == 0 || memcmp(of->type, "clap", 4) == 0) {
                items->turned ^= is_primary && of->type[0] == 'i' && (of->value & 1);
                mirrored = -1;
            } else if (memcmp(of->type, "imir", 4) == 0) {
                mirrored = (int)i;
                items->mirror = is_primary ? of->value & 1 : items->mirror;
            }
        }
        if (is_primary && sizes > 0 && mirrored > 0)
            memmove(entry + wide, entry, (unsigned)mirrored * wide); /* overwrites it with another
                                                                      * size */
        else if (is_primary)
            items->mirror = -1;
    }
}

static void read_properties(struct heif_items *items, struct needs *needs, struct input *input,
                            const struct box *iprp, uint32_t primary)
{
    struct property *property = calloc(MOST_PROPERTIES, sizeof *property);
    struct box box, inner;
    unsigned count = 0;
    needs->no_memory = needs->no_memory || !property;
    for (uint64_t at = iprp->content; property && read_box(&box, input, at, iprp->end);
         at = box.end)
        if (memcmp(box.type, "ipco", 4) == 0) {
            for (uint64_t in = box.content;
                 count < MOST_PROPERTIES && read_box(&inner, input, in, box.end); in = inner.end) {
                memcpy(property[count].type, inner.type, 4);
                input_at(input, inner.content, &property[count].value, 1);
                items->hevc |= memcmp(inner.type, "hvcC", 4) == 0;
                count++;
            }
        } else if (memcmp(box.type, "ipma", 4) == 0 && !items->lists &&
                   box.end - box.content >= 8 && box.end - box.content <= MOST_BYTES) {
            items->at = box.content;
            items->lists = malloc((size_t)(box.end - box.content));
            needs->no_memory = needs->no_memory || !items->lists;
            if (items->lists)
                items->size =
                    input_at(input, box.content, items->lists, (size_t)(box.end - box.content));
        }
    if (items->size >= 8)
        order_lists(items, property, count, primary);
    free(property);
}

/* Reads all references and properties of all 'meta' boxes. false: too many. */
static bool read_all(struct needs *needs, struct heif_items *items, struct input *input)
{
    struct box box, inner;
    unsigned boxes = 0;
    for (uint64_t at = 0; read_box(&box, input, at, input->blob.bytes); at = box.end) {
        if (++boxes > MOST_BOXES)
            return false;
        if (memcmp(box.type, "meta", 4) != 0)
            continue;
        uint8_t primary[8] = {0};
        /* After version and flags. */
        for (uint64_t in = box.content + 4; in < box.end && read_box(&inner, input, in, box.end);
             in = inner.end) {
            if (++boxes > MOST_BOXES)
                return false;
            if (memcmp(inner.type, "iref", 4) == 0 && !read_references(needs, input, &inner))
                return false;
            if (memcmp(inner.type, "pitm", 4) == 0)
                input_at(input, inner.content, primary, sizeof primary);
            if (memcmp(inner.type, "iprp", 4) == 0)
                read_properties(items, needs, input, &inner,
                                big_endian(primary + 4, primary[0] > 0 ? 4 : 2));
        }
    }
    return !needs->too_many;
}

/* --- cycles ---------------------------------------------------------------------------------- */

struct item {
    uint32_t id, open; /* id: sort key; open: parts not counted yet */
    uint64_t parts;    /* pictures that it needs, itself included */
};

static struct item *find(struct item *items, size_t count, uint32_t id)
{
    return bsearch(&id, items, count, sizeof *items, compare_u32);
}

/* Lists the distinct items; returns their number. */
static size_t list_items(struct item *items, const struct needs *needs)
{
    size_t count = 0;
    for (size_t i = 0; i < needs->count; i++) {
        items[2 * i] = (struct item){.id = needs->need[i].whole, .parts = 1};
        items[2 * i + 1] = (struct item){.id = needs->need[i].part, .parts = 1};
    }
    qsort(items, 2 * needs->count, sizeof *items, compare_u32);
    for (size_t i = 0; i < 2 * needs->count; i++) {
        if (count == 0 || items[count - 1].id != items[i].id)
            items[count++] = items[i];
    }
    return count;
}

/* Processes items whose parts are all counted, in topological order; the rest are in cycles. `next`
 * has space for all items. */
static const char *count_parts(struct needs *needs, struct item *items, struct item **next)
{
    size_t count = list_items(items, needs), ready = 0, done = 0;
    for (size_t i = 0; i < needs->count; i++)
        find(items, count, needs->need[i].whole)->open++;
    for (size_t i = 0; i < count; i++) {
        if (items[i].open == 0)
            next[ready++] = &items[i];
    }
    qsort(needs->need, needs->count, sizeof *needs->need, compare_u32);
    for (; done < ready; done++) {
        const struct item *item = next[done];
        if (item->parts > MOST_PARTS)
            return "a picture needs too many others";
        size_t low = 0, high = needs->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (needs->need[middle].part < item->id)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < needs->count && needs->need[low].part == item->id; low++) {
            struct item *whole = find(items, count, needs->need[low].whole);
            whole->parts += item->parts;
            if (--whole->open == 0)
                next[ready++] = whole;
        }
    }
    return done < count ? "pictures refer to each other in a cycle" : NULL;
}

enum reason heif_items_read(struct heif_items *out, struct input *input, struct failure *failure)
{
    struct needs needs = {0};
    const char *wrong = NULL;
    *out = (struct heif_items){.mirror = -1};
    if (!read_all(&needs, out, input)) {
        wrong = "too many references between pictures";
    } else if (needs.count > 0) {
        struct item *items = calloc(2 * needs.count, sizeof *items);
        struct item **next = calloc(2 * needs.count, sizeof *next);
        needs.no_memory = needs.no_memory || !items || !next;
        if (!needs.no_memory)
            wrong = count_parts(&needs, items, next);
        free(items);
        free(next);
    }
    free(needs.need);
    if (needs.no_memory)
        return failure_set(failure, REASON_OUT_OF_MEMORY,
                           "no memory for its references and properties");
    return wrong ? failure_set(failure, REASON_CORRUPT, "%s", wrong) : REASON_NONE;
}
