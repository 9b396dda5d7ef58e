/* parts.c: the manifest of a merged file, its checks, and its virtual datasets. */
#include "result/parts.h"
#include "base/held.h"
#include "base/path.h"
#include "matrix/h5_driver.h"
#include "result/rows.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Virtual datasets of a merged file. */
#define MOST_DATASETS 64

static const struct table parts_table = {
    .group = PARTS_GROUP,
    .axis = PARTS_AXIS,
    .row_size = sizeof(struct part),
    .count = 5,
    .column = {{"path", VALUE_TEXT, 1, offsetof(struct part, text), NULL, false},
               {"identity", VALUE_TEXT, 1, offsetof(struct part, identity), NULL, false},
               {"rows", VALUE_U64, 1, offsetof(struct part, rows), NULL, false},
               {"thumbnail_bytes", VALUE_U64, 1, offsetof(struct part, thumbnail_bytes), NULL,
                false},
               {"bytes", VALUE_U64, 1, offsetof(struct part, bytes), NULL, false}},
};

struct parts {
    int fd; /* HDF5's, of the merged file */
    char *path, *directory;
    struct part *part;
    unsigned count;
    /* The virtual datasets checked so far. */
    struct shown {
        char *name;
        struct raw *raw;
    } shown[MOST_DATASETS];
    unsigned shown_count;
    struct parts *next;
};

/* The open merged files: the reader of a dataset knows only the dataset. */
static struct parts *attached;

/* The merged file of an object. */
static struct parts *find_parts(hid_t object)
{
    const int fd = attached ? h5_driver_descriptor(object) : -1;
    struct parts *parts = fd >= 0 ? attached : NULL;
    while (parts && parts->fd != fd)
        parts = parts->next;
    return parts;
}

/* That of a dataset, and the dataset's absolute name. */
static struct parts *find_parts_of(hid_t dataset, char *name, size_t size)
{
    struct parts *parts = find_parts(dataset);
    const ssize_t length = parts ? H5Iget_name(dataset, name, size) : 0;
    return length > 0 && (size_t)length < size ? parts : NULL;
}

static struct raw *find_shown(const struct parts *parts, const char *name)
{
    for (unsigned i = 0; i < parts->shown_count; i++)
        if (strcmp(parts->shown[i].name, name) == 0)
            return parts->shown[i].raw;
    return NULL;
}

/* --- the manifest ---------------------------------------------------------------------------- */

static void free_parts(struct parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++) {
        const struct part *part = &parts->part[i];
        free((void *)(uintptr_t)part->name);
        free((void *)(uintptr_t)part->path);
        free((void *)(uintptr_t)part->identity);
    }
    for (unsigned i = 0; i < parts->shown_count; i++) {
        raw_close(&parts->shown[i].raw);
        free(parts->shown[i].name);
    }
    free(parts->part);
    free(parts->directory);
    free(parts->path);
    free(parts);
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

static enum status read_part(struct part *out, const struct parts *parts, struct rows *rows,
                             unsigned row, struct error *err)
{
    const void *found;
    const char *name;
    if (rows_at(rows, row, &found, &name, err))
        return STATUS_FAILED;
    if (!name_is_plain(name))
        return h5_damaged(err, parts->path, "/" PARTS_GROUP "/path: row %u leads elsewhere", row);
    char *path = NULL;
    *out = *(const struct part *)found;
    out->text = NULL;
    out->path = asprintf(&path, "%s/%s", parts->directory, name) < 0 ? NULL : path;
    out->name = strdup(name);
    out->identity = strdup(out->identity);
    return out->path && out->name && out->identity
               ? STATUS_OK
               : error_memory(err, strlen(name), "the name of a part");
}

static enum status read_manifest(struct parts *parts, hid_t file, struct error *err)
{
    struct rows *rows;
    uint64_t images = 0, bytes = 0;
    enum status status = rows_open(&rows, file, &parts_table, err);
    if (status)
        return status;
    const uint64_t count = rows->count;
    if (count < 1 || count > PARTS_MOST)
        status = h5_damaged(err, parts->path, "/" PARTS_GROUP " has an impossible size");
    else if (!(parts->part = calloc(count, sizeof *parts->part)))
        status = error_memory(err, count * sizeof *parts->part, "the parts");
    for (unsigned i = 0; i < count && !status; i++) {
        struct part *part = &parts->part[parts->count++];
        status = read_part(part, parts, rows, i, err);
        if (!status && (__builtin_add_overflow(images, part->rows, &images) ||
                        __builtin_add_overflow(bytes, part->thumbnail_bytes, &bytes)))
            status = h5_damaged(err, parts->path, "/" PARTS_GROUP " has impossible numbers");
    }
    rows_close(&rows);
    return status;
}

