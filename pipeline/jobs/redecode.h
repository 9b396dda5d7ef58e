/* redecode.h: decodes rows of a result again, to small grey planes or digests of all pixels. */
#ifndef CLPIPE_JOBS_REDECODE_H
#define CLPIPE_JOBS_REDECODE_H

#include "jobs/alignment.h"
#include "jobs/reopen.h"

/* For each of `count` rows either an upright grey plane at planes[i] (its width is 0, without an
 * error, if the picture is missing, has changed or can no longer be decoded; with `fine` pixels if
 * that is not NULL, in all or none) or the digest of the upright RGB pixels (then all bits 0); the
 * other array is NULL. Each call reads compressed archives from their beginning. Uses the result,
 * and shows the pixels compared, only on the calling thread. STATUS_INTERRUPTED: a stop was
 * requested. */
enum status redecode_read(struct reopen *reopen, struct stop *stop, const uint64_t *rows,
                          uint64_t count, struct alignment_plane *const *planes,
                          uint64_t (*digests)[2], struct error *err);

#endif
