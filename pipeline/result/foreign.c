/* foreign.c: walks through a file and copies everything foreign. */
#include "result/foreign.h"
#include "base/array.h"
#include "base/path.h"
#include "matrix/h5_driver.h"
#include "result/defined.h"
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- copying --------------------------------------------------------------------------------- */

struct copy {
    hid_t from, to;
    struct foreign_copied *copied;
    char **name; /* objects that were copied */
    unsigned count;
};

/* The library's attributes of scales refer to addresses in the old file. */
static void forget_scales(const struct copy *copy, const char *name)
{
    static const char *const names[] = {"DIMENSION_LIST", "REFERENCE_LIST"};
    H5_SCOPED hid_t dataset = H5Dopen2(copy->to, name, H5P_DEFAULT);
    for (int i = 0; i < 2 && dataset > 0; i++)
        if (H5Aexists(dataset, names[i]) > 0)
            H5Adelete(dataset, names[i]);
}

struct attaching {
    hid_t to, dataset;
    bool foreign; /* only scales of other programs */
};

/* Attaches the scale with the same name as the original's to a copy. */
static herr_t attach_same(hid_t original, unsigned axis, hid_t scale, void *context)
{
    const struct attaching *attaching = context;
    char name[256];
    (void)original;
    if (H5Iget_name(scale, name, sizeof name) <= 0 ||
        (attaching->foreign && defined_scale(attaching->to, name + 1)))
        return 0;
    H5_SCOPED hid_t same = H5Dopen2(attaching->to, name, H5P_DEFAULT);
    if (same < 0)
        return 0;
    H5_SCOPED hid_t old_space = H5Dget_space(scale), space = H5Dget_space(same);
    if (H5Sget_simple_extent_npoints(old_space) == H5Sget_simple_extent_npoints(space) &&
        H5Aexists(same, "CLASS") > 0)
        H5DSattach_scale(attaching->dataset, same, axis);
    return 0;
}

/* Best effort: scales are a convenience for readers. */
static void attach_to(const struct copy *copy, const char *name, bool foreign)
{
    H5_SCOPED hid_t original = H5Dopen2(copy->from, name, H5P_DEFAULT),
                    made = H5Dopen2(copy->to, name, H5P_DEFAULT);
    if (made < 0 || original < 0 || H5Aexists(original, "DIMENSION_LIST") <= 0)
        return;
    struct attaching attaching = {copy->to, made, foreign};
    H5_SCOPED hid_t space = H5Dget_space(original);
    for (int axis = 0; axis < H5Sget_simple_extent_ndims(space); axis++)
        H5DSiterate_scales(original, (unsigned)axis, NULL, attach_same, &attaching);
}

static void attach_scales(const struct copy *copy, const char *name)
{
    attach_to(copy, name, false);
}

/* Attaches other programs' scales to the axes of clpipe's own datasets. */
static enum status attach_to_own(void *context, hid_t object, const char *name,
                                 const struct defined *defined, struct error *err)
{
    const struct copy *copy = context;
    (void)object;
    (void)err;
    if (defined->type == H5O_TYPE_DATASET && H5Lexists(copy->to, name, H5P_DEFAULT) > 0)
        attach_to(copy, name, true);
    return STATUS_OK;
}

struct visit {
    const struct copy *copy;
    const char *name;
    void (*dataset)(const struct copy *copy, const char *name);
};

static herr_t visit_dataset(hid_t group, const char *name, const H5O_info_t *info, void *context)
{
    const struct visit *visit = context;
    const bool itself = strcmp(name, ".") == 0;
    char *whole;
    (void)group;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    if (asprintf(&whole, "%s%s%s", visit->name, itself ? "" : "/", itself ? "" : name) < 0)
        return -1;
    visit->dataset(visit->copy, whole);
    free(whole);
    return 0;
}

/* Handles all datasets at or below an object of the old file. */
static void visit_object(const struct copy *copy, const char *name,
                         void (*dataset)(const struct copy *copy, const char *name))
{
    struct visit visit = {copy, name, dataset};
    H5Ovisit_by_name(copy->from, name, H5_INDEX_NAME, H5_ITER_INC, visit_dataset, &visit,
                     H5P_DEFAULT);
}

