/* tree.h: everything below one directory, in whatever order it comes.
 *
 * Breadth first, with the directories still to be read in a spool: memory does not grow with the
 * tree, its width or its depth, and few descriptors are open whatever the depth. */
#ifndef CLPIPE_WALK_TREE_H
#define CLPIPE_WALK_TREE_H

#include "base/error.h"
#include "base/stop.h"
#include "walk/entry.h"
#include "walk/pathglob.h"
#include "walk/skip.h"
#include <stdbool.h>
#include <stdint.h>

struct tree_config {
    int root; /* descriptor of the directory (O_PATH will do) */
    bool follow_symlinks, hidden;
    const struct pathglob *globs;
    const struct skip *skip;
    const char *spool_directory;
    struct stop *stop; /* may be NULL */
    entry_fn found;    /* paths relative to root; an error ends the walk */
    void *context;
};

/* Adds to *links_passed the symbolic links to directories that were not followed. A directory that
 * cannot be read is found as an entry whose path ends in '/' (root itself: "./"). STATUS_FAILED: no
 * memory, descriptors or spool; STATUS_INTERRUPTED; what `found` returned. */
enum status tree_walk(uint64_t *links_passed, const struct tree_config *config, struct error *err);

#endif
