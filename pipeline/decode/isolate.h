/* isolate.h: decoders in separate processes, for untrusted files.
 *
 *     this process                         template                    workers, one a decoder
 *     isolate_open ─────── fork ──────────> waits
 *     decode_open_isolated ── "one more" ─> fork ────────────────────> waits
 *     decode_begin ───────── request, descriptors of some files ─────> headers, and rows of small
 *                            (bytes in memory go as files, too)        ones, into shared memory
 *     decode_rows ────────── request ────────────────────────────────> rows into shared memory
 *     the worker is gone: reason, and a new one before the next file
 *
 * The template is forked while there is one thread and no OpenCL: it forks every worker, also the
 * replacement of a dead one. A worker has no descriptors except the template's /dev/null, its end
 * of a socket, its own memory figures and the files that it was given; it has limits (base/sandbox.h),
 * and dies with its parents. Its answers are checked like the content of a file. */
#ifndef CLPIPE_DECODE_ISOLATE_H
#define CLPIPE_DECODE_ISOLATE_H

#include "decode/decode.h"

struct isolate;

struct isolate_config {
    struct decode_options options;
    /* Each worker passes rows through this many bytes of shared memory. */
    uint64_t slot_bytes;
    double max_seconds; /* limit on the wait for a worker, per file; 0: none */
    bool headers_only;  /* no rows will be asked for */
    struct stop *stop;  /* once it is overdue, workers are no longer waited for; may be NULL */
};

/* Forks the template: call it before starting threads. */
enum status isolate_open(struct isolate **out, const struct isolate_config *config,
                         struct error *err);

/* Ends the template, and the workers with it. Accepts NULLs. */
void isolate_close(struct isolate **isolate);

/* A decoder whose codecs run in a worker of its own. One thread at a time; the template's workers at
 * once. */
enum status decode_open_isolated(struct decode **out, struct isolate *isolate, struct error *err);

#endif
