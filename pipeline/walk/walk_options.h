/* walk_options.h: what a person says about the sources. */
#ifndef CLPIPE_WALK_WALK_OPTIONS_H
#define CLPIPE_WALK_WALK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct walk_options {
    const char *const *sources; /* directory, file, "@LIST" or "-"; bytes. See source.h. NULL: one
                                   that is not looked at; what is known of it is handed out */
    /* Of each source the text (path_working_directory) of where the relative paths of a list are looked up
     * from; NULL: the working directory for all. */
    const char *const *directories;
    unsigned source_count;      /* 1 to 65535 */
    const char *const *include; /* globs on the relative path; without '/' on the last component */
    unsigned include_count;     /* 0: everything */
    const char *const *exclude;
    unsigned exclude_count;
    bool follow_symlinks; /* symbolic links to directories */
    bool archives;        /* open archives in directories, too */
    bool hidden;          /* names that begin with a dot (never applied to a SOURCE itself) */
    uint64_t shard_index, shard_count; /* hand out only this share of everything; count 0: all */
    uint64_t limit;       /* hand out only this many items, 0 for all; what is known of sources that
                             are not looked at does not count */
};

#endif
