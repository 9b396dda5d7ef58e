/* bytes.c: a growing byte string. */
#include "sources/bytes.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum status bytes_append(struct bytes *bytes, const char *data, size_t length, struct error *err)
{
    /* Lengths of paths are 32 bits. */
    if (length > UINT32_MAX / 2 - bytes->length)
        return error_memory(err, bytes->length + length, "a path");
    size_t wanted = bytes->length + length + 1;
    if (wanted > bytes->capacity) {
        size_t capacity = 2 * bytes->capacity;
        if (capacity < wanted)
            capacity = wanted < 256 ? 256 : wanted;
        char *larger = realloc(bytes->data, capacity);
        if (!larger)
            return error_memory(err, capacity, "a path");
        bytes->data = larger;
        bytes->capacity = capacity;
    }
    if (length > 0)
        memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    bytes->data[bytes->length] = 0;
    return STATUS_OK;
}

enum status bytes_set(struct bytes *bytes, const char *data, size_t length, struct error *err)
{
    bytes->length = 0;
    return bytes_append(bytes, data, length, err);
}

void bytes_cut(struct bytes *bytes, size_t length)
{
    assert(length <= bytes->length);
    bytes->length = length;
    if (bytes->data)
        bytes->data[length] = 0;
}

void bytes_clear(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}
