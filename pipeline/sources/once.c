/* once.c: two sorts. Keys of the first are "PATH NUL INDEX"; paths have no NUL, so keys are ordered
 * by path, then by index. Keys of the second are the indices. */
#include "sources/once.h"

#include "sources/bytes.h"
#include "sources/extsort.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_SIZE sizeof(uint64_t)

struct once {
    const char *directory;
    uint64_t memory;
    struct stop *stop;
    struct extsort *by_path, *by_index;
    struct bytes key;
    uint64_t count, repeated;
};

enum status once_open(struct once **out, const char *directory, uint64_t memory, struct stop *stop,
                      struct error *err)
{
    struct once *once = *out = calloc(1, sizeof *once);
    if (!once)
        return error_memory(err, sizeof *once, "paths");
    *once = (struct once){.directory = directory, .memory = memory / 2, .stop = stop};
    const enum status status = extsort_open(&once->by_path, directory, once->memory, stop, err);
    if (status != STATUS_OK)
        once_close(out);
    return status;
}

enum status once_add(struct once *once, const char *path, size_t length, const void *payload,
                     uint32_t payload_length, struct error *err)
{
    struct bytes *key = &once->key;
    const uint64_t index = htobe64(once->count++);
    enum status status;
    if ((status = bytes_set(key, path, length, err)) ||
        (status = bytes_append(key, "\0", 1, err)) ||
        (status = bytes_append(key, (const char *)&index, INDEX_SIZE, err)))
        return status;
    const struct extsort_record record = {.key = key->data,
                                          .payload = payload,
                                          .key_length = (uint32_t)key->length,
                                          .payload_length = payload_length};
    return extsort_add(once->by_path, &record, err);
}

/* Passes on the first of equal paths; the key is followed by its payload. */
static enum status drop_repeated(struct once *once, struct error *err)
{
    struct extsort_record record;
    struct bytes last = {0}; /* includes NUL */
    enum status status;
    while ((status = extsort_next(once->by_path, &record, err)) == STATUS_OK) {
        const size_t length = record.key_length - INDEX_SIZE;
        if (last.length == length && memcmp(last.data, record.key, length) == 0) {
            once->repeated++;
            continue;
        }
        if ((status = bytes_set(&last, record.key, length, err)) ||
            (status = bytes_set(&once->key, record.key, length, err)) ||
            (status = bytes_append(&once->key, record.payload, record.payload_length, err)))
            break;
        const struct extsort_record first = {.key = record.key + length,
                                             .payload = once->key.data,
                                             .key_length = INDEX_SIZE,
                                             .payload_length = (uint32_t)once->key.length};
        if ((status = extsort_add(once->by_index, &first, err)))
            break;
    }
    bytes_clear(&last);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status once_finish(struct once *once, struct error *err)
{
    enum status status;
    if ((status = extsort_finish(once->by_path, err)) ||
        (status = extsort_open(&once->by_index, once->directory, once->memory, once->stop, err)) ||
        (status = drop_repeated(once, err)))
        return status;
    extsort_close(&once->by_path);
    return extsort_finish(once->by_index, err);
}

uint64_t once_repeated(const struct once *once)
{
    return once->repeated;
}

enum status once_next(struct once *once, struct once_path *out, struct error *err)
{
    struct extsort_record record;
    const enum status status = extsort_next(once->by_index, &record, err);
    if (status != STATUS_OK)
        return status;
    const size_t length = strlen(record.payload);
    *out = (struct once_path){.path = record.payload,
                              .payload = record.payload + length + 1,
                              .length = length,
                              .payload_length = record.payload_length - (uint32_t)length - 1};
    return STATUS_OK;
}

void once_close(struct once **once)
{
    if (!once || !*once)
        return;
    extsort_close(&(*once)->by_path);
    extsort_close(&(*once)->by_index);
    bytes_clear(&(*once)->key);
    free(*once);
    *once = NULL;
}
