/* output_directory.h: directories that appear complete or not at all.
 *
 * The directory is written as "NAME.tmp-clpipe-PID" beside its final name and renamed when it is
 * complete. Its writer holds a lock on it; leftovers of killed processes are removed when the same
 * name is written again. Only a directory that is empty, or that contains the marker and no names
 * but those of its owner (or passes another check), is ever replaced: by exchanging the two names if
 * the system supports that, so that a complete one always exists. A symbolic link under the final name is kept, and its
 * target is written. */
#ifndef CLPIPE_BASE_OUTPUT_DIRECTORY_H
#define CLPIPE_BASE_OUTPUT_DIRECTORY_H

#include "base/error.h"
#include <stddef.h>

struct output_directory;

/* Names allowed in a directory that is replaced, NULL-terminated and static; the first is the
 * marker, a file without which it is not replaced. */
typedef const char *const *output_names;

/* Removes the temporary directories of killed processes for `final`; live ones are locked. */
void output_directory_remove_abandoned(const char *final);

/* STATUS_FAILED: the name exists and is not replaceable. */
enum status output_directory_check(const char *path, output_names names, struct error *err);

enum status output_directory_open(struct output_directory **out, const char *path,
                                  output_names names, struct error *err);
/* The same if check() decides what may be replaced: returns an error unless the name is free or its
 * directory may go. Called again by commit if the name is taken by then. */
enum status output_directory_open_if(struct output_directory **out, const char *path,
                                     enum status (*check)(void *context, struct error *err),
                                     void *context, struct error *err);
/* The temporary directory's path, valid until close. */
const char *output_directory_temporary(const struct output_directory *directory);
/* Its descriptor; owned by the directory. */
int output_directory_descriptor(const struct output_directory *directory);
/* Creates a directory in it. */
enum status output_directory_add(struct output_directory *directory, const char *name,
                                 struct error *err);
/* Writes a new file in it. Any thread, for different names. */
enum status output_directory_write(struct output_directory *directory, const char *name,
                                   const void *data, size_t bytes, struct error *err);
/* Syncs, and renames to the final name. */
enum status output_directory_commit(struct output_directory *directory, struct error *err);
/* Removes the temporary directory if it was not committed. Accepts NULL and a pointer to NULL. */
void output_directory_close(struct output_directory **directory);

#endif
