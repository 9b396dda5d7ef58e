/* defined.c: the names of format 3, and the walk. */
#include "result/defined.h"
#include <stdio.h>
#include <string.h>

#define GROUP   H5O_TYPE_GROUP
#define DATASET H5O_TYPE_DATASET

static const struct defined names[] = {
    {"/", GROUP, NULL, "clpipe_format clpipe_version created list_count list_digest parameters preset "
     "shard_count shard_first shard_index shard_last "},
    {"/images", GROUP, NULL, ""},
    {"/images/path", DATASET, NULL, ""},
    {"/images/width", DATASET, NULL, ""},
    {"/images/height", DATASET, NULL, ""},
    {"/images/orientation", DATASET, NULL, ""},
    {"/images/channels", DATASET, NULL, ""},
    {"/images/source", DATASET, NULL, ""},
    {"/images/bytes", DATASET, NULL, ""},
    {"/images/mtime_ns", DATASET, NULL, ""},
    {"/images/digest", DATASET, NULL, ""},
    {"/images/format", DATASET, NULL, ""},
    {"/images/code", DATASET, NULL, ""},
    {"/images/sources", DATASET, NULL, ""},
    {"/images/key", DATASET, NULL, ""},
    {"/images/cls", DATASET, NULL, ""},
    {"/images/json", GROUP, NULL, ""},
    {"/images/json/data", DATASET, NULL, ""},
    {"/images/json/end", DATASET, NULL, ""},
    {"/images/txt", GROUP, NULL, ""},
    {"/images/txt/data", DATASET, NULL, ""},
    {"/images/txt/end", DATASET, NULL, ""},
    {"/images/flags", DATASET, NULL, "names parameters "},
    {"/images/inode", DATASET, NULL, ""},
    {"/images/ctime_ns", DATASET, NULL, ""},
    {"/images/directories", DATASET, NULL, ""},
    {"/failures", GROUP, NULL, ""},
    {"/failures/path", DATASET, NULL, ""},
    {"/failures/reason", DATASET, NULL, ""},
    {"/failures/message", DATASET, NULL, ""},
    {"/failures/bytes", DATASET, NULL, ""},
    {"/failures/errno", DATASET, NULL, ""},
    {"/failures/source", DATASET, NULL, ""},
    {"/failures/mtime_ns", DATASET, NULL, ""},
    {"/failures/inode", DATASET, NULL, ""},
    {"/failures/ctime_ns", DATASET, NULL, ""},
    {"/features", GROUP, NULL, ""},
    {"/features/*", DATASET, "spec",
     "bins decode_scale grid imported_digest imported_from kind model_digest "
     "model_runtime normalize scale spec zero "},
    {"/codebooks", GROUP, NULL, ""},
    {"/codebooks/*", GROUP, "digest", "digest spec "},
    {"/codebooks/*/*", DATASET, NULL, ""},
    {"/classes", GROUP, NULL, ""},
    {"/classes/*", GROUP, "model_digest", "model_digest "},
    {"/classes/*/name", DATASET, NULL, ""},
    {"/classes/*/matrix", DATASET, NULL, ""},
    {"/classes/*/scale", DATASET, NULL, ""},
    {"/classes/*/offset", DATASET, NULL, ""},
    {"/clusters", GROUP, NULL, ""},
    {"/clusters/*", GROUP, "feature",
     "ari content converged feature fitted_rows folders inertia init iterations k level metric nmi "
     "parameters parent purity seed source_bytes source_mtime_ns source_sample space "},
    {"/clusters/*/centroids", DATASET, NULL, ""},
    {"/clusters/*/labels", DATASET, NULL, ""},
    {"/clusters/*/distances", DATASET, NULL, ""},
    {"/clusters/*/sizes", DATASET, NULL, ""},
    {"/clusters/*/nearest", DATASET, NULL, ""},
    {"/clusters/*/inertia_history", DATASET, NULL, ""},
    {"/clusters/*/weights", DATASET, NULL, ""},
    {"/clusters/*/mean", DATASET, NULL, ""},
    {"/clusters/*/components", DATASET, NULL, ""},
    {"/clusters/*/parents", DATASET, NULL, ""},
    {"/clusters/*/sweep", GROUP, NULL, "measure reason sample "},
    {"/clusters/*/sweep/k", DATASET, NULL, ""},
    {"/clusters/*/sweep/iterations", DATASET, NULL, ""},
    {"/clusters/*/sweep/converged", DATASET, NULL, ""},
    {"/clusters/*/sweep/inertia", DATASET, NULL, ""},
    {"/clusters/*/sweep/silhouette", DATASET, NULL, ""},
    {"/clusters/*/sweep/simplified_silhouette", DATASET, NULL, ""},
    {"/clusters/*/sweep/davies_bouldin", DATASET, NULL, ""},
    {"/clusters/*/sweep/calinski_harabasz", DATASET, NULL, ""},
    {"/clusters/*/sweep/purity", DATASET, NULL, ""},
    {"/clusters/*/sweep/nmi", DATASET, NULL, ""},
    {"/clusters/*/sweep/ari", DATASET, NULL, ""},
    {"/neighbours", GROUP, NULL, ""},
    {"/neighbours/*", GROUP, "content", "content feature metric n squared "},
    {"/neighbours/*/rows", DATASET, NULL, ""},
    {"/neighbours/*/distances", DATASET, NULL, ""},
    {"/selections", GROUP, NULL, ""},
    {"/selections/*", GROUP, "method", "content method parameters seed "},
    {"/selections/*/rows", DATASET, NULL, ""},
    {"/selections/*/reason", DATASET, NULL, ""},
    {"/selections/*/omitted", DATASET, NULL, ""},
    {"/selections/*/kept", DATASET, NULL, ""},
    {"/selections/*/cosine", DATASET, NULL, ""},
    {"/thumbnails", GROUP, NULL, "size "},
    {"/thumbnails/data", DATASET, NULL, ""},
    {"/thumbnails/end", DATASET, NULL, ""},
    {"/runs", GROUP, NULL, "run_clusters shown "},
    {"/runs/*", GROUP, "command",
     "clpipe_version command details device driver finished host seconds "},
    {"/runs/*/row_map", DATASET, NULL, "root "},
    {"/parts", GROUP, NULL, ""},
    {"/parts/path", DATASET, NULL, ""},
    {"/parts/rows", DATASET, NULL, ""},
    {"/parts/thumbnail_bytes", DATASET, NULL, ""},
    {"/parts/bytes", DATASET, NULL, ""},
    {"/parts/identity", DATASET, NULL, ""},
    /* What is in it is named after what it belongs to. */
    {"/checksums", GROUP, NULL, "identity shown "},
};

