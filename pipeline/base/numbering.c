/* numbering.c: see numbering.h. */
#include "base/numbering.h"

#include "base/hash.h"

#include <stdlib.h>

struct numbered {
    uint64_t low;
    uint32_t high, number; /* from 1 on; 0: free */
};

static struct numbered *find(const struct numbering *numbering, uint64_t low, uint32_t high)
{
    size_t at = (size_t)low & (numbering->slots - 1);
    while (numbering->slot[at].number != 0 &&
           (numbering->slot[at].low != low || numbering->slot[at].high != high))
        at = (at + 1) & (numbering->slots - 1);
    return &numbering->slot[at];
}

enum status numbering_look(uint32_t *number, struct numbering *numbering, uint16_t source,
                           const char *path, size_t length, const char *what, struct error *err)
{
    uint64_t digest[2];
    if (2 * ((size_t)numbering->count + 1) > numbering->slots) {
        struct numbering larger = {.slots = numbering->slots ? 2 * numbering->slots : 512,
                                   .count = numbering->count};
        larger.slot = calloc(larger.slots, sizeof *larger.slot);
        if (!larger.slot)
            return error_memory(err, larger.slots * sizeof *larger.slot, what);
        for (size_t i = 0; i < numbering->slots; i++)
            if (numbering->slot[i].number != 0)
                *find(&larger, numbering->slot[i].low, numbering->slot[i].high) =
                    numbering->slot[i];
        free(numbering->slot);
        *numbering = larger;
    }
    murmur3_of_path(digest, source, path, length);
    struct numbered *found = find(numbering, digest[0], (uint32_t)digest[1]);
    if (found->number == 0)
        *found = (struct numbered){digest[0], (uint32_t)digest[1], ++numbering->count};
    *number = found->number - 1;
    return STATUS_OK;
}
