/* identity.c: a canonical serialisation of an HDF5 file (serial.h), into SHA-256.
 *
 * Format 1: everything but /runs and the date, values as they are. Since format 2: what the format
 * defines (defined.h), but for what was done and what can be made again; instead of the values the
 * digests of their pieces (pieces.h), which all CPUs compute. */
#include "file/identity.h"
#include "file/defined.h"
#include "file/parts.h"
#include "file/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH   16
#define MOST_OBJECTS (1u << 20) /* hard links can make a group its own member */

/* --- format 1 -------------------------------------------------------------------------------- */

struct walk {
    struct serial *serial;
    unsigned objects;
};

/* Addresses, and what is different from run to run; `context` is not NULL for the root. */
static bool counts_in_format_1(const void *context, const char *name)
{
    return strcmp(name, "CLASS") != 0 && strcmp(name, "NAME") != 0 &&
           strcmp(name, "DIMENSION_LIST") != 0 && strcmp(name, "REFERENCE_LIST") != 0 &&
           (!context || strcmp(name, "created") != 0);
}

static enum status add_dataset(struct serial *serial, hid_t dataset, const char *name,
                               struct error *err)
{
    struct serial_values values;
    enum status status =
        serial_dataset(&values, serial, dataset, name, counts_in_format_1, NULL, err);
    if (status)
        return status;
    /* A scale is its name and its length. */
    if (!values.scale)
        status = serial_values(serial, dataset, &values, err);
    h5_close(&values.memory);
    return status;
}

