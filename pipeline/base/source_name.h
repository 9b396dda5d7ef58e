/* source_name.h: what names of sources and of files say, and the order of the rows of a source.
 *
 * Rows of a directory are sorted by the bytes of their paths, except that members of an archive, whose
 * paths begin with that of the archive and a slash, keep the archive's order. Rows of a list keep the
 * list's order. */
#ifndef CLPIPE_BASE_SOURCE_NAME_H
#define CLPIPE_BASE_SOURCE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* "@LIST" and "-". */
bool source_is_list(const char *source);

/* Does the name say archive: .tar, .tar.gz, .zip...? */
bool archive_promised(const char *path, size_t length);

/* Bytes of `path` up to and with the slash behind the first component that is an archive by its name;
 * 0: there is none. */
size_t archive_prefix(const char *path);

/* Are the rows of a source sorted by the bytes of their paths alone? Not those of a list, nor where there
 * are members of archives: the source is one, or `archives` in it are opened. */
bool source_is_sorted(const char *source, bool archives);

/* May a row of a source that is no list, with path `b`, follow one with path `a`? */
bool source_row_follows(const char *a, const char *b);

/* Bytes that lead to a source from any directory, "@LIST" with its "@": both are texts as files store them
 * (place_text, path_working_directory). "-" stays. Free it; NULL: out of memory. */
char *source_path(const char *source, const char *directory);

#endif
