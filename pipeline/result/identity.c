/* identity.c: a tree: pieces (pieces.h), a root for each dataset, and the file: a canonical serialisation
 * of what the format defines (defined.h), but for what was done, when and where from, and what can be made
 * again; of a dataset its root. */
#include "result/identity.h"
#include "result/defined.h"
#include "result/parts.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status identity_compute(void *context, struct pieces *pieces, const struct serial *serial,
                             hid_t dataset, const char *name, const struct serial_values *values,
                             struct error *err)
{
    (void)context;
    (void)name;
    return pieces_digest(pieces, serial, dataset, values, err);
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
    if (strncmp(defined->name, "/runs/", 6) == 0)
        return false;
    return defined_attribute(defined, attribute) && !defined_attribute_of_library(attribute);
}

/* What says when or where from something was read. */
static bool is_origin(const char *name)
{
    static const char *const names[] = {"/images/inode", "/images/ctime_ns", "/failures/inode",
                                        "/failures/ctime_ns", ("/images/" DIRECTORIES)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

struct whole {
    struct serial serial;
    struct axes *axes;
    identity_pieces *digests;
    void *context;
};

static enum status add_own(void *context, hid_t object, const char *name,
                           const struct defined *defined, struct error *err)
{
    struct whole *whole = context;
    char root[65];
    if (defined_below(name, "/runs") || defined_below(name, "/checksums") ||
        defined_below(name, "/" PARTS_GROUP) || defined_below(name, "/" THUMBNAIL_GROUP) ||
        is_origin(name))
        return STATUS_OK;
    /* Groups without attributes are no more than the names of their members. */
    if (defined->type == H5O_TYPE_GROUP)
        return defined->attributes[0] ? serial_group(&whole->serial, object, name, counts, defined, err)
                                      : STATUS_OK;
    if (identity_of_dataset(root, NULL, object, name, whole->axes, whole->serial.path,
                            whole->digests, whole->context, err))
        return STATUS_FAILED;
    sha256_update(&whole->serial.sha, root, strlen(root));
    return STATUS_OK;
}

enum status identity_of_file(char hex[65], hid_t file, struct axes *axes, const char *path,
                             identity_pieces *digests, void *context, struct error *err)
{
    struct whole whole = {.axes = axes, .digests = digests, .context = context};
    const struct defined_visitor visitor = {add_own, NULL, &whole};
    uint8_t digest[32];
    serial_init(&whole.serial, axes, path);
    enum status status = defined_walk(file, "/", path, &visitor, err);
    sha256_final(&whole.serial.sha, digest);
    sha256_hex(hex, digest);
    return status;
}

enum status identity_of_dataset(char root[65], struct pieces *pieces, hid_t dataset,
                                const char *name, struct axes *axes, const char *path,
                                identity_pieces *digests, void *context, struct error *err)
{
    struct serial serial;
    struct serial_values values;
    struct pieces found = {0};
    uint8_t digest[32];
    char hex[65];
    serial_init(&serial, axes, path);
    enum status status =
        serial_dataset(&values, &serial, dataset, name, counts, defined_find(name), err);
    if (status)
        return status;
    status = digests(context, &found, &serial, dataset, name, &values, err);
    if (status == STATUS_OK)
        sha256_update(&serial.sha, found.digest, found.count * PIECE_DIGEST);
    h5_close(&values.memory);
    sha256_final(&serial.sha, digest);
    sha256_hex(hex, digest);
    snprintf(root, 65, "%s%.58s", IDENTITY_TREE, hex);
    if (pieces)
        *pieces = found;
    else
        pieces_clear(&found);
    return status;
}

enum status result_identity(struct result *result, char hex[65], struct error *err)
{
    return identity_of_file(hex, result->file, &result->axes, result->path, identity_compute, NULL, err);
}

enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    snprintf(name, sizeof name, "/features/%s", feature->name);
    return identity_of_dataset(hex, NULL, result_feature_dataset(feature), name, &result->axes,
                               result->path, identity_compute, NULL, err);
}
