/* identity.c: a canonical serialisation of an HDF5 file, into SHA-256.
 *
 * Groups and datasets depth first, members by the bytes of their names, everything but /runs:
 *
 *   "group NAME\n" or "dataset NAME TYPE SHAPE AXES\n", NAME being absolute
 *   for each attribute, by name:  "attribute NAME TYPE SHAPE\n" and its values
 *   for a dataset:                its values
 *
 * Values: numbers as they are in memory on a little-endian machine, texts of fixed length with
 * their padding, variable-length texts as their length (8 bytes, little-endian) and their bytes.
 * What HDF5 keeps for dimension scales (addresses) is left out: the names of the scales, AXES,
 * stand for it.
 */
#include "file/identity.h"
#include "base/hash.h"
#include "base/path.h"
#include "file/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH   16
#define MOST_MEMBERS 65536
#define MOST_OBJECTS (1u << 20) /* hard links can make a group its own member */
#define MOST_NAME    1024
#define MOST_AXES    2
#define AXES_TEXT    (2 * MOST_NAME + 8)
/* A row of the longest feature has 16 MiB. */
#define BUFFER_BYTES (16u << 20)

struct identity {
    struct sha256 sha;
    struct vlen *vlen;
    const char *path;
    char *buffer;
    unsigned objects, format;
};

static enum status refuse(struct identity *id, struct error *err, const char *name, const char *why)
{
    char shown[256];
    return error_set(err, STATUS_FAILED, "%s has no identity: %s %s",
                     path_for_message(shown, sizeof shown, id->path), name, why);
}

static void add(struct identity *id, const char *text)
{
    sha256_update(&id->sha, text, strlen(text));
}

/* How values of a type are named and read. */
struct kind {
    char name[24];
    hid_t memory; /* to close */
    size_t size;
    bool text; /* of variable length */
};

static bool find_kind(struct kind *kind, hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    unsigned bits = (unsigned)size * 8;
    *kind = (struct kind){.size = size, .memory = H5I_INVALID_HID};
    if (class == H5T_STRING) {
        kind->text = H5Tis_variable_str(type) > 0;
        if (kind->text) {
            kind->size = VLEN_DESCRIPTOR;
            snprintf(kind->name, sizeof kind->name, "text");
        } else {
            snprintf(kind->name, sizeof kind->name, "bytes%zu", size);
            kind->memory = H5Tcopy(type);
        }
        return size > 0 && size <= VLEN_MOST_BYTES;
    }
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return false;
    if (class == H5T_INTEGER) {
        bool sign = H5Tget_sign(type) == H5T_SGN_2;
        snprintf(kind->name, sizeof kind->name, "%s%u", sign ? "int" : "uint", bits);
        kind->memory = H5Tcopy(size == 1   ? sign ? H5T_STD_I8LE : H5T_STD_U8LE
                               : size == 2 ? sign ? H5T_STD_I16LE : H5T_STD_U16LE
                               : size == 4 ? sign ? H5T_STD_I32LE : H5T_STD_U32LE
                               : sign      ? H5T_STD_I64LE
                                           : H5T_STD_U64LE);
        return true;
    }
    if (class != H5T_FLOAT || size < 4)
        return false;
    snprintf(kind->name, sizeof kind->name, "float%u", bits);
    kind->memory = H5Tcopy(size == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
    return true;
}

/* "3,4" or "scalar"; false where there are more axes than clpipe's files have, or no data. */
static bool shape_text(char *text, size_t size, hsize_t dimensions[MOST_AXES], int *rank,
                       hid_t space)
{
    *rank = H5Sget_simple_extent_ndims(space);
    if (*rank < 0 || *rank > MOST_AXES || H5Sget_simple_extent_type(space) == H5S_NULL)
        return false;
    dimensions[0] = dimensions[1] = 1;
    H5Sget_simple_extent_dims(space, dimensions, NULL);
    if (*rank == 0)
        snprintf(text, size, "scalar");
    else if (*rank == 1)
        snprintf(text, size, "%llu", (unsigned long long)dimensions[0]);
    else
        snprintf(text, size, "%llu,%llu", (unsigned long long)dimensions[0],
                 (unsigned long long)dimensions[1]);
    return true;
}

static enum status add_texts(struct identity *id, const uint8_t *descriptors, uint64_t count,
                             struct error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        uint32_t length;
        if (vlen_element(id->vlen, descriptors + i * VLEN_DESCRIPTOR, 1, &bytes, &length, err))
            return STATUS_FAILED;
        uint64_t bytes8 = length;
        sha256_update(&id->sha, &bytes8, sizeof bytes8);
        sha256_update(&id->sha, bytes, length);
    }
    return STATUS_OK;
}

