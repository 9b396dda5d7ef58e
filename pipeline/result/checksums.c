/* checksums.c: computes checksums when a file is written and compares them when it is verified. */
#include "result/checksums.h"
#include "base/array.h"
#include "result/copies.h"
#include "result/defined.h"
#include "result/identity.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP      "checksums"
#define BYTE_AXIS  "checksum_byte"
#define PIECE_AXIS "piece_" /* and the number of pieces */

/* The checksums of one dataset. */
struct entry {
    char *name; /* absolute */
    char root[65];
    struct pieces pieces;
    bool there; /* its dataset */
    bool kept;  /* its root is known, too */
};

struct entries {
    struct entry *entry;
    unsigned count;
    struct axes *axes; /* of the file whose datasets are digested */
};

static void clear(struct entries *entries)
{
    for (unsigned i = 0; i < entries->count; i++) {
        free(entries->entry[i].name);
        pieces_clear(&entries->entry[i].pieces);
    }
    free(entries->entry);
}

/* A new entry, at the end. */
static struct entry *add(struct entries *entries, const char *name, struct error *err)
{
    if (array_grow(&entries->entry, entries->count, sizeof *entries->entry, "checksums", err))
        return NULL;
    struct entry *entry = &entries->entry[entries->count];
    *entry = (struct entry){.name = strdup(name)};
    if (!entry->name) {
        error_memory(err, strlen(name), "a name");
        return NULL;
    }
    entries->count++;
    return entry;
}

static struct entry *find(const struct entries *entries, const char *name)
{
    for (unsigned i = 0; i < entries->count; i++)
        if (strcmp(entries->entry[i].name, name) == 0)
            return &entries->entry[i];
    return NULL;
}

/* --- what is stored -------------------------------------------------------------------------- */

/* Malformed members of /checksums count as missing. */
static enum status load_own(void *context, hid_t object, const char *name,
                            const struct defined *defined, struct error *err)
{
    struct entries *entries = context;
    struct entry *entry;
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    hsize_t size[2];
    if (defined->type != H5O_TYPE_DATASET)
        return STATUS_OK;
    if (!(entry = add(entries, name + strlen("/" GROUP), err)))
        return STATUS_FAILED;
    if (!h5_open_dataset(&dataset, object, name, VALUE_U8, 2, size, NULL) &&
        size[1] == PIECE_DIGEST &&
        !h5_get_short_text(entry->root, sizeof entry->root, dataset, "root", NULL) &&
        (entry->pieces.digest = malloc(size[0] * PIECE_DIGEST + 1)) &&
        !h5_read_rows(dataset, VALUE_U8, 0, size[0], entry->pieces.digest, NULL)) {
        entry->kept = entry->pieces.known = true;
        entry->pieces.count = size[0];
    } else {
        pieces_clear(&entry->pieces);
        free(entry->name);
        entries->count--;
    }
    return STATUS_OK;
}

static enum status load(struct entries *entries, const struct result *from, struct error *err)
{
    const struct defined_visitor visitor = {load_own, NULL, entries};
    return h5_is_object(from->file, GROUP, H5O_TYPE_GROUP)
               ? defined_walk(from->file, "/" GROUP, &visitor, err)
               : STATUS_OK;
}

/* --- writing --------------------------------------------------------------------------------- */

/* Writes a text of 64 bytes as an attribute, outside the file's heap. */
static enum status put_root(hid_t object, const char *name, const char root[65], struct error *err)
{
    H5_SCOPED hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 64);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5_SCOPED hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool ok = attribute > 0 && H5Awrite(attribute, type, root) >= 0;
    return ok ? STATUS_OK : h5_failed(err, "H5Awrite", "write", object);
}

/* Like identity_root, from known digests if there are any; else computes them. */
static enum status entry_root(void *context, char root[65], hid_t dataset, const char *name,
                              struct error *err)
{
    struct entries *entries = context;
    struct entry *entry = find(entries, name);
    if (!entry && !(entry = add(entries, name, err)))
        return STATUS_FAILED;
    entry->there = true;
    enum status status =
        identity_of_dataset(root, &entry->pieces, dataset, name, entries->axes, err);
    if (status == STATUS_OK && !entry->kept)
        strcpy(entry->root, root);
    return status;
}

