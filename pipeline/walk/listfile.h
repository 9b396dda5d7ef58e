/* listfile.h: lists that clpipe list writes: files with their sizes and times, and members of archives
 * with their places, so that a later command looks at nothing before it opens a file.
 *
 * A list is text; each record ends in a NUL byte, so that names may hold newlines. The first record is
 * "clpipe list 1". Numbers are decimal; TIME is in seconds since 1970, with a fraction of up to nine
 * digits that count (find's %T@); paths are relative to the directory in which the list is used.
 *
 *     f BYTES TIME PATH       a file
 *     a BYTES TIME PATH       an archive; its members follow
 *     z BYTES TIME PATH       the same of one that is decompressed as a whole: it stays in one shard
 *     m BYTES OFFSET NAME     a member that lies uncompressed at OFFSET
 *     c BYTES NUMBER NAME     a member that is decompressed: the NUMBER-th header, from 0
 *     x REASON ERRNO BYTES TIME LENGTH TEXT PATH
 *                             what could not be read: reason and text (of LENGTH bytes) of its failure
 *     e COUNT DIGEST          the end: how many records f, m, c and x there are, and the digest of the list
 *                             (portion.h); may be missing
 *
 * Each path occurs once. By hand: (printf 'clpipe list 1\0'; find photos -type f -printf 'f %s %T@ %p\0')
 * > LIST. */
#ifndef CLPIPE_WALK_LISTFILE_H
#define CLPIPE_WALK_LISTFILE_H

#include "walk/portion.h"
#include "walk/walk.h"

/* What the first record of a list is. */
#define LISTFILE_BEGINNING "clpipe list 1"

/* Opens `path` if it is a file with such a list; *fd is -1 if it is anything else. */
enum status listfile_open(int *fd, const char *path, struct error *err);

/* Lists what the list holds; takes the descriptor, which was opened by listfile_open for `source`.
 * STATUS_FAILED: the list is damaged. */
enum status listfile_list(int fd, struct source *source, struct source_listing *listing,
                          struct error *err);

/* What a list that was written holds. */
struct listfile_summary {
    uint64_t count, failed, archives, bytes;
    char digest[33];
};

/* Writes all that `walk` has to hand out to `path`, which appears complete or not at all. STATUS_USAGE: a
 * source has no files. */
enum status listfile_write(struct listfile_summary *out, const char *path, struct walk *walk,
                           struct stop *stop, struct error *err);

#endif
