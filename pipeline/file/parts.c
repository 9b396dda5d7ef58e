/* parts.c: the manifest of a merged file, and reading past HDF5's virtual datasets.
 *
 * HDF5 1.10 looks at all mappings for each read and keeps every source open that it has touched. */
#include "file/parts.h"
#include "base/path.h"
#include "file/schema.h"
#include "matrix/h5_driver.h"
#include "matrix/hdf5_direct.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Parts that are open at a time, and datasets of each. */
#define MOST_OPEN     16
#define MOST_DATASETS 64

struct member {
    char *name, *path, *identity;
    uint64_t rows, thumbnail_bytes, bytes;
    uint64_t first, first_byte; /* of the merged file */
    hid_t file;                 /* not above zero: it is not open */
    uint64_t used;
    unsigned users;               /* threads that read from it: it stays open */
    hid_t dataset[MOST_DATASETS]; /* by the index of their name */
    struct hdf5_direct *direct;   /* of these, where they were found; NULL: none */
};

struct parts {
    void *handle; /* HDF5's of the merged file */
    char *path, *directory;
    struct member *member;
    unsigned count, open;
    uint64_t clock;
    /* The virtual datasets that were looked at. */
    char *name[MOST_DATASETS];
    unsigned names;
    struct parts *next;
};

/* The merged files that are open: a dataset's reader knows its dataset only. */
static struct parts *attached;

static void *handle_of(hid_t file)
{
    void *handle = NULL;
    return H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) >= 0 ? handle : NULL;
}

static struct parts *find_parts(hid_t file)
{
    if (!attached)
        return NULL;
    void *handle = handle_of(file);
    struct parts *parts = attached;
    while (parts && parts->handle != handle)
        parts = parts->next;
    return parts;
}

/* The merged file of a dataset, and the dataset's absolute name. */
static struct parts *find_parts_of(hid_t dataset, char *name, size_t size)
{
    if (!attached)
        return NULL;
    hid_t file = H5Iget_file_id(dataset);
    struct parts *parts = file > 0 ? find_parts(file) : NULL;
    h5_close(&file);
    const ssize_t length = parts ? H5Iget_name(dataset, name, size) : 0;
    return length > 0 && (size_t)length < size ? parts : NULL;
}

static bool find_name(const struct parts *parts, const char *name, unsigned *index)
{
    for (*index = 0; *index < parts->names; ++*index)
        if (strcmp(parts->name[*index], name) == 0)
            return true;
    return false;
}

/* --- the manifest ---------------------------------------------------------------------------- */

static void close_member(struct parts *parts, struct member *member)
{
    if (member->file <= 0)
        return;
    for (unsigned i = 0; i < MOST_DATASETS; i++) {
        if (member->direct)
            hdf5_direct_close(&member->direct[i]);
        h5_close(&member->dataset[i]);
    }
    free(member->direct);
    member->direct = NULL;
    h5_close(&member->file);
    parts->open--;
}

static void free_parts(struct parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++) {
        close_member(parts, &parts->member[i]);
        free(parts->member[i].name);
        free(parts->member[i].path);
        free(parts->member[i].identity);
    }
    for (unsigned i = 0; i < parts->names; i++)
        free(parts->name[i]);
    free(parts->member);
    free(parts->directory);
    free(parts->path);
    free(parts);
}

static enum status read_text(char **text, hid_t dataset, struct vlen *vlen, unsigned row,
                             struct error *err)
{
    uint8_t descriptor[VLEN_DESCRIPTOR];
    const uint8_t *bytes;
    uint32_t length;
    if (vlen_descriptors(vlen, dataset, row, 1, descriptor, err) ||
        vlen_element(vlen, descriptor, 1, &bytes, &length, err))
        return STATUS_FAILED;
    *text = strndup((const char *)bytes, length);
    return *text ? STATUS_OK : error_memory(err, length, "the name of a part");
}

/* A name that leads downwards. */
static bool name_is_plain(const char *name)
{
    if (!*name || *name == '/')
        return false;
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2]))
            return false;
    }
    return true;
}

