/* reopen.h: opens the pictures of rows of a result again: files, ranges of plain tar and zip
 * archives, and members of compressed ones; and decodes them, on all threads, with the result's
 * options (alpha, profiles) but unscaled, or for display.
 *
 * A picture that is missing or has changed is left out without an error; for archives, one notice
 * is logged at the end. An archive is listed once, when its first picture is requested; each call
 * of reopen_rows then reads the members of a compressed archive in one more pass. */
#ifndef CLPIPE_JOBS_REOPEN_H
#define CLPIPE_JOBS_REOPEN_H

#include "base/blob.h"
#include "base/watch.h"
#include "base/workers.h"
#include "decode/decode.h"
#include "result/result.h"
#include <stdatomic.h>

struct reopen;

struct reopen_config {
    struct result *result;   /* used by the calling thread only */
    struct workers *workers; /* both must outlive it */
    uint64_t memory;         /* bytes of decompressed members held at a time, or one larger one, and
                              * as many for decoding; a picture that needs more is decoded alone */
    struct watch watch;      /* shows the rows that are done */
};

struct reopened {
    uint64_t index; /* of its row in `rows` */
    const char *path;
    const struct blob *blob;
    uint32_t width, height; /* upright size in the result */
};

/* Bytes of rows decoded at a time; at least one row. */
#define REOPEN_STRIP (256u << 10)

struct reopen_use {
    /* One of the two is called for each opened picture, on any thread, several at a time. */
    void (*picture)(void *context, const struct reopened *reopened);
    /* With its decoder if the header was read, and the index of its row in `rows`. Must call
     * decode_rows for all rows, then decode_end; returns false if one of them failed or decode_end
     * was not called. */
    bool (*decode)(void *context, uint64_t index, struct decode *decode,
                   const struct image_info *info);
    /* To decode. Not 0: pixels for display, scaled by 1, 2, 4 or 8 if the format supports it, with
     * the longer side not below this. */
    uint32_t side;
    /* Bytes that `decode` needs in addition to a strip of rows; NULL: none. */
    uint64_t (*memory)(void *context, const struct image_info *info);
    void *context;
    const char *phase; /* to show; NULL: none */
    /* Not STATUS_OK: the remaining pictures are not opened; may be NULL. */
    const atomic_int *failed;
};

/* The options with which the result's pixels were decoded. STATUS_FAILED: its parameters are damaged. */
enum status reopen_decode_options(struct decode_options *out, const struct result *result,
                                  struct error *err);

/* STATUS_FAILED: no memory; then *out is NULL. */
enum status reopen_open(struct reopen **out, const struct reopen_config *config, struct error *err);
/* Accepts NULL. Reports archives that were missing or had changed. */
void reopen_close(struct reopen **reopen);

/* Opens the pictures of `count` rows, in ascending order whatever the order of `rows`.
 * STATUS_INTERRUPTED: stopped. */
enum status reopen_rows(struct reopen *reopen, const uint64_t *rows, uint64_t count,
                        const struct reopen_use *use, struct error *err);

#endif
