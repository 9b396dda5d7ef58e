/* defined.c: the names of format 3, and the walk. */
#include "result/defined.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP     H5O_TYPE_GROUP
#define DATASET   H5O_TYPE_DATASET
#define CHECKSUMS "/checksums"

static const struct defined names[] = {
    {"/", GROUP, NULL,
     "clpipe_format clpipe_version created list_count list_digest parameters preset shard_count "
     "shard_first shard_index shard_last ",
     ""},
    {"/images", GROUP, NULL, "",
     "bytes channels cls code ctime_ns digest directories format height inode key mtime_ns "
     "orientation "
     "path source sources width "},
    {"/images/json", GROUP, NULL, "", "data end "},
    {"/images/txt", GROUP, NULL, "", "data end "},
    {"/images/flags", DATASET, NULL, "names parameters ", ""},
    {"/failures", GROUP, NULL, "",
     "bytes ctime_ns errno inode message mtime_ns path reason source "},
    {"/features", GROUP, NULL, "", ""},
    {"/features/*", DATASET, "spec",
     "bins decode_scale grid imported_digest imported_from kind model_digest "
     "model_runtime normalize scale spec zero ",
     ""},
    {"/codebooks", GROUP, NULL, "", ""},
    {"/codebooks/*", GROUP, "digest", "digest spec ", ""},
    {"/codebooks/*/*", DATASET, NULL, "", ""},
    {"/classes", GROUP, NULL, "", ""},
    {"/classes/*", GROUP, "model_digest", "model_digest ", "matrix name offset scale "},
    {"/clusters", GROUP, NULL, "", ""},
    {"/clusters/*", GROUP, "feature",
     "ari content converged feature fitted_rows folders inertia init iterations k level metric nmi "
     "parameters parent purity seed source_bytes source_mtime_ns source_sample space ",
     "centroids components distances inertia_history labels mean nearest parents sizes weights "},
    {"/clusters/*/sweep", GROUP, NULL, "measure reason sample ",
     "ari calinski_harabasz converged davies_bouldin inertia iterations k nmi purity silhouette "
     "simplified_silhouette "},
    {"/neighbours", GROUP, NULL, "", ""},
    {"/neighbours/*", GROUP, "content", "content feature metric n squared ", "distances rows "},
    {"/selections", GROUP, NULL, "", ""},
    {"/selections/*", GROUP, "method", "content method parameters seed ",
     "cosine kept omitted reason rows "},
    {"/thumbnails", GROUP, NULL, "size ", "data end "},
    {"/runs", GROUP, NULL, "run_clusters shown ", ""},
    {"/runs/*", GROUP, "command",
     "clpipe_version command details device driver finished host seconds ", ""},
    {"/runs/*/row_map", DATASET, NULL, "root ", ""},
    {"/parts", GROUP, NULL, "", "bytes identity path rows thumbnail_bytes "},
    {CHECKSUMS, GROUP, NULL, "identity shown ", ""},
};
static const struct defined plain_dataset = {"", DATASET, NULL, "", ""};
/* Below /checksums. */
static const struct defined of_group = {"", GROUP, NULL, "", ""},
                            of_dataset = {"", DATASET, NULL, "root ", ""};

/* Complete names of scales, and prefixes of those followed by a name or a number. */
static const char *const scales[] = {"image",          "failure",       "source",    "digest_word",
                                     "rank",           "code_byte",     "json_byte", "txt_byte",
                                     "thumbnail_byte", "checksum_byte", "part"};
static const char *const scale_beginnings[] = {
    "feature_",        "cluster_", "iteration_", "sweep_",  "row_",
    "dimension_",      "column_",  "neighbour_", "piece_",  "codebook_row_",
    "codebook_value_", "class_",   "selection_", "omitted_"};
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

/* Whether a word is in a list of words, each followed by a space. */
static bool is_listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, " ") + 1)
        if (strncmp(at, word, length) == 0 && at[length] == ' ')
            return true;
    return false;
}

const struct defined *defined_find(const char *name)
{
    char group[DEFINED_NAME_MAX];
    const char *member = strrchr(name, '/') + 1;
    if (defined_below(name, CHECKSUMS) && strcmp(name, CHECKSUMS) != 0) {
        const char *of = name + strlen(CHECKSUMS);
        const struct defined *found = defined_below(of, CHECKSUMS) ? NULL : defined_find(of);
        return !found ? NULL : found->type == GROUP ? &of_group : &of_dataset;
    }
    snprintf(group, sizeof group, "%.*s", (int)(member - name - 1), name);
    for (size_t i = 0; i < COUNT(names); i++) {
        if (matches(names[i].name, name))
            return &names[i];
        if (is_listed(names[i].datasets, member) && matches(names[i].name, group))
            return &plain_dataset;
    }
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
    return is_listed(defined->attributes, attribute) || defined_attribute_of_library(attribute);
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
    H5_SCOPED hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    const bool scale = dataset > 0 && H5Aexists(dataset, "CLASS") > 0;
    return scale;
}

