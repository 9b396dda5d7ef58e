/* raw.c: types and locations of datasets; values stored as they are, or read by HDF5. */
#include "matrix/raw.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/path.h"
#include "matrix/h5_driver.h"
#include "matrix/h5_error.h"
#include "matrix/raw_internal.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Small enough that values stay in the cache while they are converted. */
#define BUFFER_BYTES (64u << 10)
/* Reads of at least this size are probably sequential. */
#define AHEAD_BYTES (512u << 10)

/* --- opening --------------------------------------------------------------------------------- */

/* Whether a float of that size has the IEEE 754 layout. */
static bool is_ieee(hid_t type, size_t bytes)
{
    const size_t wanted = bytes == 2 ? 5 : bytes == 4 ? 8 : 11;
    size_t sign, exponent_at, exponent, mantissa_at, mantissa;
    return H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) >= 0 &&
           H5Tget_norm(type) == H5T_NORM_IMPLIED && sign == 8 * bytes - 1 && mantissa_at == 0 &&
           exponent_at == mantissa && exponent == wanted && mantissa == sign - wanted &&
           H5Tget_ebias(type) == ((size_t)1 << (wanted - 1)) - 1;
}

/* IEEE 754 floats and integers of whole bytes without padding; else kind 0. */
static struct value_format format_of(hid_t type, size_t bytes)
{
    const H5T_class_t class = H5Tget_class(type);
    const H5T_order_t order = H5Tget_order(type);
    struct value_format format = {0};
    if ((class != H5T_FLOAT && class != H5T_INTEGER) || bytes > 8 ||
        H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0 ||
        (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
        return format;
    format.kind = class == H5T_FLOAT ? 'f' : H5Tget_sign(type) == H5T_SGN_2 ? 'i' : 'u';
    format.bytes = (unsigned char)bytes;
    format.big_endian = order == H5T_ORDER_BE && bytes > 1;
    if (!values_known(format) || (class == H5T_FLOAT && !is_ieee(type, bytes)))
        format.kind = 0;
    return format;
}

static enum status find_shape(struct raw *raw, hid_t dataset, struct error *err)
{
    hsize_t extent[2] = {0, 1};
    H5_SCOPED hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_ndims(space);
    const bool good = type >= 0 && (rank == 1 || rank == 2) &&
                      H5Sget_simple_extent_dims(space, extent, NULL) == rank &&
                      H5Tis_variable_str(type) <= 0 && H5Tdetect_class(type, H5T_VLEN) <= 0;
    raw->rows = extent[0];
    raw->columns = (uint32_t)extent[1];
    raw->element = H5Tget_size(type);
    raw->row_bytes = raw->element * extent[1];
    if (good)
        raw->format = format_of(type, raw->element);
    return good && extent[1] <= UINT32_MAX
               ? STATUS_OK
               : error_set(err, STATUS_FAILED, "%s has a dataset that is not a table of values",
                           raw->shown);
}

static void find_file(struct raw *raw, hid_t dataset)
{
    struct stat st;
    const int fd = h5_driver_descriptor(dataset);
    if (fstat(fd, &st) == 0) {
        raw->fd = fd;
        raw->file_bytes = (uint64_t)st.st_size;
    }
}

static enum status find_layout(struct raw *raw, hid_t dataset, struct error *err)
{
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset);
    const H5D_layout_t layout = H5Pget_layout(list);
    enum status status = STATUS_OK;
    if (layout == H5D_CONTIGUOUS && raw->fd >= 0 && H5Pget_external_count(list) == 0) {
        raw->start = H5Dget_offset(dataset);
        if (raw->start != HADDR_UNDEF)
            raw->layout = RAW_CONTIGUOUS;
    } else if (layout == H5D_CHUNKED) {
        status = raw_chunks_open(raw, list, err);
        if (raw->chunks)
            raw->layout = RAW_CHUNKS;
    }
    return status;
}

static void begin(struct raw *out, hid_t dataset, const char *path)
{
    *out = (struct raw){.dataset = dataset, .path = path, .fd = -1, .users = 1};
    path_for_message(out->shown, sizeof out->shown, path);
}

enum status raw_open(struct raw **out, hid_t dataset, const char *path, struct error *err)
{
    struct raw *raw = *out = malloc(sizeof *raw);
    if (!raw)
        return error_memory(err, sizeof *raw, "a dataset");
    begin(raw, dataset, path);
    enum status status = find_shape(raw, dataset, err);
    if (status == STATUS_OK) {
        find_file(raw, dataset);
        status = find_layout(raw, dataset, err);
    }
    if (status != STATUS_OK)
        raw_close(out);
    return status;
}

void raw_of_file(struct raw *out, int fd, uint64_t start, uint64_t rows, uint32_t columns,
                 struct value_format format, const char *path)
{
    begin(out, H5I_INVALID_HID, path);
    out->layout = RAW_CONTIGUOUS;
    out->fd = fd;
    out->start = start;
    out->rows = rows;
    out->columns = columns;
    out->format = format;
    out->element = format.bytes;
    out->row_bytes = (uint64_t)columns * format.bytes;
}

void raw_detach(struct raw *raw, int fd, const char *path)
{
    raw->dataset = H5I_INVALID_HID;
    raw->path = path;
    raw->fd = fd;
}

void raw_close(struct raw **raw)
{
    struct raw *closed = *raw;
    *raw = NULL;
    if (!closed || --closed->users > 0)
        return;
    raw_chunks_close(closed);
    raw_segments_close(closed);
    free(closed);
}

/* --- reading --------------------------------------------------------------------------------- */

enum status raw_check_length(const struct raw *raw, struct error *err)
{
    struct stat st;
    return raw->fd < 0 || (fstat(raw->fd, &st) == 0 && (uint64_t)st.st_size >= raw->file_bytes)
               ? STATUS_OK
               : error_set(err, STATUS_FAILED, "%s was truncated while it was read", raw->shown);
}

static enum status read_exactly(const struct raw *raw, uint64_t at, size_t size, void *out,
                                struct error *err)
{
    size_t got;
    const enum status status = read_at(raw->fd, out, size, raw->start + at, &got, raw->path, err);
    return status || got == size
               ? status
               : error_set(err, STATUS_FAILED, "%s was truncated while it was read", raw->shown);
}

static enum status read_contiguous(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                                   bool values, struct error *err)
{
    unsigned char buffer[BUFFER_BYTES];
    uint64_t at = first * raw->row_bytes, size = count * raw->row_bytes;
    float *to = out;
    if (!values && size >= AHEAD_BYTES)
        posix_fadvise(raw->fd, (off_t)(raw->start + at + size), (off_t)size, POSIX_FADV_WILLNEED);
    if (!values || values_direct(raw->format))
        return read_exactly(raw, at, (size_t)size, out, err);
    while (size > 0) {
        const size_t part = (size_t)min_u64(size, BUFFER_BYTES), read = part / raw->element;
        const enum status status = read_exactly(raw, at, part, buffer, err);
        if (status != STATUS_OK)
            return status;
        values_convert(to, buffer, read, raw->format);
        to += read;
        at += part;
        size -= part;
    }
    return STATUS_OK;
}

enum status raw_read_block(const struct raw *raw, hid_t memory, const hsize_t start[2],
                           const hsize_t extent[2], void *values, struct error *err)
{
    char what[80];
    enum status status = STATUS_OK;
    h5_driver_lock();
    hid_t space = H5Dget_space(raw->dataset), type = H5Dget_type(raw->dataset);
    hid_t block = H5Screate_simple(H5Sget_simple_extent_ndims(space), extent, NULL);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) < 0 ||
        H5Dread(raw->dataset, memory >= 0 ? memory : type, block, space, H5P_DEFAULT, values) < 0) {
        snprintf(what, sizeof what, "read rows %llu to %llu of", (unsigned long long)start[0],
                 (unsigned long long)(start[0] + extent[0] - 1));
        status = h5_fail(err, "H5Dread", what, raw->path);
    }
    h5_close(&block);
    h5_close(&type);
    h5_close(&space);
    h5_driver_unlock();
    return status ? status : raw_check_length(raw, err);
}

