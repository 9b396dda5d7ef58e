/* h5.c: HDF5 with clpipe's errors and property lists, and with checks of everything read. */
#include "result/h5.h"
#include "base/array.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/path.h"
#include "matrix/h5_driver.h"
#include <errno.h>
#include <hdf5_hl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Large data starts on a page: it can be mapped, and read without HDF5. */
#define ALIGN_FROM (64 << 10)
#define ALIGN_TO   4096
/* Metadata is written in pieces of this size. */
#define META_BLOCK (64 << 10)
/* Minimum size of a column of texts for deflation. */
#define TEXT_CHUNK_BYTES (256u << 10)
#define TEXT_FROM        (64u << 10)
/* Columns are written in blocks. */
#define BLOCK_BYTES (1u << 20)
/* HDF5 reads a chunk as a whole. */
#define MOST_CHUNK_BYTES (64u << 20)
/* More members of a group, or attributes of an object, count as damage. */
#define MOST_MEMBERS 65536u
/* Deflate shrinks by 1032 at most. */
#define MOST_COMPRESSION 1100

static const struct {
    const char *name; /* in digests; for texts it includes the width */
    size_t size;
    H5T_class_t class;
    bool is_signed;
} value_kinds[] = {
    [VALUE_U8] = {"uint8", 1, H5T_INTEGER, false},
    [VALUE_U16] = {"uint16", 2, H5T_INTEGER, false},
    [VALUE_U32] = {"uint32", 4, H5T_INTEGER, false},
    [VALUE_U64] = {"uint64", 8, H5T_INTEGER, false},
    [VALUE_I8] = {"int8", 1, H5T_INTEGER, true},
    [VALUE_I16] = {"int16", 2, H5T_INTEGER, true},
    [VALUE_I32] = {"int32", 4, H5T_INTEGER, true},
    [VALUE_I64] = {"int64", 8, H5T_INTEGER, true},
    [VALUE_F16] = {"float16", 2, H5T_FLOAT, true},
    [VALUE_F32] = {"float32", 4, H5T_FLOAT, true},
    [VALUE_F64] = {"float64", 8, H5T_FLOAT, true},
    [VALUE_TEXT8] = {"text", 8, H5T_STRING, false},
    [VALUE_TEXT16] = {"text", 16, H5T_STRING, false},
    [VALUE_TEXT] = {"text", 0, H5T_STRING, false},
};

size_t value_size(enum value_type type)
{
    return value_kinds[type].size;
}

const char *value_name(enum value_type type)
{
    return value_kinds[type].name;
}

static const struct h5_virtual *virtual_reader;

void h5_set_virtual(const struct h5_virtual *reader)
{
    virtual_reader = reader;
}

static struct raw *find_virtual(hid_t dataset)
{
    return virtual_reader ? virtual_reader->find(dataset) : NULL;
}

bool h5_is_virtual(hid_t dataset)
{
    return find_virtual(dataset) != NULL;
}

enum status h5_open_raw(struct raw **out, hid_t dataset, struct error *err)
{
    struct raw *raw = find_virtual(dataset);
    if (!raw)
        return raw_open(out, dataset, h5_path(dataset), err);
    raw->users++;
    *out = raw;
    return STATUS_OK;
}

/* binary16 of IEEE 754, little-endian. HDF5 defines it only since 1.14.4. */
static hid_t make_float16(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are stored as memory has them");

/* Texts of `width` bytes; 0: of variable length. */
static hid_t make_text(size_t width)
{
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, width ? width : H5T_VARIABLE);
    H5Tset_strpad(text, width ? H5T_STR_NULLPAD : H5T_STR_NULLTERM);
    H5Tset_cset(text, H5T_CSET_UTF8);
    return text;
}