static enum status add_attribute(struct identity *id, hid_t object, const char *name,
                                 struct error *err)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return h5_fail(err, "H5Aopen", "read", id->path);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    struct kind kind;
    char shape[64], line[MOST_NAME + 128];
    hsize_t dimensions[MOST_AXES];
    int rank;
    enum status status = STATUS_FAILED;
    bool known =
        find_kind(&kind, type) && shape_text(shape, sizeof shape, dimensions, &rank, space);
    uint64_t count = known ? dimensions[0] * dimensions[1] : 0;
    if (!known || dimensions[0] > BUFFER_BYTES || dimensions[1] > BUFFER_BYTES ||
        count > BUFFER_BYTES / kind.size) {
        refuse(id, err, name, "is an attribute of a kind that clpipe does not know");
        goto out;
    }
    snprintf(line, sizeof line, "attribute %s %s %s\n", name, kind.name, shape);
    add(id, line);
    if (kind.text) {
        if (vlen_attribute(id->vlen, object, name, (uint8_t *)id->buffer, count * kind.size, err) ||
            add_texts(id, (const uint8_t *)id->buffer, count, err))
            goto out;
    } else {
        if (count > 0 && H5Aread(attribute, kind.memory, id->buffer) < 0) {
            h5_fail(err, "H5Aread", "read", id->path);
            goto out;
        }
        sha256_update(&id->sha, id->buffer, count * kind.size);
    }
    status = STATUS_OK;
out:
    h5_close(&kind.memory);
    h5_close(&space);
    h5_close(&type);
    h5_close(&attribute);
    return status;
}

/* Addresses, and what is different from run to run. */
static bool is_left_out(const char *name, bool root, unsigned format)
{
    return strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0 ||
           strcmp(name, "DIMENSION_LIST") == 0 || strcmp(name, "REFERENCE_LIST") == 0 ||
           (root && strcmp(name, "created") == 0) ||
           (root && format > 1 && strcmp(name, "clpipe_version") == 0);
}

/* Members of the root: what was done, and what can be made again from the images. */
static bool is_left_out_member(const char *name, unsigned format)
{
    return strcmp(name, "runs") == 0 ||
           (format > 1 &&
            (strcmp(name, THUMBNAIL_GROUP) == 0 || strcmp(name, THUMBNAIL_AXIS) == 0));
}

static enum status add_attributes(struct identity *id, hid_t object, bool root, struct error *err)
{
    struct h5_names names;
    enum status status = STATUS_FAILED;
    if (h5_list_attributes(&names, object, MOST_MEMBERS, id->path, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < names.count; i++) {
        if (strlen(names.name[i]) > MOST_NAME) {
            refuse(id, err, "an attribute", "has a longer name than clpipe gives");
            goto out;
        }
        if (!is_left_out(names.name[i], root, id->format) && add_attribute(id, object, names.name[i], err))
            goto out;
    }
    status = STATUS_OK;
out:
    h5_free_names(&names);
    return status;
}

static enum status add_values(struct identity *id, hid_t dataset, const struct kind *kind,
                              const hsize_t dimensions[MOST_AXES], int rank, struct error *err)
{
    size_t row = kind->size * dimensions[1];
    uint64_t block = row < BUFFER_BYTES ? BUFFER_BYTES / row : 1;
    for (uint64_t first = 0; first < dimensions[0]; first += block) {
        uint64_t count = dimensions[0] - first < block ? dimensions[0] - first : block;
        if (kind->text) {
            uint8_t *texts = (uint8_t *)id->buffer;
            if (vlen_descriptors(id->vlen, dataset, first, count, texts, err) ||
                add_texts(id, texts, count * dimensions[1], err))
                return STATUS_FAILED;
            continue;
        }
        hsize_t start[MOST_AXES] = {first, 0}, size[MOST_AXES] = {count, dimensions[1]};
        hid_t memory = H5Screate_simple(rank, size, NULL), file = H5Dget_space(dataset);
        bool ok = H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
                  H5Dread(dataset, kind->memory, memory, file, H5P_DEFAULT, id->buffer) >= 0;
        h5_close(&memory);
        h5_close(&file);
        if (!ok)
            return h5_fail(err, "H5Dread", "read", id->path);
        sha256_update(&id->sha, id->buffer, count * row);
    }
    return STATUS_OK;
}

static enum status add_dataset(struct identity *id, hid_t dataset, const char *name,
                               struct error *err)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    struct kind kind;
    char shape[64], axes[AXES_TEXT] = "", line[MOST_NAME + AXES_TEXT + 128];
    hsize_t dimensions[MOST_AXES];
    int rank = 0;
    bool scale = false;
    enum status status = STATUS_FAILED;
    bool known = find_kind(&kind, type) &&
                 shape_text(shape, sizeof shape, dimensions, &rank, space) && rank > 0;
    const char *wrong = "is of a kind that clpipe does not know";
    uint64_t elements = 0;
    if (vlen_is_scale(&scale, id->vlen, dataset, err))
        goto out;
    if (known && !scale) {
        if (__builtin_mul_overflow(dimensions[0], dimensions[1], &elements) ||
            elements > INT64_MAX / kind.size || dimensions[1] > BUFFER_BYTES / kind.size)
            wrong = "has an impossible size";
        else
            wrong = h5_bad_storage(dataset, elements * kind.size, kind.size);
    } else if (known) {
        wrong = NULL;
    }
    if (wrong) {
        refuse(id, err, name, wrong);
        goto out;
    }
    /* "image,feature_rgb_256"; "-" for an axis without a scale. */
    for (int a = 0; a < rank; a++) {
        char axis[MOST_NAME];
        if (vlen_axis(axis, sizeof axis, id->vlen, dataset, (unsigned)a, err))
            goto out;
        snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%s", a ? "," : "",
                 *axis ? axis : "-");
    }
    snprintf(line, sizeof line, "dataset %s %s %s %s\n", name, kind.name, shape, axes);
    add(id, line);
    if (add_attributes(id, dataset, false, err))
        goto out;
    /* A scale is its name and its length. */
    if (!scale && elements > 0 && add_values(id, dataset, &kind, dimensions, rank, err))
        goto out;
    status = STATUS_OK;
