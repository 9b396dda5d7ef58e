/* shown.c: digests descriptions of objects (identity.h) and references of scales (addresses). */
#include "result/shown.h"
#include "base/array.h"
#include "base/hash.h"
#include "result/defined.h"
#include "result/identity.h"
#include "result/verify_report.h"
#include <stdlib.h>
#include <string.h>

#define CHECKSUMS      "/checksums"
#define RUNS           "/runs"
#define MOST_REFERRERS (1u << 20)

/* A dataset that may have a scale, by its address. */
struct place {
    uint64_t address;
    char *name;
};

struct shown {
    struct serial serial;
    struct axes axes;
    hid_t file;
    bool runs, in_checksums;
    struct place *place;
    unsigned count;
};

/* defined: NULL for a scale. */
static bool shows(const struct defined *defined, const char *attribute)
{
    if (!defined)
        return strcmp(attribute, "CLASS") == 0 || strcmp(attribute, "NAME") == 0;
    return strcmp(attribute, SHOWN) != 0 && defined_attribute(defined, attribute) &&
           !defined_attribute_of_library(attribute);
}

static enum status remember(struct shown *shown, hid_t object, const char *name, struct error *err)
{
    H5O_info_t info;
    if (H5Oget_info(object, &info) < 0)
        return h5_failed(err, "H5Oget_info", "read", object);
    if (array_grow(&shown->place, shown->count, sizeof *shown->place, "the file's objects", err))
        return STATUS_FAILED;
    struct place *place = &shown->place[shown->count];
    *place = (struct place){info.addr, strdup(name)};
    if (!place->name)
        return error_memory(err, strlen(name), "a name");
    shown->count++;
    return STATUS_OK;
}

static enum status add_own(void *context, hid_t object, const char *name,
                           const struct defined *defined, struct error *err)
{
    struct shown *shown = context;
    if (defined_below(name, RUNS) != shown->runs)
        return STATUS_OK;
    /* Skips groups without attributes, which other programs may have created. */
    if (defined->type == H5O_TYPE_GROUP)
        return *defined->attributes && (strcmp(name, CHECKSUMS) != 0 || !shown->in_checksums)
                   ? serial_add(&shown->serial, object, name, defined, err)
                   : STATUS_OK;
    enum status status = serial_add(&shown->serial, object, name, defined, err);
    return status ? status : remember(shown, object, name, err);
}

/* --- scales ---------------------------------------------------------------------------------- */

struct referrer {
    hobj_ref_t address;
    unsigned axis;
};

static const char *find_place(const struct shown *shown, uint64_t address)
{
    for (unsigned i = 0; i < shown->count; i++)
        if (shown->place[i].address == address)
            return shown->place[i].name;
    return NULL;
}

/* The axes that a scale refers to, in any order, since other programs may attach theirs. */
static enum status add_referrers(struct shown *shown, hid_t scale, struct error *err)
{
    if (H5Aexists(scale, "REFERENCE_LIST") <= 0)
        return STATUS_OK;
    H5_SCOPED hid_t attribute = H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT),
                    space = H5Aget_space(attribute), stored = H5Aget_type(attribute),
                    type = H5Tcreate(H5T_COMPOUND, sizeof(struct referrer));
    H5Tinsert(type, "dataset", HOFFSET(struct referrer, address), H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", HOFFSET(struct referrer, axis), H5T_NATIVE_INT);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    struct referrer *list =
        count > 0 && count < MOST_REFERRERS ? malloc((size_t)count * sizeof *list) : NULL;
    enum status status = list && H5Tequal(stored, type) > 0 && H5Aread(attribute, type, list) >= 0
                             ? STATUS_OK
                             : h5_damaged(err, h5_path(scale), "a REFERENCE_LIST cannot be read");
    uint64_t sum = 0;
    for (hssize_t i = 0; i < count && !status; i++) {
        const char *name = find_place(shown, list[i].address);
        uint8_t number[32];
        uint64_t start;
        if (!name) /* belongs to other programs, which may have removed it */
            continue;
        sha256_of(number, name, strlen(name));
        memcpy(&start, number, sizeof start);
        sum += (start | 1) * (list[i].axis + 1);
    }
    sha256_update(&shown->serial.sha, &sum, sizeof sum);
    free(list);
    return status;
}

static enum status add_scales(struct shown *shown, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < shown->axes.count && !status; i++) {
        const char *name = shown->axes.scale[i].name;
        if (!defined_scale(shown->file, name))
            continue;
        H5_SCOPED hid_t scale = H5Dopen2(shown->file, name, H5P_DEFAULT);
        status = serial_add(&shown->serial, scale, name, NULL, err);
        if (!status)
            status = add_referrers(shown, scale, err);
    }
    return status;
}