hid_t h5_type(enum value_type type)
{
    const size_t size = value_kinds[type].size;
    if (value_kinds[type].class == H5T_STRING)
        return make_text(size);
    if (type == VALUE_F16)
        return make_float16();
    if (value_kinds[type].class == H5T_FLOAT)
        return H5Tcopy(type == VALUE_F32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
    hid_t integer = H5Tcopy(value_kinds[type].is_signed ? H5T_STD_I8LE : H5T_STD_U8LE);
    H5Tset_size(integer, size);
    H5Tset_precision(integer, 8 * size);
    return integer;
}

/* The texts of a dataset in memory: NUL-padded, in its own character set, which HDF5 does not convert. */
static hid_t text_in_memory(hid_t dataset)
{
    H5_SCOPED hid_t stored = H5Dget_type(dataset);
    hid_t type = H5Tcopy(stored);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    return type;
}

const char *h5_path(hid_t object)
{
    const char *name = h5_driver_name(object);
    return name ? name : "a file";
}

enum status h5_failed(struct error *err, const char *call, const char *what, hid_t object)
{
    /* The search for the name would clear the reason. */
    const hid_t stack = H5Eget_current_stack();
    const char *path = h5_path(object);
    H5Eset_current_stack(stack);
    return h5_fail(err, call, what, path);
}

static enum status check_written(hid_t object, struct error *err)
{
    const int failed = h5_driver_write_failed(object);
    return failed ? h5_system_failed(err, failed, "pwrite", "write", h5_path(object)) : STATUS_OK;
}

enum status h5_check_reads(struct error *err)
{
    const char *path;
    const int failed = h5_driver_read_failed(&path);
    if (failed == H5_DRIVER_DAMAGE)
        return h5_damaged(err, path, "an object that it names cannot be read");
    return failed ? h5_system_failed(err, failed, "pread", "read", path) : STATUS_OK;
}

enum status h5_damaged(struct error *err, const char *path, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return error_set(err, STATUS_FAILED, "%s is damaged or not a clpipe file: %s", PATH_TEXT(path),
                     what);
}

enum status h5_wrong(struct error *err, hid_t object, const char *what)
{
    char name[512] = "";
    H5Iget_name(object, name, sizeof name);
    return h5_damaged(err, h5_path(object), "%s %s", name, what);
}

/* The file access properties of everything that clpipe opens or creates. */
static hid_t access_list(void)
{
    h5_quiet();
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    h5_driver_use(list);
    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
    H5Pset_alignment(list, ALIGN_FROM, ALIGN_TO);
    H5Pset_meta_block_size(list, META_BLOCK);
    /* Files appear by rename, so nobody writes to a file that others read. HDF5's own locks fail on
     * file systems without flock(). */
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 11, 0))
    H5Pset_file_locking(list, false, true);
#endif
    H5Pset_libver_bounds(list, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    return list;
}

enum status h5_create_file(hid_t *file, const char *path, const char *shown, bool virtual,
                           struct error *err)
{
    H5_SCOPED hid_t access = access_list(), creation = H5Pcreate(H5P_FILE_CREATE);
    if (virtual)
        H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110);
    H5Pset_obj_track_times(creation, false);
    *file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    if (*file < 0)
        return h5_fail(err, "H5Fcreate", "write", shown);
    h5_driver_set_name(*file, shown);
    return STATUS_OK;
}

enum status h5_open_file(hid_t *file, const char *path, struct error *err)
{
    H5_SCOPED hid_t access = access_list();
    /* Readers accept files written by newer libraries. */
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    return h5_open(file, path, access, err);
}

enum status h5_flush_file(hid_t file, struct error *err)
{
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0)
        return h5_failed(err, "H5Fflush", "write", file);
    return check_written(file, err);
}

void h5_discard_file(hid_t *file)
{
    h5_driver_drop(*file);
    if (*file > 0)
        H5Fclose(*file);
    *file = H5I_INVALID_HID;
}

enum status h5_finish_file(hid_t *file, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", h5_path(*file));
    if (h5_flush_file(*file, err) != STATUS_OK || h5_check_reads(err) != STATUS_OK) {
        h5_discard_file(file);
        return STATUS_FAILED;
    }
    const bool closed = H5Fclose(*file) >= 0;
    const int failed = closed ? h5_driver_closed_failed() : 0;
    *file = H5I_INVALID_HID;
    return failed   ? h5_system_failed(err, failed, "pwrite", "write", path)
           : closed ? STATUS_OK
                    : h5_fail(err, "H5Fclose", "write", path);
}

