/* output.h: files that appear complete or not at all.
 *
 * The file is written under "NAME.tmp-clpipe-PID" beside its final name (followed by "-2" and so on
 * if that exists), fsynced, renamed over it, and the directory is fsynced. Temporary files of
 * killed processes are removed when the same file is written again. A device node, FIFO, socket or
 * directory under the final name is refused; a symbolic link is kept, and its target is written. A
 * file that is replaced keeps its permissions.
 *
 * Just before the rename, the file under the final name must still be the one that was there when
 * the work began, unchanged (device, inode, size and times; not permissions, owner and links), or
 * there must still be none. */
#ifndef CLPIPE_BASE_OUTPUT_H
#define CLPIPE_BASE_OUTPUT_H

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/* Between the final name and the process number; reserved for temporary files of clpipe. */
#define OUTPUT_TEMPORARY ".tmp-clpipe-"

struct output;

/* Follows symbolic links under the final name of `path`, whether or not their target exists. The
 * caller frees *resolved; NULL on failure. */
enum status output_resolve(char **resolved, const char *path, struct error *err);

/* Checks that `path` can be written (the directory exists and is writable; the name does not exist
 * or is a regular file) and creates the empty temporary file. STATUS_FAILED: it cannot. */
enum status output_open(struct output **out, const char *path, struct error *err);
/* The temporary file's name, valid until close. */
const char *output_temporary(const struct output *output);
/* Its descriptor, open for reading and writing; owned by the output. */
int output_descriptor(const struct output *output);
/* fsync, rename, fsync of the directory. STATUS_FAILED, too, if the final name now has another
 * file. */
enum status output_commit(struct output *output, struct error *err);
/* Removes an uncommitted temporary file; ends a claim. Accepts NULL and a pointer to NULL. */
void output_close(struct output **output);

/* For work on `path` that begins long before its output_open: until output_close, output_commit may
 * only replace what is now under the final name. check, unless NULL, is called under a lock before
 * each rename by this process, to any name, and prevents it by returning an error. Any thread. */
enum status output_claim(struct output **out, const char *path,
                         enum status (*check)(const void *context, struct error *err),
                         const void *context, struct error *err);

/* STATUS_FAILED if the name exists, or if that cannot be determined. */
enum status output_check_free(const char *path, struct error *err);

/* fsync() of a file or directory; also true if the file system cannot sync it. */
bool output_sync(int descriptor);

/* Removes the file, and temporary files of it that killed processes left behind. */
void output_remove(const char *path);

/* True if `name` is that of a temporary file (or directory) for `final`, both without directory; NULL:
 * for any. */
bool output_is_temporary(const char *name, const char *final);

/* Calls write() until all is written; STATUS_FAILED with errno (ENOSPC: "free some space"). */
enum status write_all(int fd, const void *data, size_t size, const char *path, struct error *err);

/* The same with pwrite(), to a file that a repeated command continues. */
enum status write_at(int fd, const void *data, size_t size, uint64_t offset, const char *path,
                     struct error *err);
/* Reads the rest of a file or stream, followed by a NUL that *size does not count. The caller frees
 * *data, even after an error. */
enum status read_to_end(char **data, size_t *size, int fd, const char *name, struct error *err);
/* Whether the name in the directory, or the path (AT_FDCWD), is that of the open file; links are
 * not followed. */
bool output_still_named(int directory, const char *name, int fd);
/* Reads a small file in an open directory, where it must not be a link, or at a path (AT_FDCWD),
 * followed by a NUL; NULL: it is missing, empty, not a file, or cannot be read. The caller frees
 * it. */
char *read_small(size_t *size, int directory, const char *name);
/* Calls pread() until `size` bytes are read; *got is less only at the end of the file. */
enum status read_at(int fd, void *data, size_t size, uint64_t offset, size_t *got, const char *path,
                    struct error *err);

#endif
