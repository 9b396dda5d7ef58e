/* output_directory.h: directories that appear complete or not at all.
 *
 * The directory grows as "NAME.tmp-clpipe-PID" beside its final name and is renamed when it is whole.
 * Its writer holds a lock on it; what killed processes have left is removed when the same name is
 * written again. Only a directory that is empty, or that holds the marker and nothing but the names
 * that its owner writes, is ever replaced: by exchanging the two names where the system can do that,
 * so that there is always a whole one. A symbolic link under the final name is kept, and its target
 * is written. */
#ifndef CLPIPE_BASE_OUTPUT_DIRECTORY_H
#define CLPIPE_BASE_OUTPUT_DIRECTORY_H

#include "base/error.h"
#include <stddef.h>

struct output_directory;

/* Names that may stand in a directory that is replaced, ended by NULL; the first is the marker, a
 * file without which it is not replaced. Static. */
typedef const char *const *output_names;

/* Removes a directory and all in it, as far as that is possible. */
void output_directory_remove(const char *path);
/* Removes what killed processes have left on the way to `final`: who works on such a directory holds a
 * lock on it. */
void output_directory_remove_abandoned(const char *final);

/* STATUS_FAILED: there is something under that name that is not replaced. */
enum status output_directory_check(const char *path, output_names names, struct error *err);

enum status output_directory_open(struct output_directory **out, const char *path,
                                  output_names names, struct error *err);
/* The temporary directory's path, valid until close. */
const char *output_directory_temporary(const struct output_directory *directory);
/* Creates a directory in it. */
enum status output_directory_add(struct output_directory *directory, const char *name,
                                 struct error *err);
/* Writes a new file in it. May be called by several threads at a time, for different names. */
enum status output_directory_write(struct output_directory *directory, const char *name,
                                   const void *data, size_t bytes, struct error *err);
/* Syncs, and renames to the final name. */
enum status output_directory_commit(struct output_directory *directory, struct error *err);
/* Removes the temporary directory if it was not committed. Accepts NULL and NULLs. */
void output_directory_close(struct output_directory **directory);

#endif