enum status h5_write_file(const char *output, bool unnamed, bool virtual,
                          enum status (*write)(void *context, hid_t file, const char *path,
                                               struct error *err),
                          void *context, struct error *err)
{
    struct output *named = NULL;
    hid_t file = H5I_INVALID_HID;
    enum status status = unnamed ? STATUS_OK : output_open(&named, output, err);
    const char *path = named ? output_temporary(named) : output;
    if (!status)
        status = h5_create_file(&file, path, output, virtual, err);
    if (!status)
        status = write(context, file, path, err);
    if (!status)
        status = h5_finish_file(&file, err);
    if (!status && named)
        status = output_commit(named, err);
    h5_discard_file(&file);
    output_close(&named);
    return status;
}

enum status h5_create_group(hid_t *group, hid_t parent, const char *name, struct error *err)
{
    H5_SCOPED hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(creation, false);
    *group = H5Gcreate2(parent, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    return *group > 0 ? STATUS_OK : h5_failed(err, "H5Gcreate2", "write", parent);
}

enum status h5_make_group(hid_t *group, hid_t parent, const char *name, struct error *err)
{
    if (H5Lexists(parent, name, H5P_DEFAULT) <= 0)
        return h5_create_group(group, parent, name, err);
    *group = H5Gopen2(parent, name, H5P_DEFAULT);
    return *group > 0 ? STATUS_OK : h5_failed(err, "H5Gopen2", "write", parent);
}

/* Closes both `stored` and `creation`, which has the layout. */
static enum status create_dataset(hid_t *dataset, hid_t parent, const char *name, hid_t stored,
                                  int rank, const hsize_t *dimensions, hid_t creation,
                                  struct error *err)
{
    H5_SCOPED hid_t space = H5Screate_simple(rank, dimensions, NULL), type = stored,
                    list = creation;
    H5Pset_obj_track_times(list, false);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    *dataset = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    return *dataset > 0 ? STATUS_OK : h5_failed(err, "H5Dcreate2", "write", parent);
}

/* Creates a layout: chunks of that size, deflated, or contiguous (NULL). */
static hid_t make_layout(int rank, const hsize_t *chunk, bool shuffle)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk) {
        H5Pset_layout(creation, H5D_CONTIGUOUS);
        H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
        return creation;
    }
    H5Pset_chunk(creation, rank, chunk);
    if (shuffle)
        H5Pset_shuffle(creation);
    H5Pset_deflate(creation, H5_DEFLATE_LEVEL);
    return creation;
}

enum status h5_create_dataset(hid_t *dataset, hid_t parent, const char *name, enum value_type type,
                              int rank, const hsize_t *dimensions, struct error *err)
{
    return create_dataset(dataset, parent, name, h5_type(type), rank, dimensions,
                          make_layout(rank, NULL, false), err);
}

enum status h5_create_texts(hid_t *dataset, hid_t parent, const char *name, uint64_t rows,
                            const struct text_size *size, struct error *err)
{
    const size_t width = size->width ? (size_t)size->width : 1;
    const hsize_t dimension = rows, most = TEXT_CHUNK_BYTES / width,
                  chunk = most < 1      ? 1
                          : most > rows ? rows
                                        : most;
    const bool deflated = rows * width >= TEXT_FROM && rows * width > 2 * size->bytes &&
                          H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0;
    return create_dataset(dataset, parent, name, make_text(width), 1, &dimension,
                          make_layout(1, deflated ? &chunk : NULL, false), err);
}

enum status h5_create_chunked(hid_t *dataset, hid_t parent, const char *name, enum value_type type,
                              const hsize_t dimensions[2], uint64_t chunk_rows, bool shuffle,
                              struct error *err)
{
    const hsize_t chunk[2] = {chunk_rows, dimensions[1]};
    return create_dataset(dataset, parent, name, h5_type(type), 2, dimensions,
                          make_layout(2, chunk, shuffle), err);
}

size_t h5_text_width(hid_t dataset)
{
    H5_SCOPED hid_t type = H5Dget_type(dataset);
    return H5Tget_size(type);
}

bool h5_is_compressed(hid_t dataset)
{
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset);
    return H5Pget_layout(list) == H5D_CHUNKED && H5Pget_nfilters(list) > 0;
}

enum status h5_finish_dataset(hid_t *dataset, struct error *err)
{
    H5_SCOPED hid_t file = *dataset > 0 ? H5Iget_file_id(*dataset) : H5I_INVALID_HID;
    const bool ok = *dataset <= 0 || H5Dclose(*dataset) >= 0;
    *dataset = H5I_INVALID_HID;
    return ok ? STATUS_OK : h5_failed(err, "H5Dclose", "write", file);
}

