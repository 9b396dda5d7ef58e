/* holder.h: which process works in a directory, for machines whose locks do not reach each other.
 *
 * flock() keeps processes of one machine apart. On a network file system it may hold on one machine
 * only (NFS with local_lock, Lustre with localflock) or be missing. Therefore the process that has
 * the lock file writes a line into it and increments a counter in that line every two seconds; a
 * process that finds the line of another machine watches the counter before it takes over. Two
 * processes that find the directory free at the same moment are told apart by the lock file: the one that
 * takes over gives it a new inode. */
#ifndef CLPIPE_LOG_HOLDER_H
#define CLPIPE_LOG_HOLDER_H

#include "base/error.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stddef.h>

struct holder;

/* Who wrote the line: "process 123 on HOST", or "another process", also of no lock file (-1). */
void holder_name(char *name, size_t size, int lock);

/* Whether the line was written by this machine since it was started, as far as one can tell. */
bool holder_is_ours(int lock);

/* Whether a process uses the lock file `name` of `directory` that flock() does not keep away. False
 * where the last one has left, or was on this machine and the lock is ours (`locked`). Otherwise the
 * counter is watched, for 15 s at most, with a notice that names `path`. STATUS_INTERRUPTED: `stop`,
 * which may be NULL, came first. */
enum status holder_watch(bool *works, int directory, const char *name, bool locked,
                         const char *path, struct stop *stop, struct error *err);

/* Writes the line into `lock`, which is `name` of `directory` (all stay the caller's), and increments the
 * counter in a thread until holder_end, which marks the file as left. Without memory or a thread for it
 * the counter stands still, and other machines are not kept away. holder_end accepts NULLs. */
void holder_begin(struct holder **holder, int lock, int directory, const char *name);
void holder_end(struct holder **holder);

/* Whether the lock file is still the holder's: a process that was stopped for longer than another one
 * watches finds that it is not. True for NULL. Any thread. */
bool holder_keeps(const struct holder *holder);

#endif