enum status raw_read_either(const struct raw *raw, uint64_t first, uint64_t count, void *out,
                            bool values, struct error *err)
{
    const hsize_t start[2] = {first, 0}, extent[2] = {count, raw->columns};
    if (first > raw->rows || count > raw->rows - first)
        return error_set(err, STATUS_FAILED, "%s has %llu rows; asked for %llu from %llu",
                         raw->shown, (unsigned long long)raw->rows, (unsigned long long)count,
                         (unsigned long long)first);
    if (count == 0 || raw->row_bytes == 0)
        return STATUS_OK;
    if (raw->layout == RAW_SEGMENTS)
        return raw_segments_read(raw, first, count, out, values, err);
    if (raw->layout == RAW_HDF5 || (values && !raw->format.kind))
        return raw_read_block(raw, values ? H5T_NATIVE_FLOAT : H5I_INVALID_HID, start, extent, out,
                              err);
    return (raw->layout == RAW_CHUNKS ? raw_chunks_read : read_contiguous)(raw, first, count, out,
                                                                           values, err);
}

enum status raw_read(const struct raw *raw, uint64_t first, uint64_t count, void *rows,
                     struct error *err)
{
    const enum status status = raw_read_either(raw, first, count, rows, false, err);
    if (status == STATUS_OK && raw->format.kind && raw->format.big_endian)
        values_swap(rows, (size_t)(count * raw->columns), raw->element);
    return status;
}

enum status raw_read_float(const struct raw *raw, uint64_t first, uint64_t count, float *rows,
                           struct error *err)
{
    return raw_read_either(raw, first, count, rows, true, err);
}
