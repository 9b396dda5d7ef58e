/* keysort.c: multikey quicksort on 8-byte words (Bentley and Sedgewick's three-way partitioning,
 * with the current word of each key cached beside its reference).
 *
 * Paths in a directory share long prefixes, which a comparison sort would read in every comparison,
 * with cache misses. Here each word is read once per record and level, and records with equal words
 * proceed to the next word together. */
#include "sources/keysort.h"
#include <endian.h>
#include <string.h>

#define SMALL        20          /* insertion sort below this size */
#define STOP_AT_SIZE (32 * 1024) /* smaller parts are sorted without checks for a stop */

int key_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t common = a_length < b_length ? a_length : b_length;
    int order = memcmp(a, b, common);
    if (order != 0)
        return order;
    return (a_length > b_length) - (a_length < b_length);
}

static const char *key_of(const char *arena, const struct record_reference *reference,
                          size_t *length)
{
    const char *record = arena + (size_t)reference->place * RECORD_ALIGNMENT;
    struct record_header header;
    memcpy(&header, record, sizeof header);
    *length = header.key_length;
    return record + sizeof header;
}

/* Reads the word at `depth`, at most the key's length. */
static void load(struct record_reference *reference, const char *arena, size_t depth)
{
    size_t length;
    const char *key = key_of(arena, reference, &length) + depth;
    uint64_t word = 0;
    length -= depth;
    reference->left = length < 8 ? (uint32_t)length : 8;
    if (reference->left == 8)
        memcpy(&word, key, 8);
    else
        memcpy(&word, key, reference->left);
    reference->word = be64toh(word);
}

/* Compares the cached words. Zeros after a key's end equal zeros in a longer key: the shorter key
 * sorts first. Returns 0 with left < 8 if the keys are equal, with left == 8 if they continue. */
static int compare_words(const struct record_reference *a, const struct record_reference *b)
{
    if (a->word != b->word)
        return a->word < b->word ? -1 : 1;
    return (a->left > b->left) - (a->left < b->left);
}

static int compare_whole(const struct record_reference *a, const struct record_reference *b,
                         const char *arena, size_t depth)
{
    int order = compare_words(a, b);
    if (order != 0 || a->left < 8)
        return order;
    size_t a_length, b_length;
    const char *a_key = key_of(arena, a, &a_length), *b_key = key_of(arena, b, &b_length);
    depth += 8;
    return key_compare(a_key + depth, a_length - depth, b_key + depth, b_length - depth);
}

static void insertion_sort(struct record_reference *references, size_t count, const char *arena,
                           size_t depth)
{
    for (size_t i = 1; i < count; i++) {
        struct record_reference moving = references[i];
        size_t j = i;
        while (j > 0 && compare_whole(&moving, &references[j - 1], arena, depth) < 0) {
            references[j] = references[j - 1];
            j--;
        }
        references[j] = moving;
    }
}

static void swap(struct record_reference *a, struct record_reference *b)
{
    struct record_reference c = *a;
    *a = *b;
    *b = c;
}

/* The median of three random elements, so that no order of names accidentally makes sorting
 * slow. */
static struct record_reference choose_pivot(const struct record_reference *references, size_t count,
                                            uint64_t *random)
{
    const struct record_reference *pick[3];
    for (int i = 0; i < 3; i++) {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        pick[i] = &references[*random % count];
    }
    const struct record_reference *low = pick[0], *high = pick[1];
    if (compare_words(high, low) < 0) {
        low = pick[1];
        high = pick[0];
    }
    if (compare_words(pick[2], low) <= 0)
        return *low;
    return compare_words(pick[2], high) < 0 ? *pick[2] : *high;
}

struct part {
    struct record_reference *references;
    size_t count, depth;
};

/* The two smaller parts are sorted recursively, the largest in the loop: the stack is at most
 * log2(count) deep. */
static void sort_part(struct part part, const char *arena, struct stop *stop, uint64_t *random)
{
    while (part.count >= SMALL) {
        if (part.count >= STOP_AT_SIZE && stop_requested(stop) != STOP_NONE)
            return;
        struct record_reference pivot = choose_pivot(part.references, part.count, random);
        size_t below = 0, above = part.count, i = 0;
        while (i < above) {
            int order = compare_words(&part.references[i], &pivot);
            if (order < 0)
                swap(&part.references[i++], &part.references[below++]);
            else if (order > 0)
                swap(&part.references[i], &part.references[--above]);
            else
                i++;
        }
        struct part parts[3] = {
            {part.references, below, part.depth},
            {part.references + above, part.count - above, part.depth},
            {part.references + below, above - below, part.depth + 8},
        };
        if (pivot.left < 8)
            parts[2].count = 0; /* equal keys: done */
        for (size_t j = 0; j < parts[2].count; j++)
            load(&parts[2].references[j], arena, parts[2].depth);
        int largest = parts[0].count > parts[1].count ? 0 : 1;
        if (parts[2].count > parts[largest].count)
            largest = 2;
        for (int j = 0; j < 3; j++)
            if (j != largest)
                sort_part(parts[j], arena, stop, random);
        part = parts[largest];
    }
    insertion_sort(part.references, part.count, arena, part.depth);
}

void keysort(struct record_reference *references, size_t count, const char *arena,
             struct stop *stop)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < count; i++)
        load(&references[i], arena, 0);
    sort_part((struct part){references, count, 0}, arena, stop, &random);
}