/* Reads rows to `to` or, if that is NULL, writes them from `from`. */
static enum status move_rows(hid_t dataset, enum value_type type, uint64_t first, uint64_t count,
                             void *to, const void *from, struct error *err)
{
    if (count == 0)
        return STATUS_OK;
    h5_quiet();
    const struct raw *raw = to ? find_virtual(dataset) : NULL;
    if (raw)
        return raw_read(raw, first, count, to, err);
    hsize_t size[2] = {0}, start[2] = {first, 0};
    H5_SCOPED hid_t type_id = value_kinds[type].class == H5T_STRING ? text_in_memory(dataset)
                                                                    : h5_type(type),
                    file = H5Dget_space(dataset), memory = H5I_INVALID_HID;
    int rank = H5Sget_simple_extent_ndims(file);
    bool ok = rank >= 1 && rank <= 2 && H5Sget_simple_extent_dims(file, size, NULL) == rank;
    size[0] = count;
    if (ok)
        memory = H5Screate_simple(rank, size, NULL);
    ok = ok && memory > 0 &&
         H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
         (to ? H5Dread(dataset, type_id, memory, file, H5P_DEFAULT, to)
             : H5Dwrite(dataset, type_id, memory, file, H5P_DEFAULT, from)) >= 0;
    return ok ? STATUS_OK
              : h5_failed(err, to ? "H5Dread" : "H5Dwrite", to ? "read" : "write", dataset);
}

enum status h5_write_rows(hid_t dataset, enum value_type type, uint64_t first, uint64_t count,
                          const void *data, struct error *err)
{
    const enum status status = move_rows(dataset, type, first, count, NULL, data, err);
    /* Detects failures before the rest is computed. */
    return status ? status : check_written(dataset, err);
}

enum status h5_read_rows(hid_t dataset, enum value_type type, uint64_t first, uint64_t count,
                         void *data, struct error *err)
{
    return move_rows(dataset, type, first, count, data, NULL, err);
}

enum status h5_create_on_scales(hid_t *dataset, hid_t file, hid_t parent, const char *name,
                                enum value_type type, int rank, const hsize_t *dimensions,
                                const char *const *axis, struct error *err)
{
    enum status status = STATUS_OK;
    for (int a = 0; a < rank && !status; a++)
        status = h5_create_scale(file, axis[a], dimensions[a], err);
    if (!status)
        status = h5_create_dataset(dataset, parent, name, type, rank, dimensions, err);
    for (int a = 0; a < rank && !status; a++)
        status = h5_attach_scale(file, *dataset, (unsigned)a, axis[a], err);
    return status;
}

enum status h5_put_values(hid_t file, hid_t parent, const char *name, enum value_type type,
                          int rank, const hsize_t *dimensions, const char *const *axis,
                          const void *values, struct error *err)
{
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    if (h5_create_on_scales(&dataset, file, parent, name, type, rank, dimensions, axis, err) ||
        h5_write_rows(dataset, type, 0, dimensions[0], values, err))
        return STATUS_FAILED;
    return h5_finish_dataset(&dataset, err);
}

enum status h5_row_failed(struct error *err)
{
    return error_errno(err, STATUS_FAILED, errno ? errno : EIO, "read",
                       "cannot read the values of a column");
}

/* Writes rows in blocks, padded with zeros to the width of the column. */
static enum status write_column(hid_t dataset, uint64_t rows, h5_row *row, void *context,
                                struct error *err)
{
    const size_t width = h5_text_width(dataset);
    const uint64_t most = min_u64(rows, width < BLOCK_BYTES ? BLOCK_BYTES / width : 1);
    uint8_t *block = malloc(most * width + 1);
    enum status status = block ? STATUS_OK : error_memory(err, most * width, "a column");
    for (uint64_t first = 0, count; first < rows && !status; first += count) {
        count = min_u64(most, rows - first);
        memset(block, 0, count * width);
        for (uint64_t i = 0; i < count && !status; i++) {
            size_t bytes;
            const void *value = row(context, first + i, &bytes);
            if (value)
                memcpy(block + i * width, value, min_u64(bytes, width));
            else
                status = h5_row_failed(err);
        }
        if (!status)
            status = h5_write_rows(dataset, VALUE_TEXT, first, count, block, err);
    }
    free(block);
    return status;
}

