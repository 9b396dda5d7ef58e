/* decode_again.h: decodes the pictures of rows of a result again, on all threads, with the result's
 * options (alpha, profiles) but unscaled, or for display. */
#ifndef CLPIPE_JOBS_DECODE_AGAIN_H
#define CLPIPE_JOBS_DECODE_AGAIN_H

#include "decode/decode.h"
#include "jobs/reopen.h"

/* The options with which the result's pixels were decoded. STATUS_FAILED: its parameters are damaged. */
enum status decode_again_options(struct decode_options *out, const struct result *result,
                                 struct error *err);

struct decode_again;

/* config's memory: bytes for decoding, and as many for members of compressed archives; a picture
 * that needs more is decoded alone. */
enum status decode_again_open(struct decode_again **out, const struct reopen_config *config,
                              struct error *err);
/* Accepts NULL. Reports archives that were missing or had changed. */
void decode_again_close(struct decode_again **again);

/* Bytes of rows decoded at a time; at least one row. */
#define DECODE_AGAIN_STRIP (256u << 10)

struct decode_again_use {
    /* Not 0: pixels for display, scaled by 1, 2, 4 or 8 if the format supports it, with the longer
     * side not below this. */
    uint32_t side;
    /* Bytes that `picture` needs in addition to a strip of rows; NULL: none. */
    uint64_t (*memory)(void *context, const struct image_info *info);
    /* Called for each picture whose header was read, on any thread, several at a time, with the
     * index of its row in `rows`. Must call decode_rows for all rows, then decode_end; returns
     * false if one of them failed or decode_end was not called. */
    bool (*picture)(void *context, uint64_t index, struct decode *decode,
                    const struct image_info *info);
    void *context;
    const char *phase; /* as in reopen.h, like: */
    const atomic_int *failed;
};

/* As reopen_rows. */
enum status decode_again_rows(struct decode_again *again, const uint64_t *rows, uint64_t count,
                              const struct decode_again_use *use, struct error *err);

#endif
