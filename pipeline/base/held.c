/* held.c: a list of blocks, each preceded by a header with the strictest alignment. */
#include "base/held.h"
#include <stdlib.h>

struct held_block {
    struct held_block *before;
    _Alignas(max_align_t) char bytes[];
};

void *held_array(struct held *held, uint64_t count, size_t size)
{
    size_t bytes, whole;
    struct held_block *block = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) &&
        !__builtin_add_overflow(bytes, sizeof *block + 1, &whole))
        block = calloc(1, whole);
    held->failed |= !block;
    held->bytes += count * size;
    if (!block)
        return NULL;
    block->before = held->last;
    held->last = block;
    return block->bytes;
}

enum status held_check(const struct held *held, const char *what, struct error *err)
{
    return held->failed ? error_memory(err, (size_t)held->bytes, what) : STATUS_OK;
}

void held_free(struct held *held)
{
    for (struct held_block *block = held->last, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    *held = (struct held){0};
}