enum status parts_write(hid_t file, const struct part *part, unsigned count, struct error *err)
{
    const hsize_t size = count;
    SCOPED_HELD held = {0};
    const char *const axis = PARTS_AXIS, **text = held_array(&held, count, sizeof *text);
    uint64_t *number = held_array(&held, count, sizeof *number);
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    enum status status = held_check(&held, "the parts", err);
    if (!status)
        status = h5_create_group(&group, file, PARTS_GROUP, err);
    for (unsigned c = 0; c < parts_table.count && !status; c++) {
        const struct column *column = &parts_table.column[c];
        const bool is_text = column->type == VALUE_TEXT;
        for (unsigned i = 0; i < count; i++)
            memcpy(is_text ? (void *)&text[i] : &number[i], (const char *)&part[i] + column->offset,
                   sizeof *number);
        status = is_text ? h5_put_texts(file, group, column->name, text, count, axis, err)
                         : h5_put_values(file, group, column->name, column->type, 1, &size, &axis,
                                         number, err);
    }
    return status;
}

bool parts_checksum(char text[65], hid_t file, const char *name, const char *attribute,
                    struct error *err)
{
    H5_SCOPED hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    text[0] = 0;
    return object > 0 && !h5_get_short_text(text, 65, object, attribute, err) && text[0];
}

bool parts_identity(char identity[65], hid_t file, struct error *err)
{
    return parts_checksum(identity, file, "checksums", "identity", err);
}

static bool has_identity(const struct part *part)
{
    char identity[65];
    H5_SCOPED hid_t file = H5I_INVALID_HID;
    const bool same = h5_open_file(&file, part->path, NULL) == STATUS_OK &&
                      parts_identity(identity, file, NULL) && strcmp(identity, part->identity) == 0;
    return same;
}

