/* decode_again.h: pictures of rows of a result decoded again, on all threads. Pixels are as the
 * result's own were (alpha, profiles), but not scaled; or for people to look at. */
#ifndef CLPIPE_PICTURES_DECODE_AGAIN_H
#define CLPIPE_PICTURES_DECODE_AGAIN_H

#include "decode/decode.h"
#include "pictures/reopen.h"

struct decode_again;

/* memory of the config: bytes for decoding, and as many for members of compressed archives; one
 * picture that needs more is decoded alone. */
enum status decode_again_open(struct decode_again **out, const struct reopen_config *config,
                              struct error *err);
/* Accepts NULL and NULLs. Says which archives were gone or had changed. */
void decode_again_close(struct decode_again **again);

/* At least one row, and as many as about this. */
#define DECODE_AGAIN_STRIP (256u << 10)

struct decode_again_use {
    /* Not 0: pixels for people, where formats that can be scaled are, by 1, 2, 4 or 8, to no less than
     * this length of the longer side. */
    uint32_t side;
    /* Bytes that `picture` needs beyond a strip of rows; NULL: none. */
    uint64_t (*memory)(void *context, const struct image_info *info);
    /* Called for each picture whose header could be read, on any thread, several at a time, with
     * the index of its row in `rows`: calls decode_rows for all rows and decode_end; false: one of
     * them failed, or decode_end was not called. */
    bool (*picture)(void *context, uint64_t index, struct decode *decode,
                    const struct image_info *info);
    /* As in reopen.h. */
    enum status (*progress)(void *context, uint64_t done, struct error *err);
    void *context;
};

/* As reopen_rows. */
enum status decode_again_rows(struct decode_again *again, const uint64_t *rows, uint64_t count,
                              const struct decode_again_use *use, struct error *err);

#endif
