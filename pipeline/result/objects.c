/* objects.c: lists, finds, removes and renames objects that a file can do without. */
#include "result/objects.h"
#include "base/array.h"
#include "base/path.h"
#include "result/change.h"
#include "result/defined.h"
#include "result/imported.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The group whose members are the objects of a kind. */
static const char *const groups[] = {[OBJECT_CLUSTERS] = "clusters",
                                     [OBJECT_FEATURE] = "features",
                                     [OBJECT_NEIGHBOURS] = "neighbours",
                                     [OBJECT_SELECTION] = "selections"};

/* --- listing --------------------------------------------------------------------------------- */

/* Adds the storage of each dataset visited to *context. */
static herr_t add_storage(hid_t at, const char *name, const H5O_info_t *info, void *context)
{
    uint64_t *bytes = context;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    H5_SCOPED hid_t dataset = H5Dopen2(at, name, H5P_DEFAULT);
    if (dataset > 0)
        *bytes += H5Dget_storage_size(dataset);
    return 0;
}

static enum status add_object(struct objects *out, hid_t group, enum object_kind kind,
                              const char *name, struct error *err)
{
    H5_SCOPED hid_t id = H5Oopen(group, name, H5P_DEFAULT);
    if (kind == OBJECT_FEATURE && H5Aexists(id, "imported_from") <= 0)
        return STATUS_OK;
    if (array_grow(&out->object, out->count, sizeof *out->object, "a list of objects", err))
        return STATUS_FAILED;
    struct object *object = &out->object[out->count++];
    *object = (struct object){.kind = kind};
    snprintf(object->name, sizeof object->name, "%s/%s", groups[kind], name);
    if (id > 0)
        H5Ovisit(id, H5_INDEX_NAME, H5_ITER_INC, add_storage, &object->bytes);
    if (kind == OBJECT_FEATURE || kind == OBJECT_NEIGHBOURS)
        snprintf(object->feature, sizeof object->feature, "%s", name);
    /* A damaged one stays empty: a file that is only replaced may be damaged. */
    if (kind == OBJECT_CLUSTERS && id > 0)
        h5_get_short_text(object->feature, sizeof object->feature, id, "feature", NULL);
    return STATUS_OK;
}

enum status objects_list(struct objects *out, hid_t file, struct error *err)
{
    enum status status = STATUS_OK;
    *out = (struct objects){0};
    for (size_t i = 0; i < sizeof groups / sizeof *groups && status == STATUS_OK; i++) {
        H5_SCOPED_NAMES names = {0};
        H5_SCOPED hid_t group = H5I_INVALID_HID;
        status = defined_list(&names, &group, file, groups[i], err);
        for (unsigned j = 0; j < names.count && status == STATUS_OK; j++)
            if (schema_name_valid(names.name[j]))
                status = add_object(out, group, i, names.name[j], err);
    }
    return status;
}

void objects_clear(struct objects *objects)
{
    free(objects->object);
    *objects = (struct objects){0};
}

/* The error for a name that no object has. */
static enum status not_found(const struct objects *objects, const struct result *result,
                             const char *name, struct error *err)
{
    char names[512] = "";
    const char *feature = strncmp(name, "features/", 9) == 0 ? name + 9 : name;
    const char *file = PATH_TEXT(result->path);
    const char *shown = PATH_TEXT(name);
    if (result_feature_find(result, feature))
        return error_set(err, STATUS_USAGE,
                         "features/%s of %s was computed from the images and cannot be removed; "
                         "ingest without it makes a new file",
                         feature, file);
    for (unsigned i = 0; i < objects->count; i++)
        text_add_name(names, sizeof names, objects->object[i].name);
    if (objects->count == 0)
        return error_set(err, STATUS_USAGE,
                         "%s holds no '%s', and neither clusterings nor imported features nor "
                         "neighbours nor selections",
                         file, shown);
    return error_set(err, STATUS_USAGE, "%s holds no '%s', only %s", file, shown, names);
}

