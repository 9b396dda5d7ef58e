/* isolate.h: decoders in separate processes, for untrusted files.
 *
 *     this process                         template                    one worker per decoder
 *     isolate_open ─────── fork ──────────> waits
 *     decode_open_isolated ── "one more" ─> fork ────────────────────> waits
 *     decode_begin ───────── request, descriptors of some files ─────> headers, and rows of small
 *                            (bytes in memory go as files, too)        ones, into shared memory
 *     decode_rows ────────── request ────────────────────────────────> rows into shared memory
 *     the worker is gone: reason, and a new one before the next file
 *
 * The template is forked while there is one thread and no OpenCL; it forks all workers, including
 * replacements for dead ones. A worker has no descriptors except the template's /dev/null, its end
 * of a socket, its memory statistics and the files sent to it. It has limits (base/sandbox.h) and
 * dies with its parents. Its answers are as untrusted as a file. */
#ifndef CLPIPE_DECODE_ISOLATE_H
#define CLPIPE_DECODE_ISOLATE_H

#include "decode/decode.h"

struct isolate;

struct isolate_config {
    struct decode_options options;
    /* Bytes of shared memory per worker for rows. */
    uint64_t slot_bytes;
    double max_seconds; /* time limit per file; 0: none */
    bool headers_only;  /* rows will not be requested */
    struct stop *stop;  /* when overdue, waiting for workers ends; may be NULL */
};

/* Forks the template: call before starting threads. */
enum status isolate_open(struct isolate **out, const struct isolate_config *config,
                         struct error *err);

/* Ends the template and the workers. Accepts NULL. */
void isolate_close(struct isolate **isolate);

/* A decoder that runs codecs in its own worker process. One thread at a time; the workers of a
 * template run in parallel. */
enum status decode_open_isolated(struct decode **out, struct isolate *isolate, struct error *err);

#endif