/* Reads elements of variable length first: if it cannot read them, H5Ocopy crashes. Here, failures
 * are recorded, and later reads come from a cache. */
static void read_texts(const struct copy *copy, const char *name)
{
    H5_SCOPED hid_t dataset = H5Dopen2(copy->from, name, H5P_DEFAULT), type = H5Dget_type(dataset),
                    space = H5Dget_space(dataset);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (type > 0 && count > 0 &&
        (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0)) {
        void *values = calloc((size_t)count, H5Tget_size(type));
        if (values && H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0)
            H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
        free(values);
    }
}

/* The group that an object or attribute belongs to; false: the new file lacks it. */
static bool has_parent(const struct copy *copy, const char *name, const char *attribute)
{
    char parent[DEFINED_NAME_MAX];
    snprintf(parent, sizeof parent, "%s", name);
    char *last = strrchr(parent, '/');
    if (!attribute)
        last[last == parent] = 0;
    H5_SCOPED hid_t object = H5Oopen(copy->to, parent, H5P_DEFAULT);
    return object > 0;
}

/* --- what cannot be copied -------------------------------------------------------------------- */

static bool drops;

void foreign_drop_references(void)
{
    drops = true;
}

/* References would be invalid in another file; those of scales are recreated. */
static bool attribute_refers(hid_t object, const char *name)
{
    H5_SCOPED hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    const bool scales =
        H5Iget_type(object) == H5I_DATASET &&
        (strcmp(name, "DIMENSION_LIST") == 0 || strcmp(name, "REFERENCE_LIST") == 0);
    return !scales && type > 0 && H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

static herr_t find_reference(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    char *found = context;
    (void)info;
    if (!attribute_refers(object, name))
        return 0;
    snprintf(found, DEFINED_NAME_MAX, "%s", name);
    return 1;
}

/* Why a dataset cannot be copied; NULL: it can. */
static const char *uncopied(hid_t dataset)
{
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
    return H5Pget_layout(list) == H5D_VIRTUAL         ? "is a virtual dataset"
           : H5Tdetect_class(type, H5T_REFERENCE) > 0 ? "holds references to other objects"
                                                      : NULL;
}

/* Records the first object that cannot be copied. */
struct uncopied {
    const char *below, *why;
    char name[2 * DEFINED_NAME_MAX];
};

static herr_t find_uncopied(hid_t group, const char *name, const H5O_info_t *info, void *context)
{
    struct uncopied *found = context;
    char attribute[DEFINED_NAME_MAX] = "";
    H5_SCOPED hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    found->why = info->type == H5O_TYPE_DATASET ? uncopied(object) : NULL;
    if (!found->why &&
        H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, find_reference, attribute) > 0)
        found->why = "is an attribute with references to other objects";
    const bool itself = strcmp(name, ".") == 0;
    snprintf(found->name, sizeof found->name, "%s%s%s%s%s", found->below, itself ? "" : "/",
             itself ? "" : name, *attribute ? ", " : "", attribute);
    return found->why != NULL;
}