enum status h5_put_column(hid_t file, hid_t parent, const char *name, uint64_t rows,
                          const char *axis, h5_row *row, void *context, struct error *err)
{
    struct text_size size = {0, 0};
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    for (uint64_t i = 0; i < rows; i++) {
        size_t bytes;
        if (!row(context, i, &bytes))
            return h5_row_failed(err);
        text_size_add(&size, bytes);
    }
    if (h5_create_scale(file, axis, rows, err) ||
        h5_create_texts(&dataset, parent, name, rows, &size, err) ||
        h5_attach_scale(file, dataset, 0, axis, err) ||
        write_column(dataset, rows, row, context, err))
        return STATUS_FAILED;
    return h5_finish_dataset(&dataset, err);
}

static const void *row_of_array(void *context, uint64_t row, size_t *bytes)
{
    const char *const *text = context, *value = text ? text[row] : "";
    *bytes = strlen(value);
    return value;
}

enum status h5_put_texts(hid_t file, hid_t parent, const char *name, const char *const *text,
                         uint64_t count, const char *axis, struct error *err)
{
    return h5_put_column(file, parent, name, count, axis, row_of_array, (void *)(uintptr_t)text,
                         err);
}

enum status h5_read_texts(char ***texts, hid_t dataset, uint64_t count, const char *what,
                          struct error *err)
{
    const size_t width = h5_text_width(dataset);
    char **list = calloc(count + 1, sizeof *list);
    enum status status = list ? STATUS_OK : error_memory(err, count * sizeof *list, what);
    for (uint64_t i = 0; i < count && !status; i++) {
        list[i] = calloc(width + 1, 1);
        status = list[i] ? h5_read_rows(dataset, VALUE_TEXT, i, 1, list[i], err)
                         : error_memory(err, width, "a text");
        if (!status && !utf8_valid(list[i], strlen(list[i])))
            status = h5_damaged(err, h5_path(dataset), "it has a text that is not UTF-8");
    }
    if (status)
        texts_free(list);
    *texts = status ? NULL : list;
    return status;
}

enum status h5_put_number(hid_t object, const char *name, enum value_type type, const void *value,
                          struct error *err)
{
    H5_SCOPED hid_t stored = h5_type(type), space = H5Screate(H5S_SCALAR),
                    attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    return attribute > 0 && H5Awrite(attribute, stored, value) >= 0
               ? STATUS_OK
               : h5_failed(err, "H5Awrite", "write", object);
}

enum status h5_put_text(hid_t object, const char *name, const char *text, struct error *err)
{
    const size_t length = strlen(text), size = 4 * length + 1;
    if (utf8_valid(text, length))
        return h5_put_number(object, name, VALUE_TEXT, &text, err);
    char *copy = malloc(size);
    if (!copy)
        return error_memory(err, size, "a text");
    path_to_utf8(copy, size, text, length);
    const enum status status = h5_put_number(object, name, VALUE_TEXT, &copy, err);
    free(copy);
    return status;
}

enum status h5_put_attributes(hid_t object, const struct attribute *attribute, unsigned count,
                              const void *from, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && !status; i++) {
        const struct attribute *a = &attribute[i];
        const char *at = (const char *)from + a->offset, *text = at;
        if (a->type == VALUE_TEXT && a->size == 0)
            memcpy(&text, at, sizeof text);
        status = a->type == VALUE_TEXT ? h5_put_text(object, a->name, text ? text : "", err)
                                       : h5_put_number(object, a->name, a->type, at, err);
    }
    return status;
}

