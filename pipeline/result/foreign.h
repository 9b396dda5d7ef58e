/* foreign.h: what other programs and people have added to a file: groups, datasets, links and
 * attributes whose names the format does not define. clpipe never reads them, but keeps them. */
#ifndef CLPIPE_RESULT_FOREIGN_H
#define CLPIPE_RESULT_FOREIGN_H

#include "result/h5.h"

/* References to objects (except those of dimension scales, which are recreated) and virtual datasets cannot be
 * copied: STATUS_USAGE with the name of the first, unless the process drops them. */
enum status foreign_check(hid_t file, struct error *err);
/* The same for a path whose file may be missing or not a clpipe file. */
enum status foreign_check_file(const char *path, struct error *err);
/* From now on foreign_copy leaves them out. Call it before other threads use files. */
void foreign_drop_references(void);

struct foreign_copied {
    uint64_t objects, attributes;
    /* Objects left behind: the new file lacks their parent or has their name already, or they refer
     * to other objects. */
    uint64_t lost;
};

/* Copies all such objects from one file to another: objects with everything below them and their
 * attributes, links as links (they are not followed). Dimension scales between them, and between
 * them and clpipe's datasets, are attached to those of the same name and length. Fails as
 * foreign_check. */
enum status foreign_copy(struct foreign_copied *copied, hid_t from, hid_t to, struct error *err);

#endif
