/* jpeg_stream.h: JPEG files as streams for a device: their tables, and their entropy code without stuffed
 * bytes. Inside decode. */
#ifndef CLPIPE_DECODE_JPEG_STREAM_H
#define CLPIPE_DECODE_JPEG_STREAM_H

#include "decode/input.h"
#include "part/stream.h"

#include <stdio.h> /* jpeglib.h needs FILE */

#include <jpeglib.h>

/* After the header has been read, of a file with that layout (jpeg_dct.h): fills all but data and bits.
 * False: the library might not accept it, or a stream cannot express it. */
bool jpeg_stream_begin(struct stream_head *head, const struct jpeg_decompress_struct *info,
                       const struct dct_layout *layout);

/* Reads the scan, of at most `most` bytes, to a payload of stream_bytes(head, most). False: it does not end
 * with a marker, has fill bytes, or other restart markers than it should; the payload is undefined. */
bool jpeg_stream_read(void *payload, struct stream_head *head, uint64_t most,
                      struct jpeg_source_mgr *source, struct input *input);

#endif
