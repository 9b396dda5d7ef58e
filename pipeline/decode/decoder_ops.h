/* decoder_ops.h: operations of the two implementations of decode.h: on the calling thread
 * (decode.c), and in a separate process (isolate.c). Internal to decode.
 *
 * Each begins with a struct decode. The functions are those of decode.h. */
#ifndef CLPIPE_DECODE_DECODER_OPS_H
#define CLPIPE_DECODE_DECODER_OPS_H

#include "decode/decode.h"

struct decoder_ops {
    /* NULL if nothing needs starting and files are not read ahead. */
    enum status (*ready)(struct decode *decode, struct error *err);
    void (*announce)(struct decode *decode, const struct decode_file *files, unsigned count);
    enum reason (*begin)(struct decode *decode, const struct blob *blob, const char *path,
                         struct image_info *info, struct failure *failure);
    enum reason (*rows)(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);
    /* NULL: begin never sets info->dct */
    enum reason (*coefficients)(struct decode *decode, void *dst, struct failure *failure);
    bool (*stream)(struct decode *decode, void *dst); /* NULL: begin never sets stream_bytes */
    enum reason (*end)(struct decode *decode, uint64_t digest[2], struct failure *failure);
    void (*abort)(struct decode *decode);
    void (*close)(struct decode *decode);
};

struct decode {
    const struct decoder_ops *ops;
    unsigned ahead;             /* decode_ahead */
    unsigned display_scale;     /* scale for display of the next file; 0: use the options */
    const uint64_t *bytes_read; /* decode_bytes_read */
};

#endif