out:
    h5_close(&kind.memory);
    h5_close(&space);
    h5_close(&type);
    return status;
}

static enum status add_group(struct identity *id, hid_t group, const char *name, int depth,
                             struct error *err)
{
    char line[MOST_NAME + 16], path[MOST_NAME];
    struct h5_names names;
    if (depth > MOST_DEPTH)
        return refuse(id, err, name, "is deeper than clpipe's files are");
    snprintf(line, sizeof line, "group %s\n", *name ? name : "/");
    add(id, line);
    if (add_attributes(id, group, depth == 0, err) ||
        h5_list(&names, group, MOST_MEMBERS, id->path, err))
        return STATUS_FAILED;
    enum status status = STATUS_FAILED;
    for (unsigned i = 0; i < names.count; i++) {
        if (depth == 0 && is_left_out_member(names.name[i], id->format))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", name, names.name[i]) >= (int)sizeof path) {
            refuse(id, err, "a member", "has a longer name than clpipe gives");
            goto out;
        }
        bool is_group = h5_is_object(group, names.name[i], H5O_TYPE_GROUP);
        if (!is_group && !h5_is_object(group, names.name[i], H5O_TYPE_DATASET)) {
            refuse(id, err, path, "is a link to elsewhere");
            goto out;
        }
        if (++id->objects > MOST_OBJECTS) {
            refuse(id, err, path, "is one object too many");
            goto out;
        }
        hid_t object = H5Oopen(group, names.name[i], H5P_DEFAULT);
        if (object < 0) {
            h5_fail(err, "H5Oopen", "read", id->path);
            goto out;
        }
        enum status added = is_group ? add_group(id, object, path, depth + 1, err)
                                     : add_dataset(id, object, path, err);
        h5_close(&object);
        if (added)
            goto out;
    }
    status = STATUS_OK;
out:
    h5_free_names(&names);
    return status;
}

/* The digest of the file's content, or of one feature's. */
static enum status compute_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err)
{
    enum status status = STATUS_FAILED;
    struct identity id = {
        .vlen = result->vlen, .path = result->path, .format = result->format};
    char name[FEATURE_NAME_MAX + 16];
    uint8_t digest[32];
    hid_t root = H5I_INVALID_HID;
    sha256_init(&id.sha);
    id.buffer = malloc(BUFFER_BYTES);
    if (!id.buffer) {
        error_memory(err, BUFFER_BYTES, "an identity");
        goto out;
    }
    if (feature) {
        snprintf(name, sizeof name, "/features/%s", feature->name);
        status = add_dataset(&id, result_feature_dataset(feature), name, err);
    } else {
        root = H5Gopen2(result->file, "/", H5P_DEFAULT);
        status = root > 0 ? add_group(&id, root, "", 0, err)
                          : h5_fail(err, "H5Gopen2", "read", result->path);
    }
    sha256_final(&id.sha, digest);
    sha256_hex(hex, digest);
out:
    h5_close(&root);
    free(id.buffer);
    return status;
}

enum status result_identity(struct result *result, char hex[65], struct error *err)
{
    return compute_identity(result, NULL, hex, err);
}

enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err)
{
    return compute_identity(result, feature, hex, err);
}
