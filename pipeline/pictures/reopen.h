/* reopen.h: the pictures of rows of a result opened again, wherever they are: files, ranges of
 * plain tar and zip archives, members of compressed ones.
 *
 * A picture that is gone or has changed since it was read is left out: that is no error. Of an
 * archive this is said by one notice when all is closed. An archive is listed once, when the first
 * of its pictures is wanted; the wanted members of a compressed one then come from one more pass
 * over it for each call of reopen_rows. */
#ifndef CLPIPE_PICTURES_REOPEN_H
#define CLPIPE_PICTURES_REOPEN_H

#include "base/blob.h"
#include "base/stop.h"
#include "cluster/workers.h"
#include "file/result.h"

struct reopen;

struct reopen_config {
    struct result *result;   /* used by the calling thread only */
    struct workers *workers; /* both must live longer */
    uint64_t memory;         /* bytes of decompressed members held at a time, or one larger one */
    struct stop *stop;       /* may be NULL */
};

struct reopened {
    uint64_t index; /* of its row in `rows` */
    const char *path;
    const struct blob *blob;
    uint32_t width, height; /* as the result has them: upright */
};

struct reopen_use {
    /* Called for each picture that could be opened, on any thread, several at a time. */
    void (*picture)(void *context, const struct reopened *reopened);
    /* Called on the calling thread when `done` of the rows are done; may be NULL. */
    enum status (*progress)(void *context, uint64_t done, struct error *err);
    void *context;
};

enum status reopen_open(struct reopen **out, const struct reopen_config *config, struct error *err);
/* Accepts NULL and NULLs. Says which archives were gone or had changed. */
void reopen_close(struct reopen **reopen);

/* Opens the pictures of `count` rows, in ascending order of the rows whatever their order in
 * `rows`. STATUS_INTERRUPTED: a stop was requested. */
enum status reopen_rows(struct reopen *reopen, const uint64_t *rows, uint64_t count,
                        const struct reopen_use *use, struct error *err);

#endif