static enum status read_member(struct member *member, const struct parts *parts, hid_t path,
                               hid_t identity, struct vlen *vlen, unsigned row, struct error *err)
{
    if (read_text(&member->name, path, vlen, row, err) ||
        read_text(&member->identity, identity, vlen, row, err))
        return STATUS_FAILED;
    if (!name_is_plain(member->name))
        return h5_damaged(err, parts->path, "/" PARTS_GROUP "/path: row %u leads elsewhere", row);
    const size_t size = strlen(parts->directory) + strlen(member->name) + 2;
    member->path = malloc(size);
    if (!member->path)
        return error_memory(err, size, "the name of a part");
    snprintf(member->path, size, "%s/%s", parts->directory, member->name);
    return STATUS_OK;
}

static enum status read_manifest(struct parts *parts, hid_t file, struct error *err)
{
    enum { PATH, IDENTITY, ROWS, THUMBNAILS, BYTES, COLUMNS };
    static const char *const names[COLUMNS] = {"path", "identity", "rows", "thumbnail_bytes",
                                               "bytes"};
    hid_t group = H5I_INVALID_HID, dataset[COLUMNS] = {0};
    struct vlen *vlen = NULL;
    uint64_t *numbers = NULL;
    hsize_t count = 0;
    enum status status = STATUS_FAILED;
    if (h5_open_group(&group, file, PARTS_GROUP, parts->path, err) ||
        vlen_open(&vlen, file, parts->path, err))
        goto out;
    for (int c = 0; c < COLUMNS; c++) {
        hsize_t size;
        char where[64];
        snprintf(where, sizeof where, "/" PARTS_GROUP "/%s", names[c]);
        if (h5_open_dataset(&dataset[c], group, names[c], c < ROWS ? VALUE_TEXT : VALUE_U64, 1,
                            &size, where, parts->path, err))
            goto out;
        if ((c > 0 && size != count) || size < 1 || size > PARTS_MOST) {
            h5_damaged(err, parts->path, "%s has an impossible size", where);
            goto out;
        }
        count = size;
    }
    parts->member = calloc(count, sizeof *parts->member);
    numbers = malloc(3 * count * sizeof *numbers);
    if (!parts->member || !numbers) {
        error_memory(err, count * sizeof *parts->member, "the parts");
        goto out;
    }
    for (int c = ROWS; c < COLUMNS; c++)
        if (h5_read_rows(dataset[c], VALUE_U64, 0, count, numbers + (size_t)(c - ROWS) * count,
                         parts->path, err))
            goto out;
    uint64_t rows = 0, bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        struct member *member = &parts->member[parts->count++];
        member->first = rows;
        member->first_byte = bytes;
        member->rows = numbers[i];
        member->thumbnail_bytes = numbers[count + i];
        member->bytes = numbers[2 * count + i];
        if (__builtin_add_overflow(rows, member->rows, &rows) ||
            __builtin_add_overflow(bytes, member->thumbnail_bytes, &bytes)) {
            h5_damaged(err, parts->path, "/" PARTS_GROUP " has impossible numbers");
            goto out;
        }
        if (read_member(member, parts, dataset[PATH], dataset[IDENTITY], vlen, i, err))
            goto out;
    }
    status = STATUS_OK;
out:
    for (int c = 0; c < COLUMNS; c++)
        h5_close(&dataset[c]);
    vlen_close(&vlen);
    h5_close(&group);
    free(numbers);
    return status;
}

bool parts_identity(char identity[65], hid_t file)
{
    hid_t attribute = H5Aexists_by_name(file, "checksums", "identity", H5P_DEFAULT) > 0
                          ? H5Aopen_by_name(file, "checksums", "identity", H5P_DEFAULT, H5P_DEFAULT)
                          : H5I_INVALID_HID;
    hid_t type = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    memset(identity, 0, 65);
    const bool there = type > 0 && H5Tget_class(type) == H5T_STRING &&
                       H5Tis_variable_str(type) == 0 && H5Tget_size(type) == 64 &&
                       H5Aread(attribute, type, identity) >= 0;
    h5_close(&type);
    h5_close(&attribute);
    return there && identity[0];
}