/* Creates the groups above a dataset, and the dataset. */
static enum status write_entry(hid_t file, const struct entry *entry, struct error *err)
{
    char name[DEFINED_NAME_MAX + sizeof GROUP], axis[32];
    H5_SCOPED hid_t group = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    const char *const axes[] = {axis, BYTE_AXIS};
    const hsize_t size[2] = {entry->pieces.count, PIECE_DIGEST};
    snprintf(name, sizeof name, GROUP "%s", entry->name);
    for (char *slash = strchr(name + sizeof GROUP, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (h5_make_group(&group, file, name, err))
            return STATUS_FAILED;
        h5_close(&group);
        *slash = '/';
    }
    snprintf(axis, sizeof axis, "%s%llu", PIECE_AXIS, (unsigned long long)entry->pieces.count);
    if (h5_create_on_scales(&dataset, file, file, name, VALUE_U8, 2, size, axes, err) ||
        put_root(dataset, "root", entry->root, err) ||
        h5_write_rows(dataset, VALUE_U8, 0, entry->pieces.count, entry->pieces.digest, err))
        return STATUS_FAILED;
    return h5_finish_dataset(&dataset, err);
}

/* Takes over the checksums kept from another file, under the objects' new names. */
static enum status load_kept(struct entries *entries, const struct checksums_kept *kept,
                             struct error *err)
{
    if (load(entries, kept->copies->from, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < entries->count; i++) {
        struct entry *entry = &entries->entry[i];
        char from[DEFINED_NAME_MAX];
        if (copies_leave_out(kept->copies, entry->name))
            entry->name[0] = 0;
        snprintf(from, sizeof from, "/clusters/%s", kept->renamed_from ? kept->renamed_from : "");
        if (!kept->renamed_from || !defined_below(entry->name, from))
            continue;
        char *name;
        if (asprintf(&name, "/clusters/%s%s", kept->renamed_to, entry->name + strlen(from)) < 0)
            return error_memory(err, strlen(from), "a name");
        free(entry->name);
        entry->name = name;
        entry->kept = false; /* the root includes the name */
    }
    return STATUS_OK;
}

static enum status add_known(struct entries *entries, const struct checksums_known *known,
                             struct error *err)
{
    struct entry *entry = add(entries, known->name, err);
    if (!entry)
        return STATUS_FAILED;
    const uint8_t *leaves = row_tree_leaves(known->tree, &entry->pieces.count);
    entry->pieces.known = true;
    entry->pieces.digest = malloc(entry->pieces.count * PIECE_DIGEST + 1);
    if (!entry->pieces.digest)
        return error_memory(err, entry->pieces.count * PIECE_DIGEST, "checksums");
    memcpy(entry->pieces.digest, leaves, entry->pieces.count * PIECE_DIGEST);
    return STATUS_OK;
}

enum status checksums_write(hid_t file, const struct checksums_kept *kept,
                            const struct checksums_known *known, unsigned count, struct error *err)
{
    enum status status = STATUS_FAILED;
    char identity[65];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    struct axes axes;
    struct entries entries = {.axes = &axes};
    axes_init(&axes, file);
    /* The following reads bypass HDF5. */
    if (h5_flush_file(file, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < count; i++)
        if (add_known(&entries, &known[i], err))
            goto out;
    if ((kept && load_kept(&entries, kept, err)) ||
        identity_of_file(identity, file, &axes, entry_root, &entries, err) ||
        h5_create_group(&group, file, GROUP, err) || put_root(group, "identity", identity, err))
        goto out;
    for (unsigned i = 0; i < entries.count; i++)
        if (entries.entry[i].there && write_entry(file, &entries.entry[i], err))
            goto out;
    status = STATUS_OK;
out:
    axes_clear(&axes);
    clear(&entries);
    return status;
}

/* --- verifying ------------------------------------------------------------------------------- */

struct checking {
    struct verify *verify;
    struct entries stored;
    const char *below; /* NULL: everything except clusterings and neighbours */
};

static bool is_asked_for(const struct checking *checking, const char *name)
{
    return checking->below
               ? defined_below(name, checking->below)
               : !defined_below(name, "/clusters") && !defined_below(name, "/neighbours") &&
                     !defined_below(name, "/runs");
}

/* Adds rows of images or failures, some of which are damaged. */
static enum status mark(struct verify *verify, const char *name, bool unreadable, uint64_t first,
                        uint64_t last, struct error *err)
{
    const bool failures = defined_below(name, "/failures");
    const uint64_t rows =
        failures ? result_failures(verify->result) : result_images(verify->result);
    if (!(failures ? verify->bad_failures : verify->bad_images) || last >= rows ||
        !(failures || defined_below(name, "/images") || defined_below(name, "/features")) ||
        strcmp(name, "/images/sources") == 0 || strcmp(name, "/images/" DIRECTORIES) == 0 ||
        defined_below(name, "/images/json") || defined_below(name, "/images/txt"))
        return STATUS_OK;
    if (array_grow(&verify->range, verify->ranges, sizeof *verify->range, "damaged rows", err))
        return STATUS_FAILED;
    verify->range[verify->ranges++] = (struct verify_range){failures, unreadable, first, last};
    return STATUS_OK;
}

static bool same_digest(const struct pieces *a, const struct pieces *b, uint64_t i)
{
    return memcmp(a->digest[i], b->digest[i], PIECE_DIGEST) == 0;
}

/* unreadable: some of the rows found could not be read. */
static enum status report(struct checking *checking, const char *name, const struct pieces *found,
                          const struct pieces *stored, bool unreadable, struct error *err)
{
    for (uint64_t i = 0; i < found->count; i++) {
        uint64_t first, last, end, ignored;
        if (same_digest(found, stored, i))
            continue;
        for (end = i + 1; end < found->count && !same_digest(found, stored, end); end++)
            ;
        pieces_rows(found, i, &first, &ignored);
        pieces_rows(found, end - 1, &ignored, &last);
        if (first == last)
            verify_broken(checking->verify, "%s: row %llu has changed since it was written", name,
                          (unsigned long long)first);
        else
            verify_broken(checking->verify,
                          "%s: something in rows %llu to %llu has changed since it was written",
                          name, (unsigned long long)first, (unsigned long long)last);
        if (mark(checking->verify, name, unreadable, first, last, err))
            return STATUS_FAILED;
        i = end;
    }
    return STATUS_OK;
}

static bool same_digests(const struct pieces *a, const struct pieces *b)
{
    bool same = a->count == b->count;
    for (uint64_t i = 0; same && i < a->count; i++)
        same = same_digest(a, b, i);
    return same;
}

static enum status check_own(void *context, hid_t object, const char *name,
                             const struct defined *defined, struct error *err)
{
    struct checking *checking = context;
    struct verify *verify = checking->verify;
    struct pieces found = {0};
    struct error why = ERROR_INIT;
    char root[65];
    if (defined->type != H5O_TYPE_DATASET || !is_asked_for(checking, name))
        return STATUS_OK;
    struct entry *stored = find(&checking->stored, name);
    enum status status = STATUS_OK;
    if (!stored || !stored->root[0]) {
        verify_broken(verify, "%s: it has no checksums", name);
        return STATUS_OK;
    }
    stored->there = true;
    if (identity_of_dataset(root, &found, object, name, checking->stored.axes, &why)) {
        verify_broken(verify, "%s", why.sentence);
        if (found.count == stored->pieces.count)
            status = report(checking, name, &found, &stored->pieces, true, err);
    } else if (strcmp(root, stored->root) == 0) {
        /* Compares the digests of the digests: if they differ, the checksums are wrong. */
        if (!same_digests(&found, &stored->pieces))
            verify_broken(verify, "/checksums%s: they have changed; the values have not", name);
    } else if (h5_is_virtual(object)) {
        verify_broken(verify, "%s: its parts have changed since they were merged", name);
    } else if (found.count != stored->pieces.count) {
        verify_broken(verify, "%s: its size is not that of its checksums", name);
    } else if (same_digests(&found, &stored->pieces)) {
        verify_broken(verify, "%s: its attributes, its type or its shape have changed", name);
    } else {
        status = report(checking, name, &found, &stored->pieces, false, err);
    }
    pieces_clear(&found);
    return status;
}

/* Checks what no dataset's checksums cover: names, and attributes of groups. */
static enum status check_identity(struct checking *checking, struct error *err)
{
    struct result *result = checking->verify->result;
    char stored[65] = "", identity[65];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    if (h5_open_group(&group, result->file, GROUP, err))
        return STATUS_FAILED;
    h5_get_short_text(stored, sizeof stored, group, "identity", NULL);
    enum status status =
        identity_of_file(identity, result->file, result->axes, entry_root, &checking->stored, err);
    if (status == STATUS_OK && strcmp(stored, identity) != 0)
        verify_broken(checking->verify,
                      "/: names or attributes have changed since the file was written");
    return status;
}

/* Whether a dataset belonged to a clustering that no longer exists. */
static bool is_of_lost_clusters(const struct result *result, const char *name)
{
    char clusters[FEATURE_NAME_MAX] = "";
    if (!defined_below(name, "/clusters"))
        return false;
    sscanf(name, "/clusters/%63[^/]", clusters);
    return !result_clusters_find(result, clusters);
}

enum status checksums_verify(struct verify *verify, const char *name, struct error *err)
{
    struct result *result = verify->result;
    const bool all = strcmp(name, "/") == 0;
    struct checking checking = {
        .verify = verify, .stored = {.axes = result->axes}, .below = all ? NULL : name};
    const struct defined_visitor visitor = {check_own, NULL, &checking};
    if (!h5_is_object(result->file, GROUP, H5O_TYPE_GROUP)) {
        if (all)
            verify_broken(verify, "/checksums is missing");
        return STATUS_OK;
    }
    const uint64_t before = verify->count;
    enum status status = load(&checking.stored, result, err);
    if (status == STATUS_OK && (all || H5Lexists(result->file, name, H5P_DEFAULT) > 0))
        status = defined_walk(result->file, name, &visitor, err);
    for (unsigned i = 0; i < checking.stored.count && status == STATUS_OK; i++) {
        const struct entry *entry = &checking.stored.entry[i];
        if (!entry->there && (is_asked_for(&checking, entry->name) ||
                              (all && is_of_lost_clusters(result, entry->name))))
            verify_broken(verify, "%s: it is missing, but its checksums are not", entry->name);
    }
    if (status == STATUS_OK && all && verify->count == before)
        status = check_identity(&checking, err);
    clear(&checking.stored);
    return status;
}
