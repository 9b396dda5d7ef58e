/* input.h: a blob read front to back through one reusable buffer, digested on the way.
 *
 * No mmap: a file that shrinks under us would be a signal instead of an error. */
#ifndef CLPIPE_DECODE_INPUT_H
#define CLPIPE_DECODE_INPUT_H

#include "base/blob.h"
#include "base/hash.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At least what a codec looks at before it reads on: 4096. Fuzzing builds with that little, to come
 * to the buffer's end. */
#ifndef INPUT_BUFFER
#define INPUT_BUFFER (128u << 10)
#endif

struct input {
    struct blob blob;     /* borrowed */
    uint8_t *buffer;      /* INPUT_BUFFER bytes, owned */
    size_t position, end; /* what is still unread in the buffer */
    uint64_t total;       /* bytes read, from the start */
    uint64_t most;        /* once so many are read it ends as if there were no more */
    bool at_end;          /* all bytes were read, or blob_read() has said so */
    int error_number;     /* of a failed read, or 0 */
    struct stop *stop;    /* once it is overdue reading fails; may be NULL */
    struct murmur3 digest;
};

/* Allocates the buffer; false if there is no memory. */
bool input_init(struct input *input);
void input_clear(struct input *input);

/* Starts on another blob, which must stay open. */
void input_begin(struct input *input, const struct blob *blob);

/* Makes sure that unread bytes are in the buffer: true; at the end or after an error: false. */
bool input_fill(struct input *input);

/* The next byte, or -1 at the end and after an error. */
int input_byte(struct input *input);

/* At least `want` unread bytes (at most INPUT_BUFFER) or as many as there are; returns how many. */
size_t input_peek(struct input *input, size_t want);

/* Copies up to `size` bytes out; returns how many. */
size_t input_read(struct input *input, void *out, size_t size);

/* Skips up to `size` bytes; returns how many there were. */
uint64_t input_skip(struct input *input, uint64_t size);

/* Reads at `offset` instead, for formats that jump: neither counted in `total` nor digested, and
 * independent of what is read in order. Returns how many bytes there were; error_number is set
 * where reading failed. */
size_t input_at(struct input *input, uint64_t offset, void *out, size_t size);

#endif
