/* defined.h: the names that the format defines: docs/file-format.md as a table, and a walk through a
 * file that separates its own objects and attributes from those of other programs.
 *
 * A dimension scale at the root belongs to the datasets whose axes it describes, and counts as
 * neither. */
#ifndef CLPIPE_RESULT_DEFINED_H
#define CLPIPE_RESULT_DEFINED_H

#include "result/h5.h"

/* Room for the absolute name of an object that the format defines. */
#define DEFINED_NAME_MAX 512

/* One object, or all objects whose names match a pattern. */
struct defined {
    const char *name; /* absolute; "*" stands for any one part between slashes */
    H5O_type_t type;
    const char *mark;       /* if the name ends in "*": the attribute that every own object has */
    const char *attributes; /* names in byte order, each followed by a space */
    const char *datasets;   /* the same for members of a group that have no attributes */
};

/* The entry of an absolute name ("/" is the root); NULL: the format defines no such name. All
 * datasets without attributes share one entry. */
const struct defined *defined_find(const char *name);
/* Whether an object is, or is in, a group; both names are absolute. */
bool defined_below(const char *name, const char *group);
/* Whether an attribute is defined by the format, by HDF5 or by netCDF. */
bool defined_attribute(const struct defined *defined, const char *attribute);
bool defined_attribute_of_library(const char *attribute);
/* Whether a dataset at the root is a dimension scale with one of the format's names. */
bool defined_scale(hid_t file, const char *name);

/* Opens the group `name` of a file ("clusters"), and lists its own members: hard links to objects of the type
 * that the format defines, with their mark. If the file has no such group, *group is invalid and the list is
 * empty. */
enum status defined_list(struct h5_names *out, hid_t *group, hid_t file, const char *name,
                         struct error *err);

/* Calls `own` for each object of the format at or below `name` (not for scales), parents first, members
 * in the order of the bytes of their names; and `foreign` for everything else: objects and links
 * (attribute NULL; their members are not visited), and attributes of own objects. Either may be NULL;
 * neither may change the file. Ends at the first status that is not STATUS_OK. Members of /checksums,
 * which are named after their objects, are visited only if `name` is in it. */
struct defined_visitor {
    enum status (*own)(void *context, hid_t object, const char *name, const struct defined *defined,
                       struct error *err);
    enum status (*foreign)(void *context, const char *name, const char *attribute,
                           struct error *err);
    void *context;
};
enum status defined_walk(hid_t file, const char *name, const struct defined_visitor *visitor,
                         struct error *err);

#endif