/* Opens a part; where there are too many, the one that was not used for the longest time is closed,
 * unless all are read from. */
static enum status open_member(struct parts *parts, struct member *member, struct error *err)
{
    member->used = ++parts->clock;
    if (member->file > 0)
        return STATUS_OK;
    if (parts->open >= MOST_OPEN) {
        struct member *oldest = NULL;
        for (unsigned i = 0; i < parts->count; i++)
            if (parts->member[i].file > 0 && parts->member[i].users == 0 &&
                (!oldest || parts->member[i].used < oldest->used))
                oldest = &parts->member[i];
        if (oldest)
            close_member(parts, oldest);
    }
    if (h5_open_file(&member->file, member->path, false, err))
        return STATUS_FAILED;
    parts->open++;
    return STATUS_OK;
}

/* Are all parts what they were when they were merged? */
static enum status check_members(struct parts *parts, struct error *err)
{
    unsigned missing = 0, changed = 0;
    const char *first = NULL;
    char shown[256], part[256], more[80] = "";
    for (unsigned i = 0; i < parts->count; i++) {
        struct member *member = &parts->member[i];
        struct stat st;
        char identity[65];
        const bool there = stat(member->path, &st) == 0;
        bool same = there && S_ISREG(st.st_mode) && (uint64_t)st.st_size == member->bytes &&
                    open_member(parts, member, NULL) == STATUS_OK &&
                    parts_identity(identity, member->file) &&
                    strcmp(identity, member->identity) == 0;
        if (there && same)
            continue;
        if (missing + changed == 0 || (!there && missing == 0))
            first = member->name;
        missing += !there;
        changed += there;
    }
    if (!first)
        return STATUS_OK;
    if (missing + changed > 1)
        snprintf(more, sizeof more, " (and %u more of its %u parts)", missing + changed - 1,
                 parts->count);
    path_for_message(shown, sizeof shown, parts->path);
    path_for_message(part, sizeof part, first);
    return missing > 0
               ? error_set(err, STATUS_FAILED,
                           "%s was merged from other files, and its part %s is missing%s: put it "
                           "back where it was beside the merged file, or run clpipe merge again",
                           shown, part, more)
               : error_set(err, STATUS_FAILED,
                           "%s was merged from other files, and its part %s has changed since%s: "
                           "run clpipe merge again",
                           shown, part, more);
}

/* The directory that names are relative to; as HDF5, that of the file behind symbolic links. */
static char *directory_of(const char *path)
{
    if (strncmp(path, PARTS_UNNAMED, strlen(PARTS_UNNAMED)) == 0)
        return strdup("");
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    if (slash)
        *slash = 0;
    return real;
}

/* --- virtual datasets ------------------------------------------------------------------------ */

static bool by_bytes(const char *name)
{
    return strcmp(name, "/" THUMBNAIL_GROUP "/data") == 0;
}

/* Where a part's rows of a dataset begin, and how many there are. */
static uint64_t extent(uint64_t *first, const struct member *member, const char *name)
{
    *first = by_bytes(name) ? member->first_byte : member->first;
    return by_bytes(name) ? member->thumbnail_bytes : member->rows;
}

/* Whether mapping `i` shows those rows of a part. */
static bool maps(hid_t list, size_t i, const struct member *member, const char *name)
{
    char file[4096], dataset[512];
    uint64_t first;
    const uint64_t count = extent(&first, member, name);
    hsize_t start[2], end[2];
    hid_t space = H5Pget_virtual_vspace(list, i);
    const ssize_t file_length = H5Pget_virtual_filename(list, i, file, sizeof file),
                  dataset_length = H5Pget_virtual_dsetname(list, i, dataset, sizeof dataset);
    const bool right = space > 0 && H5Sget_simple_extent_ndims(space) <= 2 &&
                       H5Sget_select_bounds(space, start, end) >= 0 && start[0] == first &&
                       end[0] == first + count - 1 && file_length > 0 &&
                       (size_t)file_length < sizeof file && strcmp(file, member->name) == 0 &&
                       dataset_length > 0 && (size_t)dataset_length < sizeof dataset &&
                       strcmp(dataset, name) == 0;
    h5_close(&space);
    return right;
}

