/* isolate.h: decoders in processes of their own, for files that nobody vouches for.
 *
 *     this process                         template                    workers, one a decoder
 *     isolate_open ─────── fork ──────────> waits
 *     decode_open_isolated ── "one more" ─> fork ────────────────────> waits
 *     decode_begin ───────── request, descriptors of some files ─────> headers, and rows of small
 *                            (bytes in memory go as files, too)        ones, into shared memory
 *     decode_rows ────────── request ────────────────────────────────> rows into shared memory
 *     the worker is gone: reason, and a new one before the next file
 *
 * The template is forked while there is one thread and no OpenCL: every worker comes from it, also
 * the one that takes the place of a dead one. A worker has no descriptor but the template's
 * /dev/null, its end of a socket, its own memory figures and the files that it was given; it has
 * limits (sandbox.h), and dies with its parents. What it answers is checked as a file would be. */
#ifndef CLPIPE_DECODE_ISOLATE_H
#define CLPIPE_DECODE_ISOLATE_H

#include "decode/decode.h"

struct isolate;

struct isolate_config {
    struct decode_options options;
    /* Rows are handed over through that many bytes of shared memory for each worker. */
    uint64_t slot_bytes;
    double max_seconds; /* for one file, of waiting for its worker; 0: no bound */
    bool headers_only;  /* no rows will be asked for */
    struct stop *stop;  /* once it is overdue nobody waits for a worker any more; may be NULL */
};

/* Forks the template: to be called before there are threads. */
enum status isolate_open(struct isolate **out, const struct isolate_config *config,
                         struct error *err);

/* Ends the template, and the workers with it. Accepts NULLs. */
void isolate_close(struct isolate **isolate);

/* A decoder whose codecs run in a worker of its own. One thread at a time; the template's workers at
 * once. */
enum status decode_open_isolated(struct decode **out, struct isolate *isolate, struct error *err);

#endif
