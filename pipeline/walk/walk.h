/* walk.h: from SOURCE arguments to a stream of items in their final order.
 *
 * walk_open reads everything that the sources name - directories recursively, lists line by line -
 * and leaves the items, sorted, in a spool file; walk_next then hands them out one by one. Memory
 * does not grow with the number of entries or the depth of the tree (sorted runs are merged on
 * disk). The order: sources as given; within a directory source the bytes of the path relative to
 * it; a list keeps its own order, a path given twice counting once.
 *
 * What becomes an item: every regular file and every symbolic link to one, and everything that
 * could not be looked at, which carries its failure. Directories are no items. In particular:
 *  - FIFOs, sockets and device nodes, also behind links, fail as not-an-image: never opened.
 *  - A link that leads nowhere or to itself is unreadable (ENOENT, ENOTDIR, ELOOP) if its name
 *    promises an image or if it was named as a SOURCE or in a list, else not-an-image.
 *  - A directory that cannot be opened or read to its end is unreadable; its item's path ends in
 *    '/' ("./" for a SOURCE itself). What was read of it stays. A SOURCE that cannot be opened at
 *    all ends the walk.
 *  - What was listed and is gone when it is looked at has vanished.
 *  - In a list: a missing file is unreadable, a directory not-an-image.
 *
 * A SOURCE, or a path in a list, that is an archive (by its name) stands for its members; one in a
 * directory only if asked (walk_archives_passed counts them otherwise). See archives.h.
 *
 * A SOURCE that is a symbolic link is always followed. Below it symbolic links to directories are
 * followed only if asked (walk_links_passed counts them otherwise), and a directory reached through
 * one that is the same as a directory above it is skipped: its files are already listed.
 *
 * A tar that comes from standard input ("tar:-") is read once, while its members are handed out, in its
 * order; sources behind it are listed when it has ended.
 *
 * Names that begin with a dot are skipped by default; that does not apply to a SOURCE or to what a
 * list names. Include and exclude globs (rules in pathglob.h) apply to the path relative to its
 * SOURCE, to the last component of a SOURCE that is a file, and to a path in a list as given.
 */
#ifndef CLPIPE_WALK_WALK_H
#define CLPIPE_WALK_WALK_H

#include "base/error.h"
#include "base/list_share.h"
#include "base/stop.h"
#include "walk/source.h"
#include <stdint.h>

struct walk;

struct walk_config {
    struct walk_options options;
    const char *spool_directory; /* an existing directory for temporary files */
    uint64_t memory;             /* bytes for sorting, at least 1 MiB is used; besides it less than
                                    1 MiB and a few times the longest path */
    /* Files and directories that are never input: the output, its temporary files, its work
     * directory. They are identified by device and inode if they exist, otherwise by directory and
     * name; "NAME.partial" and "NAME.tmp-..." beside one are skipped, too. */
    const char *const *skip_paths;
    unsigned skip_count;
    bool (*promises_image)(const char *path); /* by its name */
    /* Lists what is known of a source that is not looked at: calls listing->add for each of its
     * items, with `where` by which the caller finds it again. Needed where there is such a source;
     * called on walk_open's thread. */
    enum status (*list_known)(void *context, uint16_t source, struct source_listing *listing,
                              struct error *err);
    void *list_known_context;
    const char *again; /* why members are read twice: a stream is refused; NULL: they are not */
    struct stop *stop; /* may be NULL */
    /* Called every 1000 items found or fewer, with their number, on walk_open's thread. May be
     * NULL. */
    void (*progress)(void *context, uint64_t found);
    void *progress_context;
};

/* One entry. The pointers stay valid until the next walk_next. */
struct walk_item {
    uint64_t sequence; /* 0, 1, 2... in the final order */
    uint16_t source;   /* index into sources */
    const char *path;  /* relative to its source, NUL-terminated bytes; a source that is a file: its
                  last component; in a list: as given, without leading "./" and doubled '/' */
    uint32_t path_length;
    uint64_t bytes; /* size of the file */
    int64_t mtime_ns;
    uint64_t inode; /* these two as in struct entry */
    int64_t ctime_ns;
    uint64_t where;         /* as in struct source_member */
    uint64_t share;         /* as in struct entry */
    struct failure failure; /* reason REASON_NONE: to be read */
};

