/* source_name.h: classifies sources and files by name, and defines the order of a source's rows.
 *
 * Rows of a directory are sorted by the bytes of their paths, except that members of an archive,
 * whose paths begin with that of the archive and a slash, keep the archive's order. Rows of a list
 * keep the list's order. */
#ifndef CLPIPE_BASE_SOURCE_NAME_H
#define CLPIPE_BASE_SOURCE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* "@LIST", "-" and a stream, which determine the order and the paths of their rows. */
bool source_is_list(const char *source);

/* "tar:-": a tar archive on standard input. */
bool source_is_stream(const char *source);

/* Whether the name has an archive's extension: .tar, .tar.gz, .zip... */
bool archive_promised(const char *path, size_t length);

/* Bytes of `path` up to and including the slash after the first component with an archive's
 * extension; 0: none. */
size_t archive_prefix(const char *path);

/* Whether a source's rows are sorted by the bytes of their paths alone. False for a list or an
 * archive, and if `archives` in it are opened. */
bool source_is_sorted(const char *source, bool archives);

/* Whether path `b` may follow path `a` in a source that is not a list. */
bool source_row_follows(const char *a, const char *b);

/* The absolute path of a source, in raw bytes; "@LIST" keeps its "@", and "-" is unchanged. Both
 * arguments are texts as stored in files (place_text, path_working_directory). The caller frees it;
 * NULL: out of memory. */
char *source_path(const char *source, const char *directory);

#endif