enum status objects_find(const struct object **out, const struct objects *objects,
                         const struct result *result, const char *name, struct error *err)
{
    const struct object *found[2] = {NULL, NULL};
    *out = NULL;
    name += *name == '/';
    for (unsigned i = 0; i < objects->count; i++) {
        const struct object *object = &objects->object[i];
        if (strcmp(object->name, name) == 0) {
            *out = object;
            return STATUS_OK;
        }
        if (strcmp(strchr(object->name, '/') + 1, name) == 0)
            found[found[0] != NULL] = object;
    }
    if (!found[0])
        return not_found(objects, result, name, err);
    if (found[1])
        return error_set(err, STATUS_USAGE, "'%s' could be %s or %s: name one of them", name,
                         found[0]->name, found[1]->name);
    *out = found[0];
    return STATUS_OK;
}

/* --- removing -------------------------------------------------------------------------------- */

static bool depends(const struct object *object, const struct object *on)
{
    return on->kind == OBJECT_FEATURE && object != on &&
           feature_is_part(object->feature, on->feature);
}

static enum status take_dependents(const struct result *result, const struct objects *objects,
                                   bool *remove, bool dependents, struct error *err)
{
    char names[512] = "";
    const struct object *feature = NULL;
    for (unsigned i = 0; i < objects->count; i++)
        for (unsigned j = 0; remove[i] && j < objects->count; j++) {
            if (remove[j] || !depends(&objects->object[j], &objects->object[i]))
                continue;
            feature = &objects->object[i];
            text_add_name(names, sizeof names, objects->object[j].name);
            remove[j] = dependents;
        }
    if (!feature || dependents)
        return STATUS_OK;
    error_set(err, STATUS_USAGE, "in %s, %s %s made from %s", PATH_TEXT(result->path), names,
              strchr(names, ',') ? "were" : "was", feature->name);
    error_remedy(err, REMEDY_REMOVE_DEPENDENTS);
    return STATUS_USAGE;
}

/* Levels depend on each other, so all levels are removed together. */
static void take_levels(const struct result *result, bool *remove)
{
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < result->clusters_count; i++) {
            const struct result_clusters *clusters = &result->clusters[i];
            for (unsigned j = 0; j < result->clusters_count; j++)
                if (*clusters->parent && remove[i] != remove[j] &&
                    strcmp(result->clusters[j].name, clusters->parent) == 0)
                    more = remove[i] = remove[j] = true;
        }
    }
}

struct removal {
    const struct objects *objects;
    const bool *remove;
};

static bool is_removed(const void *context, const char *name)
{
    const struct removal *removal = context;
    for (unsigned i = 0; i < removal->objects->count; i++)
        if (removal->remove[i] && strcmp(removal->objects->object[i].name, name + 1) == 0)
            return true;
    return false;
}

enum status objects_remove(struct result *result, const struct objects *objects, bool *remove,
                           bool dependents, struct error *err)
{
    struct removal removal = {objects, remove};
    const struct change change = {
        .output = result->path, .base = result, .leave_out = is_removed, .context = &removal};
    take_levels(result, remove);
    enum status status = take_dependents(result, objects, remove, dependents, err);
    return status ? status : change_make(&change, err);
}

/* --- renaming -------------------------------------------------------------------------------- */

enum status objects_rename(struct result *result, const struct result_clusters *clusters,
                           const char *name, struct error *err)
{
    /* `run` keeps a clustering that was given another name. */
    const struct change change = {.output = result->path,
                                  .base = result,
                                  .renamed_from = clusters->name,
                                  .renamed_to = name,
                                  .notes_run = true};
    if (schema_check_name(name, "clustering", err) != STATUS_OK)
        return err->status;
    if (result_clusters_find(result, name))
        return error_set(err, STATUS_USAGE, "%s already holds clusters '%s': remove them first",
                         PATH_TEXT(result->path), name);
    return change_make(&change, err);
}
