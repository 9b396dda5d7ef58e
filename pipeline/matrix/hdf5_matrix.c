/* hdf5_matrix.c: a matrix in a foreign HDF5 file. */
#include "matrix/hdf5_matrix.h"
#include "base/path.h"
#include "base/text.h"
#include "matrix/h5_driver.h"
#include "matrix/h5_error.h"
#include "matrix/raw.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Maximum number of datasets named in an error, and of objects visited to find them. */
#define MOST_NAMED   6
#define MOST_VISITED 10000
#define MOST_NESTED  16 /* virtual datasets of virtual datasets */

struct hdf5_matrix {
    char *path;
    hid_t file, dataset;
    struct raw *raw;
};

/* Describes a dataset in words; true if it is a numeric matrix with at least one column. */
static bool describe(char *text, size_t size, hid_t dataset, bool vector)
{
    bool good = false;
    H5_SCOPED hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    H5T_class_t kind = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (kind != H5T_FLOAT && kind != H5T_INTEGER) {
        snprintf(text, size, "its elements are not numbers");
    } else if (rank != 2 && !(vector && rank == 1)) {
        snprintf(text, size, "it has %d dimensions, not 2", rank < 0 ? 0 : rank);
    } else {
        hsize_t extent[2] = {0, 1};
        H5Sget_simple_extent_dims(space, extent, NULL);
        if (extent[1] == 0 || extent[1] > UINT32_MAX / sizeof(float))
            snprintf(text, size, "a row has %llu columns", (unsigned long long)extent[1]);
        else if (extent[0] > INT64_MAX / (extent[1] * sizeof(float)))
            snprintf(text, size, "%llu rows are too many", (unsigned long long)extent[0]);
        else
            good = true;
    }
    return good;
}

struct listing {
    char *text;
    size_t size;
    unsigned named, visited, most;
    const char *path;
    struct error *unreadable; /* the first unreadable object */
};

/* H5Ovisit would stop at the first unreadable object. */
static herr_t list_object(hid_t at, const char *name, const H5L_info_t *info, void *context)
{
    struct listing *listing = context;
    if (listing->visited++ == MOST_VISITED || listing->named == listing->most)
        return 1;
    H5_SCOPED hid_t object = info->type == H5L_TYPE_HARD ? H5Oopen(at, name, H5P_DEFAULT) : 0;
    char text[64];
    if (object < 0 && listing->unreadable->status == STATUS_OK)
        h5_fail(listing->unreadable, "H5Oopen", "read", listing->path);
    if (object > 0 && H5Iget_type(object) == H5I_DATASET &&
        describe(text, sizeof text, object, false)) {
        text_add(listing->text, listing->size, ", ", "/%s", PATH_TEXT_IN(160, name));
        listing->named++;
    }
    return 0;
}

/* Names the first matrices in the file. *unreadable: why an object could not be read. */
static void list_matrices(char *text, size_t size, hid_t file, unsigned most, const char *path,
                          struct error *unreadable)
{
    struct listing listing = {text, size, 0, 0, most, path, unreadable};
    text[0] = 0;
    H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, list_object, &listing);
}

/* HDF5 locks files that it reads, so a file open for writing is refused. Parallel file systems
 * often have no locks; then the file is read without one. */
static enum status open_file(hid_t *file, const char *path, struct error *err)
{
    H5_SCOPED hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    h5_driver_use(access);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 11, 0))
    H5Pset_file_locking(access, true, true);
#endif
    return h5_open(file, path, access, err);
}

bool hdf5_is_foreign(const char *path, char *example, size_t size)
{
    struct error ignored = ERROR_INIT;
    H5_SCOPED hid_t file = H5I_INVALID_HID;
    example[0] = 0;
    if (open_file(&file, path, NULL) != STATUS_OK)
        return false;
    bool foreign = H5Aexists(file, "clpipe_format") <= 0;
    if (foreign)
        list_matrices(example, size, file, 1, path, &ignored);
    return foreign;
}

/* --- values in other files; HDF5 returns fill values if they are missing
 * ----------------------- */

