/* input.h: reads a blob sequentially through a reusable buffer and digests it.
 *
 * No mmap: a file truncated while it is read would cause a signal instead of an error. */
#ifndef CLPIPE_DECODE_INPUT_H
#define CLPIPE_DECODE_INPUT_H

#include "base/blob.h"
#include "base/hash.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At least the largest lookahead of a codec, 4096. Fuzzing builds use that, to reach the buffer's
 * end. */
#ifndef INPUT_BUFFER
#define INPUT_BUFFER (128u << 10)
#endif

struct input {
    struct blob blob;     /* borrowed */
    uint8_t *buffer;      /* INPUT_BUFFER bytes, owned */
    size_t position, end; /* unread bytes in the buffer */
    uint64_t total;       /* bytes read, from the start */
    uint64_t most;        /* limit: after this many bytes the file appears to end */
    bool at_end;          /* all bytes were read, or blob_read() returned 0 */
    int error_number;     /* of a failed read, or 0 */
    struct stop *stop;    /* when overdue, reading fails; may be NULL */
    struct murmur3 digest;
    struct colours *colours; /* of the decoder, for its codecs: colours.h */
};

/* Allocates the buffer; false if there is no memory. */
bool input_init(struct input *input);
void input_clear(struct input *input);

/* Switches to another blob, which must stay open. */
void input_begin(struct input *input, const struct blob *blob);

/* Reads if the buffer is empty; false at the end or after an error. */
bool input_fill(struct input *input);

/* The next byte, or -1 at the end or after an error. */
int input_byte(struct input *input);

/* Buffers at least `want` bytes (at most INPUT_BUFFER), or all that are left; returns how many. */
size_t input_peek(struct input *input, size_t want);

/* Reads up to `size` bytes; returns how many. out NULL: skips them. */
size_t input_read(struct input *input, void *out, size_t size);

/* Reads at `offset`, for formats with offsets: neither counted in `total` nor digested, and without
 * effect on sequential reading. Returns the bytes read; sets error_number on errors. */
size_t input_at(struct input *input, uint64_t offset, void *out, size_t size);

#endif
