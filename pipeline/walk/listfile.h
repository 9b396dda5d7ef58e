/* listfile.h: lists that clpipe list writes: files with their sizes and times, and members of archives
 * with their places, so that a later command looks at nothing before it opens a file.
 *
 * A list is text; each record ends in a NUL byte, so that names may hold newlines. The first record is
 * "clpipe list 2", or "clpipe list 1" of one without the records p and e. Numbers are decimal; TIME is in seconds since 1970, with a fraction of up to nine
 * digits that count (find's %T@); paths are relative to the directory in which the list is used.
 *
 *     f BYTES TIME PATH       a file
 *     a BYTES TIME PATH       an archive; its members follow
 *     z BYTES TIME PATH       the same of one that is decompressed as a whole: it stays in one shard
 *     m BYTES OFFSET NAME     a member that lies uncompressed at OFFSET
 *     c BYTES NUMBER NAME     a member that is decompressed: the NUMBER-th header, from 0
 *     x REASON ERRNO BYTES TIME LENGTH TEXT PATH
 *                             what could not be read: reason and text (of LENGTH bytes) of its failure
 *     p OFFSET COUNT WEIGHT DIGEST
 *                             a block: the records from that byte of the list to the next block or record
 *                             p. COUNT items (records f, m, c, x) of that WEIGHT (portion.h) are before
 *                             it; DIGEST is of its own
 *     e COUNT DIGEST WEIGHT OFFSET
 *                             the end: number, digest and weight of all items, and where the first record
 *                             p is
 *
 * A block begins with a piece (portion.h) and needs nothing of those before it, so a share is read from
 * where it is. A list without an end is read as a whole, sorted to find paths that it names twice, of
 * which the first counts.
 *
 * By hand: (printf 'clpipe list 1\0'; find photos -type f -printf 'f %s %T@ %p\0')
 * > LIST. */
#ifndef CLPIPE_WALK_LISTFILE_H
#define CLPIPE_WALK_LISTFILE_H

#include "walk/portion.h"
#include "walk/walk.h"

/* What the first record of a list is, and of one that was made by hand. */
#define LISTFILE_BEGINNING         "clpipe list 2"
#define LISTFILE_BEGINNING_BY_HAND "clpipe list 1"

struct listfile;

/* Opens `path` if it is a file with such a list; *out is NULL if it is anything else. STATUS_FAILED: its
 * end is damaged. */
enum status listfile_open(struct listfile **out, const char *path, struct error *err);
/* Accepts NULL and NULLs. */
void listfile_close(struct listfile **list);

/* As source_kind.begin_share. */
enum status listfile_begin_share(struct source_start *out, const struct listfile *list,
                                 uint64_t index, uint64_t count);
/* Lists what the list holds; once. STATUS_FAILED: the list is damaged. */
enum status listfile_list(struct listfile *list, struct source *source,
                          struct source_listing *listing, struct error *err);

/* What a list that was written holds. */
struct listfile_summary {
    uint64_t count, failed, archives, bytes, repeated;
    char digest[33];
};

/* Writes all that `walk` has to hand out to `path`, which appears complete or not at all. What several
 * sources have in common is written once; `memory` bytes and files in `directory` are for finding it.
 * STATUS_USAGE: a source has no files. */
enum status listfile_write(struct listfile_summary *out, const char *path, struct walk *walk,
                           const char *directory, uint64_t memory, struct stop *stop,
                           struct error *err);

#endif
