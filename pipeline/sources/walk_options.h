/* walk_options.h: the user's options for sources. */
#ifndef CLPIPE_SOURCES_WALK_OPTIONS_H
#define CLPIPE_SOURCES_WALK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct walk_options {
    const char *const *sources; /* directory, file, "@LIST" or "-"; bytes. See source.h. NULL: an
                                 * unread source */
    /* For each source, the directory (path_working_directory) to which paths of a list are
     * relative; NULL: the working directory for all. */
    const char *const *directories;
    unsigned source_count;      /* 1 to 65535 */
    const char *const *include; /* globs on the relative path; without '/' on the last component */
    unsigned include_count;     /* 0: include everything */
    const char *const *exclude;
    unsigned exclude_count;
    bool follow_symlinks; /* symbolic links to directories */
    bool archives;        /* also open archives in directories */
    bool hidden;          /* names that begin with a dot (a SOURCE itself is always used) */
    uint64_t shard_index, shard_count; /* return only this share; count 0: all */
    uint64_t limit; /* return only this many items, 0: all; those of unread sources do not count */
};

/* What a listing skipped without an item. */
struct walk_passed {
    uint64_t links;    /* symbolic links to directories, not followed */
    uint64_t archives; /* in directories, not opened */
    uint64_t repeated; /* lines of lists with an earlier path */
};

#endif
