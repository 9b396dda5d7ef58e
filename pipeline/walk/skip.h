/* skip.h: files that must never be taken for input: the run's own output and temporaries.
 *
 * A path to be skipped is known by its device and inode (where it exists when the walk begins,
 * whatever name leads to it), and by its directory and name; beside it "NAME.partial" and
 * "NAME.tmp-" with anything after it are skipped too, for they may appear while we walk.
 */
#ifndef CLPIPE_WALK_SKIP_H
#define CLPIPE_WALK_SKIP_H

#include "base/error.h"
#include <stdbool.h>
#include <sys/stat.h>

struct skip;

enum status skip_open(struct skip **out, const char *const *paths, unsigned count,
                      struct error *err);

/* Is this file or directory one of them? */
bool skip_identity(const struct skip *skip, const struct stat *st);
/* Can a name in this directory be one of them? Only then skip_name need be asked. */
bool skip_directory(const struct skip *skip, const struct stat *directory);
bool skip_name(const struct skip *skip, const struct stat *directory, const char *name);

/* Accepts NULL and NULLs. */
void skip_close(struct skip **skip);

#endif
