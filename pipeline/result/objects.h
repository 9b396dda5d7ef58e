/* objects.h: the objects that a user may remove or rename: clusterings, imported features,
 * neighbours and selections; everything else was computed with the rows and belongs to them. Each
 * is named as in the file: "clusters/NAME", "features/NAME", "neighbours/NAME",
 * "selections/NAME". */
#ifndef CLPIPE_RESULT_OBJECTS_H
#define CLPIPE_RESULT_OBJECTS_H

#include "result/h5.h"
#include "result/result.h"

#define OBJECT_NAME_MAX (FEATURE_NAME_MAX + 16)

enum object_kind { OBJECT_CLUSTERS, OBJECT_FEATURE, OBJECT_NEIGHBOURS, OBJECT_SELECTION };

struct object {
    enum object_kind kind;
    char name[OBJECT_NAME_MAX];     /* "clusters/kmeans" */
    char feature[FEATURE_NAME_MAX]; /* its feature, or the feature it was made from; "": none */
    uint64_t bytes;                 /* size of its values in the file */
};

struct objects {
    struct object *object;
    unsigned count;
};

/* All objects of an open file, whose parts may be missing, by kind and name. Clear it even after a
 * failure. */
enum status objects_list(struct objects *out, hid_t file, struct error *err);
void objects_clear(struct objects *objects);

/* Finds one by name, with or without a leading '/', or by its last component if that is
 * unambiguous. STATUS_USAGE: none, or several. */
enum status objects_find(const struct object **out, const struct objects *objects,
                         const struct result *result, const char *name, struct error *err);

/* Replaces the file with a copy without the objects whose flag is set. Objects made from a feature
 * must be removed with it: `dependents` sets their flags, too; without it, STATUS_USAGE names
 * them. */
enum status objects_remove(struct result *result, const struct objects *objects, bool *remove,
                           bool dependents, struct error *err);

/* Replaces the file with a copy in which the clustering and its own dimension scales are renamed.
 * STATUS_USAGE: the new name is invalid or taken. */
enum status objects_rename(struct result *result, const struct result_clusters *clusters,
                           const char *name, struct error *err);

#endif
