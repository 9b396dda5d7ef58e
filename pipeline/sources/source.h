/* source.h: the kinds of SOURCE: a directory, a file, a list of files. A kind is one file and one
 * row of SOURCE_KINDS.
 *
 *     recognise   tells whether a SOURCE is of this kind
 *     prepare     runs before any source is listed, to report mistyped ones at once
 *     next        replaces list for a source that is read once: adds some members, which are
 *                 opened before it is called again
 *     begin_share finds the start of a share, if possible without listing everything
 *     list        adds all members in order, with the information for opening them
 *     open        returns the bytes of one member as a blob
 *     close       frees everything
 *
 * Threads. recognise, prepare, list and close are called by one thread at a time, list once for
 * each source, in the order of the sources. open is called when all sources have been listed, by
 * any thread, several at a time, even for members of one source; the fields that it uses no longer
 * change, or have a lock. If members can only be read in order (a compressed archive), `where` has
 * SOURCE_WHERE_IN_ORDER: open is then called by one thread at a time in the order of the listing.
 * Members found in earlier work are skipped, and one whose device has failed is opened again later.
 *
 * A member is opened by its listed path and `where`, a number defined by the kind (an offset in the
 * archive), and by size and modification time. Several blobs of one descriptor may be open: they
 * are ranges (blob_of_range), and the source keeps the descriptor. */
#ifndef CLPIPE_SOURCES_SOURCE_H
#define CLPIPE_SOURCES_SOURCE_H

#include "base/blob.h"
#include "base/stop.h"
#include "sources/entry.h"
#include "sources/pathglob.h"
#include "sources/skip.h"
#include "sources/walk_options.h"

/* In `where`: must be opened in order; or is a member of an archive (archives.h). */
#define SOURCE_WHERE_IN_ORDER ((uint64_t)1 << 62)
#define SOURCE_WHERE_ARCHIVE  ((uint64_t)1 << 63)

struct archives;

/* Shared by the sources of a walk. */
struct source_shared {
    int working_directory;
    unsigned kept_open; /* number of open source directories */
    bool standard_input;
    struct archives *archives;
};

struct source {
    char *name;
    const char *directory; /* for a list, as in struct walk_options; NULL: the working directory */
    const struct source_kind *kind;
    struct source_shared *shared;
    int fd;      /* -1, or kept open by the kind; closed after `close` */
    void *state; /* specific to the kind */
};

/* Start of the listing of a share, for a source that knows its members before listing them. */
struct source_start {
    uint64_t place;         /* specific to the kind */
    uint64_t count, weight; /* members before it (portion.h) */
    uint64_t list_count, list_weight;
    char list_digest[33]; /* of all members */
};

/* Arguments of `list`. */
struct source_listing {
    const struct walk_options *options;
    struct pathglob *globs;
    struct skip *skip;
    const char *spool_directory;
    bool (*promises_image)(const char *path); /* as in walk_config */
    uint64_t memory;                          /* bytes for sorting */
    struct stop *stop;                        /* checked at least every 1000 members; may be NULL */
    const struct source_start *start;         /* from begin_share; NULL: list everything */
    struct walk_passed passed;
    struct file_system_trust trust;

    /* Counts a found member, for progress. */
    void (*found)(struct source_listing *listing);
    /* Receives the next member in the final order. STATUS_END: no more are needed; `list` returns
     * it or STATUS_OK. */
    enum status (*add)(struct source_listing *listing, const char *path, size_t length,
                       const struct entry *entry, struct error *err);
};

struct source_member {
    const char *path; /* NUL-terminated bytes */
    uint64_t where, bytes;
    int64_t mtime_ns;
};

struct source_kind {
    /* First called with the name alone: `st` is NULL. If no kind accepts it, called again with the
     * stat() of its target, or of a symbolic link with a missing target if its name has an image
     * extension. The first kind of the table that returns true gets the source. */
    bool (*recognise)(const char *name, const struct stat *st);
    enum status (*prepare)(struct source *source, struct error *err); /* may be NULL */
    enum status (*list)(struct source *source, struct source_listing *listing, struct error *err);
    /* Waits for input. STATUS_END: no more, or no more needed. */
    enum status (*next)(struct source *source, struct source_listing *listing, struct error *err);
    /* Finds the start of share `index` of `count`; `list` then begins there. STATUS_END, or NULL:
     * only `list` can tell. */
    enum status (*begin_share)(struct source_start *out, struct source *source, uint64_t index,
                               uint64_t count, struct error *err);
    /* Returns REASON_NONE, or sets *failure, which becomes the member's. */
    enum reason (*open)(struct blob *out, const struct source *source,
                        const struct source_member *member, struct failure *failure);
    void (*close)(struct source *source); /* may be NULL */
};

/* All kinds, in the order in which they are asked: source_NAME is a struct source_kind. Those in the file
 * system, and a tar on standard input ("tar:-"), are in source_files.c. SOURCES_TEXT: for the help. */
#define SOURCES_TEXT                                                                               \
    "SOURCE is a directory, a file, a tar or zip archive, @LIST (a file of paths, one per "        \
    "line or separated by NUL), - (such a list on standard input) or tar:- (a tar on standard "    \
    "input, which is not kept)."
#define SOURCE_KINDS(KIND) KIND(stream) KIND(list) KIND(directory) KIND(file)

#define DECLARE_KIND(name) extern const struct source_kind source_##name;
SOURCE_KINDS(DECLARE_KIND)
#undef DECLARE_KIND
/* All of them, followed by NULL. */
extern const struct source_kind *const source_kinds[];

#endif
