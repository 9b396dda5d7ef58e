/* jpeg_stream.h: converts JPEG files to streams for a device: tables, and entropy-coded data
 * without stuffed bytes. Internal to decode. */
#ifndef CLPIPE_DECODE_JPEG_STREAM_H
#define CLPIPE_DECODE_JPEG_STREAM_H

#include "decode/input.h"
#include "decode/stream.h"

#include <stdio.h> /* needed by jpeglib.h */

#include <jpeglib.h>

/* After the header of a file with that layout (jpeg_dct.h) is read: sets all but data and bits.
 * False: the library might warn about it, or a stream cannot represent it. */
bool jpeg_stream_begin(struct stream_head *head, const struct jpeg_decompress_struct *info,
                       const struct dct_layout *layout);

/* Reads the scan, of at most `most` bytes, to a payload of stream_bytes(head, most). False: it does
 * not end with a marker, or has fill bytes or unexpected restart markers; the payload is
 * undefined. */
bool jpeg_stream_read(void *payload, struct stream_head *head, uint64_t most, struct input *input);

#endif
