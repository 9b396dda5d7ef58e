/* hdf5_sources.c: looks for sources where HDF5 does. */
#include "matrix/hdf5_sources.h"
#include "base/path.h"
#include "matrix/h5_error.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_NESTED 16

struct check {
    enum status (*open)(hid_t *file, const char *path, struct error *err);
    unsigned depth;
};

static enum status lacks(struct error *err, const char *path, const char *source, const char *why)
{
    char shown[256], shown_source[256];
    return error_set(
        err, STATUS_FAILED,
        "cannot read %s: it takes values from %s, which %s: HDF5 would give fill values",
        path_for_message(shown, sizeof shown, path),
        path_for_message(shown_source, sizeof shown_source, source), why);
}

/* The place of a file that `path` names: below the prefix of the environment, beside `path`, or in the
 * working directory; of an absolute one that is gone beside `path`, too. */
static bool find_file(char found[PATH_MAX], const char *name, const char *path, const char *prefix)
{
    const char *slash = strrchr(path, '/'), *base = strrchr(name, '/');
    const int directory = slash ? (int)(slash - path) + 1 : 0;
    struct stat st;
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            snprintf(found, PATH_MAX, "%s%s%s", *name != '/' && prefix ? prefix : "",
                     *name != '/' && prefix ? "/" : "", name);
        else if (i == 1)
            snprintf(found, PATH_MAX, "%.*s%s", directory, path, *name == '/' ? base + 1 : name);
        else
            snprintf(found, PATH_MAX, "%s", name);
        if ((i > 0 || *name == '/' || prefix) && stat(found, &st) == 0)
            return true;
    }
    return false;
}

static enum status check_external(hid_t list, hid_t dataset, const char *path, struct error *err)
{
    uint64_t left = H5Dget_storage_size(dataset);
    const int count = H5Pget_external_count(list);
    for (int i = 0; i < count && left > 0; i++) {
        char name[PATH_MAX] = "", found[PATH_MAX];
        off_t offset = 0;
        hsize_t size = 0;
        struct stat st;
        if (H5Pget_external(list, (unsigned)i, sizeof name, name, &offset, &size) < 0)
            return h5_fail(err, "H5Pget_external", "read", path);
        const uint64_t taken = size < left ? size : left;
        if (!find_file(found, name, path, getenv("HDF5_EXTFILE_PREFIX")) || stat(found, &st))
            return lacks(err, path, name, "is missing");
        if ((uint64_t)st.st_size < (uint64_t)offset + taken)
            return lacks(err, path, found, "has fewer");
        left -= taken;
    }
    return STATUS_OK;
}

static enum status check(const struct check *check, hid_t dataset, const char *path,
                         struct error *err);

/* Whether a source has all that is selected of it, or, where that is everything, enough for `target`; of
 * an unlimited selection it has what is there. */
static bool has_selected(hid_t source, hid_t selected, hid_t target)
{
    hsize_t extent[H5S_MAX_RANK], first[H5S_MAX_RANK], last[H5S_MAX_RANK];
    hid_t space = H5Dget_space(source);
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    bool all = rank >= 0;
    if (H5Sget_select_type(selected) == H5S_SEL_ALL) {
        all = H5Sget_simple_extent_npoints(space) >= H5Sget_select_npoints(target);
    } else {
        all = all && rank == H5Sget_simple_extent_ndims(selected) &&
              H5Sget_select_bounds(selected, first, last) >= 0;
        for (int i = 0; all && i < rank; i++)
            all = last[i] < extent[i] || last[i] > INT64_MAX;
    }
    H5Sclose(space);
    return all;
}

static enum status check_mapping(const struct check *c, hid_t list, size_t i, hid_t dataset,
                                 const char *path, struct error *err)
{
    char name[PATH_MAX] = "", object[1024] = "", found[PATH_MAX], where[PATH_MAX + 1024];
    hid_t file = H5I_INVALID_HID, source = H5I_INVALID_HID;
    hid_t selected = H5Pget_virtual_srcspace(list, i), target = H5Pget_virtual_vspace(list, i);
    enum status status = STATUS_OK;
    if (selected < 0 || target < 0 || H5Pget_virtual_filename(list, i, name, sizeof name) < 0 ||
        H5Pget_virtual_dsetname(list, i, object, sizeof object) < 0) {
        status = h5_fail(err, "H5Pget_virtual_filename", "read", path);
        goto out;
    }
    snprintf(where, sizeof where, "%s:%s%s", name, *object == '/' ? "" : "/", object);
    if (strstr(where, "%b")) {
        status = lacks(err, path, where, "numbers its files: give one of them");
    } else if (strcmp(name, ".") == 0) {
        snprintf(found, sizeof found, "%s", path);
        file = H5Iget_file_id(dataset);
    } else if (!find_file(found, name, path, getenv("HDF5_VDS_PREFIX"))) {
        status = lacks(err, path, where, "is missing");
    } else {
        status = c->open(&file, found, err);
    }
    if (status != STATUS_OK)
        goto out;
    source = H5Dopen2(file, object, H5P_DEFAULT);
    if (source < 0)
        status = lacks(err, path, where, "is missing");
    else if (!has_selected(source, selected, target))
        status = lacks(err, path, where, "has fewer");
    else
        status = check(&(struct check){c->open, c->depth + 1}, source, found, err);
out:
    if (source >= 0)
        H5Dclose(source);
    if (file >= 0)
        H5Fclose(file);
    if (selected >= 0)
        H5Sclose(selected);
    if (target >= 0)
        H5Sclose(target);
    return status;
}

static enum status check(const struct check *c, hid_t dataset, const char *path, struct error *err)
{
    size_t count = 0;
    hid_t list = H5Dget_create_plist(dataset);
    enum status status = STATUS_OK;
    if (c->depth == MOST_NESTED)
        status = lacks(err, path, path, "takes them from there in a circle");
    else if (H5Pget_external_count(list) > 0)
        status = check_external(list, dataset, path, err);
    else if (H5Pget_layout(list) == H5D_VIRTUAL && H5Pget_virtual_count(list, &count) < 0)
        status = h5_fail(err, "H5Pget_virtual_count", "read", path);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = check_mapping(c, list, i, dataset, path, err);
    H5Pclose(list);
    return status;
}

enum status hdf5_sources_check(hid_t dataset, const char *path,
                               enum status (*open)(hid_t *file, const char *path,
                                                   struct error *err),
                               struct error *err)
{
    return check(&(struct check){open, 0}, dataset, path, err);
}