static const char *bad_mapping(hid_t dataset)
{
    static const char wrong[] = "is put together from other datasets than the manifest says";
    char name[512];
    unsigned index;
    size_t count = 0, mapped = 0;
    struct parts *parts = find_parts_of(dataset, name, sizeof name);
    if (!parts)
        return "is put together from other datasets";
    if (find_name(parts, name, &index))
        return NULL;
    hid_t list = H5Dget_create_plist(dataset);
    bool right = index < MOST_DATASETS && H5Pget_virtual_count(list, &count) >= 0;
    for (unsigned i = 0; i < parts->count && right; i++) {
        uint64_t first;
        if (extent(&first, &parts->member[i], name) > 0)
            right = mapped < count && maps(list, mapped++, &parts->member[i], name);
    }
    right = right && mapped == count && (parts->name[index] = strdup(name));
    parts->names += right;
    h5_close(&list);
    return right ? NULL : wrong;
}

static bool has_rows(hid_t dataset)
{
    char name[512];
    unsigned index;
    const struct parts *parts = find_parts_of(dataset, name, sizeof name);
    return parts && find_name(parts, name, &index);
}

static bool is_virtual(hid_t dataset)
{
    hid_t list = H5Dget_create_plist(dataset);
    const bool is = H5Pget_layout(list) == H5D_VIRTUAL;
    h5_close(&list);
    return is;
}

/* A dataset of a part must be like the merged one, and hold its rows itself: the part may be the merged
 * file. */
static bool is_like(hid_t dataset, hid_t merged, uint64_t rows)
{
    hsize_t size[2] = {0, 1}, wanted[2] = {0, 1};
    hid_t type = H5Dget_type(dataset), wanted_type = H5Dget_type(merged);
    hid_t space = H5Dget_space(dataset), wanted_space = H5Dget_space(merged);
    const int rank = H5Sget_simple_extent_ndims(wanted_space);
    const size_t bytes = H5Tget_size(type);
    const bool like = rank >= 1 && rank <= 2 && H5Sget_simple_extent_ndims(space) == rank &&
                      H5Sget_simple_extent_dims(space, size, NULL) == rank &&
                      H5Sget_simple_extent_dims(wanted_space, wanted, NULL) == rank &&
                      size[0] == rows && size[1] == wanted[1] && H5Tequal(type, wanted_type) > 0 &&
                      !is_virtual(dataset) &&
                      !h5_bad_storage(dataset, size[0] * size[1] * bytes, bytes);
    h5_close(&space);
    h5_close(&wanted_space);
    h5_close(&type);
    h5_close(&wanted_type);
    return like;
}

static enum status open_dataset(hid_t *out, struct parts *parts, struct member *member,
                                unsigned index, hid_t merged, struct error *err)
{
    uint64_t first;
    const char *name = parts->name[index];
    if (open_member(parts, member, err))
        return STATUS_FAILED;
    hid_t *dataset = &member->dataset[index];
    if (*dataset <= 0 && h5_is_object(member->file, name, H5O_TYPE_DATASET))
        *dataset = H5Dopen2(member->file, name, H5P_DEFAULT);
    *out = *dataset;
    if (*dataset > 0 && is_like(*dataset, merged, extent(&first, member, name)))
        return STATUS_OK;
    h5_close(dataset);
    return h5_damaged(err, member->path, "its %s is not what was merged", name);
}

/* What a read of a virtual dataset needs to know of it. */
struct shown {
    struct parts *parts;
    char name[512];
    unsigned index; /* of the name */
    int rank;
    hsize_t columns;
};

