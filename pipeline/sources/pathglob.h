/* pathglob.h: --include and --exclude.
 *
 * A glob is a pattern of fnmatch(3): * ? [...] and \ to take the next character literally. It is
 * matched component by component, so wildcards do not match '/', and a leading dot is not
 * special. The exact rules:
 *  - A glob without '/' is matched against the last component of a path; one with '/' (other than a
 *    final one) against the whole path relative to its SOURCE. A leading "/" or "./" only means "whole
 *    path": "/x.png" is the x.png directly under the SOURCE.
 *  - A component "**" stands for any number of components, none included;
 *    as the last component, for at least one: everything below.
 *  - A glob that ends in '/' matches directories only; others match files, and as an exclude glob
 *    directories too.
 *  - Exclude wins: a file is left out if an exclude glob matches it or a directory above it (which
 *    is then not entered).
 *  - With include globs a file is included if one matches it, or if one that ends in '/' matches a
 *    directory above it. Directories need not be included to be entered. */
#ifndef CLPIPE_SOURCES_PATHGLOB_H
#define CLPIPE_SOURCES_PATHGLOB_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct pathglob;

/* STATUS_USAGE: an empty glob. The result may be used by any thread. */
enum status pathglob_open(struct pathglob **out, const char *const *include, unsigned include_count,
                          const char *const *exclude, unsigned exclude_count, struct error *err);

/* For a directory (`path` without trailing '/'): is it excluded? Do the include globs include
 * everything below it? */
bool pathglob_excludes_directory(const struct pathglob *globs, const char *path, size_t length);
bool pathglob_includes_directory(const struct pathglob *globs, const char *path, size_t length);

/* For a file in a directory that is not excluded: is it included? `included`: a directory above it
 * is included with everything below. */
bool pathglob_takes(const struct pathglob *globs, const char *path, size_t length, bool included);

/* The same for a single path: also checks its directories. */
bool pathglob_takes_alone(const struct pathglob *globs, const char *path, size_t length);

/* Accepts NULL. */
void pathglob_close(struct pathglob **globs);

#endif
