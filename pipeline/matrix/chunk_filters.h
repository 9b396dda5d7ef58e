/* chunk_filters.h: the bytes of a chunk of HDF5 back to its values, past HDF5, which inflates one
 * chunk at a time. They are untrusted: sizes that are wrong, damage and more values than the chunk
 * has are refused. Any thread. */
#ifndef CLPIPE_MATRIX_CHUNK_FILTERS_H
#define CLPIPE_MATRIX_CHUNK_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chunk_filter { CHUNK_SHUFFLE, CHUNK_DEFLATE, CHUNK_FLETCHER32, CHUNK_FILTERS };

struct chunk_filters {
    size_t bytes; /* of a chunk's values */
    unsigned count;
    enum chunk_filter
        filter[CHUNK_FILTERS]; /* in the order in which they were applied, each once */
    size_t element;            /* bytes, of CHUNK_SHUFFLE */
};

/* Bytes of each of two buffers; none that is stored needs more. */
size_t chunk_filters_room(const struct chunk_filters *filters);

extern const char chunk_filters_no_memory[];

/* The `size` bytes in `stored` become values, in `stored` or `other`: *values is which. Filter i
 * was not applied where bit i of `skipped` is set. Returns NULL, chunk_filters_no_memory, or what is
 * wrong with them, in words. */
const char *chunk_filters_undo(unsigned char **values, const struct chunk_filters *filters,
                               uint32_t skipped, unsigned char *stored, size_t size,
                               unsigned char *other);

#endif
