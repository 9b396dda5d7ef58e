/* source.h: the kinds of SOURCE: a directory, a file, a list of files. A kind is one file and one row
 * of source_kinds.c.
 *
 *     recognise   is this SOURCE of the kind?
 *     prepare     before any source is listed: a mistyped one is known at once
 *     next        in the place of list, for a source that is read once: gives some members, which are
 *                 opened before it is called again
 *     begin_share where a share begins, if that is known without listing everything
 *     list        gives all members in their order, with what it takes to open each of them
 *     open        gives the bytes of one member as a blob
 *     close       frees what the others have kept
 *
 * Threads. recognise, prepare, list and close are called by one thread at a time, list once
 * for each source, in the order of the sources. open is called when all sources have been listed, by any
 * thread, several at a time, also for members of one source; what it uses of the source does not
 * change any more, or has a lock of its own. Where members can be had only one after the other (a
 * compressed archive), SOURCE_WHERE_IN_ORDER in their `where` makes it so: open is called by one thread
 * at a time and in the order of the listing. Members may be left out then - an earlier run has them - and one whose
 * device has failed is opened again, later.
 *
 * A member is opened by what its listing said: the path and `where`, a number of the kind's own
 * (an offset in the archive), besides size and modification time. Blobs of one descriptor may be
 * open at a time: they are ranges (blob_of_range), and the source keeps the descriptor. */
#ifndef CLPIPE_WALK_SOURCE_H
#define CLPIPE_WALK_SOURCE_H

#include "base/blob.h"
#include "base/stop.h"
#include "walk/entry.h"
#include "walk/pathglob.h"
#include "walk/skip.h"
#include "walk/walk_options.h"

/* In `where`: must be opened in order; a member of an archive (archives.h). */
#define SOURCE_WHERE_IN_ORDER ((uint64_t)1 << 62)
#define SOURCE_WHERE_ARCHIVE  ((uint64_t)1 << 63)

struct archives;

/* What the sources of a walk have in common. */
struct source_shared {
    int working_directory;
    unsigned kept_open; /* source directories */
    bool standard_input;
    struct archives *archives;
};

struct source {
    char *name;
    const char *directory; /* of a list, as in struct walk_options; NULL: the working directory */
    const struct source_kind *kind;
    struct source_shared *shared;
    int fd;      /* -1, or what the kind keeps open; closed after `close` */
    void *state; /* the kind's own */
};

/* Where the listing for a share begins, in a source that knows its members before it lists them. */
struct source_start {
    uint64_t place;         /* the kind's own */
    uint64_t count, weight; /* members before it (portion.h) */
    uint64_t list_count, list_weight;
    char list_digest[33]; /* of all members */
};

/* What `list` is given. */
struct source_listing {
    const struct walk_options *options;
    const struct pathglob *globs;
    const struct skip *skip;
    const char *spool_directory;
    bool (*promises_image)(const char *path); /* as in walk_config */
    uint64_t memory;                          /* bytes for sorting */
    struct stop *stop;     /* to be looked at every 1000 members or fewer; may be NULL */
    const struct source_start *start; /* what begin_share gave; NULL: list everything */
    uint64_t links_passed;    /* symbolic links to directories that were not followed */
    uint64_t archives_passed; /* archives in directories that were not opened */
    uint64_t paths_repeated;  /* lines of lists that name what one before has named */
    struct file_system_trust trust;

    /* Counts one that was found, for the progress. */
    void (*found)(struct source_listing *listing);
    /* Takes a member; the next one in the final order. STATUS_END: no more are wanted, which `list`
     * returns or turns into STATUS_OK. */
    enum status (*add)(struct source_listing *listing, const char *path, size_t length,
                       const struct entry *entry, struct error *err);
};

struct source_member {
    const char *path; /* NUL-terminated bytes */
    uint64_t where, bytes;
    int64_t mtime_ns;
};

struct source_kind {
    const char *name;
    /* By its name alone: `st` is NULL. Where no kind does so all are asked again with what the name
     * leads to; or with a symbolic link that leads nowhere, if its name promises an image. The first
     * kind of the table that says yes takes the source. */
    bool (*recognise)(const char *name, const struct stat *st);
    enum status (*prepare)(struct source *source, struct error *err); /* may be NULL */
    enum status (*list)(struct source *source, struct source_listing *listing, struct error *err);
    /* Waits for them. STATUS_END: there are no more, or none are wanted. */
    enum status (*next)(struct source *source, struct source_listing *listing, struct error *err);
    /* Finds where share `index` of `count` begins; `list` then begins there. STATUS_END, or NULL: only
     * `list` can tell. */
    enum status (*begin_share)(struct source_start *out, struct source *source, uint64_t index,
                               uint64_t count, struct error *err);
    /* Returns REASON_NONE, or fills *failure, which becomes the member's. */
    enum reason (*open)(struct blob *out, const struct source *source,
                        const struct source_member *member, struct failure *failure);
    void (*close)(struct source *source); /* may be NULL */
};

/* The table; it ends with NULL. */
extern const struct source_kind *const source_kinds[];

#endif