/* Whether `name`, a link in `parent`, is a hard one to an own object. */
static enum status is_own(bool *own, hid_t parent, const char *name, const struct defined *defined,
                          struct error *err)
{
    H5L_info_t link;
    H5O_info_t object;
    *own = false;
    if (H5Lget_info(parent, name, &link, H5P_DEFAULT) < 0)
        return h5_failed(err, "H5Lget_info", "read", parent);
    if (link.type != H5L_TYPE_HARD)
        return STATUS_OK;
    if (H5Oget_info_by_name(parent, name, &object, H5P_DEFAULT) < 0)
        return h5_failed(err, "H5Oget_info_by_name", "read", parent);
    if (object.type != defined->type)
        return STATUS_OK;
    const htri_t there = H5Aexists_by_name(parent, name, defined->mark, H5P_DEFAULT);
    if (there < 0)
        return h5_failed(err, "H5Aexists_by_name", "read", parent);
    *own = there > 0;
    return STATUS_OK;
}

enum status defined_list(struct h5_names *out, hid_t *group, hid_t file, const char *name,
                         struct error *err)
{
    char all[DEFINED_NAME_MAX];
    unsigned kept = 0;
    snprintf(all, sizeof all, "/%s/*", name);
    const struct defined *defined = defined_find(all);
    *out = (struct h5_names){0};
    *group = H5I_INVALID_HID;
    if (!h5_is_object(file, name, H5O_TYPE_GROUP))
        return STATUS_OK;
    enum status status = h5_open_group(group, file, name, err);
    if (!status)
        status = h5_list(out, *group, err);
    for (unsigned i = 0; i < out->count && !status; i++) {
        char *member = out->name[i];
        bool own = false;
        status = is_own(&own, *group, member, defined, err);
        out->name[i] = out->name[kept];
        out->name[kept] = member;
        kept += own;
    }
    while (!status && out->count > kept)
        free(out->name[--out->count]);
    return status;
}

/* --- the walk -------------------------------------------------------------------------------- */

struct walk {
    hid_t file;
    const struct defined_visitor *visitor;
    bool in_checksums;
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
    H5_SCOPED_NAMES attributes = {0};
    if (!walk->visitor->foreign)
        return STATUS_OK;
    enum status status = h5_list_attributes(&attributes, object, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < attributes.count && status == STATUS_OK; i++)
        if (!defined_attribute(defined, attributes.name[i]))
            status = visit_foreign(walk, name, attributes.name[i], err);
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
    H5_SCOPED hid_t object = H5Oopen(group, link, H5P_DEFAULT);
    if (object < 0)
        return h5_failed(err, "H5Oopen", "read", group);
    const bool own = !defined->mark || H5Aexists(object, defined->mark) > 0;
    enum status status =
        own ? visit_object(walk, object, name, defined, err) : visit_foreign(walk, name, NULL, err);
    return status;
}

/* Visits an own object and, if it is a group, its members. */
static enum status visit_object(const struct walk *walk, hid_t object, const char *name,
                                const struct defined *defined, struct error *err)
{
    H5_SCOPED_NAMES members = {0};
    enum status status =
        walk->visitor->own ? walk->visitor->own(walk->visitor->context, object, name, defined, err)
                           : STATUS_OK;
    if (status == STATUS_OK)
        status = visit_attributes(walk, object, name, defined, err);
    if (status != STATUS_OK || defined->type != GROUP ||
        (strcmp(name, CHECKSUMS) == 0 && !walk->in_checksums))
        return status;
    status = h5_list(&members, object, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < members.count && status == STATUS_OK; i++) {
        char member[DEFINED_NAME_MAX];
        const int length =
            snprintf(member, sizeof member, "%s/%s", name[1] ? name : "", members.name[i]);
        /* No name of the format is that long. */
        status = length < (int)sizeof member
                     ? visit_member(walk, object, member, members.name[i], err)
                     : visit_foreign(walk, member, NULL, err);
    }
    return status;
}

enum status defined_walk(hid_t file, const char *name, const struct defined_visitor *visitor,
                         struct error *err)
{
    const struct walk walk = {file, visitor, defined_below(name, CHECKSUMS)};
    const struct defined *defined = defined_find(name);
    if (!defined)
        return STATUS_OK;
    H5_SCOPED hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    if (object < 0)
        return h5_failed(err, "H5Oopen", "read", file);
    enum status status = visit_object(&walk, object, name, defined, err);
    return status;
}
