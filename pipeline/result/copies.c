/* copies.c: copies contiguous bytes without HDF5, and chunks as stored. */
#include "result/copies.h"
#include "base/cpus.h"
#include "base/output.h"
#include "base/path.h"
#include "matrix/h5_driver.h"
#include "result/defined.h"
#include "result/move_rows.h"
#include "result/shown.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)

/* Copies the attributes of an object that the format defines, except those that `to` already has. */
static enum status copy_attributes(const struct copies *copies, hid_t to, hid_t from,
                                   const char *name, struct error *err)
{
    const struct defined *defined = defined_find(name);
    H5_SCOPED_NAMES names = {0};
    if (h5_list_attributes(&names, from, err))
        return STATUS_FAILED;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < names.count && !status; i++) {
        const char *attribute = names.name[i];
        if (defined && defined_attribute(defined, attribute) &&
            !defined_attribute_of_library(attribute) && H5Aexists(to, attribute) <= 0 &&
            strcmp(attribute, SHOWN) != 0 &&
            !(copies->left_out_attribute && copies->left_out_attribute(attribute)))
            status = h5_copy_attribute(to, from, attribute, err);
    }
    return status;
}

/* --- values ------------------------------------------------------------------------------------ */

/* Copies within the kernel if possible, else through memory. */
static enum status copy_bytes(const struct copies *copies, int to, uint64_t to_at, int from,
                              uint64_t from_at, uint64_t size, struct error *err)
{
    off_t in = (off_t)from_at, out = (off_t)to_at;
    const off_t end = in + (off_t)size;
    char *buffer = NULL;
    enum status status = STATUS_OK;
    while (in < end && copy_file_range(from, &in, to, &out, (size_t)(end - in), 0) > 0)
        ;
    if (in < end && !(buffer = malloc(COPY_BYTES)))
        status = error_memory(err, COPY_BYTES, "a copy");
    while (in < end && !status) {
        const size_t part = end - in < (off_t)COPY_BYTES ? (size_t)(end - in) : COPY_BYTES;
        size_t got;
        status = read_at(from, buffer, part, (uint64_t)in, &got, copies->from->path, err);
        if (!status && got < part)
            status = error_set(err, STATUS_FAILED, "%s was truncated while it was copied",
                               PATH_TEXT(copies->from->path));
        if (!status)
            status = write_at(to, buffer, part, (uint64_t)out, h5_path(copies->to), err);
        in += (off_t)part;
        out += (off_t)part;
    }
    free(buffer);
    return status;
}

static enum status copy_contiguous(const struct copies *copies, hid_t to, hid_t from,
                                   struct error *err)
{
    const haddr_t at = H5Dget_offset(from);
    const uint64_t bytes = H5Dget_storage_size(from);
    return at == HADDR_UNDEF || bytes == 0
               ? STATUS_OK
               : copy_bytes(copies, h5_driver_descriptor(to), H5Dget_offset(to),
                            h5_driver_descriptor(from), at, bytes, err);
}

static enum status copy_chunks(const struct copies *copies, hid_t to, hid_t from,
                               const hsize_t size[2], const hsize_t chunk[2], struct error *err)
{
    uint8_t *buffer = NULL;
    hsize_t room = 0, stored, at[2];
    enum status status = STATUS_OK;
    for (at[0] = 0; at[0] < size[0] && !status; at[0] += chunk[0])
        for (at[1] = 0; at[1] < size[1] && !status; at[1] += chunk[1]) {
            uint32_t mask = 0;
            if (H5Dget_chunk_storage_size(from, at, &stored) < 0)
                status = h5_failed(err, "H5Dget_chunk_storage_size", "read", from);
            if (!status && stored > room) {
                free(buffer);
                room = 2 * stored;
                buffer = malloc(room);
                if (!buffer)
                    status = error_memory(err, room, "a chunk");
            }
            if (status || stored == 0)
                continue;
            if (H5Dread_chunk(from, H5P_DEFAULT, at, &mask, buffer) < 0)
                status = h5_failed(err, "H5Dread_chunk", "read", from);
            else if (H5Dwrite_chunk(to, H5P_DEFAULT, mask, at, stored, buffer) < 0)
                status = h5_failed(err, "H5Dwrite_chunk", "write", copies->to);
        }
    free(buffer);
    return status;
}

