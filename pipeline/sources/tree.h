/* tree.h: everything below one directory, in any order.
 *
 * Breadth first, with pending directories in a spool: memory does not depend on the size or depth
 * of the tree, and only a few descriptors are open. */
#ifndef CLPIPE_SOURCES_TREE_H
#define CLPIPE_SOURCES_TREE_H

#include "sources/entry.h"
#include "sources/source.h"

/* Calls `found` for everything below `root`, a directory descriptor (O_PATH suffices), with paths
 * relative to it; an error of `found` ends the walk. A directory below the root that was written by
 * clpipe (a report, a tree of clusters, unfinished work) is reported as ENTRY_OWN, possibly after
 * some of its contents. An unreadable directory is an entry whose path ends in '/' (the root:
 * "./"). Uses options and globs of the listing, and counts passed.links. STATUS_FAILED: no memory,
 * descriptors or spool; STATUS_INTERRUPTED; or the status of `found`. */
enum status tree_walk(struct source_listing *listing, int root, entry_fn found, void *context,
                      struct error *err);

#endif