static enum status lacks(struct error *err, const char *path, const char *source, const char *why)
{
    return error_set(
        err, STATUS_FAILED,
        "cannot read %s: it takes values from %s, which %s: HDF5 would give fill values",
        PATH_TEXT(path), PATH_TEXT(source), why);
}

/* Finds the file `name`: below the prefix from the environment, next to `path`, or as named. */
static bool find_file(char found[PATH_MAX], const char *name, const char *path, const char *prefix)
{
    const char *slash = strrchr(path, '/');
    const int directory = slash ? (int)(slash - path) + 1 : 0;
    struct stat st;
    if (*name != '/' && prefix) {
        snprintf(found, PATH_MAX, "%s/%s", prefix, name);
        if (stat(found, &st) == 0)
            return true;
    }
    if (*name != '/') {
        snprintf(found, PATH_MAX, "%.*s%s", directory, path, name);
        if (stat(found, &st) == 0)
            return true;
    }
    snprintf(found, PATH_MAX, "%s", name);
    return stat(found, &st) == 0;
}

/* HDF5 itself reports a missing one. */
static enum status check_external(hid_t list, hid_t dataset, const char *path, struct error *err)
{
    uint64_t left = H5Dget_storage_size(dataset);
    const int count = H5Pget_external_count(list);
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX] = "", found[PATH_MAX];
        off_t offset = 0;
        hsize_t size = 0;
        struct stat st;
        H5Pget_external(list, (unsigned)i, sizeof name, name, &offset, &size);
        const uint64_t taken = size < left ? size : left;
        if (find_file(found, name, "", getenv("HDF5_EXTFILE_PREFIX")) && stat(found, &st) == 0 &&
            (uint64_t)st.st_size < (uint64_t)offset + taken)
            return lacks(err, path, found, "has fewer");
        left -= taken;
    }
    return STATUS_OK;
}

static enum status check_sources(hid_t dataset, const char *path, unsigned depth,
                                 struct error *err);

/* Whether a source has everything selected from it or, if everything is selected, enough for
 * `target`; an unlimited selection takes what exists. */
static bool has_selected(hid_t source, hid_t selected, hid_t target)
{
    hsize_t extent[H5S_MAX_RANK], first[H5S_MAX_RANK], last[H5S_MAX_RANK];
    H5_SCOPED hid_t space = H5Dget_space(source);
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
    return all;
}

static enum status check_mapping(hid_t list, size_t i, unsigned depth, hid_t dataset,
                                 const char *path, struct error *err)
{
    char name[PATH_MAX] = "", object[1024] = "", found[PATH_MAX], where[PATH_MAX + 1024 + 2];
    H5_SCOPED hid_t file = H5I_INVALID_HID, source = H5I_INVALID_HID;
    H5_SCOPED hid_t selected = H5Pget_virtual_srcspace(list, i),
                    target = H5Pget_virtual_vspace(list, i);
    if (selected < 0 || target < 0 || H5Pget_virtual_filename(list, i, name, sizeof name) < 0 ||
        H5Pget_virtual_dsetname(list, i, object, sizeof object) < 0)
        return h5_fail(err, "H5Pget_virtual_filename", "read", path);
    snprintf(where, sizeof where, "%s:%s%s", name, *object == '/' ? "" : "/", object);
    if (strstr(where, "%b"))
        return lacks(err, path, where, "numbers its files: give one of them");
    if (strcmp(name, ".") == 0) {
        snprintf(found, sizeof found, "%s", path);
        file = H5Iget_file_id(dataset);
    } else if (!find_file(found, name, path, getenv("HDF5_VDS_PREFIX"))) {
        return lacks(err, path, where, "is missing");
    } else if (open_file(&file, found, err)) {
        return STATUS_FAILED;
    }
    source = H5Dopen2(file, object, H5P_DEFAULT);
    if (source < 0)
        return lacks(err, path, where, "is missing");
    return has_selected(source, selected, target) ? check_sources(source, found, depth + 1, err)
                                                  : lacks(err, path, where, "has fewer");
}