/* Other datasets: small ones, or rows of parts, which are not copied. */
static enum status copy_values(const struct copies *copies, hid_t to, hid_t from, hid_t type,
                               uint64_t bytes, struct error *err)
{
    void *values = malloc(bytes + 1);
    enum status status = values ? STATUS_OK : error_memory(err, bytes, "a dataset");
    if (!status && H5Dread(from, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = h5_failed(err, "H5Dread", "read", from);
    if (!status && H5Dwrite(to, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = h5_failed(err, "H5Dwrite", "write", copies->to);
    free(values);
    return status;
}

static enum status read_raw(void *context, const struct move_column *column, bool lengths,
                            uint64_t first, uint64_t count, void *rows, struct error *err)
{
    (void)column;
    assert(!lengths);
    return raw_read(context, first, count, rows, err);
}

/* Copies rows in the order of the new images. */
static enum status move_values(const struct copies *copies, hid_t to, hid_t from, hid_t type,
                               uint64_t columns, struct error *err)
{
    const size_t element = H5Tget_size(type), row_bytes = element * columns;
    const float nan_value = NAN;
    struct row_input input = {.read = read_raw};
    struct move_column column = {.row_bytes = row_bytes, .list = copies->rows, .input = &input};
    const struct move move = {.column = &column, .columns = 1, .threads = cpus_available()};
    uint8_t *fill = malloc(row_bytes);
    struct raw *raw = NULL;
    enum status status =
        fill ? h5_open_raw(&raw, from, err) : error_memory(err, row_bytes, "a row");
    for (uint64_t i = 0; i < columns && !status; i++)
        if (H5Tget_class(type) == H5T_FLOAT && element == sizeof nan_value)
            memcpy(fill + i * element, &nan_value, element);
        else
            memset(fill + i * element, 0xff, element);
    column.fill = fill;
    input.context = raw;
    if (!status)
        status = raw_open(&column.to, to, h5_path(copies->to), err);
    if (!status)
        status = move_rows(&move, err);
    raw_close(&column.to);
    raw_close(&raw);
    free(fill);
    return status;
}

/* --- objects ----------------------------------------------------------------------------------- */

static enum status copy_axes(const struct copies *copies, hid_t to, hid_t from, int rank,
                             const hsize_t *size, struct error *err)
{
    enum status status = STATUS_OK;
    for (int a = 0; a < rank && !status; a++) {
        char axis[AXIS_NAME_MAX];
        status = axes_name(axis, sizeof axis, copies->from->axes, from, (unsigned)a, err);
        if (!status && *axis)
            status = h5_create_scale(copies->to, axis, size[a], err);
        if (!status && *axis)
            status = h5_attach_scale(copies->to, to, (unsigned)a, axis, err);
    }
    return status;
}

static enum status copy_dataset(const struct copies *copies, hid_t from, const char *name,
                                struct error *err)
{
    hsize_t size[2] = {0, 1}, chunk[2] = {1, 1};
    H5_SCOPED hid_t stored = H5Dget_type(from), type = H5Tcopy(stored), space = H5Dget_space(from),
                    list = H5Dget_create_plist(from), to = H5I_INVALID_HID;
    const int rank = H5Sget_simple_extent_ndims(space);
    const H5D_layout_t layout = H5Pget_layout(list);
    const size_t element = H5Tget_size(type);
    const uint64_t bytes = (uint64_t)H5Sget_simple_extent_npoints(space) * element;
    const char *wrong = rank < 1 || rank > 2 || H5Tis_variable_str(type) > 0
                            ? "has an unexpected type or shape"
                        : layout == H5D_VIRTUAL ? NULL
                                                : h5_bad_storage(from, bytes, element);
    char axis[AXIS_NAME_MAX] = "";
    if (copies->rows && axes_name(axis, sizeof axis, copies->from->axes, from, 0, err))
        return STATUS_FAILED;
    const bool moved = copies->rows && strcmp(axis, image_table.axis) == 0;
    if (wrong)
        return h5_damaged(err, copies->from->path, "%s %s", name, wrong);
    H5Sget_simple_extent_dims(space, size, NULL);
    if (moved) {
        h5_close(&list);
        list = H5Pcreate(H5P_DATASET_CREATE);
        size[0] = copies->rows->rows;
        H5Sset_extent_simple(space, rank, size, NULL);
    }
    H5Pset_obj_track_times(list, false);
    if (layout == H5D_CONTIGUOUS || moved)
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    if (layout != H5D_VIRTUAL)
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    to = H5Dcreate2(copies->to, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (to < 0)
        return h5_failed(err, "H5Dcreate2", "write", copies->to);
    if (copy_axes(copies, to, from, rank, size, err) ||
        copy_attributes(copies, to, from, name, err))
        return STATUS_FAILED;
    if (layout == H5D_CHUNKED)
        H5Pget_chunk(list, rank, chunk);
    const enum status status = moved ? move_values(copies, to, from, type, size[1], err)
                               : layout == H5D_VIRTUAL    ? STATUS_OK
                               : layout == H5D_CONTIGUOUS ? copy_contiguous(copies, to, from, err)
                               : layout == H5D_CHUNKED
                                   ? copy_chunks(copies, to, from, size, chunk, err)
                                   : copy_values(copies, to, from, type, bytes, err);
    return status ? status : h5_finish_dataset(&to, err);
}

static enum status copy_group(const struct copies *copies, hid_t from, const char *name,
                              struct error *err)
{
    H5_SCOPED hid_t to = H5I_INVALID_HID;
    enum status status = STATUS_OK;
    if (H5Lexists(copies->to, name, H5P_DEFAULT) > 0 || strcmp(name, "/") == 0)
        to = H5Gopen2(copies->to, name, H5P_DEFAULT);
    else
        status = h5_create_group(&to, copies->to, name, err);
    if (!status)
        status = copy_attributes(copies, to, from, name, err);
    return status;
}

bool copies_leave_out(const struct copies *copies, const char *name)
{
    char above[DEFINED_NAME_MAX];
    snprintf(above, sizeof above, "%s", name);
    while (copies->leave_out && *above) {
        if (copies->leave_out(copies->context, above))
            return true;
        *strrchr(above, '/') = 0;
    }
    return false;
}

static enum status copy_own(void *context, hid_t object, const char *name,
                            const struct defined *defined, struct error *err)
{
    const struct copies *copies = context;
    if (copies_leave_out(copies, name))
        return STATUS_OK;
    return defined->type == H5O_TYPE_GROUP ? copy_group(copies, object, name, err)
                                           : copy_dataset(copies, object, name, err);
}

enum status copies_make(const struct copies *copies, const char *name, struct error *err)
{
    const struct defined_visitor visitor = {copy_own, NULL, (void *)(uintptr_t)copies};
    return defined_walk(copies->from->file, name, &visitor, err);
}

enum status copies_runs(hid_t *runs, hid_t file, struct result *from, unsigned first,
                        const char *clusters, struct error *err)
{
    const struct copies copies = {.from = from, .to = file};
    enum status status = h5_create_group(runs, file, "runs", err);
    for (unsigned i = first; from && i < from->run_count && !status; i++) {
        char name[32];
        snprintf(name, sizeof name, "/runs/%llu", (unsigned long long)from->runs[i]);
        status = copies_make(&copies, name, err);
    }
    return status || !clusters ? status : h5_put_text(*runs, RUN_CLUSTERS, clusters, err);
}
