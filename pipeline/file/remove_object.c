/* remove_object.c: detach, delete, and delete the scales that are left without a dataset. */
#include "file/remove_object.h"
#include "file/checksums.h"
#include "file/scales.h"
#include <fcntl.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <string.h>

#define MOST_SCALES  16
#define MOST_MEMBERS 64
#define MOST_DEPTH   2
#define HOLE_LEAST   (1u << 20)
#define NAME_SIZE    (3 * FEATURE_NAME_MAX)

/* The scales that lost an axis, and where the values were. */
struct lost {
    char name[MOST_SCALES][AXIS_NAME_MAX];
    unsigned count;
    struct {
        haddr_t start;
        hsize_t bytes;
    } extent[MOST_MEMBERS];
    unsigned extents;
};

/* Notes the bytes of a large contiguous dataset. */
static void note_extent(struct lost *lost, hid_t dataset)
{
    const haddr_t start = dataset > 0 ? H5Dget_offset(dataset) : HADDR_UNDEF;
    const hsize_t bytes = dataset > 0 ? H5Dget_storage_size(dataset) : 0;
    if (start == HADDR_UNDEF || bytes < HOLE_LEAST || lost->extents == MOST_MEMBERS)
        return;
    lost->extent[lost->extents].start = start;
    lost->extent[lost->extents++].bytes = bytes;
}

/* HDF5 forgets space inside a file; the file system need not keep it. Where it cannot free it, it
 * stays until the next update, which builds the file anew. */
static void punch_holes(const struct lost *lost, hid_t file)
{
    int *descriptor = NULL;
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&descriptor) < 0 || !descriptor)
        return;
    for (unsigned i = 0; i < lost->extents; i++)
        fallocate(*descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)lost->extent[i].start, (off_t)lost->extent[i].bytes);
}

static void remember(struct lost *lost, const char *axis)
{
    for (unsigned i = 0; i < lost->count; i++)
        if (strcmp(lost->name[i], axis) == 0)
            return;
    if (lost->count < MOST_SCALES)
        snprintf(lost->name[lost->count++], AXIS_NAME_MAX, "%s", axis);
}

/* Makes the scales of one dataset forget it. */
static enum status detach_dataset(struct lost *lost, hid_t file, struct result *result,
                                  const char *name, const char *path, struct error *err)
{
    enum status status = STATUS_FAILED;
    hid_t stored = H5Dopen2(result->file, name, H5P_DEFAULT);
    note_extent(lost, stored);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), scale = H5I_INVALID_HID;
    hid_t space = H5Dget_space(stored);
    const int rank = H5Sget_simple_extent_ndims(space);
    h5_close(&space);
    if (stored < 0 || dataset < 0) {
        h5_fail(err, "H5Dopen2", "write", path);
        goto out;
    }
    if (scales_check_dataset(result, stored, err))
        goto out;
    for (int a = 0; a < rank; a++) {
        char axis[AXIS_NAME_MAX];
        if (axes_name(axis, sizeof axis, &result->axes, stored, (unsigned)a, err))
            goto out;
        scale = *axis ? H5Dopen2(file, axis, H5P_DEFAULT) : H5I_INVALID_HID;
        if (scale > 0) {
            remember(lost, axis);
            if (H5DSdetach_scale(dataset, scale, (unsigned)a) < 0) {
                h5_fail(err, "H5DSdetach_scale", "write", path);
                goto out;
            }
        }
        h5_close(&scale);
    }
    status = STATUS_OK;
out:
    h5_close(&scale);
    h5_close(&dataset);
    h5_close(&stored);
    return status;
}

static enum status detach_group(struct lost *lost, hid_t file, struct result *result,
                                const char *name, unsigned depth, const char *path,
                                struct error *err)
{
    enum status status = STATUS_FAILED;
    hid_t group;
    struct h5_names members = {0};
    char member[NAME_SIZE];
    if (h5_open_group(&group, result->file, name, result->path, err))
        return STATUS_FAILED;
    if (h5_list(&members, group, MOST_MEMBERS, result->path, err))
        goto out;
    for (unsigned i = 0; i < members.count; i++) {
        if (snprintf(member, sizeof member, "%s/%s", name, members.name[i]) >= (int)sizeof member)
            continue;
        if (h5_is_object(group, members.name[i], H5O_TYPE_DATASET) &&
            detach_dataset(lost, file, result, member, path, err))
            goto out;
        if (h5_is_object(group, members.name[i], H5O_TYPE_GROUP) && depth < MOST_DEPTH &&
            detach_group(lost, file, result, member, depth + 1, path, err))
            goto out;
    }
    status = STATUS_OK;
out:
    h5_free_names(&members);
    h5_close(&group);
    return status;
}

enum status remove_object(hid_t file, struct result *result, const char *name, const char *path,
                          struct error *err)
{
    struct lost lost = {.count = 0};
    enum status status = h5_is_object(result->file, name, H5O_TYPE_GROUP)
                             ? detach_group(&lost, file, result, name, 0, path, err)
                             : detach_dataset(&lost, file, result, name, path, err);
    if (status != STATUS_OK)
        return status;
    if (checksums_forget(file, name, path, err))
        return STATUS_FAILED;
    if (H5Ldelete(file, name, H5P_DEFAULT) < 0)
        return h5_fail(err, "H5Ldelete", "write", path);
    punch_holes(&lost, file);
    for (unsigned i = 0; i < lost.count; i++) {
        hid_t scale = H5Dopen2(file, lost.name[i], H5P_DEFAULT);
        const bool used = scale < 0 || H5Aexists(scale, "REFERENCE_LIST") > 0;
        h5_close(&scale);
        if (used)
            continue;
        if (scales_check_own(result, lost.name[i], err))
            return STATUS_FAILED;
        if (H5Ldelete(file, lost.name[i], H5P_DEFAULT) < 0)
            return h5_fail(err, "H5Ldelete", "write", path);
    }
    return STATUS_OK;
}