/* Checks the source files of a virtual dataset, theirs recursively, and external files. */
static enum status check_sources(hid_t dataset, const char *path, unsigned depth, struct error *err)
{
    size_t count = 0;
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset);
    enum status status = STATUS_OK;
    if (depth == MOST_NESTED)
        status = lacks(err, path, path, "takes them from there in a cycle");
    else if (H5Pget_layout(list) == H5D_VIRTUAL)
        H5Pget_virtual_count(list, &count);
    else
        status = check_external(list, dataset, path, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = check_mapping(list, i, depth, dataset, path, err);
    return status;
}

static enum status open_parts(struct hdf5_matrix *matrix, const char *name, bool vector,
                              struct error *err)
{
    char text[700];
    const char *shown = PATH_TEXT(matrix->path);
    const char *shown_name = PATH_TEXT_IN(160, name);
    enum status status = open_file(&matrix->file, matrix->path, err);
    if (status != STATUS_OK)
        return status;
    matrix->dataset = H5Dopen2(matrix->file, name, H5P_DEFAULT);
    if (matrix->dataset < 0) {
        struct error unreadable = ERROR_INIT;
        H5_SCOPED hid_t object = H5Lexists(matrix->file, name, H5P_DEFAULT) > 0
                                     ? H5Oopen(matrix->file, name, H5P_DEFAULT)
                                     : 0;
        if (object < 0)
            return h5_fail(err, "H5Oopen", "read", matrix->path);
        list_matrices(text, sizeof text, matrix->file, MOST_NAMED, matrix->path, &unreadable);
        if (!text[0] && unreadable.status != STATUS_OK) {
            if (err)
                *err = unreadable;
            return unreadable.status;
        }
        if (!text[0])
            return error_set(err, STATUS_FAILED, "%s holds no dataset %s and no other matrix",
                             shown, shown_name);
        return error_set(err, STATUS_FAILED, "%s holds no dataset %s; its matrices: %s", shown,
                         shown_name, text);
    }
    if (!describe(text, sizeof text, matrix->dataset, vector))
        return error_set(err, STATUS_FAILED, "%s:%s is not a matrix of numbers: %s", shown,
                         shown_name, text);
    return check_sources(matrix->dataset, matrix->path, 0, err);
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    const struct hdf5_matrix *matrix = context;
    return raw_read_float(matrix->raw, first, count, rows, err);
}

static void hdf5_matrix_close(void *context)
{
    struct hdf5_matrix *matrix = context;
    raw_close(&matrix->raw);
    h5_close(&matrix->dataset);
    h5_close(&matrix->file);
    free(matrix->path);
    free(matrix);
}

enum status hdf5_matrix_open(struct matrix_source *out, const char *path, const char *dataset,
                             bool vector, struct error *err)
{
    *out = (struct matrix_source){0};
    struct hdf5_matrix *matrix = calloc(1, sizeof *matrix);
    if (!matrix)
        return error_memory(err, sizeof *matrix, "an HDF5 dataset");
    matrix->file = matrix->dataset = H5I_INVALID_HID;
    matrix->path = strdup(path);
    enum status status = matrix->path ? open_parts(matrix, dataset, vector, err)
                                      : error_memory(err, strlen(path) + 1, "a file name");
    if (status == STATUS_OK)
        status = raw_open(&matrix->raw, matrix->dataset, matrix->path, err);
    if (status != STATUS_OK) {
        hdf5_matrix_close(matrix);
        return status;
    }
    *out = (struct matrix_source){.rows = matrix->raw->rows,
                                  .dimension = matrix->raw->columns,
                                  .read = read_rows,
                                  .concurrent = matrix->raw->layout != RAW_HDF5,
                                  .close = hdf5_matrix_close,
                                  .context = matrix};
    H5_SCOPED hid_t type = H5Dget_type(matrix->dataset);
    matrix_set_type(out,
                    H5Tget_class(type) == H5T_FLOAT  ? 'f'
                    : H5Tget_sign(type) == H5T_SGN_2 ? 'i'
                                                     : 'u',
                    H5Tget_size(type));
    return STATUS_OK;
}
