/* sweep_group.c: the columns of a sweep, one dataset each, all with one value for each k. */
#include "file/sweep_group.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More are taken for damage. */
#define MOST_VALUES (1u << 24)

#define AT(field) offsetof(struct result_sweep_value, field)

static const struct sweep_column {
    const char *name;
    enum value_type type;
    size_t offset;
    bool of_folders; /* only there where the images' folders are classes */
} columns[] = {
    {"k", VALUE_U32, AT(k), false},
    {"iterations", VALUE_U32, AT(iterations), false},
    {"converged", VALUE_U8, AT(converged), false},
    {"inertia", VALUE_F64, AT(inertia), false},
    {"silhouette", VALUE_F64, AT(silhouette), false},
    {"simplified_silhouette", VALUE_F64, AT(simplified_silhouette), false},
    {"davies_bouldin", VALUE_F64, AT(davies_bouldin), false},
    {"calinski_harabasz", VALUE_F64, AT(calinski_harabasz), false},
    {"purity", VALUE_F64, AT(agreement.purity), true},
    {"nmi", VALUE_F64, AT(agreement.nmi), true},
    {"ari", VALUE_F64, AT(agreement.ari), true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static const struct {
    const char *name;
    size_t offset;
} agreement_attribute[] = {{"purity", offsetof(struct result_agreement, purity)},
                           {"nmi", offsetof(struct result_agreement, nmi)},
                           {"ari", offsetof(struct result_agreement, ari)}};

/* --- writing --------------------------------------------------------------------------------- */

static enum status write_column(hid_t file, hid_t group, const char *axis,
                                const struct result_sweep *sweep, const struct sweep_column *column,
                                const char *path, struct error *err)
{
    const size_t size = value_size(column->type);
    const hsize_t length = sweep->count;
    hid_t dataset = H5I_INVALID_HID;
    uint8_t *values = malloc(sweep->count * size);
    if (!values)
        return error_memory(err, sweep->count * size, "the values of k");
    for (uint32_t i = 0; i < sweep->count; i++)
        memcpy(values + i * size, (const uint8_t *)&sweep->values[i] + column->offset, size);
    enum status status =
        h5_create_dataset(&dataset, group, column->name, column->type, 1, &length, path, err);
    if (!status)
        status = h5_attach_scale(file, dataset, 0, axis, path, err);
    if (!status)
        status = h5_write_rows(dataset, column->type, 0, sweep->count, values, path, err);
    if (!status)
        status = h5_finish_dataset(&dataset, path, err);
    free(values);
    return status;
}

static enum status write_sweep(hid_t file, hid_t parent, const char *name,
                               const struct result_sweep *sweep, const char *path,
                               struct error *err)
{
    char axis[AXIS_NAME_MAX];
    hid_t group = H5I_INVALID_HID;
    enum status status =
        h5_create_scale(file, axis_name(axis, SWEEP_AXIS, name), sweep->count, path, err);
    if (!status)
        status = h5_create_group(&group, parent, "sweep", path, err);
    if (!status)
        status = h5_put_text(group, "measure", sweep->measure, path, err);
    if (!status)
        status = h5_put_text(group, "reason", sweep->reason, path, err);
    if (!status)
        status = h5_put_number(group, "sample", VALUE_U32, &sweep->sample, path, err);
    for (size_t i = 0; !status && i < COLUMNS; i++)
        if (sweep->has_folders || !columns[i].of_folders)
            status = write_column(file, group, axis, sweep, &columns[i], path, err);
    h5_close(&group);
    return status;
}

enum status sweep_group_write(hid_t file, hid_t group, const struct result_clustering *clustering,
                              const char *path, struct error *err)
{
    enum status status = STATUS_OK;
    const struct result_agreement *agreement = clustering->agreement;
    if (agreement) {
        status = h5_put_number(group, "folders", VALUE_U32, &agreement->folders, path, err);
        for (int i = 0; !status && i < 3; i++)
            status = h5_put_number(group, agreement_attribute[i].name, VALUE_F64,
                                   (const uint8_t *)agreement + agreement_attribute[i].offset, path,
                                   err);
    }
    if (!status && clustering->sweep)
        status = write_sweep(file, group, clustering->name, clustering->sweep, path, err);
    return status;
}

/* --- reading --------------------------------------------------------------------------------- */

enum status sweep_group_agreement(bool *there, struct result_agreement *agreement,
                                  struct result *result, hid_t group, struct error *err)
{
    int64_t folders;
    *there = H5Aexists(group, "folders") > 0;
    if (!*there)
        return STATUS_OK;
    if (!h5_get_integer(group, "folders", &folders) || folders < 2 || folders > UINT32_MAX)
        return result_damaged(result, err, "its attribute 'folders' is out of range");
    agreement->folders = (uint32_t)folders;
    for (int i = 0; i < 3; i++) {
        double value;
        const char *name = agreement_attribute[i].name;
        if (!h5_get_real(group, name, &value) || !(value >= -1 && value <= 1))
            return result_damaged(result, err, "its attribute '%s' is missing or out of range",
                                  name);
        memcpy((uint8_t *)agreement + agreement_attribute[i].offset, &value, sizeof value);
    }
    return STATUS_OK;
}

static enum status read_text(char *text, size_t size, struct result *result, hid_t group,
                             const char *name, struct error *err)
{
    char *found;
    enum status status = vlen_text_attribute(&found, result->vlen, group, name, true, err);
    if (status)
        return status;
    if (strlen(found) >= size)
        status = result_damaged(result, err, "its attribute '%s' is longer than it can be", name);
    else
        strcpy(text, found);
    free(found);
    return status;
}

static enum status read_column(struct result_sweep *sweep, struct result *result, hid_t group,
                               const struct sweep_column *column, const char *name,
                               struct error *err)
{
    const size_t size = value_size(column->type);
    char where[FEATURE_NAME_MAX + 64];
    hid_t dataset;
    hsize_t length;
    uint8_t *values = NULL;
    snprintf(where, sizeof where, "/clusters/%s/sweep/%s", name, column->name);
    enum status status = h5_open_dataset(&dataset, group, column->name, column->type, 1, &length,
                                         where, result->path, err);
    if (status)
        return status;
    if (!sweep->values && length > 0 && length <= MOST_VALUES) {
        sweep->count = (uint32_t)length;
        sweep->values = calloc(length, sizeof *sweep->values);
        if (!sweep->values)
            status = error_memory(err, length * sizeof *sweep->values, "the values of k");
    }
    if (!status && (length != sweep->count || length == 0))
        status = result_damaged(result, err, "%s has an impossible size", where);
    if (!status && !(values = malloc(length * size)))
        status = error_memory(err, length * size, "the values of k");
    if (!status)
        status = h5_read_rows(dataset, column->type, 0, length, values, result->path, err);
    for (uint32_t i = 0; !status && i < sweep->count; i++)
        memcpy((uint8_t *)&sweep->values[i] + column->offset, values + i * size, size);
    free(values);
    h5_close(&dataset);
    return status;
}

enum status result_sweep_read(struct result_sweep *out, struct result *result,
                              const struct result_clusters *clusters, struct error *err)
{
    char path[FEATURE_NAME_MAX + 32];
    int64_t sample;
    *out = (struct result_sweep){0};
    snprintf(path, sizeof path, "clusters/%s", clusters->name);
    hid_t parent = H5Gopen2(result->file, path, H5P_DEFAULT), group = H5I_INVALID_HID;
    enum status status = parent > 0 ? STATUS_OK : h5_fail(err, "H5Gopen2", "read", result->path);
    const bool there = !status && H5Lexists(parent, "sweep", H5P_DEFAULT) > 0;
    if (there && !h5_is_object(parent, "sweep", H5O_TYPE_GROUP))
        status = result_damaged(result, err, "/%s/sweep is no group of its own", path);
    if (!status && there) {
        group = H5Gopen2(parent, "sweep", H5P_DEFAULT);
        if (group < 0)
            status = h5_fail(err, "H5Gopen2", "read", result->path);
    }
    h5_close(&parent);
    if (status || !there)
        return status;
    out->has_folders = H5Lexists(group, "purity", H5P_DEFAULT) > 0;
    status = read_text(out->measure, sizeof out->measure, result, group, "measure", err);
    if (!status)
        status = read_text(out->reason, sizeof out->reason, result, group, "reason", err);
    if (!status && (!h5_get_integer(group, "sample", &sample) || sample < 0 || sample > UINT32_MAX))
        status = result_damaged(result, err, "its attribute 'sample' is missing or out of range");
    else if (!status)
        out->sample = (uint32_t)sample;
    for (size_t i = 0; !status && i < COLUMNS; i++)
        if (out->has_folders || !columns[i].of_folders)
            status = read_column(out, result, group, &columns[i], clusters->name, err);
    h5_close(&group);
    if (status)
        result_sweep_clear(out);
    return status;
}

void result_sweep_clear(struct result_sweep *sweep)
{
    free(sweep->values);
    *sweep = (struct result_sweep){0};
}

/* --- checking -------------------------------------------------------------------------------- */

static bool in_range(double value, double least, double most)
{
    return isnan(value) || (value >= least && value <= most);
}

static bool plausible(const struct result_sweep_value *value, bool has_folders)
{
    const struct result_agreement *agreement = &value->agreement;
    return value->inertia >= 0 && isfinite(value->inertia) && value->converged <= 1 &&
           in_range(value->silhouette, -1, 1) && in_range(value->simplified_silhouette, -1, 1) &&
           in_range(value->davies_bouldin, 0, HUGE_VAL) &&
           in_range(value->calinski_harabasz, 0, HUGE_VAL) &&
           (!has_folders ||
            (agreement->purity > 0 && agreement->purity <= 1 && agreement->nmi >= 0 &&
             agreement->nmi <= 1 && agreement->ari >= -1 && agreement->ari <= 1));
}

enum status sweep_group_verify(struct verify *verify, const struct result_clusters *clusters,
                               const char *where, struct error *err)
{
    struct result_sweep sweep;
    enum status status = result_sweep_read(&sweep, verify->result, clusters, err);
    if (status || !sweep.values)
        return status;
    bool ascending = true, right = true, own = false;
    for (uint32_t i = 0; i < sweep.count; i++) {
        const struct result_sweep_value *value = &sweep.values[i];
        ascending = ascending && value->k > (i > 0 ? sweep.values[i - 1].k : 0);
        right = right && plausible(value, sweep.has_folders);
        own =
            own || (value->k == clusters->k && value->iterations == clusters->iterations &&
                    value->converged == clusters->converged && value->inertia == clusters->inertia);
    }
    if (!ascending)
        verify_broken(verify, "%s/sweep/k: the values do not ascend", where);
    if (!right)
        verify_broken(verify, "%s/sweep: a measure has a value that it cannot have", where);
    if (!own)
        verify_broken(verify, "%s/sweep: the clustering is none of its values", where);
    result_sweep_clear(&sweep);
    return status;
}