/* Whether something at or below an object, or an attribute of one of clpipe's, cannot be copied. */
static bool has_uncopied(struct uncopied *found, hid_t file, const char *name,
                         const char *attribute)
{
    H5L_info_t link;
    *found = (struct uncopied){.below = name};
    if (!attribute)
        return H5Lget_info(file, name, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD &&
               H5Ovisit_by_name(file, name, H5_INDEX_NAME, H5_ITER_INC, find_uncopied, found,
                                H5P_DEFAULT) > 0;
    H5_SCOPED hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    found->why = attribute_refers(object, attribute)
                     ? "is an attribute with references to other objects"
                     : NULL;
    snprintf(found->name, sizeof found->name, "%s, %s", name, attribute);
    return found->why;
}

static enum status refuse_uncopied(const char *path, const struct uncopied *found,
                                   struct error *err)
{
    return error_set(err, STATUS_USAGE,
                     "%s: %s, which another program has added, %s and cannot be carried: "
                     "--drop-references leaves such objects out",
                     PATH_TEXT(path), PATH_TEXT_IN(512, found->name), found->why);
}

static enum status check_one(void *context, const char *name, const char *attribute,
                             struct error *err)
{
    const struct copy *copy = context;
    struct uncopied found;
    return has_uncopied(&found, copy->from, name, attribute)
               ? refuse_uncopied(h5_path(copy->from), &found, err)
               : STATUS_OK;
}

enum status foreign_check(hid_t file, struct error *err)
{
    struct copy copy = {.from = file};
    const struct defined_visitor visitor = {NULL, check_one, &copy};
    return drops ? STATUS_OK : defined_walk(file, "/", &visitor, err);
}

enum status foreign_check_file(const char *path, struct error *err)
{
    struct stat st;
    H5_SCOPED hid_t file = H5I_INVALID_HID;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || /* a FIFO would block until written to */
        h5_open_file(&file, path, NULL) != STATUS_OK)
        return STATUS_OK;
    return H5Aexists(file, "clpipe_format") > 0 ? foreign_check(file, err) : STATUS_OK;
}

static enum status copy_attribute(const struct copy *copy, const char *name, const char *attribute,
                                  struct error *err)
{
    H5_SCOPED hid_t from = H5Oopen(copy->from, name, H5P_DEFAULT),
                    to = H5Oopen(copy->to, name, H5P_DEFAULT);
    const enum status status = h5_copy_attribute(to, from, attribute, err);
    return status;
}

static enum status remember(struct copy *copy, const char *name, struct error *err)
{
    if (array_grow(&copy->name, copy->count, sizeof *copy->name, "names", err))
        return STATUS_FAILED;
    if (!(copy->name[copy->count] = strdup(name)))
        return error_memory(err, strlen(name), "a name");
    copy->count++;
    return STATUS_OK;
}

