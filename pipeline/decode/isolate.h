/* isolate.h: decoders in processes of their own, for files that nobody vouches for.
 *
 *     this process                         template                    workers, one a decoder
 *     isolate_open ─────── fork ──────────> waits
 *     decode_open_isolated ── "one more" ─> fork ────────────────────> waits
 *     decode_begin ───────── request, descriptors of some files ─────> headers, and rows of small
 *                                                                      ones, into shared memory
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

/* --- inside decode -----------------------------------------------------------------------------
 */

/* A worker, from the outside: as struct decode. One thread at a time; several at once can have one
 * each. */
struct isolated;

enum status isolated_open(struct isolated **out, struct isolate *isolate, struct error *err);
enum status isolated_ready(struct isolated *isolated, struct error *err);
unsigned isolated_ahead(const struct isolated *isolated);
void isolated_announce(struct isolated *isolated, const struct decode_file *files, unsigned count);
enum reason isolated_begin(struct isolated *isolated, int fd, const char *path, uint64_t bytes,
                           int64_t mtime_ns, struct image_info *info, struct failure *failure);
enum reason isolated_rows(struct isolated *isolated, uint8_t *dst, size_t stride, uint32_t rows,
                          struct failure *failure);
enum reason isolated_end(struct isolated *isolated, uint64_t digest[2], struct failure *failure);
void isolated_abort(struct isolated *isolated);
uint64_t isolated_bytes_read(const struct isolated *isolated);
void isolated_close(struct isolated **isolated);

#endif
