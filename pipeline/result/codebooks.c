/* codebooks.c: writes and reads codebooks as groups of datasets. */
#include "result/codebooks.h"

#include "base/path.h"
#include "result/change.h"
#include "result/defined.h"
#include "result/verify_report.h"
#include "result/workdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP     "codebooks"
#define OPTION    ",codebook="
#define SPEC_SIZE sizeof((struct stored_codebook *)0)->spec

/* --- owning ---------------------------------------------------------------------------------- */

void codebooks_clear(struct codebooks *codebooks)
{
    for (unsigned i = 0; i < codebooks->count; i++)
        feature_codebook_clear(&codebooks->stored[i].codebook);
    free(codebooks->stored);
    *codebooks = (struct codebooks){.stored = NULL};
}

void codebooks_spec_asked(char *asked, size_t size, const char *spec)
{
    const char *option = strstr(spec, OPTION);
    snprintf(asked, size, "%.*s%s", option ? (int)(option - spec) : (int)strlen(spec), spec,
             option ? option + strlen(OPTION) + strcspn(option + strlen(OPTION), ",") : "");
}

/* A new entry, not counted yet. */
static struct stored_codebook *new_entry(struct codebooks *codebooks, struct error *err)
{
    if (codebooks->count == FEATURE_MAX) {
        error_set(err, STATUS_FAILED, "more than %d codebooks", FEATURE_MAX);
        return NULL;
    }
    if (!codebooks->stored)
        codebooks->stored = calloc(FEATURE_MAX, sizeof *codebooks->stored);
    if (!codebooks->stored) {
        error_memory(err, FEATURE_MAX * sizeof *codebooks->stored, "codebooks");
        return NULL;
    }
    struct stored_codebook *entry = &codebooks->stored[codebooks->count];
    *entry = (struct stored_codebook){.name = ""};
    return entry;
}

enum status codebooks_add(struct codebooks *codebooks, struct feature *feature,
                          struct feature_codebook *codebook, struct error *err)
{
    struct stored_codebook *entry = new_entry(codebooks, err);
    if (!entry)
        return STATUS_FAILED;
    strcpy(entry->name, feature->name);
    codebooks_spec_asked(entry->spec, sizeof entry->spec, feature->spec);
    entry->codebook = *codebook;
    *codebook = (struct feature_codebook){.columns = 0};
    codebooks->count++;
    return feature_bind_codebook(feature, &entry->codebook, err);
}

enum status codebooks_bind(const struct codebooks *codebooks, struct feature_set *features,
                           const char *where, struct error *err)
{
    for (unsigned i = 0; i < features->count; i++) {
        struct feature *feature = &features->feature[i];
        for (unsigned c = 0; c < codebooks->count && !feature->codebook; c++) {
            char digest[FEATURE_DIGEST];
            feature_codebook_digest(digest, &codebooks->stored[c].codebook);
            if (strcmp(digest, feature->codebook_digest) != 0)
                continue;
            enum status status =
                feature_bind_codebook(feature, &codebooks->stored[c].codebook, err);
            if (status != STATUS_OK)
                return status;
        }
        if (feature->codebook_digest[0] && !feature->codebook)
            return error_set(err, STATUS_FAILED, "%s: the codebook of the feature %s is missing",
                             where, feature->name);
    }
    return STATUS_OK;
}

enum status codebooks_choose(const struct codebooks *codebooks, struct feature *feature,
                             const char *where, struct error *err)
{
    const struct stored_codebook *found = NULL;
    char digests[2][FEATURE_DIGEST], names[256] = "";
    struct error why = ERROR_INIT;
    unsigned fitting = 0;
    for (unsigned i = 0; i < codebooks->count; i++) {
        const struct stored_codebook *entry = &codebooks->stored[i];
        struct feature trial = *feature;
        why = (struct error)ERROR_INIT;
        if (feature_bind_codebook(&trial, &entry->codebook, &why) != STATUS_OK)
            continue;
        if (strcmp(entry->name, feature->name) == 0)
            return feature_bind_codebook(feature, &entry->codebook, err);
        feature_codebook_digest(digests[found != NULL], &entry->codebook);
        const bool same = found && strcmp(digests[0], digests[1]) == 0;
        text_add_name(names, sizeof names, entry->name);
        found = found ? found : entry;
        fitting += !same;
    }
    if (fitting == 1)
        return feature_bind_codebook(feature, &found->codebook, err);
    if (fitting > 1)
        return error_set(
            err, STATUS_USAGE,
            "several codebooks of %s fit feature %s: give it the name of the right one (%s)", where,
            feature->name, names);
    if (codebooks->count == 1)
        return error_set(err, STATUS_USAGE, "%s: %s", where, why.sentence);
    if (codebooks->count == 0)
        return error_set(err, STATUS_USAGE, "%s has no codebook", where);
    for (unsigned i = 0; i < codebooks->count; i++)
        text_add(names, sizeof names, "; ", "%.63s: %.120s", codebooks->stored[i].name,
                 codebooks->stored[i].spec);
    return error_set(err, STATUS_USAGE, "no codebook of %s fits feature %s (%s)", where,
                     feature->name, names);
}