/* Walks. On success walk_next can be called. STATUS_USAGE: a source does not exist (named with what
 * to do), is empty, is a second standard input or a stream that cannot be read twice or shared, there are too
 * many, or a glob names nothing; STATUS_FAILED: the spool cannot be
 * written, a list or a SOURCE directory cannot be read, no memory or descriptors are left;
 * STATUS_INTERRUPTED (the stop word is looked at every 1000 entries or fewer). */
enum status walk_open(struct walk **out, const struct walk_config *config, struct error *err);

/* Items that walk_next will hand out, and the sum of their sizes; both within the limit. */
uint64_t walk_count(const struct walk *walk);
/* Are these all? Not where a stream is still to come. */
bool walk_is_counted(const struct walk *walk);
uint64_t walk_bytes(const struct walk *walk);

/* The share that it hands out, and of what: of a walk without one everything, with count 0 and without
 * a digest. walk_count and walk_bytes are those of the share. */
const struct list_share *walk_share(const struct walk *walk);

/* Symbolic links to directories that were not followed because it was not asked for. */
uint64_t walk_links_passed(const struct walk *walk);
/* Archives in directories that were not opened because it was not asked for. */
uint64_t walk_archives_passed(const struct walk *walk);
/* Lines of lists that were left out: the list had the path before. */
uint64_t walk_paths_repeated(const struct walk *walk);

/* The next item, or STATUS_END. Of a stream it fails where that ends early, is damaged, or on a stop. One thread at a time. */
enum status walk_next(struct walk *walk, struct walk_item *item, struct error *err);

/* From the first item again. One thread at a time, like walk_next. */
enum status walk_rewind(struct walk *walk, struct error *err);

/* Opens an item: see source_kind.open in source.h. A file is opened O_RDONLY | O_CLOEXEC | O_NONBLOCK
 * (so that a FIFO that took its place cannot hang us) and O_NOATIME where allowed. Any thread, but
 * where walk_opens_in_order: one at a time, in the order of walk_next. `member` is of the item. */
enum reason walk_open_member(struct blob *out, const struct walk *walk, uint16_t source,
                             const struct source_member *member, struct failure *failure);
static inline bool walk_opens_in_order(uint64_t where)
{
    return where & SOURCE_WHERE_IN_ORDER;
}

/* Items of a source, in this and all other shares. *unseen: its directory could not be read to its end,
 * wherever the item that says so comes. */
uint64_t walk_count_of(const struct walk *walk, uint16_t source, bool *unseen);

/* Its sources, one of them, and the archives that have members in the walk. */
unsigned walk_source_count(const struct walk *walk);
const struct source *walk_source(const struct walk *walk, uint16_t source);
const struct archives *walk_archives(const struct walk *walk);

/* Is this a source whose items can be opened once? */
bool walk_reads_once(const struct walk *walk, uint16_t source);

/* Is this a source that is not looked at? Its items are not opened. */
bool walk_is_known(const struct walk *walk, uint16_t source);

/* Is this a SOURCE by its name alone, not by what it leads to? */
bool walk_knows_name(const char *name);

/* Several processes can divide one walk: the first opens it with share 0 and gives the others theirs, in
 * their order; each of these opens a walk of what it takes. What one call gives, a call takes.
 *
 * walk_divides: it has the other shares. Not where its source is a list that says where shares begin:
 * each of them can walk in moments then. */
typedef enum status (*walk_give_fn)(void *context, const void *data, size_t bytes,
                                    struct error *err);
typedef enum status (*walk_take_fn)(void *context, void *data, size_t bytes, struct error *err);
bool walk_divides(const struct walk *walk);
enum status walk_give_next(struct walk *walk, walk_give_fn give, void *context, struct error *err);
enum status walk_take(struct walk **out, const struct walk_config *config, walk_take_fn take,
                      void *context, struct error *err);

/* Frees everything and the spool with it, which has no name in its directory. (On NFS it has one
 * until it is closed: close the walk before removing the directory.) Accepts NULL and NULLs. */
void walk_close(struct walk **walk);

#endif
