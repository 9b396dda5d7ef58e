/* foreign.h: what other programs and people have added to a file: groups, datasets, links and
 * attributes whose names the format does not define. clpipe never reads it and keeps it. */
#ifndef CLPIPE_FILE_FOREIGN_H
#define CLPIPE_FILE_FOREIGN_H

#include "file/h5.h"

/* Calls `found` for each foreign object or link at or below `name` (absolute; "/" is the root;
 * `attribute` is NULL; what is below it belongs to it) and for each foreign attribute of the
 * format's own objects. `path` is the file's, for messages. `found` must not change the file. */
enum status foreign_each(hid_t file, const char *name, const char *path,
                         enum status (*found)(void *context, const char *name,
                                              const char *attribute, struct error *err),
                         void *context, struct error *err);

struct foreign_copied {
    uint64_t objects, attributes;
    /* What was left behind: it belonged to an object that the new file has not, its name is taken
     * there, or it is an attribute that refers to other objects. */
    uint64_t lost;
};

/* Copies all of it at or below `name` from one file to another: objects with everything below them
 * and their attributes, links as links (they are not followed). Where a foreign dataset has
 * dimension scales at the root, it gets those of the same name and length in the new file. */
enum status foreign_copy(struct foreign_copied *copied, hid_t from, const char *from_path, hid_t to,
                         const char *to_path, const char *name, struct error *err);

#endif