/* --- in a file ------------------------------------------------------------------------------- */

static enum value_type value_type_of(enum codebook_type type)
{
    static const enum value_type types[] = {[CODEBOOK_UINT8] = VALUE_U8,
                                            [CODEBOOK_INT8] = VALUE_I8,
                                            [CODEBOOK_INT16] = VALUE_I16,
                                            [CODEBOOK_INT32] = VALUE_I32,
                                            [CODEBOOK_FLOAT64] = VALUE_F64};
    return types[type];
}

/* A list has one axis; axes of one length share a scale. */
static enum status write_array(hid_t file, hid_t group, const struct codebook_array *array,
                               struct error *err)
{
    const int rank = array->rows == 1 ? 1 : 2;
    const hsize_t size[2] = {rank == 1 ? array->columns : array->rows, array->columns};
    char axis[2][AXIS_NAME_MAX];
    const char *const axes[] = {axis[0], axis[1]};
    for (int a = 0; a < rank; a++)
        snprintf(axis[a], sizeof axis[a], "codebook_%s_%llu", a == 0 && rank == 2 ? "row" : "value",
                 (unsigned long long)size[a]);
    return h5_put_values(file, group, array->name, value_type_of(array->type), rank, size, axes,
                         array->values, err);
}

static enum status write_codebook(hid_t file, hid_t all, const struct feature *feature,
                                  struct error *err)
{
    struct codebook_array arrays[CODEBOOK_ARRAYS];
    char spec[SPEC_SIZE];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    if (h5_create_group(&group, all, feature->name, err))
        return STATUS_FAILED;
    codebooks_spec_asked(spec, sizeof spec, feature->spec);
    feature_codebook_arrays(arrays, feature->codebook);
    enum status status = h5_put_text(group, "digest", feature->codebook_digest, err);
    if (status == STATUS_OK)
        status = h5_put_text(group, "spec", spec, err);
    for (unsigned i = 0; i < CODEBOOK_ARRAYS && status == STATUS_OK; i++)
        status = write_array(file, group, &arrays[i], err);
    return status;
}

enum status codebook_groups_write(hid_t file, const struct feature_set *features, struct error *err)
{
    enum status status = STATUS_OK;
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    for (unsigned i = 0; i < features->count && status == STATUS_OK; i++) {
        if (!features->feature[i].codebook)
            continue;
        if (all < 0 && h5_create_group(&all, file, GROUP, err))
            return STATUS_FAILED;
        status = write_codebook(file, all, &features->feature[i], err);
    }
    return status;
}

/* Reads one array, whose name and type are set; free array->values. */
static enum status read_array(struct codebook_array *array, hid_t group, struct error *err)
{
    const enum value_type type = value_type_of(array->type);
    hsize_t size[2] = {1, 1};
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    int rank = 1;
    if (h5_open_dataset(&dataset, group, array->name, type, 1, size, NULL)) {
        rank = 2;
        if (h5_open_dataset(&dataset, group, array->name, type, 2, size, err))
            return STATUS_FAILED;
    }
    if (size[0] == 0 || size[rank - 1] == 0 || size[0] > UINT32_MAX || size[rank - 1] > UINT32_MAX)
        return h5_wrong(err, dataset, "has an impossible size");
    array->rows = rank == 1 ? 1 : (uint32_t)size[0];
    array->columns = (uint32_t)size[rank - 1];
    void *values = malloc(codebook_array_bytes(array));
    array->values = values;
    return values ? h5_read_rows(dataset, type, 0, size[0], values, err)
                  : error_memory(err, codebook_array_bytes(array), "a codebook");
}

