/* holder.h: who works in a directory, for machines whose locks do not reach each other.
 *
 * flock() keeps processes of one machine apart. On a network file system it may hold on one machine
 * only (NFS with local_lock, Lustre with localflock) or not be there at all. So whoever has the
 * lock file writes a line into it and counts on in that line every two seconds; whoever finds the
 * line of another machine watches whether the count goes on before it takes the place. Two that
 * find a place free in the same moment are not told apart. */
#ifndef CLPIPE_LOG_HOLDER_H
#define CLPIPE_LOG_HOLDER_H

#include "base/error.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stddef.h>

struct holder;

/* Who wrote the line: "process 123 on HOST", or "another process". */
void holder_name(char *name, size_t size, int lock);

/* Whether a process works with the lock file `name` of `directory` that flock() does not keep away.
 * Nobody does where the last one has left, or was on this machine and the lock is ours (`locked`).
 * Else the count is watched, 15 s at the most, with a notice that names `path`. STATUS_INTERRUPTED:
 * `stop`, which may be NULL, came first. */
enum status holder_watch(bool *works, int directory, const char *name, bool locked,
                         const char *path, struct stop *stop, struct error *err);

/* Writes the line into `lock`, which stays the caller's, and keeps counting in a thread until
 * holder_end, which says in the file that nobody works there. Where there is no memory or no
 * thread for it nobody counts, and another machine is not kept away. holder_end accepts NULLs. */
void holder_begin(struct holder **holder, int lock);
void holder_end(struct holder **holder);

#endif
