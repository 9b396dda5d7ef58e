/* skip.h: files that are never input: the run's own output and temporary files.
 *
 * A path is recognised by device and inode (if it exists when the walk begins, whatever its name),
 * and by directory and name. "NAME.partial" and "NAME.tmp-*" beside it are skipped too, since they
 * may appear during the walk. */
#ifndef CLPIPE_SOURCES_SKIP_H
#define CLPIPE_SOURCES_SKIP_H

#include "base/error.h"
#include <stdbool.h>
#include <sys/stat.h>

struct skip;

enum status skip_open(struct skip **out, const char *const *paths, unsigned count,
                      struct error *err);

/* Is this file or directory one of them? */
bool skip_identity(const struct skip *skip, const struct stat *st);
/* Is this name in that directory one of them? */
bool skip_name(const struct skip *skip, const struct stat *directory, const char *name);

/* Accepts NULL. */
void skip_close(struct skip **skip);

#endif