/* --- maps of runs, which have no other checksums ----------------------------------------------- */

struct maps {
    hid_t file;
    struct verify *verify; /* NULL: write missing roots */
};

static enum status visit_map(void *context, hid_t object, const char *name,
                             const struct defined *defined, struct error *err)
{
    const struct maps *maps = context;
    struct error why = ERROR_INIT;
    struct axes axes;
    char root[65], *stored = NULL;
    if (defined->type != H5O_TYPE_DATASET || (!maps->verify && H5Aexists(object, "root") > 0))
        return STATUS_OK;
    axes_init(&axes, maps->file);
    enum status status =
        identity_of_dataset(root, NULL, object, name, &axes, maps->verify ? &why : err);
    if (!status && maps->verify)
        status = h5_get_text(&stored, object, "root", true, &why);
    axes_clear(&axes);
    if (!maps->verify)
        return status ? status : h5_put_text(object, "root", root, err);
    if (status)
        verify_broken(maps->verify, "%s: %s", name, why.sentence);
    else if (strcmp(root, stored) != 0)
        verify_broken(maps->verify, "%s: it has changed since it was written", name);
    free(stored);
    return STATUS_OK;
}

static enum status visit_maps(hid_t file, struct verify *verify, struct error *err)
{
    struct maps maps = {file, verify};
    const struct defined_visitor visitor = {visit_map, NULL, &maps};
    return H5Lexists(file, RUNS, H5P_DEFAULT) > 0 ? defined_walk(file, RUNS, &visitor, err)
                                                  : STATUS_OK;
}

/* --- both digests ---------------------------------------------------------------------------- */

/* exact: fails, too, if the form of an object differs from clpipe's. */
static enum status digest(char hex[65], hid_t file, bool runs, bool exact, struct error *err)
{
    struct shown shown = {.file = file, .runs = runs};
    const struct defined_visitor visitor = {add_own, NULL, &shown};
    axes_init(&shown.axes, file);
    serial_init(&shown.serial, &shown.axes, shows);
    shown.serial.exact = exact;
    enum status status = defined_walk(file, runs ? RUNS : "/", &visitor, err);
    shown.in_checksums = true;
    if (!status && !runs)
        status = defined_walk(file, CHECKSUMS, &visitor, err);
    if (!status && !runs)
        status = add_scales(&shown, err);
    serial_finish(hex, &shown.serial);
    for (unsigned i = 0; i < shown.count; i++)
        free(shown.place[i].name);
    free(shown.place);
    axes_clear(&shown.axes);
    return status;
}

enum status shown_write(hid_t file, struct error *err)
{
    static const char *const groups[] = {CHECKSUMS, RUNS};
    enum status status = h5_flush_file(file, err);
    if (!status)
        status = visit_maps(file, NULL, err);
    for (int i = 0; i < 2 && !status; i++) {
        char hex[65];
        H5_SCOPED hid_t group = H5I_INVALID_HID;
        if (H5Lexists(file, groups[i], H5P_DEFAULT) <= 0)
            continue;
        status = digest(hex, file, i == 1, false, err);
        if (!status)
            status = h5_open_group(&group, file, groups[i], err);
        if (!status)
            status = h5_put_text(group, SHOWN, hex, err);
    }
    return status;
}

static enum status verify_group(struct verify *verify, const char *name, bool runs,
                                struct error *err)
{
    struct result *result = verify->result;
    struct error why = ERROR_INIT;
    char hex[65], *stored = NULL;
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    if (H5Lexists(result->file, name, H5P_DEFAULT) <= 0) {
        if (result->has_images)
            verify_broken(verify, "%s: it is missing", name);
        return STATUS_OK;
    }
    if (h5_open_group(&group, result->file, name, err))
        return STATUS_FAILED;
    if (h5_get_text(&stored, group, SHOWN, true, &why) ||
        digest(hex, result->file, runs, true, &why))
        verify_broken(verify, "%s", why.sentence);
    else if (strcmp(hex, stored) != 0)
        verify_broken(
            verify,
            "%s: names, types, attributes or scales have changed since the file was written",
            runs ? RUNS : "/");
    free(stored);
    return STATUS_OK;
}

enum status shown_verify(struct verify *verify, struct error *err)
{
    enum status status = verify_group(verify, CHECKSUMS, false, err);
    if (!status)
        status = verify_group(verify, RUNS, true, err);
    return status ? status : visit_maps(verify->result->file, verify, err);
}