enum status h5_create_scale(hid_t file, const char *name, uint64_t length, struct error *err)
{
    if (h5_is_object(file, name, H5O_TYPE_DATASET))
        return STATUS_OK;
    char text[80];
    /* netCDF's text for a dimension without a variable, exactly, including the number's width. */
    snprintf(text, sizeof text, "This is a netCDF dimension but not a netCDF variable. %10llu",
             (unsigned long long)length);
    hsize_t size = length;
    H5_SCOPED hid_t creation = H5Pcreate(H5P_DATASET_CREATE),
                    space = H5Screate_simple(1, &size, NULL), scale = H5I_INVALID_HID;
    H5Pset_obj_track_times(creation, false);
    scale = H5Dcreate2(file, name, H5T_IEEE_F32BE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    return scale > 0 && H5DSset_scale(scale, text) >= 0
               ? STATUS_OK
               : h5_failed(err, "H5DSset_scale", "write", file);
}

enum status h5_attach_scale(hid_t file, hid_t dataset, unsigned axis, const char *scale,
                            struct error *err)
{
    H5_SCOPED hid_t id = H5Dopen2(file, scale, H5P_DEFAULT);
    return id > 0 && H5DSattach_scale(dataset, id, axis) >= 0
               ? STATUS_OK
               : h5_failed(err, "H5DSattach_scale", "write", dataset);
}

bool h5_is_object(hid_t parent, const char *name, H5O_type_t type)
{
    H5L_info_t link;
    H5O_info_t object;
    if (H5Lexists(parent, name, H5P_DEFAULT) <= 0 ||
        H5Lget_info(parent, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
        return false;
    if (H5Oget_info_by_name(parent, name, &object, H5P_DEFAULT) >= 0)
        return object.type == type;
    h5_driver_note_damage(parent);
    return false;
}

/* True if the type, as stored, is a form of `type`: a text of its size, or, bit for bit, the number in either
 * byte order. */
static bool type_matches(hid_t stored, enum value_type type)
{
    if (value_kinds[type].class == H5T_STRING) {
        const size_t size = H5Tget_size(stored), wanted = value_kinds[type].size;
        return H5Tget_class(stored) == H5T_STRING && H5Tis_variable_str(stored) == 0 &&
               (wanted ? size == wanted : size > 0 && size <= H5_TEXT_MOST);
    }
    H5_SCOPED hid_t own = h5_type(type);
    if (H5Tequal(stored, own) > 0)
        return true;
    H5Tset_order(own, H5T_ORDER_BE);
    return H5Tequal(stored, own) > 0;
}

bool h5_find_type(enum value_type *type, hid_t stored)
{
    for (int i = VALUE_U8; i <= VALUE_TEXT; i++) {
        *type = i;
        if ((value_kinds[i].size == 0 || value_kinds[i].size == H5Tget_size(stored)) &&
            type_matches(stored, i))
            return true;
    }
    return false;
}

const char *h5_bad_storage(hid_t dataset, uint64_t bytes, size_t element)
{
    struct stat st;
    const uint64_t file_bytes =
        fstat(h5_driver_descriptor(dataset), &st) == 0 ? (uint64_t)st.st_size : 0;
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset);
    const H5D_layout_t layout = H5Pget_layout(list);
    if (H5Pget_external_count(list) > 0)
        return "keeps its data in another file";
    if (layout == H5D_VIRTUAL)
        return virtual_reader ? virtual_reader->bad_mapping(dataset)
                              : "is composed of other datasets";
    if (bytes > 0 && layout == H5D_CONTIGUOUS) {
        haddr_t at = H5Dget_offset(dataset);
        if (at == HADDR_UNDEF || at > file_bytes || bytes > file_bytes - at)
            return "lies beyond the end of the file";
        if (H5Dget_storage_size(dataset) != bytes)
            return "has a size that differs from that of its values";
    } else if (bytes > 0 && layout == H5D_CHUNKED) {
        hsize_t chunk[3];
        uint64_t chunk_bytes = element;
        int rank = H5Pget_chunk(list, 3, chunk);
        for (int i = 0; i < rank && i < 3; i++)
            chunk_bytes = chunk[i] > MOST_CHUNK_BYTES ? UINT32_MAX : chunk_bytes * chunk[i];
        if (rank < 1 || rank > 2 || chunk_bytes > MOST_CHUNK_BYTES)
            return "has larger chunks than clpipe reads (64 MiB)";
        if (H5Dget_storage_size(dataset) > file_bytes ||
            bytes / MOST_COMPRESSION > H5Dget_storage_size(dataset))
            return "is larger than its file can hold";
    }
    return NULL;
}

enum status h5_open_group(hid_t *group, hid_t parent, const char *name, struct error *err)
{
    *group = H5Gopen2(parent, name, H5P_DEFAULT);
    return *group > 0 ? STATUS_OK : h5_failed(err, "H5Gopen2", "read", parent);
}

enum status h5_open_dataset(hid_t *dataset, hid_t parent, const char *name, enum value_type type,
                            int rank, hsize_t *dimensions, struct error *err)
{
    char above[512] = "";
    *dataset = H5I_INVALID_HID;
    if (!h5_is_object(parent, name, H5O_TYPE_DATASET)) {
        H5Iget_name(parent, above, sizeof above);
        return error_set(err, STATUS_FAILED, "%s is damaged: it has no dataset %s%s%s",
                         PATH_TEXT(h5_path(parent)), *name == '/' || !above[1] ? "" : above,
                         *name == '/' ? "" : "/", name);
    }
    *dataset = H5Dopen2(parent, name, H5P_DEFAULT);
    if (*dataset < 0)
        return h5_failed(err, "H5Dopen2", "read", parent);
    H5_SCOPED hid_t stored = H5Dget_type(*dataset), space = H5Dget_space(*dataset);
    const char *wrong = NULL;
    uint64_t elements = 1;
    if (!type_matches(stored, type)) {
        wrong = "has a type that clpipe does not write";
    } else if (H5Sget_simple_extent_type(space) != H5S_SIMPLE ||
               H5Sget_simple_extent_ndims(space) != rank ||
               H5Sget_simple_extent_dims(space, dimensions, NULL) != rank) {
        wrong = "has a number of dimensions that clpipe does not write";
    } else {
        const size_t element = H5Tget_size(stored);
        for (int i = 0; i < rank; i++)
            if (__builtin_mul_overflow(elements, dimensions[i], &elements))
                wrong = "has an impossible size";
        if (!wrong && elements > (uint64_t)INT64_MAX / element)
            wrong = "has an impossible size";
        if (!wrong)
            wrong = h5_bad_storage(*dataset, elements * element, element);
    }
    if (!wrong)
        return STATUS_OK;
    h5_wrong(err, *dataset, wrong);
    h5_close(dataset);
    return STATUS_FAILED;
}

/* Reads a scalar attribute of that class. */
static bool get_scalar(hid_t object, const char *name, H5T_class_t class, hid_t memory, void *value)
{
    if (H5Aexists(object, name) <= 0)
        return false;
    H5_SCOPED hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), stored = H5Aget_type(attribute),
                    space = H5Aget_space(attribute);
    return attribute > 0 && H5Tget_class(stored) == class && H5Tget_size(stored) <= 8 &&
           H5Sget_simple_extent_npoints(space) == 1 && H5Aread(attribute, memory, value) >= 0;
}

bool h5_get_integer(hid_t object, const char *name, int64_t *value)
{
    return get_scalar(object, name, H5T_INTEGER, H5T_NATIVE_INT64, value);
}

static bool get_real(hid_t object, const char *name, double *value)
{
    return get_scalar(object, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, value);
}

enum status h5_get_text(char **text, hid_t object, const char *name, bool required,
                        struct error *err)
{
    *text = NULL;
    if (H5Aexists(object, name) <= 0)
        return required ? h5_damaged(err, h5_path(object), "it has no attribute '%s'", name)
                        : STATUS_OK;
    H5_SCOPED hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute),
                    space = H5Aget_space(attribute);
    const bool variable = H5Tis_variable_str(type) > 0;
    const size_t size = H5Tget_size(type);
    char *stored = NULL;
    if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1 ||
        size > H5_TEXT_MOST)
        return h5_damaged(err, h5_path(object), "its attribute '%s' is not text", name);
    if (!variable && !(*text = calloc(size + 1, 1)))
        return error_memory(err, size, "an attribute");
    if (H5Aread(attribute, type, variable ? (void *)&stored : *text) < 0) {
        free(*text);
        *text = NULL;
        return h5_failed(err, "H5Aread", "read", object);
    }
    if (!variable)
        return STATUS_OK;
    *text = strdup(stored ? stored : "");
    H5free_memory(stored);
    return *text ? STATUS_OK : error_memory(err, size, "an attribute");
}