/* Whether all parts are unchanged since they were merged. */
static enum status check_members(const struct parts *parts, struct error *err)
{
    unsigned missing = 0, changed = 0;
    const char *first = NULL;
    char more[80] = "";
    for (unsigned i = 0; i < parts->count; i++) {
        const struct part *member = &parts->part[i];
        struct stat st;
        const bool there = stat(member->path, &st) == 0;
        const bool same = there && S_ISREG(st.st_mode) && (uint64_t)st.st_size == member->bytes &&
                          has_identity(member);
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
    const char *shown = PATH_TEXT(parts->path);
    const char *part = PATH_TEXT(first);
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

/* The directory to which names are relative: as in HDF5, that of the file, symbolic links
 * resolved. */
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

/* The number of a part's rows in a dataset. */
static uint64_t extent(const struct part *part, const char *name)
{
    return by_bytes(name) ? part->thumbnail_bytes : part->rows;
}

/* Whether mapping `i` shows the rows of a part, as those from `first` on. */
static bool maps(hid_t list, size_t i, const struct part *part, const char *name, uint64_t first)
{
    char file[4096], dataset[512];
    hsize_t start[2], end[2];
    H5_SCOPED hid_t space = H5Pget_virtual_vspace(list, i);
    const ssize_t file_length = H5Pget_virtual_filename(list, i, file, sizeof file),
                  dataset_length = H5Pget_virtual_dsetname(list, i, dataset, sizeof dataset);
    const bool right = space > 0 && H5Sget_simple_extent_ndims(space) <= 2 &&
                       H5Sget_select_bounds(space, start, end) >= 0 && start[0] == first &&
                       end[0] == first + extent(part, name) - 1 && file_length > 0 &&
                       (size_t)file_length < sizeof file && strcmp(file, part->name) == 0 &&
                       dataset_length > 0 && (size_t)dataset_length < sizeof dataset &&
                       strcmp(dataset, name) == 0;
    return right;
}

/* A part's dataset must lie in the part itself, which may be the merged file. */
static enum status open_in_part(hid_t *file, hid_t *dataset, const char *path, const char *name,
                                struct error *err)
{
    *dataset = H5I_INVALID_HID;
    if (*file <= 0 && h5_open_file(file, path, err))
        return STATUS_FAILED;
    if (h5_is_object(*file, name, H5O_TYPE_DATASET))
        *dataset = H5Dopen2(*file, name, H5P_DEFAULT);
    H5_SCOPED hid_t list = H5Dget_create_plist(*dataset), type = H5Dget_type(*dataset),
                    space = H5Dget_space(*dataset);
    const size_t bytes = H5Tget_size(type);
    const bool good =
        *dataset > 0 && H5Pget_layout(list) != H5D_VIRTUAL &&
        !h5_bad_storage(*dataset, (uint64_t)H5Sget_simple_extent_npoints(space) * bytes, bytes);
    if (good)
        return STATUS_OK;
    h5_close(dataset);
    return h5_damaged(err, path, "its %s is not what was merged", name);
}

static enum status add_shown(struct parts *parts, hid_t dataset, const char *name)
{
    struct shown *shown = &parts->shown[parts->shown_count];
    struct raw_segment *segments = malloc((parts->count + 1) * sizeof *segments);
    shown->name = strdup(name);
    enum status status = shown->name && segments ? STATUS_OK : STATUS_FAILED;
    for (unsigned i = 0; i < parts->count && status == STATUS_OK; i++)
        segments[i] = (struct raw_segment){parts->part[i].path, extent(&parts->part[i], name)};
    if (status == STATUS_OK)
        status = raw_open_segments(&shown->raw, dataset, shown->name, segments, parts->count,
                                   open_in_part, parts->path, NULL);
    free(segments);
    if (status == STATUS_OK)
        parts->shown_count++;
    else
        free(shown->name);
    return status;
}

static const char *bad_mapping(hid_t dataset)
{
    char name[512];
    size_t count = 0, mapped = 0;
    uint64_t first = 0;
    struct parts *parts = find_parts_of(dataset, name, sizeof name);
    if (!parts)
        return "is composed of other datasets";
    if (find_shown(parts, name))
        return NULL;
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset);
    bool right = parts->shown_count < MOST_DATASETS && H5Pget_virtual_count(list, &count) >= 0;
    for (unsigned i = 0; i < parts->count && right; first += extent(&parts->part[i++], name))
        if (extent(&parts->part[i], name) > 0)
            right = mapped < count && maps(list, mapped++, &parts->part[i], name, first);
    return right && mapped == count && add_shown(parts, dataset, name) == STATUS_OK
               ? NULL
               : "is not composed as the manifest says";
}

static struct raw *find_raw(hid_t dataset)
{
    char name[512];
    const struct parts *parts = find_parts_of(dataset, name, sizeof name);
    return parts ? find_shown(parts, name) : NULL;
}

/* --- a merged file --------------------------------------------------------------------------- */

static const struct h5_virtual reader = {find_raw, bad_mapping};

/* Reads the manifest; NULL: the file was not merged. */
static enum status open_parts(struct parts **out, hid_t file, const char *path, struct error *err)
{
    *out = NULL;
    if (H5Lexists(file, PARTS_GROUP, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (!h5_is_object(file, PARTS_GROUP, H5O_TYPE_GROUP))
        return h5_damaged(err, path, "/" PARTS_GROUP " is not a group of the file itself");
    struct parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return error_memory(err, sizeof *parts, "the parts");
    parts->fd = h5_driver_descriptor(file);
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
        *same = strcmp(parts->part[i].name, name[i]) == 0;
    *current = *same && check_members(parts, NULL) == STATUS_OK;
    if (parts)
        free_parts(parts);
    return status;
}

void parts_detach(hid_t file)
{
    struct parts *parts = find_parts(file);
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
    return find_parts(file)->part[i];
}

/* --- checksums and writing ------------------------------------------------------------------- */

/* The root of a dataset's checksums in a part. */
static enum status read_root(char root[65], const struct part *part, const char *name,
                             struct error *err)
{
    char where[600];
    H5_SCOPED hid_t file = H5I_INVALID_HID;
    snprintf(where, sizeof where, "checksums%s", name);
    if (h5_open_file(&file, part->path, err))
        return STATUS_FAILED;
    const bool there = parts_checksum(root, file, where, "root", NULL);
    return there ? STATUS_OK : h5_damaged(err, part->path, "%s has no checksums", name);
}

enum status parts_digest(struct pieces *pieces, hid_t dataset, struct error *err)
{
    char name[512], root[65];
    struct parts *parts = find_parts_of(dataset, name, sizeof name);
    *pieces = (struct pieces){0};
    assert(parts);
    pieces->digest = malloc(parts->count * (size_t)PIECE_DIGEST);
    if (!pieces->digest)
        return error_memory(err, parts->count * (size_t)PIECE_DIGEST, "checksums");
    for (unsigned i = 0; i < parts->count; i++) {
        if (extent(&parts->part[i], name) == 0)
            continue;
        if (read_root(root, &parts->part[i], name, err)) {
            pieces_clear(pieces);
            return STATUS_FAILED;
        }
        sha256_of(pieces->digest[pieces->count++], root, strlen(root));
    }
    return STATUS_OK;
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
                                 enum value_type type, int rank, uint64_t columns,
                                 const struct part *part, unsigned count, struct error *err)
{
    hsize_t start[2] = {0, 0}, size[2] = {0, columns};
    for (unsigned i = 0; i < count; i++)
        size[0] += extent(&part[i], name);
    H5_SCOPED hid_t list = H5Pcreate(H5P_DATASET_CREATE), stored = h5_type(type),
                    space = H5Screate_simple(rank, size, NULL);
    bool ok = H5Pset_obj_track_times(list, false) >= 0 && put_fill_value(list, stored);
    for (unsigned i = 0; i < count && ok; i++) {
        size[0] = extent(&part[i], name);
        if (size[0] == 0)
            continue;
        H5_SCOPED hid_t source = H5Screate_simple(rank, size, NULL);
        ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
             H5Pset_virtual(list, space, part[i].name, name, source) >= 0;
        start[0] += size[0];
    }
    ok = ok && H5Sselect_all(space) >= 0;
    *dataset = ok ? H5Dcreate2(parent, strrchr(name, '/') + 1, stored, space, H5P_DEFAULT, list,
                               H5P_DEFAULT)
                  : H5I_INVALID_HID;
    return *dataset > 0 ? STATUS_OK : h5_failed(err, "H5Dcreate2", "write", parent);
}