static enum status find_shown(struct shown *out, hid_t dataset, struct error *err)
{
    hsize_t size[2] = {0, 1};
    out->parts = find_parts_of(dataset, out->name, sizeof out->name);
    hid_t whole = H5Dget_space(dataset);
    out->rank = H5Sget_simple_extent_ndims(whole);
    H5Sget_simple_extent_dims(whole, size, NULL);
    h5_close(&whole);
    out->columns = size[1];
    if (!out->parts || !find_name(out->parts, out->name, &out->index))
        return h5_damaged(err, "a merged file", "%s was not looked at", out->name);
    return STATUS_OK;
}

/* The part of row `first`, its row there, and how many follow it in that part. */
static enum status find_member(struct member **out, uint64_t *there, uint64_t *left,
                               const struct shown *shown, uint64_t first, struct error *err)
{
    const struct parts *parts = shown->parts;
    unsigned low = 0, high;
    uint64_t start = 0;
    /* The last part that begins at `first` or before; some have no rows. */
    for (high = parts->count; high - low > 1;) {
        const unsigned middle = low + (high - low) / 2;
        extent(&start, &parts->member[middle], shown->name);
        *(start <= first ? &low : &high) = middle;
    }
    *out = &parts->member[low];
    const uint64_t rows = parts->count > 0 ? extent(&start, *out, shown->name) : 0;
    if (first >= start + rows)
        return h5_damaged(err, parts->path, "%s is longer than its parts", shown->name);
    *there = first - start;
    *left = rows - *there;
    return STATUS_OK;
}

static enum status read_part(hid_t part, const struct member *member, const struct shown *shown,
                             hid_t memory_type, uint64_t first, uint64_t count, void *rows,
                             struct error *err)
{
    hsize_t from[2] = {first, 0}, block[2] = {count, shown->columns};
    hid_t memory = H5Screate_simple(shown->rank, block, NULL), space = H5Dget_space(part);
    const bool good =
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, block, NULL) >= 0 &&
        H5Dread(part, memory_type, memory, space, H5P_DEFAULT, rows) >= 0;
    h5_close(&space);
    h5_close(&memory);
    return good ? STATUS_OK : h5_fail(err, "H5Dread", "read", member->path);
}

static enum status read_rows(hid_t dataset, hid_t memory_type, uint64_t first, uint64_t count,
                             void *rows, struct error *err)
{
    struct shown shown;
    enum status status = find_shown(&shown, dataset, err);
    const size_t row_bytes = status ? 0 : H5Tget_size(memory_type) * shown.columns;
    for (uint8_t *to = rows; count > 0 && status == STATUS_OK;) {
        struct member *member;
        uint64_t there, take;
        hid_t part;
        status = find_member(&member, &there, &take, &shown, first, err);
        take = status || take > count ? count : take;
        if (status == STATUS_OK)
            status = open_dataset(&part, shown.parts, member, shown.index, dataset, err);
        if (status == STATUS_OK)
            status = read_part(part, member, &shown, memory_type, there, take, to, err);
        to += take * row_bytes;
        first += take;
        count -= take;
    }
    return status;
}

/* Frees the chunks of parts that no thread reads from: rows are mostly read in order. */
static void trim_members(const struct parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++) {
        struct hdf5_direct *direct = parts->member[i].users > 0 ? NULL : parts->member[i].direct;
        for (unsigned d = 0; direct && d < parts->names; d++)
            if (direct[d].chunks)
                hdf5_chunks_trim(direct[d].chunks);
    }
}

/* Where the values of a part lie. */
static enum status open_direct(struct hdf5_direct **out, const struct shown *shown,
                               struct member *member, hid_t merged, struct error *err)
{
    hid_t part;
    if (!member->direct || !member->direct[shown->index].file.path) {
        enum status status = open_dataset(&part, shown->parts, member, shown->index, merged, err);
        if (status)
            return status;
        if (!member->direct && !(member->direct = calloc(MOST_DATASETS, sizeof *member->direct)))
            return error_memory(err, MOST_DATASETS * sizeof *member->direct, "parts");
        trim_members(shown->parts);
        status = hdf5_direct_open(&member->direct[shown->index], part, (uint32_t)shown->columns,
                                  member->path, err);
        if (status)
            return status;
    }
    member->used = ++shown->parts->clock;
    *out = &member->direct[shown->index];
    return STATUS_OK;
}