enum status h5_get_short_text(void *text, size_t size, hid_t object, const char *name,
                              struct error *err)
{
    char *found;
    if (h5_get_text(&found, object, name, true, err))
        return STATUS_FAILED;
    const bool fits = strlen(found) < size && utf8_valid(found, strlen(found));
    if (fits)
        strcpy(text, found);
    free(found);
    return fits ? STATUS_OK
                : h5_damaged(err, h5_path(object), "its attribute '%s' is longer than it can be",
                             name);
}

enum status h5_get_attributes(void *to, hid_t object, const struct attribute *attribute,
                              unsigned count, struct error *err)
{
    for (unsigned i = 0; i < count; i++) {
        const struct attribute *a = &attribute[i];
        char *at = (char *)to + a->offset, *text;
        int64_t integer;
        double real;
        if (a->optional && H5Aexists(object, a->name) <= 0)
            continue;
        if (a->type == VALUE_TEXT && a->size > 0) {
            if (h5_get_short_text(at, a->size, object, a->name, err))
                return STATUS_FAILED;
        } else if (a->type == VALUE_TEXT) {
            if (h5_get_text(&text, object, a->name, true, err))
                return STATUS_FAILED;
            memcpy(at, &text, sizeof text);
            if (!utf8_valid(text, strlen(text)))
                return h5_damaged(err, h5_path(object), "its attribute '%s' is not UTF-8", a->name);
        } else {
            const bool is_real = a->type == VALUE_F64;
            const bool there = is_real ? get_real(object, a->name, &real)
                                       : h5_get_integer(object, a->name, &integer);
            if (there && !is_real)
                real = (double)integer;
            if (!there || (a->most > a->least && !(real >= a->least && real <= a->most)))
                return h5_damaged(err, h5_path(object),
                                  "its attribute '%s' is missing or out of range", a->name);
            memcpy(at, is_real ? (const void *)&real : &integer, value_size(a->type));
        }
    }
    return STATUS_OK;
}