/* Scales whose name is complete, and beginnings of those that are followed by a name or a number. */
static const char *const scales[] = {"image",      "failure",        "source",    "digest_word",
                                     "rank",       "code_byte",      "json_byte", "txt_byte",
                                     "thumbnail_byte", "checksum_byte",  "part"};
static const char *const scale_beginnings[] = {"feature_", "cluster_",   "iteration_", "sweep_",
                                               "row_",     "dimension_", "column_",    "neighbour_", "piece_",
                                               "codebook_row_", "codebook_value_",
                                               "class_", "selection_", "omitted_"};
static const char *const of_library[] = {
    "CLASS",         "NAME",          "DIMENSION_LIST",      "REFERENCE_LIST",
    "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool matches(const char *pattern, const char *name)
{
    while (*pattern && *name) {
        if (*pattern == '*') {
            const size_t length = strcspn(name, "/");
            if (length == 0)
                return false;
            name += length;
            pattern++;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    return !*pattern && !*name;
}

const struct defined *defined_find(const char *name)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (matches(names[i].name, name))
            return &names[i];
    return NULL;
}

bool defined_below(const char *name, const char *group)
{
    const size_t length = strlen(group);
    return strncmp(name, group, length) == 0 && (name[length] == '/' || !name[length]);
}

bool defined_attribute_of_library(const char *attribute)
{
    for (size_t i = 0; i < COUNT(of_library); i++)
        if (strcmp(attribute, of_library[i]) == 0)
            return true;
    return false;
}

bool defined_attribute(const struct defined *defined, const char *attribute)
{
    const size_t length = strlen(attribute);
    for (const char *at = defined->attributes; *at; at += strcspn(at, " ") + 1)
        if (strncmp(at, attribute, length) == 0 && at[length] == ' ')
            return true;
    return defined_attribute_of_library(attribute);
}

bool defined_scale(hid_t file, const char *name)
{
    bool named = false;
    for (size_t i = 0; i < COUNT(scales); i++)
        named = named || strcmp(name, scales[i]) == 0;
    for (size_t i = 0; i < COUNT(scale_beginnings); i++)
        named = named || strncmp(name, scale_beginnings[i], strlen(scale_beginnings[i])) == 0;
    if (!named || !h5_is_object(file, name, H5O_TYPE_DATASET))
        return false;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    const bool scale = dataset > 0 && H5Aexists(dataset, "CLASS") > 0;
    h5_close(&dataset);
    return scale;
}

/* --- the walk -------------------------------------------------------------------------------- */

struct walk {
    hid_t file;
    const char *path;
    const struct defined_visitor *visitor;
};

static enum status visit_object(const struct walk *walk, hid_t object, const char *name,
                                const struct defined *defined, struct error *err);

static enum status visit_foreign(const struct walk *walk, const char *name, const char *attribute,
                                 struct error *err)
{
    return walk->visitor->foreign
               ? walk->visitor->foreign(walk->visitor->context, name, attribute, err)
               : STATUS_OK;
}

static enum status visit_attributes(const struct walk *walk, hid_t object, const char *name,
                                    const struct defined *defined, struct error *err)
{
    struct h5_names attributes;
    if (!walk->visitor->foreign)
        return STATUS_OK;
    enum status status =
        h5_list_attributes(&attributes, object, DEFINED_MOST_MEMBERS, walk->path, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < attributes.count && status == STATUS_OK; i++)
        if (!defined_attribute(defined, attributes.name[i]))
            status = visit_foreign(walk, name, attributes.name[i], err);
    h5_free_names(&attributes);
    return status;
}

/* One member of a group: `name` is its absolute name, `link` that in the group. */
static enum status visit_member(const struct walk *walk, hid_t group, const char *name,
                                const char *link, struct error *err)
{
    const struct defined *defined = defined_find(name);
    const bool at_root = strrchr(name, '/') == name;
    if (at_root && !defined && defined_scale(walk->file, link))
        return STATUS_OK;
    if (!defined || !h5_is_object(group, link, defined->type))
        return visit_foreign(walk, name, NULL, err);
    hid_t object = H5Oopen(group, link, H5P_DEFAULT);
    if (object < 0)
        return h5_fail(err, "H5Oopen", "read", walk->path);
    const bool own = !defined->mark || H5Aexists(object, defined->mark) > 0;
    enum status status =
        own ? visit_object(walk, object, name, defined, err) : visit_foreign(walk, name, NULL, err);
    h5_close(&object);
    return status;
}

/* An own object and, of a group, its members. /checksums is left to those who know what is in it. */
static enum status visit_object(const struct walk *walk, hid_t object, const char *name,
                                const struct defined *defined, struct error *err)
{
    struct h5_names members;
    enum status status = walk->visitor->own(walk->visitor->context, object, name, defined, err);
    if (status == STATUS_OK)
        status = visit_attributes(walk, object, name, defined, err);
    if (status != STATUS_OK || defined->type != GROUP || strcmp(name, "/checksums") == 0)
        return status;
    status = h5_list(&members, object, DEFINED_MOST_MEMBERS, walk->path, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < members.count && status == STATUS_OK; i++) {
        char member[DEFINED_NAME_MAX];
        const int length =
            snprintf(member, sizeof member, "%s/%s", name[1] ? name : "", members.name[i]);
        /* The format gives no name as long as that. */
        status = length < (int)sizeof member
                     ? visit_member(walk, object, member, members.name[i], err)
                     : visit_foreign(walk, member, NULL, err);
    }
    h5_free_names(&members);
    return status;
}

enum status defined_walk(hid_t file, const char *name, const char *path,
                         const struct defined_visitor *visitor, struct error *err)
{
    const struct walk walk = {file, path, visitor};
    const struct defined *defined = defined_find(name);
    if (!defined)
        return STATUS_OK;
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    if (object < 0)
        return h5_fail(err, "H5Oopen", "read", path);
    enum status status = visit_object(&walk, object, name, defined, err);
    h5_close(&object);
    return status;
}
