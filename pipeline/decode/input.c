/* input.c: reads files. Every byte read in order is digested once. */
#include "decode/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool input_init(struct input *input)
{
    memset(input, 0, sizeof *input);
    input->blob = (struct blob)BLOB_NOTHING;
    input->buffer = malloc(INPUT_BUFFER);
    return input->buffer != NULL;
}

void input_clear(struct input *input)
{
    free(input->buffer);
    input->buffer = NULL;
}

void input_begin(struct input *input, const struct blob *blob)
{
    input->blob = *blob;
    input->position = input->end = 0;
    input->total = 0;
    input->most = UINT64_MAX;
    input->at_end = false;
    input->error_number = 0;
    murmur3_init(&input->digest);
}

/* Reads more data; false at the end of the file and on errors. */
static bool read_more(struct input *input)
{
    /* No read at the expected end: growth of the file is detected otherwise. */
    if ((input->total > 0 && input->total == input->blob.bytes) || input->total >= input->most)
        input->at_end = true;
    if (input->at_end)
        return false;
    if (stop_overdue(input->stop)) {
        input->at_end = true;
        input->error_number = ECANCELED;
        return false;
    }
    const ssize_t got = blob_read(&input->blob, input->buffer + input->end,
                                  INPUT_BUFFER - input->end, input->total);
    if (got <= 0) {
        input->at_end = true;
        input->error_number = got < 0 ? errno : 0;
        return false;
    }
    murmur3_update(&input->digest, input->buffer + input->end, (size_t)got);
    input->end += (size_t)got;
    input->total += (uint64_t)got;
    return true;
}

bool input_fill(struct input *input)
{
    if (input->position < input->end)
        return true;
    input->position = input->end = 0;
    return read_more(input);
}

int input_byte(struct input *input)
{
    return input_fill(input) ? input->buffer[input->position++] : -1;
}

size_t input_peek(struct input *input, size_t want)
{
    while (input->end - input->position < want) {
        if (input->position > 0) {
            memmove(input->buffer, input->buffer + input->position, input->end - input->position);
            input->end -= input->position;
            input->position = 0;
        }
        if (input->end == INPUT_BUFFER || !read_more(input))
            break;
    }
    return input->end - input->position;
}

size_t input_read(struct input *input, void *out, size_t size)
{
    uint8_t *dst = out;
    size_t done = 0;
    while (done < size && input_fill(input)) {
        size_t n = input->end - input->position;
        n = n < size - done ? n : size - done;
        if (dst)
            memcpy(dst + done, input->buffer + input->position, n);
        input->position += n;
        done += n;
    }
    return done;
}

size_t input_at(struct input *input, uint64_t offset, void *out, size_t size)
{
    uint8_t *dst = out;
    size_t done = 0;
    if (stop_overdue(input->stop)) {
        input->error_number = ECANCELED;
        return 0;
    }
    while (done < size) {
        const ssize_t got = blob_read(&input->blob, dst + done, size - done, offset + done);
        if (got < 0)
            input->error_number = errno;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}
