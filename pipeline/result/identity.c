/* identity.c: a tree: pieces (pieces.h), a root for each dataset, and the file: a canonical serialisation
 * of what the format defines (defined.h), except for the history (runs, dates, paths) and for what can be
 * recomputed; each dataset is represented by its root. */
#include "result/identity.h"
#include "base/path.h"
#include "result/defined.h"
#include "result/parts.h"
#include "result/result_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAME 1024
#define MOST_AXES 2
/* A row of the longest feature has 16 MiB. */
#define MOST_ROW_BYTES (16u << 20)

void serial_init(struct serial *serial, struct axes *axes,
                 bool (*counts)(const struct defined *defined, const char *attribute))
{
    *serial = (struct serial){.axes = axes, .counts = counts};
    sha256_init(&serial->sha);
}

void serial_finish(char hex[65], const struct serial *serial)
{
    struct sha256 sha = serial->sha;
    sha256_hex(hex, &sha);
}

static enum status refuse(const struct serial *serial, struct error *err, const char *name,
                          const char *why)
{
    return error_set(err, STATUS_FAILED, "%s has contents that cannot be digested: %s %s",
                     PATH_TEXT(h5_path(serial->axes->file)), name, why);
}

static void add_line(struct serial *serial, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_line(struct serial *serial, const char *format, ...)
{
    char line[4 * MOST_NAME];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    sha256_update(&serial->sha, line, strlen(line));
}

/* --- attributes ------------------------------------------------------------------------------ */

/* Whether texts have the character set, padding and bytes that clpipe and HDF5 write. */
static bool is_usual_text(hid_t type, bool utf8, bool padded)
{
    if (H5Tget_class(type) != H5T_STRING)
        return true;
    if (H5Tis_variable_str(type) > 0) {
        H5_SCOPED hid_t byte = H5Tget_super(type);
        if (H5Tequal(byte, H5T_STD_U8LE) <= 0)
            return false;
    }
    const H5T_str_t padding = H5Tget_strpad(type);
    return H5Tget_cset(type) == (utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII) &&
           (padding == H5T_STR_NULLPAD || (padding == H5T_STR_NULLTERM && !padded));
}

static enum status add_text(struct serial *serial, hid_t object, const char *name, uint64_t *length,
                            struct error *err)
{
    char *text;
    if (h5_get_text(&text, object, name, true, err))
        return STATUS_FAILED;
    *length = strlen(text);
    add_line(serial, "attribute %s text scalar\n", name);
    sha256_update(&serial->sha, length, sizeof *length);
    sha256_update(&serial->sha, text, *length);
    free(text);
    return STATUS_OK;
}

static enum status add_number(struct serial *serial, hid_t attribute, const char *name, hid_t type,
                              hid_t space, struct error *err)
{
    enum value_type found;
    uint8_t value[8];
    if (H5Sget_simple_extent_npoints(space) != 1 || !h5_find_type(&found, type))
        return refuse(serial, err, name, "is an attribute of an unknown kind");
    H5_SCOPED hid_t memory = h5_type(found);
    const bool read = H5Aread(attribute, memory, value) >= 0;
    if (!read)
        return h5_failed(err, "H5Aread", "read", attribute);
    add_line(serial, "attribute %s %s scalar\n", name, value_name(found));
    sha256_update(&serial->sha, value, value_size(found));
    return STATUS_OK;
}

static enum status add_attribute(struct serial *serial, hid_t object, const char *name,
                                 struct error *err)
{
    H5_SCOPED hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return h5_failed(err, "H5Aopen", "read", object);
    H5_SCOPED hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    const bool text = H5Tget_class(type) == H5T_STRING, variable = H5Tis_variable_str(type) > 0;
    bool usual =
        H5Sget_simple_extent_type(space) == H5S_SCALAR && is_usual_text(type, variable, false);
    uint64_t length = 0;
    enum status status = STATUS_OK;
    if (usual || !serial->exact)
        status = text ? add_text(serial, object, name, &length, err)
                      : add_number(serial, attribute, name, type, space, err);
    /* A text of fixed size must fill it. */
    usual = usual && (!text || variable || H5Tget_size(type) <= length + 1);
    if (status == STATUS_OK && serial->exact && !usual)
        status = refuse(serial, err, name, "is an attribute of a kind that clpipe does not write");
    return status;
}

static enum status add_attributes(struct serial *serial, hid_t object,
                                  const struct defined *defined, struct error *err)
{
    H5_SCOPED_NAMES names = {0};
    enum status status = h5_list_attributes(&names, object, err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++)
        if (serial->counts(defined, names.name[i]))
            status = add_attribute(serial, object, names.name[i], err);
    return status;
}

/* --- objects --------------------------------------------------------------------------------- */

/* A difference of a dataset's form from clpipe's, although the values are the same; or NULL. */
static const char *other_form(hid_t dataset, hid_t type, hid_t space)
{
    hsize_t size[MOST_AXES], most[MOST_AXES];
    H5D_fill_value_t fill = H5D_FILL_VALUE_ERROR;
    H5_SCOPED hid_t list = H5Dget_create_plist(dataset);
    /* Datasets that show rows of parts have one, for rows of lost parts. */
    if (H5Pget_layout(list) == H5D_VIRTUAL)
        fill = H5D_FILL_VALUE_DEFAULT;
    else
        H5Pfill_value_defined(list, &fill);
    const int rank = H5Sget_simple_extent_dims(space, size, most);
    return !is_usual_text(type, true, true) ? "has texts of a different kind"
           : axes_is_scale(dataset) && H5Dget_offset(dataset) != HADDR_UNDEF ? "has values"
           : fill != H5D_FILL_VALUE_DEFAULT ? "has a value for missing rows"
           : rank < 0 || memcmp(size, most, (size_t)rank * sizeof *size) ? "has a maximal size"
                                                                         : NULL;
}

/* The problem with a dataset, or NULL. */
static const char *wrong_form(const struct serial *serial, hid_t dataset, hid_t type, hid_t space,
                              enum value_type *found, hsize_t size[MOST_AXES])
{
    const int rank = H5Sget_simple_extent_ndims(space);
    const size_t element = H5Tget_size(type);
    uint64_t count;
    if (!h5_find_type(found, type) || rank < 1 || rank > MOST_AXES ||
        H5Sget_simple_extent_type(space) == H5S_NULL)
        return "is of an unknown kind";
    size[1] = 1;
    H5Sget_simple_extent_dims(space, size, NULL);
    const char *wrong = NULL;
    if (axes_is_scale(dataset))
        wrong = NULL;
    else if (__builtin_mul_overflow(size[0], size[1], &count) || count > INT64_MAX / element ||
             size[1] > MOST_ROW_BYTES / element)
        wrong = "has an impossible size";
    else
        wrong = h5_bad_storage(dataset, count * element, element);
    return wrong || !serial->exact ? wrong : other_form(dataset, type, space);
}

/* Adds the first line of a dataset. */
static enum status add_dataset(struct serial *serial, hid_t dataset, const char *name,
                               struct error *err)
{
    H5_SCOPED hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    hsize_t size[MOST_AXES];
    char width[24] = "", axis[MOST_AXES][MOST_NAME] = {"", ""};
    enum value_type found;
    const char *wrong = wrong_form(serial, dataset, type, space, &found, size);
    const int rank = H5Sget_simple_extent_ndims(space);
    enum status status = wrong ? refuse(serial, err, name, wrong) : STATUS_OK;
    for (int a = 0; a < rank && !status; a++)
        status = axes_name(axis[a], sizeof axis[a], serial->axes, dataset, (unsigned)a, err);
    /* "-" for an axis without a scale. */
    for (int a = 0; a < rank && !status; a++)
        if (!*axis[a])
            strcpy(axis[a], "-");
    if (!status && H5Tget_class(type) == H5T_STRING)
        snprintf(width, sizeof width, "%zu", H5Tget_size(type));
    if (!status && rank == 1)
        add_line(serial, "dataset %s %s%s %llu %s\n", name, value_name(found), width,
                 (unsigned long long)size[0], axis[0]);
    else if (!status)
        add_line(serial, "dataset %s %s%s %llu,%llu %s,%s\n", name, value_name(found), width,
                 (unsigned long long)size[0], (unsigned long long)size[1], axis[0], axis[1]);
    return status;
}

enum status serial_add(struct serial *serial, hid_t object, const char *name,
                       const struct defined *defined, struct error *err)
{
    if (H5Iget_type(object) == H5I_GROUP)
        add_line(serial, "group %s\n", name);
    else if (add_dataset(serial, object, name, err))
        return STATUS_FAILED;
    return add_attributes(serial, object, defined, err);
}

/* --- identities ------------------------------------------------------------------------------ */

static bool counts(const struct defined *defined, const char *attribute)
{
    if (strcmp(defined->name, "/") == 0 &&
        (strcmp(attribute, "created") == 0 || strcmp(attribute, "clpipe_version") == 0))
        return false;
    /* Dates and origins, not content. */
    if (strcmp(defined->name, "/clusters/*") == 0 && strncmp(attribute, "source_", 7) == 0)
        return false;
    if (strncmp(defined->name, "/runs/", 6) == 0)
        return false;
    return defined_attribute(defined, attribute) && !defined_attribute_of_library(attribute);
}

/* Whether an object is part of a file's identity: excludes recomputable data, dates and origins. */
static bool object_counts(const char *name)
{
    static const char *const others[] = {
        "/" PARTS_GROUP,   "/" THUMBNAIL_GROUP,  "/images/inode",       "/images/ctime_ns",
        "/failures/inode", "/failures/ctime_ns", "/images/" DIRECTORIES};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (defined_below(name, others[i]))
            return false;
    return true;
}

enum status identity_of_dataset(char root[65], struct pieces *pieces, hid_t dataset,
                                const char *name, struct axes *axes, struct error *err)
{
    struct serial serial;
    struct pieces own = {0}, *of = pieces ? pieces : &own;
    char hex[65];
    serial_init(&serial, axes, counts);
    enum status status = serial_add(&serial, dataset, name, defined_find(name), err);
    if (status == STATUS_OK && !of->known)
        status = pieces && h5_is_virtual(dataset) ? parts_digest(of, dataset, err)
                                                  : pieces_digest(of, dataset, err);
    if (status == STATUS_OK) {
        of->known = true;
        sha256_update(&serial.sha, of->digest, of->count * PIECE_DIGEST);
        serial_finish(hex, &serial);
        snprintf(root, 65, "%s%.58s", IDENTITY_TREE, hex);
    }
    pieces_clear(&own);
    return status;
}

struct whole {
    struct serial serial;
    identity_root *root;
    void *context;
};

static enum status add_own(void *context, hid_t object, const char *name,
                           const struct defined *defined, struct error *err)
{
    struct whole *whole = context;
    struct serial *serial = &whole->serial;
    const bool count = object_counts(name);
    char root[65];
    if (defined_below(name, "/runs") || defined_below(name, "/checksums"))
        return STATUS_OK;
    /* Groups without attributes add nothing to the names of their members. */
    if (defined->type == H5O_TYPE_GROUP)
        return count && *defined->attributes ? serial_add(serial, object, name, defined, err)
                                             : STATUS_OK;
    if (!count && !whole->root)
        return STATUS_OK;
    const enum status status =
        whole->root ? whole->root(whole->context, root, object, name, err)
                    : identity_of_dataset(root, NULL, object, name, serial->axes, err);
    if (status == STATUS_OK && count)
        sha256_update(&serial->sha, root, strlen(root));
    return status;
}

enum status identity_of_file(char hex[65], hid_t file, struct axes *axes, identity_root *root,
                             void *context, struct error *err)
{
    struct whole whole = {.root = root, .context = context};
    const struct defined_visitor visitor = {add_own, NULL, &whole};
    serial_init(&whole.serial, axes, counts);
    enum status status = defined_walk(file, "/", &visitor, err);
    serial_finish(hex, &whole.serial);
    return status;
}

enum status result_identity(struct result *result, char hex[65], struct error *err)
{
    return identity_of_file(hex, result->file, result->axes, NULL, NULL, err);
}

enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    snprintf(name, sizeof name, "/features/%s", feature->name);
    return identity_of_dataset(hex, NULL, feature->dataset, name, result->axes, err);
}