/* Reads one codebook into a new entry. */
static enum status read_codebook(struct codebooks *out, struct result *result, hid_t all,
                                 const char *name, struct error *err)
{
    struct codebook_array arrays[CODEBOOK_ARRAYS];
    const struct feature_codebook none = {.columns = 0};
    char digest[FEATURE_DIGEST], found[FEATURE_DIGEST], subject[512];
    enum status status = STATUS_FAILED;
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    struct stored_codebook *entry = new_entry(out, err);
    if (!entry || h5_open_group(&group, all, name, err))
        return STATUS_FAILED;
    feature_codebook_arrays(arrays, &none); /* names and types */
    for (unsigned i = 0; i < CODEBOOK_ARRAYS; i++)
        arrays[i].values = NULL;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    snprintf(subject, sizeof subject, "%s: /" GROUP "/%s", PATH_TEXT(result->path), name);
    if (h5_get_short_text(digest, sizeof digest, group, "digest", err) ||
        h5_get_short_text(entry->spec, sizeof entry->spec, group, "spec", err))
        goto out;
    for (unsigned i = 0; i < CODEBOOK_ARRAYS; i++)
        if (read_array(&arrays[i], group, err))
            goto out;
    status = feature_codebook_from_arrays(&entry->codebook, arrays, CODEBOOK_ARRAYS, subject, err);
    if (status != STATUS_OK)
        goto out;
    feature_codebook_digest(found, &entry->codebook);
    if (strcmp(found, digest) != 0) {
        feature_codebook_clear(&entry->codebook);
        status =
            h5_damaged(err, result->path, "/" GROUP "/%s has changed since it was written", name);
        goto out;
    }
    out->count++;
out:
    for (unsigned i = 0; i < CODEBOOK_ARRAYS; i++)
        free((void *)(uintptr_t)arrays[i].values);
    return status;
}

enum status codebooks_read(struct codebooks *out, struct result *result, const char *name,
                           struct error *err)
{
    H5_SCOPED_NAMES names = {0};
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    *out = (struct codebooks){.stored = NULL};
    enum status status = defined_list(&names, &all, result->file, GROUP, err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++) {
        if ((!name || strcmp(name, names.name[i]) == 0) && schema_name_valid(names.name[i]))
            status = read_codebook(out, result, all, names.name[i], err);
    }
    if (status != STATUS_OK)
        codebooks_clear(out);
    return status;
}

enum status codebook_groups_verify(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    struct codebooks read = {.stored = NULL};
    H5_SCOPED_NAMES names = {0};
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    enum status status = defined_list(&names, &all, result->file, GROUP, err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++) {
        struct error why = ERROR_INIT;
        if (read_codebook(&read, result, all, names.name[i], &why) != STATUS_OK)
            verify_broken(verify, "/" GROUP "/%s: %s", names.name[i], why.sentence);
    }
    for (unsigned i = 0; i < result->feature_count && status == STATUS_OK; i++) {
        const struct result_feature *feature = &result->features[i];
        const char *option = strstr(feature->spec, OPTION);
        char digest[FEATURE_DIGEST] = "";
        for (unsigned c = 0; option && c < read.count; c++)
            if (strcmp(read.stored[c].name, feature->name) == 0)
                feature_codebook_digest(digest, &read.stored[c].codebook);
        if (option && strncmp(option + strlen(OPTION), digest, FEATURE_DIGEST - 1) != 0)
            verify_broken(verify, "/features/%s: its codebook is not in the file", feature->name);
    }
    codebooks_clear(&read);
    return status;
}

static enum status write_groups(void *context, hid_t file, struct error *err)
{
    return codebook_groups_write(file, context, err);
}

enum status codebooks_write_file(const char *output, const struct feature_set *features,
                                 const char *parameters, struct error *err)
{
    const struct change change = {.output = output,
                                  .parameters = parameters,
                                  .add = write_groups,
                                  .context = (void *)(uintptr_t)features};
    return change_make(&change, err);
}

/* --- beside a log ---------------------------------------------------------------------------- */

static char *learned_name(const char *directory, struct error *err)
{
    char *name;
    if (asprintf(&name, "%s/" WORKDIR_LEARNED, directory) >= 0)
        return name;
    error_memory(err, strlen(directory), "a file name");
    return NULL;
}

enum status codebooks_write_log(const struct feature_set *features, const char *directory,
                                struct error *err)
{
    char *name = learned_name(directory, err);
    /* Without a log, such a file belongs to another run. */
    if (name)
        unlink(name);
    enum status status = name ? codebooks_write_file(name, features, "{}", err) : STATUS_FAILED;
    free(name);
    return status;
}

enum status codebooks_read_log(struct codebooks *out, const char *directory, struct error *err)
{
    char *name = learned_name(directory, err);
    struct result *result = NULL;
    *out = (struct codebooks){.stored = NULL};
    enum status status = name ? STATUS_OK : STATUS_FAILED;
    if (name && (access(name, F_OK) == 0 || errno != ENOENT) &&
        (result_open(&result, name, NULL) || codebooks_read(out, result, NULL, NULL))) {
        error_set(err, STATUS_FAILED, "the codebooks of the unfinished run in %s are damaged",
                  PATH_TEXT(directory));
        status = error_remedy(err, REMEDY_START_OVER);
    }
    result_close(&result);
    free(name);
    return status;
}
