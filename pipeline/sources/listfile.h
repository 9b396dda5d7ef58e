/* listfile.h: lists written by clpipe list: files with sizes and times, and members of archives
 * with their positions, so that later commands need no stat() before they open a file.
 *
 * A list is text; each record ends in a NUL byte, so names may have newlines. The first record is
 * "clpipe list 2", or "clpipe list 1" in a list without the records p and e. Numbers are decimal;
 * TIME is in seconds since 1970, with a fraction of up to nine digits (find's %T@); paths are
 * relative to the directory in which the list is used.
 *
 *     f BYTES TIME PATH       a file
 *     a BYTES TIME PATH       an archive; its members follow
 *     z BYTES TIME PATH       an archive that is decompressed as a whole: it stays in one shard
 *     m BYTES OFFSET NAME     a member that lies uncompressed at OFFSET
 *     c BYTES NUMBER NAME     a member that is decompressed: the NUMBER-th header, from 0
 *     x REASON ERRNO BYTES TIME LENGTH TEXT PATH
 *                             an unreadable item: reason and text (of LENGTH bytes) of its failure
 *     p OFFSET COUNT WEIGHT DIGEST
 *                             a block: the records from byte OFFSET to the next block or record p.
 *                             COUNT items (records f, m, c, x) with total WEIGHT (portion.h) are
 *                             before it; DIGEST is that of the block's items
 *     e COUNT DIGEST WEIGHT OFFSET
 *                             the end: number, digest and weight of all items, and offset of the
 *                             first record p
 *
 * A block begins with a piece (portion.h) and does not depend on earlier ones, so a share is read
 * from its offset. A list without an end record is read as a whole and sorted to find duplicate
 * paths, of which the first is used.
 *
 * To write one by hand: (printf 'clpipe list 1\0'; find photos -type f -printf 'f %s %T@ %p\0') >
 * LIST. */
#ifndef CLPIPE_SOURCES_LISTFILE_H
#define CLPIPE_SOURCES_LISTFILE_H

#include "sources/portion.h"
#include "sources/walk.h"

/* The first record of a list, and of one written by hand. */
#define LISTFILE_BEGINNING         "clpipe list 2"
#define LISTFILE_BEGINNING_BY_HAND "clpipe list 1"

struct listfile;

/* Opens `path` if it is such a list; otherwise *out is NULL. STATUS_FAILED: its end is damaged. */
enum status listfile_open(struct listfile **out, const char *path, struct error *err);
/* Accepts NULL. */
void listfile_close(struct listfile **list);

/* source_kind.begin_share for lists. */
enum status listfile_begin_share(struct source_start *out, const struct listfile *list,
                                 uint64_t index, uint64_t count);
/* Lists the items; call once. STATUS_FAILED: the list is damaged. */
enum status listfile_list(struct listfile *list, struct source *source,
                          struct source_listing *listing, struct error *err);

/* Contents of a written list. */
struct listfile_summary {
    uint64_t count, failed, archives, bytes, repeated;
    char digest[33];
};

/* Writes all items of `walk` to `path`, which appears complete or not at all. Items in several
 * sources are written once; finding them takes `memory` bytes and files in `directory`.
 * STATUS_USAGE: a source has no files. */
enum status listfile_write(struct listfile_summary *out, const char *path, struct walk *walk,
                           const char *directory, uint64_t memory, struct stop *stop,
                           struct error *err);

#endif
