/* output.h: files that appear whole or not at all.
 *
 * The file is written under "NAME.tmp-clpipe-PID" beside its final name (with "-2" and so on behind
 * it where that is taken), fsynced, renamed over it, and the directory is fsynced. What killed
 * processes have left under such names is removed when the same file is written again. A device
 * node, FIFO, socket or directory under the final name is refused; a symbolic link there stays, and
 * its target is written. A file that is replaced keeps its permissions. */
#ifndef CLPIPE_BASE_OUTPUT_H
#define CLPIPE_BASE_OUTPUT_H

#include "base/error.h"

/* Between the final name and the number of the process; nobody else makes such names. */
#define OUTPUT_TEMPORARY ".tmp-clpipe-"

struct output;

/* What `path` leads to: symbolic links under the final name are followed, whether or not there is a
 * file at their end. *resolved is the caller's to free; NULL on failure. */
enum status output_resolve(char **resolved, const char *path, struct error *err);

/* Checks that `path` can be written (the directory exists and takes files; the name is free or a
 * regular file) and creates the temporary file, empty. STATUS_FAILED says why not. */
enum status output_open(struct output **out, const char *path, struct error *err);
/* The temporary file's name, valid until close. */
const char *output_temporary(const struct output *output);
/* Its descriptor, open for reading and writing; owned by the output. */
int output_descriptor(const struct output *output);
/* fsync, rename, fsync of the directory. */
enum status output_commit(struct output *output, struct error *err);
/* Removes the temporary file if it was not committed. Accepts NULL and NULLs. */
void output_close(struct output **output);

/* Removes the file, and what killed processes have left of it under temporary names. */
void output_remove(const char *path);

/* Whether `name` is that of a temporary file (or directory) on its way to `final`; both without
 * directories. */
bool output_is_temporary(const char *name, const char *final);

/* write() until all is written; STATUS_FAILED with errno (ENOSPC: "free some space"). */
enum status write_all(int fd, const void *data, size_t size, const char *path, struct error *err);

#endif
