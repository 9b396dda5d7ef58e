/* change.c: copies all objects, then adds checksums and runs. */
#include "result/change.h"
#include "result/checksums.h"
#include "result/copies.h"
#include "result/defined.h"
#include "result/foreign.h"
#include "result/parts.h"
#include "result/shown.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checksums and runs are written last. */
static bool is_left_out(const void *context, const char *name)
{
    const struct change *change = context;
    return (change->replaces && strcmp(change->replaces, name) == 0) ||
           (change->leave_out && change->leave_out(change->context, name)) ||
           strcmp(name, "/checksums") == 0 || strcmp(name, "/runs") == 0;
}

/* A group exists only while it has members. */
static enum status remove_empty(hid_t file, struct error *err)
{
    static const char *const groups[] = {"clusters", "neighbours"};
    for (int i = 0; i < 2; i++) {
        H5G_info_t info;
        if (h5_is_object(file, groups[i], H5O_TYPE_GROUP) &&
            H5Gget_info_by_name(file, groups[i], &info, H5P_DEFAULT) >= 0 && info.nlinks == 0 &&
            H5Ldelete(file, groups[i], H5P_DEFAULT) < 0)
            return h5_failed(err, "H5Ldelete", "write", file);
    }
    return STATUS_OK;
}

static enum status copy_runs(const struct change *change, hid_t file, struct error *err)
{
    const char *clusters = change->notes_run ? change->run_clusters : change->base->run_clusters;
    H5_SCOPED hid_t runs = H5I_INVALID_HID;
    return h5_is_object(change->base->file, "runs", H5O_TYPE_GROUP)
               ? copies_runs(&runs, file, change->base, 0, clusters, err)
               : STATUS_OK;
}

/* The scales that belong to a single clustering. */
#define OWN_AXES 6
static const char *const own_axis[OWN_AXES] = {"cluster",   "iteration", "row",
                                               "dimension", "column",    SWEEP_AXIS};

/* The level below refers to the clustering by name. */
static enum status rename_parent(hid_t file, const char *from, const char *to, struct error *err)
{
    H5_SCOPED_NAMES names = {0};
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    enum status status = defined_list(&names, &all, file, "clusters", err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++) {
        char *parent = NULL;
        H5_SCOPED hid_t group = H5I_INVALID_HID;
        status = h5_open_group(&group, all, names.name[i], err);
        if (status == STATUS_OK)
            status = h5_get_text(&parent, group, "parent", false, err);
        if (status == STATUS_OK && parent && strcmp(parent, from) == 0)
            status = H5Adelete(group, "parent") < 0 ? h5_failed(err, "H5Adelete", "write", file)
                                                    : h5_put_text(group, "parent", to, err);
        free(parent);
    }
    return status;
}

/* Renames a clustering and its own scales. References between HDF5 objects are offsets, so they stay
 * valid. */
static enum status rename_clusters(hid_t file, const char *from, const char *to, struct error *err)
{
    char old[2 * FEATURE_NAME_MAX], new[2 * FEATURE_NAME_MAX];
    snprintf(old, sizeof old, "clusters/%s", from);
    snprintf(new, sizeof new, "clusters/%s", to);
    if (H5Lmove(file, old, file, new, H5P_DEFAULT, H5P_DEFAULT) < 0)
        return h5_failed(err, "H5Lmove", "write", file);
    if (rename_parent(file, from, to, err))
        return STATUS_FAILED;
    for (int i = 0; i < OWN_AXES; i++) {
        axis_name(old, own_axis[i], from);
        axis_name(new, own_axis[i], to);
        if (h5_is_object(file, old, H5O_TYPE_DATASET) &&
            H5Lmove(file, old, file, new, H5P_DEFAULT, H5P_DEFAULT) < 0)
            return h5_failed(err, "H5Lmove", "write", file);
    }
    return STATUS_OK;
}

static enum status write_objects(const struct change *change, const struct copies *copies,
                                 const char *path, struct error *err)
{
    const hid_t file = copies->to;
    struct result *base = change->base;
    struct foreign_copied copied;
    const struct checksums_kept kept = {
        .copies = copies, .renamed_from = change->renamed_from, .renamed_to = change->renamed_to};
    /* Objects to keep come before anything is added. */
    if (base ? copies_make(copies, "/", err)
             : schema_put_root(file, err) ||
                   h5_put_text(file, "parameters", change->parameters, err))
        return STATUS_FAILED;
    if (base && result_parts(base) > 0 &&
        (h5_flush_file(file, err) || parts_attach(file, path, err)))
        return STATUS_FAILED;
    const enum status status = change->add ? change->add(change->context, file, err) : STATUS_OK;
    if (status)
        return status;
    if (base && (remove_empty(file, err) || foreign_copy(&copied, base->file, file, err)))
        return STATUS_FAILED;
    if (change->renamed_from &&
        rename_clusters(file, change->renamed_from, change->renamed_to, err))
        return STATUS_FAILED;
    if (checksums_write(file, base ? &kept : NULL, NULL, 0, err) ||
        (base && copy_runs(change, file, err)))
        return STATUS_FAILED;
    return shown_write(file, err);
}

static enum status write_changed(void *context, hid_t file, const char *path, struct error *err)
{
    const struct change *change = context;
    const struct copies copies = {
        .from = change->base, .to = file, .leave_out = is_left_out, .context = change};
    const enum status status = write_objects(change, &copies, path, err);
    parts_detach(file);
    return status;
}

enum status change_make(const struct change *change, struct error *err)
{
    return h5_write_file(change->output, false, change->base && result_parts(change->base) > 0,
                         write_changed, (void *)(uintptr_t)change, err);
}
