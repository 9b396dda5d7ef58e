/* redecode.h: rows of a result decoded again: small grey planes, and digests of all pixels. */
#ifndef CLPIPE_DUPLICATES_REDECODE_H
#define CLPIPE_DUPLICATES_REDECODE_H

#include "base/stop.h"
#include "cluster/workers.h"
#include "duplicates/alignment.h"
#include "file/result.h"

struct redecode;

/* What the pointers name must outlive it. memory: bytes for decoding; one picture that needs more is
 * decoded alone. Pixels are as the result's own were (alpha, profiles), but never scaled. */
enum status redecode_open(struct redecode **out, struct result *result, struct workers *workers,
                          uint64_t memory, struct stop *stop, struct error *err);
void redecode_close(struct redecode **pictures);

/* For each of `count` rows one of the two, the other is NULL: an upright grey plane, where planes[i]
 * points (its width is 0 where the picture is gone, has changed or cannot be decoded any more: no
 * error; with `fine` pixels where that is not NULL, in
 * all or none), or the digest of the upright RGB pixels (all bits 0 there). Each call reads compressed
 * archives from their beginning. Uses the result on the calling thread only, which is also told the
 * progress, if that is not NULL. STATUS_INTERRUPTED: a stop was requested. */
enum status redecode_read(struct redecode *pictures, const uint64_t *rows, uint64_t count,
                          struct alignment_plane *const *planes, uint64_t (*digests)[2],
                          void (*progress)(void *context, uint64_t done, uint64_t total),
                          void *progress_context, struct error *err);

#endif
