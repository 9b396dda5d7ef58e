/* chunk_filters.c: inverses of HDF5's filters, from one buffer to another and back. */
#include "matrix/chunk_filters.h"
#include "base/avx2.h"
#include <libdeflate.h>
#include <string.h>

#define CHECKSUM_BYTES 4

const char chunk_filters_no_memory[] = "there is no memory to inflate it";

size_t chunk_filters_room(const struct chunk_filters *filters)
{
    /* What zlib cannot compress it makes larger by less than a thousandth. */
    return filters->bytes + filters->bytes / 64 + 1024;
}

/* --- shuffle ----------------------------------------------------------------------------------- */

/* The first bytes of all elements, then the second ones... */
ALWAYS_INLINE void gather_bytes(unsigned char *restrict out, const unsigned char *restrict in,
                                size_t elements, size_t element)
{
    for (size_t i = 0; i < elements; i++)
        for (size_t j = 0; j < element; j++)
            out[i * element + j] = in[j * elements + i];
}

/* The usual sizes have an inner loop whose length the compiler knows. */
ALWAYS_INLINE void gather(unsigned char *out, const unsigned char *in, size_t elements,
                          size_t element)
{
    if (element == 2)
        gather_bytes(out, in, elements, 2);
    else if (element == 4)
        gather_bytes(out, in, elements, 4);
    else if (element == 8)
        gather_bytes(out, in, elements, 8);
    else
        gather_bytes(out, in, elements, element);
}

AVX2_LOOPS static void gather_avx2(unsigned char *out, const unsigned char *in, size_t elements,
                                   size_t element)
{
    gather(out, in, elements, element);
}

static void unshuffle(unsigned char *out, const unsigned char *in, size_t size, size_t element)
{
    const size_t elements = size / element, whole = elements * element;
    if (cpu_has_avx2())
        gather_avx2(out, in, elements, element);
    else
        gather(out, in, elements, element);
    memcpy(out + whole, in + whole, size - whole);
}

/* --- deflate ----------------------------------------------------------------------------------- */

static const char *inflate_all(unsigned char *out, size_t expected, const unsigned char *in,
                               size_t size)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor)
        return chunk_filters_no_memory;
    const enum libdeflate_result result =
        libdeflate_zlib_decompress(decompressor, in, size, out, expected, NULL);
    libdeflate_free_decompressor(decompressor);
    switch (result) {
    case LIBDEFLATE_SUCCESS:
        return NULL;
    case LIBDEFLATE_SHORT_OUTPUT:
        return "it has fewer values than its shape";
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return "it has more values than its shape";
    default:
        return "its deflate stream is damaged";
    }
}

/* --- fletcher32 -------------------------------------------------------------------------------- */

/* HDF5's: of big-endian words of 16 bits, an odd byte being the upper half of one. */
static uint32_t fletcher32(const unsigned char *data, size_t size)
{
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < size; i += 2) {
        low += (uint32_t)data[i] << 8 | (i + 1 < size ? data[i + 1] : 0);
        low = (low & 0xffff) + (low >> 16);
        high += low;
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

/* The sum lies behind the data, little-endian; HDF5 before 1.6.3 swapped the bytes of both halves.
 * */
static bool sum_is_right(const unsigned char *data, size_t size)
{
    const uint32_t sum = fletcher32(data, size);
    const unsigned char *at = data + size;
    const uint32_t is =
        (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
    const uint32_t swapped = (is & 0xff00ff) << 8 | (is >> 8 & 0xff00ff);
    return sum == is || sum == swapped;
}

/* --- all --------------------------------------------------------------------------------------- */

/* What inflating filter i has to give: the values, and the sums of filters that were applied
 * before. */
static size_t expected_before(const struct chunk_filters *filters, unsigned i, uint32_t skipped)
{
    size_t bytes = filters->bytes;
    while (i-- > 0)
        if (filters->filter[i] == CHUNK_FLETCHER32 && !(skipped >> i & 1))
            bytes += CHECKSUM_BYTES;
    return bytes;
}

const char *chunk_filters_undo(unsigned char **values, const struct chunk_filters *filters,
                               uint32_t skipped, unsigned char *stored, size_t size,
                               unsigned char *other)
{
    const char *wrong = NULL;
    for (unsigned i = filters->count; i-- > 0 && !wrong;) {
        unsigned char *from = stored;
        if (skipped >> i & 1)
            continue;
        if (filters->filter[i] == CHUNK_FLETCHER32) {
            if (size < CHECKSUM_BYTES || !sum_is_right(stored, size - CHECKSUM_BYTES))
                wrong = "its checksum is wrong";
            else
                size -= CHECKSUM_BYTES;
            continue;
        }
        if (filters->filter[i] == CHUNK_SHUFFLE) {
            if (filters->element < 2 || size / filters->element < 2)
                continue;
            unshuffle(other, stored, size, filters->element);
        } else {
            const size_t expected = expected_before(filters, i, skipped);
            wrong = inflate_all(other, expected, stored, size);
            size = expected;
        }
        stored = other;
        other = from;
    }
    if (!wrong && size != filters->bytes)
        wrong = "its size is not that of its values";
    *values = stored;
    return wrong;
}