static enum status copy_object(struct copy *copy, const char *name, struct error *err)
{
    H5L_info_t link;
    if (H5Lget_info(copy->from, name, &link, H5P_DEFAULT) < 0)
        return h5_failed(err, "H5Lget_info", "read", copy->from);
    if (link.type != H5L_TYPE_HARD) {
        /* H5Lcopy works within one file. */
        const char *file, *target;
        char *value = calloc(link.u.val_size + 1, 1);
        if (!value)
            return error_memory(err, link.u.val_size, "a link");
        bool ok = H5Lget_val(copy->from, name, value, link.u.val_size, H5P_DEFAULT) >= 0;
        if (ok && link.type == H5L_TYPE_SOFT)
            ok = H5Lcreate_soft(value, copy->to, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
        else if (ok && link.type == H5L_TYPE_EXTERNAL)
            ok = H5Lunpack_elink_val(value, link.u.val_size, NULL, &file, &target) >= 0 &&
                 H5Lcreate_external(file, target, copy->to, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
        else if (ok)
            ok = H5Lcreate_ud(copy->to, name, link.type, value, link.u.val_size, H5P_DEFAULT,
                              H5P_DEFAULT) >= 0;
        free(value);
        return ok ? STATUS_OK : h5_failed(err, "H5Lcreate", "write", copy->to);
    }
    visit_object(copy, name, read_texts);
    if (h5_check_reads(err) != STATUS_OK)
        return STATUS_FAILED;
    h5_driver_copy(true);
    const herr_t copied = H5Ocopy(copy->from, name, copy->to, name, H5P_DEFAULT, H5P_DEFAULT);
    h5_driver_copy(false);
    if (h5_check_reads(err) != STATUS_OK)
        return STATUS_FAILED;
    if (copied < 0)
        return h5_failed(err, "H5Ocopy", "write", copy->to);
    return remember(copy, name, err);
}

static enum status copy_pruned(struct copy *copy, const char *name, struct error *err);

/* Copies a group without members that cannot be copied. */
static enum status copy_group(struct copy *copy, hid_t from, const char *name, struct error *err)
{
    H5_SCOPED_NAMES members = {0}, attributes = {0};
    H5_SCOPED hid_t list = H5Gget_create_plist(from),
                    made = H5Gcreate2(copy->to, name, H5P_DEFAULT, list, H5P_DEFAULT);
    if (made < 0)
        return h5_failed(err, "H5Gcreate2", "write", copy->to);
    if (h5_list_attributes(&attributes, from, err))
        return STATUS_FAILED;
    enum status status = h5_list(&members, from, err);
    for (unsigned i = 0; i < attributes.count && !status; i++) {
        if (attribute_refers(from, attributes.name[i]))
            copy->copied->lost++;
        else
            status = copy_attribute(copy, name, attributes.name[i], err);
    }
    for (unsigned i = 0; i < members.count && !status; i++) {
        char *member;
        if (asprintf(&member, "%s/%s", name, members.name[i]) < 0) {
            status = error_memory(err, strlen(name), "a name");
            break;
        }
        status = copy_pruned(copy, member, err);
        free(member);
    }
    return status;
}

/* Copies an object without parts that cannot be copied. */
static enum status copy_pruned(struct copy *copy, const char *name, struct error *err)
{
    struct uncopied found;
    char attribute[DEFINED_NAME_MAX];
    if (!has_uncopied(&found, copy->from, name, NULL))
        return copy_object(copy, name, err);
    H5_SCOPED hid_t object = H5Oopen(copy->from, name, H5P_DEFAULT);
    enum status status = STATUS_OK;
    if (H5Iget_type(object) == H5I_GROUP) {
        status = copy_group(copy, object, name, err);
    } else if (H5Iget_type(object) == H5I_DATASET && uncopied(object)) {
        copy->copied->lost++;
    } else if (!(status = copy_object(copy, name, err))) {
        H5_SCOPED hid_t made = H5Oopen(copy->to, name, H5P_DEFAULT);
        while (H5Aiterate2(made, H5_INDEX_NAME, H5_ITER_INC, NULL, find_reference, attribute) > 0 &&
               H5Adelete(made, attribute) >= 0)
            copy->copied->lost++;
    }
    return status;
}

static enum status copy_one(void *context, const char *name, const char *attribute,
                            struct error *err)
{
    struct copy *copy = context;
    struct uncopied found;
    if (!has_parent(copy, name, attribute) ||
        (!attribute && H5Lexists(copy->to, name, H5P_DEFAULT) > 0)) {
        copy->copied->lost++;
        return STATUS_OK;
    }
    const bool refers = has_uncopied(&found, copy->from, name, attribute);
    if (refers && !drops)
        return refuse_uncopied(h5_path(copy->from), &found, err);
    if (!attribute) {
        copy->copied->objects++;
        return copy_pruned(copy, name, err);
    }
    if (refers || H5Aexists_by_name(copy->to, name, attribute, H5P_DEFAULT) > 0) {
        copy->copied->lost++;
        return STATUS_OK;
    }
    copy->copied->attributes++;
    return copy_attribute(copy, name, attribute, err);
}

enum status foreign_copy(struct foreign_copied *copied, hid_t from, hid_t to, struct error *err)
{
    struct copy copy = {from, to, copied, NULL, 0};
    *copied = (struct foreign_copied){0};
    const struct defined_visitor foreign = {NULL, copy_one, &copy},
                                 own = {attach_to_own, NULL, &copy};
    enum status status = defined_walk(from, "/", &foreign, err);
    if (status == STATUS_OK) {
        /* After everything is copied, since it may include scales. */
        for (unsigned i = 0; i < copy.count; i++)
            visit_object(&copy, copy.name[i], forget_scales);
        for (unsigned i = 0; i < copy.count; i++)
            visit_object(&copy, copy.name[i], attach_scales);
        status = defined_walk(from, "/", &own, err);
    }
    for (unsigned i = 0; i < copy.count; i++)
        free(copy.name[i]);
    free(copy.name);
    return status;
}
