/* reopen.h: opens the pictures of rows of a result again: files, ranges of plain tar and zip
 * archives, and members of compressed ones.
 *
 * A picture that is missing or has changed is left out without an error; for archives, one notice
 * is logged at the end. An archive is listed once, when its first picture is requested; each call
 * of reopen_rows then reads the members of a compressed archive in one more pass. */
#ifndef CLPIPE_JOBS_REOPEN_H
#define CLPIPE_JOBS_REOPEN_H

#include "base/blob.h"
#include "base/watch.h"
#include "base/workers.h"
#include "result/result.h"
#include <stdatomic.h>

struct reopen;

struct reopen_config {
    struct result *result;   /* used by the calling thread only */
    struct workers *workers; /* both must outlive it */
    uint64_t memory;         /* bytes of decompressed members held at a time, or one larger one */
    struct watch watch;      /* shows the rows that are done */
};

struct reopened {
    uint64_t index; /* of its row in `rows` */
    const char *path;
    const struct blob *blob;
    uint32_t width, height; /* upright size in the result */
};

struct reopen_use {
    /* Called for each opened picture, on any thread, several at a time. */
    void (*picture)(void *context, const struct reopened *reopened);
    void *context;
    const char *phase; /* to show; NULL: none */
    /* Not STATUS_OK: the remaining pictures are not opened; may be NULL. */
    const atomic_int *failed;
};

/* STATUS_FAILED: no memory; then *out is NULL. */
enum status reopen_open(struct reopen **out, const struct reopen_config *config, struct error *err);
/* Accepts NULL. Reports archives that were missing or had changed. */
void reopen_close(struct reopen **reopen);

/* Opens the pictures of `count` rows, in ascending order whatever the order of `rows`.
 * STATUS_INTERRUPTED: stopped. */
enum status reopen_rows(struct reopen *reopen, const uint64_t *rows, uint64_t count,
                        const struct reopen_use *use, struct error *err);

#endif
