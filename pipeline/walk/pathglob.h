/* pathglob.h: --include and --exclude.
 *
 * A glob is a pattern of fnmatch(3): * ? [...] and \ to take the next character literally. It is
 * matched component by component, so none of these matches a '/', and a leading dot is nothing
 * special. The exact rules:
 *  - A glob without '/' is matched with the last component of a path; one with '/' (other than a
 *    last one) with the whole path relative to its SOURCE. A leading "/" or "./" only says "whole
 *    path": "/x.png" is the x.png directly under the SOURCE.
 *  - A component "**" stands for any number of components, none included; as the last component
 *    for at least one: all that is below.
 *  - A glob that ends in '/' matches directories only; others match files, and as an exclude glob
 *    directories too.
 *  - Exclude wins: a file is left out if an exclude glob matches it or a directory above it (which
 *    is then not entered).
 *  - With include globs a file is taken if one matches it, or if one that ends in '/' matches a
 *    directory above it. Directories need not be included to be entered. */
#ifndef CLPIPE_WALK_PATHGLOB_H
#define CLPIPE_WALK_PATHGLOB_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct pathglob;

/* STATUS_USAGE: a glob that names nothing. The result may be used by any thread. */
enum status pathglob_open(struct pathglob **out, const char *const *include, unsigned include_count,
                          const char *const *exclude, unsigned exclude_count, struct error *err);

/* For a directory (`path` without a trailing '/'): is it excluded; do the include globs take
 * everything below it? */
bool pathglob_excludes_directory(const struct pathglob *globs, const char *path, size_t length);
bool pathglob_includes_directory(const struct pathglob *globs, const char *path, size_t length);

/* For a file in a directory that is not excluded: is it taken? `included`: the include globs take
 * everything below a directory above it. */
bool pathglob_takes(const struct pathglob *globs, const char *path, size_t length, bool included);

/* The same for a path on its own: checks the directories in it, too. */
bool pathglob_takes_alone(const struct pathglob *globs, const char *path, size_t length);

/* Accepts NULL and NULLs. */
void pathglob_close(struct pathglob **globs);

#endif
