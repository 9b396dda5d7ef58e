/* appender.h: appends to a file through a thread of its own, so that producers wait for the disk
 * only when it falls behind by a whole buffer.
 *
 * What is appended is written in large pieces and made durable (fdatasync) about once a second. The
 * first error stays: every later call returns it. Any thread may call. */
#ifndef CLPIPE_LOG_APPENDER_H
#define CLPIPE_LOG_APPENDER_H

#include "log/workdir.h"
#include <stddef.h>
#include <stdint.h>

struct appender;

/* Appends to `fd` at its current position, which is `offset`, as long as `workdir` is this process's. Both
 * stay the caller's; `path` is for messages. */
enum status appender_open(struct appender **out, int fd, uint64_t offset,
                          const struct workdir *workdir, const char *path, struct error *err);

/* Takes `size` bytes, waiting while the buffer is full; *offset is where in the file they come to
 * lie. */
enum status appender_add(struct appender *appender, const void *data, size_t size, uint64_t *offset,
                         struct error *err);

/* Returns when everything added before is durable. */
enum status appender_sync(struct appender *appender, struct error *err);

/* Writes and syncs what is left (best effort) and ends the thread. Accepts NULL and NULLs. */
void appender_close(struct appender **appender);

#endif
