/* identity.c: a canonical serialisation of what the format defines (defined.h), but for what was done and
 * what can be made again; instead of values the digests of their pieces (pieces.h), which all CPUs compute. */
#include "file/identity.h"
#include "file/defined.h"
#include "file/parts.h"
#include "file/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return status;
}

enum status result_identity(struct result *result, char hex[65], struct error *err)
{
    return identity_of_file(hex, result->file, result->vlen, result->path, identity_compute, NULL, err);
}

enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    snprintf(name, sizeof name, "/features/%s", feature->name);
    return identity_of_dataset(hex, NULL, result_feature_dataset(feature), name, result->vlen,
                               result->path, identity_compute, NULL, err);
}