static enum status add_group(struct walk *walk, hid_t group, const char *name, int depth,
                             struct error *err)
{
    struct serial *serial = walk->serial;
    char path[SERIAL_MOST_NAME];
    struct h5_names names;
    if (depth > MOST_DEPTH)
        return serial_refuse(serial, err, name, "is deeper than clpipe's files are");
    if (serial_group(serial, group, *name ? name : "/", counts_in_format_1,
                     depth == 0 ? walk : NULL, err) ||
        h5_list(&names, group, DEFINED_MOST_MEMBERS, serial->path, err))
        return STATUS_FAILED;
    enum status status = STATUS_FAILED;
    for (unsigned i = 0; i < names.count; i++) {
        if (depth == 0 && strcmp(names.name[i], "runs") == 0)
            continue;
        if (snprintf(path, sizeof path, "%s/%s", name, names.name[i]) >= (int)sizeof path) {
            serial_refuse(serial, err, "a member", "has a longer name than clpipe gives");
            goto out;
        }
        bool is_group = h5_is_object(group, names.name[i], H5O_TYPE_GROUP);
        if (!is_group && !h5_is_object(group, names.name[i], H5O_TYPE_DATASET)) {
            serial_refuse(serial, err, path, "is a link to elsewhere");
            goto out;
        }
        if (++walk->objects > MOST_OBJECTS) {
            serial_refuse(serial, err, path, "is one object too many");
            goto out;
        }
        hid_t object = H5Oopen(group, names.name[i], H5P_DEFAULT);
        if (object < 0) {
            h5_fail(err, "H5Oopen", "read", serial->path);
            goto out;
        }
        enum status added = is_group ? add_group(walk, object, path, depth + 1, err)
                                     : add_dataset(serial, object, path, err);
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
static enum status identity_in_format_1(struct result *result, const struct result_feature *feature,
                                        char hex[65], struct error *err)
{
    enum status status = STATUS_FAILED;
    char name[FEATURE_NAME_MAX + 16];
    uint8_t digest[32];
    hid_t root = H5I_INVALID_HID;
    struct serial serial;
    struct walk walk = {&serial, 0};
    serial_init(&serial, result->vlen, result->path);
    if (feature) {
        snprintf(name, sizeof name, "/features/%s", feature->name);
        status = add_dataset(&serial, result_feature_dataset(feature), name, err);
    } else {
        root = H5Gopen2(result->file, "/", H5P_DEFAULT);
        status = root > 0 ? add_group(&walk, root, "", 0, err)
                          : h5_fail(err, "H5Gopen2", "read", result->path);
    }
    sha256_final(&serial.sha, digest);
    sha256_hex(hex, digest);
    h5_close(&root);
    serial_clear(&serial);
    return status;
}

/* --- since format 2 -------------------------------------------------------------------------- */

enum status identity_compute(void *context, struct pieces *pieces, const struct serial *serial,
                             hid_t dataset, const char *name, const struct serial_values *values,
                             struct error *err)
{
    (void)context;
    return pieces_digest(pieces, serial, dataset, name, values, err);
}

static bool counts(const void *context, const char *attribute)
{
    const struct defined *defined = context;
    if (strcmp(defined->name, "/") == 0 &&
        (strcmp(attribute, "created") == 0 || strcmp(attribute, "clpipe_version") == 0))
        return false;
    /* When and where from, not what. */
    if (strcmp(defined->name, "/clusters/*") == 0 && strncmp(attribute, "source_", 7) == 0)
        return false;
    return defined_attribute(defined, attribute) && !defined_attribute_of_library(attribute);
}

/* Head, attributes and pieces of a dataset. */
static enum status add_pieces(struct serial *serial, struct pieces *out, hid_t dataset,
                              const char *name, const struct defined *defined,
                              identity_pieces *digests, void *context, struct error *err)
{
    struct serial_values values;
    struct pieces pieces = {0};
    enum status status = serial_dataset(&values, serial, dataset, name, counts, defined, err);
    if (status)
        return status;
    status = digests(context, &pieces, serial, dataset, name, &values, err);
    if (status == STATUS_OK)
        sha256_update(&serial->sha, pieces.digest, pieces.count * PIECE_DIGEST);
    h5_close(&values.memory);
    if (out)
        *out = pieces;
    else
        pieces_clear(&pieces);
    return status;
}

struct whole {
    struct serial serial;
    identity_pieces *digests;
    void *context;
};

static bool begins_with(const char *name, const char *group)
{
    const size_t length = strlen(group);
    return strncmp(name, group, length) == 0 && (name[length] == '/' || !name[length]);
}

static enum status add_own(void *context, hid_t object, const char *name,
                           const struct defined *defined, struct error *err)
{
    struct whole *whole = context;
    if (begins_with(name, "/runs") || begins_with(name, "/checksums") ||
        begins_with(name, "/" PARTS_GROUP) ||
        begins_with(name, "/" THUMBNAIL_GROUP))
        return STATUS_OK;
    /* Groups without attributes are no more than the names of their members. */
    if (defined->type == H5O_TYPE_GROUP && !defined->attributes[0])
        return STATUS_OK;
    return defined->type == H5O_TYPE_GROUP
               ? serial_group(&whole->serial, object, name, counts, defined, err)
               : add_pieces(&whole->serial, NULL, object, name, defined, whole->digests,
                            whole->context, err);
}

enum status identity_of_file(char hex[65], hid_t file, struct vlen *vlen, const char *path,
                             identity_pieces *digests, void *context, struct error *err)
{
    struct whole whole = {.digests = digests, .context = context};
    const struct defined_visitor visitor = {add_own, NULL, &whole};
    uint8_t digest[32];
    serial_init(&whole.serial, vlen, path);
    enum status status = defined_walk(file, "/", path, &visitor, err);
    sha256_final(&whole.serial.sha, digest);
    sha256_hex(hex, digest);
    serial_clear(&whole.serial);
    return status;
}

enum status identity_of_dataset(char root[65], struct pieces *pieces, hid_t dataset,
                                const char *name, struct vlen *vlen, const char *path,
                                identity_pieces *digests, void *context, struct error *err)
{
    struct serial serial;
    uint8_t digest[32];
    char hex[65];
    serial_init(&serial, vlen, path);
    enum status status =
        add_pieces(&serial, pieces, dataset, name, defined_find(name), digests, context, err);
    sha256_final(&serial.sha, digest);
    sha256_hex(hex, digest);
    snprintf(root, 65, "%s%.58s", IDENTITY_TREE, hex);
    serial_clear(&serial);
    return status;
}

/* --- both ------------------------------------------------------------------------------------ */

void result_identity_rule(struct result *result, const char *content)
{
    result->old_identities = content && strncmp(content, IDENTITY_TREE, strlen(IDENTITY_TREE)) != 0;
}

enum status result_identity(struct result *result, char hex[65], struct error *err)
{
    return result->format < 2 ? identity_in_format_1(result, NULL, hex, err)
                              : identity_of_file(hex, result->file, result->vlen, result->path,
                                                 identity_compute, NULL, err);
}

enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    if (result->format < 2 || result->old_identities)
        return identity_in_format_1(result, feature, hex, err);
    snprintf(name, sizeof name, "/features/%s", feature->name);
    return identity_of_dataset(hex, NULL, result_feature_dataset(feature), name, result->vlen,
                               result->path, identity_compute, NULL, err);
}
