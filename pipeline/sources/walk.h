/* walk.h: lists SOURCE arguments as a stream of items in their final order.
 *
 * walk_open reads all sources, directories recursively and lists line by line, and stores the
 * items, sorted, in a spool file; walk_next then returns them one by one. Memory does not grow with
 * the number of entries or the depth of the tree (sorted runs are merged on disk). The order:
 * sources as given; within a directory source the bytes of the path relative to it; a list keeps
 * its own order without duplicates.
 *
 * Items are every regular file and every symbolic link to one, and everything that
 * could not be read, with its failure. Directories are not items. In particular:
 *  - FIFOs, sockets and device nodes, even behind links, are not-an-image and never opened.
 *  - A broken or circular link is unreadable (ENOENT, ENOTDIR, ELOOP) if its name
 *    promises an image or if it was named as a SOURCE or in a list, else not-an-image.
 *  - A directory that cannot be opened or read to its end is unreadable; its item's path ends in
 *    '/' ("./" for a SOURCE itself). Entries read before that stay. A SOURCE that cannot be opened
 *    at all ends the walk.
 *  - An entry that disappears before its stat() has vanished.
 *  - In a list: a missing file is unreadable, a directory not-an-image.
 *
 * A SOURCE, or a path in a list, that is an archive (by its name) stands for its members; one in a
 * directory only if asked (walk_passed counts them otherwise). See archives.h.
 *
 * A SOURCE that is a symbolic link is always followed. Below it symbolic links to directories are
 * followed only if asked (walk_passed counts them otherwise), and a directory reached through
 * one that is the same as a directory above it is skipped: its files are already listed.
 *
 * A tar on standard input ("tar:-") is read once, while its members are returned, in its order;
 * later sources are listed after its end.
 *
 * Names that begin with a dot are skipped by default, except a SOURCE or a path in a list. Include
 * and exclude globs (rules in pathglob.h) apply to the path relative to its SOURCE, to the last
 * component of a SOURCE that is a file, and to a path in a list as given. */
#ifndef CLPIPE_SOURCES_WALK_H
#define CLPIPE_SOURCES_WALK_H

#include "base/error.h"
#include "base/list_share.h"
#include "base/watch.h"
#include "sources/source.h"
#include <stdint.h>

struct walk;

struct walk_config {
    struct walk_options options;
    const char
        *spool_directory; /* existing directory for temporary files; its name stays valid while
                                  * the walk is used */
    uint64_t memory;      /* bytes for sorting, at least 1 MiB; the walk uses up to 1 MiB
                                  * and a few times the longest path in addition */
    /* Files and directories that are never input: the output, its temporary files, its work
     * directory. Identified by device and inode if they exist, otherwise by directory and name;
     * "NAME.partial" and "NAME.tmp-..." beside one are skipped, too. */
    const char *const *skip_paths;
    unsigned skip_count;
    bool (*promises_image)(const char *path); /* does it have an image extension? */
    /* Lists the items of an unread source: calls listing->add for each item, with a
     * `where` with which the caller finds it. Required if there is such a source; called on
     * walk_open's thread. */
    enum status (*list_unread)(void *context, uint16_t source, struct source_listing *listing,
                               struct error *err);
    void *list_unread_context;
    const char *again;  /* why members are read twice, so a stream is refused; NULL: they are not */
    struct watch watch; /* shows "walking" at least every 1000 items found, on walk_open's thread */
};

/* One entry. The pointers stay valid until the next walk_next. */
struct walk_item {
    uint64_t sequence; /* 0, 1, 2... in the final order */
    uint16_t source;   /* index into sources */
    const char *path;  /* relative to its source, NUL-terminated bytes; for a source that is a
                        * file, its last component; in a list, as given, without leading "./" and
                        * repeated '/' */
    uint32_t path_length;
    struct entry entry; /* without a failure: to be read */
};

/* Lists all sources; walk_next can be called on success. STATUS_USAGE: a source does not exist
 * (with advice), is empty, is a second standard input or a stream that cannot be read twice or
 * shared; too many sources; an empty glob. STATUS_FAILED: the spool cannot be written, a list or a
 * SOURCE directory cannot be read, no memory or descriptors. STATUS_INTERRUPTED: stopped (checked
 * at least every 1000 entries). */
enum status walk_open(struct walk **out, const struct walk_config *config, struct error *err);

/* Number of items that walk_next will return, and the sum of their sizes; both within the limit. */
uint64_t walk_count(const struct walk *walk);
/* Are these all items? Not if a stream is still to be read. */
bool walk_is_counted(const struct walk *walk);
uint64_t walk_bytes(const struct walk *walk);

/* The share that the walk returns, and the totals; without shares, count is 0 and there is no
 * digest. walk_count and walk_bytes are those of the share. */
const struct list_share *walk_share(const struct walk *walk);

struct walk_passed walk_passed(const struct walk *walk);

/* The next item, or STATUS_END. Fails if a stream is truncated or damaged, or on a stop. One thread
 * at a time. */
enum status walk_next(struct walk *walk, struct walk_item *item, struct error *err);

/* Restarts with the first item. One thread at a time, like walk_next. */
enum status walk_rewind(struct walk *walk, struct error *err);

/* Opens an item: see source_kind.open in source.h. Files are opened with O_RDONLY | O_CLOEXEC |
 * O_NONBLOCK (not to block on a FIFO that replaced the file) and O_NOATIME if allowed. Any thread;
 * if walk_opens_in_order, one at a time in the order of walk_next. `member`: of the item. */
enum reason walk_open_member(struct blob *out, const struct walk *walk, uint16_t source,
                             const struct source_member *member, struct failure *failure);
static inline bool walk_opens_in_order(uint64_t where)
{
    return where & SOURCE_WHERE_IN_ORDER;
}

/* The number of items of a source, in all shares. *unseen: its directory could not be read
 * completely, even if that item is in another share. */
uint64_t walk_count_of(const struct walk *walk, uint16_t source, bool *unseen);

/* One of the walk's sources; NULL past the last. */
const struct source *walk_source(const struct walk *walk, uint16_t source);

/* Can the items of the source be opened only once? */
bool walk_reads_once(const struct walk *walk, uint16_t source);

/* Is it unread: listed by list_unread, its items not to be opened? */
bool walk_is_unread(const struct walk *walk, uint16_t source);

/* Is it recognised as a SOURCE by its name alone, not by its target? */
bool walk_knows_name(const char *name);

/* Several processes can share one walk: the first opens it with share 0 and passes the others
 * theirs, in order; each of these opens a walk of what it receives. Calls of `give` and `take`
 * match one to one.
 *
 * walk_divides: the spool has the other shares. Not if the source is a list with the starts of
 * shares: then each process can list its own share quickly. */
typedef enum status (*walk_give_fn)(void *context, const void *data, size_t bytes,
                                    struct error *err);
typedef enum status (*walk_take_fn)(void *context, void *data, size_t bytes, struct error *err);
bool walk_divides(const struct walk *walk);
enum status walk_give_next(struct walk *walk, walk_give_fn give, void *context, struct error *err);
enum status walk_take(struct walk **out, const struct walk_config *config, walk_take_fn take,
                      void *context, struct error *err);

/* Frees everything, including the unlinked spool. (On NFS it keeps a name until it is closed: close
 * the walk before removing the directory.) Accepts NULL. */
void walk_close(struct walk **walk);

#endif
