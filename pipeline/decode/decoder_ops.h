/* decoder_ops.h: the two ways to decode behind decode.h: on the calling thread (decode.c), and in a
 * process of its own (isolate.c). Inside decode.
 *
 * Each begins with a struct decode. The functions are those of decode.h. */
#ifndef CLPIPE_DECODE_DECODER_OPS_H
#define CLPIPE_DECODE_DECODER_OPS_H

#include "decode/decode.h"

struct decoder_ops {
    /* These three are NULL where there is nothing to start and no file is taken ahead. */
    enum status (*ready)(struct decode *decode, struct error *err);
    unsigned (*ahead)(const struct decode *decode);
    void (*announce)(struct decode *decode, const struct decode_file *files, unsigned count);
    enum reason (*begin)(struct decode *decode, const struct blob *blob, const char *path,
                         struct image_info *info, struct failure *failure);
    enum reason (*rows)(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);
    /* NULL: begin never fills info->dct. */
    enum reason (*coefficients)(struct decode *decode, void *dst, struct failure *failure);
    bool (*stream)(struct decode *decode, void *dst); /* NULL: begin never fills stream_bytes */
    enum reason (*end)(struct decode *decode, uint64_t digest[2], struct failure *failure);
    void (*abort)(struct decode *decode);
    uint64_t (*bytes_read)(const struct decode *decode);
    void (*close)(struct decode *decode);
};

struct decode {
    const struct decoder_ops *ops;
    unsigned for_people; /* the scale of the file to begin; 0: by the options */
};

#endif