/* All calls of HDF5, and what is known of parts, are under its lock; rows are read without it. */
static enum status read_values(hid_t dataset, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    struct shown shown;
    h5_driver_lock();
    enum status status = find_shown(&shown, dataset, err);
    while (count > 0 && status == STATUS_OK) {
        struct member *member;
        struct hdf5_direct *direct = NULL;
        uint64_t there, take;
        status = find_member(&member, &there, &take, &shown, first, err);
        if (status == STATUS_OK)
            status = open_direct(&direct, &shown, member, dataset, err);
        if (status != STATUS_OK)
            break;
        take = take < count ? take : count;
        if (direct->possible) {
            member->users++;
            h5_driver_unlock();
            status = hdf5_direct_read(direct, there, take, rows, err);
            h5_driver_lock();
            member->users--;
        } else {
            status = read_part(member->dataset[shown.index], member, &shown, H5T_NATIVE_FLOAT,
                               there, take, rows, err);
        }
        rows += take * shown.columns;
        first += take;
        count -= take;
    }
    h5_driver_unlock();
    return status;
}

/* --- a merged file --------------------------------------------------------------------------- */

static const struct h5_virtual reader = {has_rows, read_rows, read_values, bad_mapping};

/* What the manifest says; NULL: the file was not merged. */
static enum status open_parts(struct parts **out, hid_t file, const char *path, struct error *err)
{
    *out = NULL;
    if (H5Lexists(file, PARTS_GROUP, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (!h5_is_object(file, PARTS_GROUP, H5O_TYPE_GROUP))
        return h5_damaged(err, path, "/" PARTS_GROUP " is no group of its own");
    struct parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return error_memory(err, sizeof *parts, "the parts");
    parts->handle = handle_of(file);
    enum status status = STATUS_OK;
    if (!(parts->path = strdup(path)) || !(parts->directory = directory_of(path)))
        status = error_memory(err, strlen(path), "the parts");
    if (status == STATUS_OK)
        status = read_manifest(parts, file, err);
    if (status == STATUS_OK)
        *out = parts;
    else
        free_parts(parts);
    return status;
}

enum status parts_attach(hid_t file, const char *path, struct error *err)
{
    struct parts *parts;
    enum status status = open_parts(&parts, file, path, err);
    if (status != STATUS_OK || !parts)
        return status;
    if ((status = check_members(parts, err))) {
        free_parts(parts);
        return status;
    }
    parts->next = attached;
    attached = parts;
    h5_set_virtual(&reader);
    return STATUS_OK;
}

enum status parts_are(bool *same, bool *current, hid_t file, const char *path,
                      const char *const *name, unsigned count, struct error *err)
{
    struct parts *parts;
    enum status status = open_parts(&parts, file, path, err);
    *same = parts && parts->count == count;
    for (unsigned i = 0; *same && i < count; i++)
        *same = strcmp(parts->member[i].name, name[i]) == 0;
    *current = *same && check_members(parts, NULL) == STATUS_OK;
    if (parts)
        free_parts(parts);
    return status;
}

void parts_detach(hid_t file)
{
    struct parts *parts = file > 0 ? find_parts(file) : NULL;
    if (!parts)
        return;
    struct parts **at = &attached;
    while (*at != parts)
        at = &(*at)->next;
    *at = parts->next;
    free_parts(parts);
    if (!attached)
        h5_set_virtual(NULL);
}

unsigned parts_count(hid_t file)
{
    const struct parts *parts = find_parts(file);
    return parts ? parts->count : 0;
}

struct part parts_at(hid_t file, unsigned i)
{
    const struct member *member = &find_parts(file)->member[i];
    return (struct part){member->name,  member->path,
                         member->rows,  member->thumbnail_bytes,
                         member->bytes, member->identity};
}

/* --- checksums and writing ------------------------------------------------------------------- */

/* The root of a dataset's checksums. */
static bool read_root(char root[65], hid_t file, const char *name)
{
    char where[600];
    snprintf(where, sizeof where, "checksums%s", name);
    hid_t attribute = H5Aexists_by_name(file, where, "root", H5P_DEFAULT) > 0
                          ? H5Aopen_by_name(file, where, "root", H5P_DEFAULT, H5P_DEFAULT)
                          : H5I_INVALID_HID;
    hid_t type = attribute > 0 ? H5Aget_type(attribute) : H5I_INVALID_HID;
    memset(root, 0, 65);
    const bool there = type > 0 && H5Tget_class(type) == H5T_STRING &&
                       H5Tis_variable_str(type) == 0 && H5Tget_size(type) == 64 &&
                       H5Aread(attribute, type, root) >= 0;
    h5_close(&type);
    h5_close(&attribute);
    return there && root[0];
}

enum status parts_digest(struct pieces *pieces, hid_t dataset, struct error *err)
{
    char name[512], root[65];
    uint64_t first;
    struct parts *parts = find_parts_of(dataset, name, sizeof name);
    *pieces = (struct pieces){0};
    assert(parts);
    pieces->digest = malloc(parts->count * (size_t)PIECE_DIGEST);
    if (!pieces->digest)
        return error_memory(err, parts->count * (size_t)PIECE_DIGEST, "checksums");
    for (unsigned i = 0; i < parts->count; i++) {
        struct member *member = &parts->member[i];
        const uint64_t rows = extent(&first, member, name);
        if (rows == 0)
            continue;
        if (open_member(parts, member, err))
            goto failed;
        if (!read_root(root, member->file, name)) {
            h5_damaged(err, member->path, "%s has no checksums", name);
            goto failed;
        }
        sha256_of(pieces->digest[pieces->count++], root, strlen(root));
    }
    return STATUS_OK;
failed:
    pieces_clear(pieces);
    return STATUS_FAILED;
}

static bool put_fill_value(hid_t list, hid_t type)
{
    uint8_t most[8];
    const size_t size = H5Tget_size(type);
    if (H5Tget_class(type) == H5T_FLOAT) {
        const float nan = __builtin_nanf("");
        return H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &nan) >= 0;
    }
    memset(most, 0xff, sizeof most);
    if (H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2)
        most[size - 1] = 0x7f;
    /* Texts of fixed length stay empty. */
    return H5Tget_class(type) != H5T_INTEGER ||
           (size <= sizeof most && H5Pset_fill_value(list, type, most) >= 0);
}

enum status parts_create_dataset(hid_t *dataset, hid_t parent, const char *name,
                                 const char *absolute, hid_t type, int rank,
                                 const hsize_t *dimensions, const struct part *part,
                                 const uint64_t *length, unsigned count, const char *path,
                                 struct error *err)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, dimensions, NULL);
    bool ok = H5Pset_obj_track_times(list, false) >= 0 && put_fill_value(list, type);
    hsize_t start[2] = {0, 0}, size[2] = {0, rank > 1 ? dimensions[1] : 1};
    for (unsigned i = 0; i < count && ok; i++) {
        size[0] = length[i];
        if (size[0] == 0)
            continue;
        hid_t source = H5Screate_simple(rank, size, NULL);
        ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
             H5Pset_virtual(list, space, part[i].name, absolute, source) >= 0;
        h5_close(&source);
        start[0] += size[0];
    }
    ok = ok && H5Sselect_all(space) >= 0;
    *dataset = ok ? H5Dcreate2(parent, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT)
                  : H5I_INVALID_HID;
    enum status status = *dataset > 0 ? STATUS_OK : h5_fail(err, "H5Dcreate2", "write", path);
    h5_close(&space);
    h5_close(&list);
    return status;
}
