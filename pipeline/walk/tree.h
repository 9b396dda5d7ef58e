/* tree.h: everything below one directory, in whatever order it comes.
 *
 * Breadth first, with the directories still to be read in a spool: memory does not grow with the
 * tree, its width or its depth, and few descriptors are open whatever the depth. */
#ifndef CLPIPE_WALK_TREE_H
#define CLPIPE_WALK_TREE_H

#include "walk/entry.h"
#include "walk/source.h"

/* Gives `found` what is below `root`, the descriptor of a directory (O_PATH will do), with paths
 * relative to it; an error of `found` ends the walk. Below the root a directory that clpipe has written
 * (a report, a tree of clusters, unfinished work) is found as ENTRY_OWN, also behind some of what is
 * in it. A directory that cannot be read is found as an
 * entry whose path ends in '/' (root itself: "./"). Of the listing it uses options and globs, and
 * counts links_passed. STATUS_FAILED: no memory, descriptors or spool; STATUS_INTERRUPTED; what
 * `found` returned. */
enum status tree_walk(struct source_listing *listing, int root, entry_fn found, void *context,
                      struct error *err);

#endif