enum status h5_copy_attribute(hid_t to, hid_t from, const char *name, struct error *err)
{
    H5_SCOPED hid_t old = H5Aopen(from, name, H5P_DEFAULT), type = H5Aget_type(old),
                    space = H5Aget_space(old), made = H5I_INVALID_HID;
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t bytes = type > 0 && count > 0 ? (size_t)count * H5Tget_size(type) : 0;
    void *value = calloc(bytes ? bytes : 1, 1);
    if (!value)
        return error_memory(err, bytes, "an attribute");
    made = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool ok =
        made > 0 &&
        (bytes == 0 || (H5Aread(old, type, value) >= 0 && H5Awrite(made, type, value) >= 0));
    if (bytes > 0)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, value);
    free(value);
    return ok ? STATUS_OK : h5_failed(err, "H5Awrite", "write", to);
}

static herr_t add_name(struct h5_names *names, const char *name)
{
    if (names->count == MOST_MEMBERS)
        return -1;
    char **more = array_with_room(names->name, names->count, sizeof *more);
    if (!more)
        return -1;
    names->name = more;
    more[names->count] = strdup(name);
    return more[names->count++] ? 0 : -1;
}

static herr_t add_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    (void)group;
    (void)info;
    return add_name(context, name);
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object;
    (void)info;
    return add_name(context, name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status list(struct h5_names *names, hid_t object, bool attributes, struct error *err)
{
    hsize_t index = 0;
    *names = (struct h5_names){0};
    H5Eclear2(H5E_DEFAULT);
    if ((attributes
             ? H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &index, add_attribute, names)
             : H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, &index, add_link, names)) < 0) {
        const bool many = names->count == MOST_MEMBERS;
        h5_free_names(names);
        return many ? h5_damaged(err, h5_path(object), "a group has more than %u members",
                                 MOST_MEMBERS)
                    : h5_failed(err, attributes ? "H5Aiterate2" : "H5Literate", "read", object);
    }
    if (names->count > 1)
        qsort(names->name, names->count, sizeof *names->name, compare_names);
    return STATUS_OK;
}

enum status h5_list(struct h5_names *names, hid_t group, struct error *err)
{
    return list(names, group, false, err);
}

enum status h5_list_attributes(struct h5_names *names, hid_t object, struct error *err)
{
    return list(names, object, true, err);
}

void h5_free_names(struct h5_names *names)
{
    for (unsigned i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct h5_names){0};
}

void h5_without_exit_handler(void)
{
    H5dont_atexit();
}

void h5_version(unsigned version[3])
{
    H5get_libversion(&version[0], &version[1], &version[2]);
}
