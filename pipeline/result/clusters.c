/* clusters.c: the parts of a clustering as datasets, and their scales.
 *
 * References between HDF5 objects are offsets, so they hold in a copy of a file. */
#include "matrix/projected.h"
#include "result/clusters.h"
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The scales that belong to one clustering alone. */
#define OWN_AXES 6
static const char *const own_axis[OWN_AXES] = {"cluster", "iteration", "row", "dimension",
                                               "column",  SWEEP_AXIS};

#define ATTRIBUTE(name, type)                                                                      \
    {                                                                                              \
#name, type, offsetof(struct result_clustering, name), 0, false, 0, 0                              \
    }
static const struct attribute attributes[] = {
    ATTRIBUTE(feature, VALUE_TEXT),    ATTRIBUTE(init, VALUE_TEXT),
    ATTRIBUTE(metric, VALUE_TEXT),     ATTRIBUTE(parameters, VALUE_TEXT),
    ATTRIBUTE(content, VALUE_TEXT),    ATTRIBUTE(k, VALUE_U32),
    ATTRIBUTE(seed, VALUE_I64),        ATTRIBUTE(iterations, VALUE_U32),
    ATTRIBUTE(converged, VALUE_U8),    ATTRIBUTE(inertia, VALUE_F64)};

static enum status put_attributes(hid_t group, const struct result_clustering *c, const char *path,
                                  struct error *err)
{
    if (h5_put_attributes(group, attributes, sizeof attributes / sizeof *attributes, c, path, err) ||
        (c->origin.bytes > 0 && h5_put_attributes(group, result_origin_attribute,
                                                  RESULT_ORIGIN_ATTRIBUTES, &c->origin, path, err)) ||
        (c->fitted_rows > 0 &&
         h5_put_number(group, "fitted_rows", VALUE_U64, &c->fitted_rows, path, err)) ||
        (c->level > 0 && h5_put_number(group, "level", VALUE_U32, &c->level, path, err)) ||
        (c->parent && h5_put_text(group, "parent", c->parent, path, err)))
        return STATUS_FAILED;
    return c->projection
               ? h5_put_text(group, "space", metric_names[c->projection->space], path, err)
               : STATUS_OK;
}

/* True if the file has a scale of that name and length. */
static bool has_scale(hid_t file, const char *name, uint64_t length)
{
    if (!h5_is_object(file, name, H5O_TYPE_DATASET))
        return false;
    H5_SCOPED hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    return H5Sget_simple_extent_npoints(space) == (hssize_t)length;
}

/* The names of the scales on the axes of every part. */
static void name_axes(char axis[PART_COUNT][2][AXIS_NAME_MAX], hid_t file,
                      const struct result_clustering *c)
{
    char clusters[AXIS_NAME_MAX], iterations[AXIS_NAME_MAX], rows[AXIS_NAME_MAX],
        values[AXIS_NAME_MAX], columns[AXIS_NAME_MAX];
    axis_name(clusters, "cluster", c->name);
    axis_name(iterations, "iteration", c->name);
    if (has_scale(file, image_table.axis, c->rows))
        snprintf(rows, sizeof rows, "%s", image_table.axis);
    else
        axis_name(rows, "row", c->name);
    /* Projected rows are no feature's. */
    if (c->projection || !has_scale(file, axis_name(values, "feature", c->feature), c->dimension))
        axis_name(values, "dimension", c->name);
    axis_name(columns, "column", c->name);
    for (int p = 0; p < PART_COUNT; p++) {
        snprintf(axis[p][0], AXIS_NAME_MAX, "%s",
                 cluster_part_of_rows(p) ? rows
                 : p == PART_HISTORY     ? iterations
                 : p == PART_MEAN        ? columns
                 : p == PART_COMPONENTS  ? values
                                         : clusters);
        snprintf(axis[p][1], AXIS_NAME_MAX, "%s",
                 p == PART_CENTROIDS    ? values
                 : p == PART_COMPONENTS ? columns
                                        : RANK_AXIS);
    }
}

static enum status write_sweep_column(hid_t file, hid_t group, const char *axis,
                                      const struct result_sweep *sweep, const struct column *column,
                                      const char *path, struct error *err)
{
    const size_t size = value_size(column->type);
    const hsize_t length = sweep->count;
    uint8_t *values = malloc(sweep->count * size);
    if (!values)
        return error_memory(err, sweep->count * size, "the values of k");
    for (uint32_t i = 0; i < sweep->count; i++)
        memcpy(values + i * size, (const uint8_t *)&sweep->values[i] + column->offset, size);
    const enum status status = h5_put_values(file, group, column->name, column->type, 1, &length,
                                             &axis, values, path, err);
    free(values);
    return status;
}

static enum status write_sweep(hid_t file, hid_t parent, const char *name,
                               const struct result_sweep *sweep, const char *path,
                               struct error *err)
{
    char axis[AXIS_NAME_MAX];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    axis_name(axis, SWEEP_AXIS, name);
    if (h5_create_group(&group, parent, "sweep", path, err) ||
        h5_put_attributes(group, result_sweep_attribute, RESULT_SWEEP_ATTRIBUTES, sweep, path, err))
        return STATUS_FAILED;
    const int columns = sweep->has_folders ? SWEEP_COLUMNS : SWEEP_COLUMNS_PLAIN;
    for (int i = 0; i < columns; i++)
        if (write_sweep_column(file, group, axis, sweep, &sweep_column[i], path, err))
            return STATUS_FAILED;
    return STATUS_OK;
}

static enum status write_parts(hid_t file, hid_t group, const struct result_clustering *c,
                               const char *path, struct error *err)
{
    const void *const data[PART_COUNT] = {
        [PART_CENTROIDS] = c->centroids, [PART_LABELS] = c->labels,
        [PART_DISTANCES] = c->distances, [PART_SIZES] = c->sizes,
        [PART_NEAREST] = c->nearest,     [PART_HISTORY] = c->inertia_history,
        [PART_WEIGHTS] = c->weights,     [PART_PARENTS] = c->parents,
        [PART_MEAN] = c->projection ? c->projection->mean : NULL,
        [PART_COMPONENTS] = c->projection ? c->projection->components : NULL};
    const struct cluster_shape shape = {c->k,
                                        c->dimension,
                                        c->iterations,
                                        c->rows,
                                        c->weighted,
                                        c->projection ? c->projection->columns : 0,
                                        c->projection && c->projection->components,
                                        c->parents != NULL};
    char axis[PART_COUNT][2][AXIS_NAME_MAX];
    name_axes(axis, file, c);
    for (int p = 0; p < PART_COUNT; p++) {
        const struct cluster_part_kind *kind = &cluster_part_kind[p];
        const char *const axes[] = {axis[p][0], axis[p][1]};
        hsize_t size[2];
        if (cluster_part_dimensions(size, p, &shape) &&
            h5_put_values(file, group, kind->name, kind->type, kind->rank, size, axes, data[p], path,
                          err))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

enum status clusters_write(hid_t file, const struct result_clustering *c, const char *path,
                           struct error *err)
{
    H5_SCOPED hid_t all = H5I_INVALID_HID, group = H5I_INVALID_HID;
    return h5_make_group(&all, file, "clusters", path, err) ||
                   h5_create_group(&group, all, c->name, path, err) ||
                   put_attributes(group, c, path, err) || write_parts(file, group, c, path, err) ||
                   (c->agreement && h5_put_attributes(group, result_agreement_attribute,
                                                      RESULT_AGREEMENT_ATTRIBUTES, c->agreement, path,
                                                      err)) ||
                   (c->sweep && write_sweep(file, group, c->name, c->sweep, path, err))
               ? STATUS_FAILED
               : STATUS_OK;
}

/* The level below names the clustering. */
static enum status rename_parent(hid_t file, const char *from, const char *to, const char *path,
                                 struct error *err)
{
    struct h5_names names;
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    enum status status =
        h5_list_own(&names, &all, file, "clusters", H5O_TYPE_GROUP, "parent", path, err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++) {
        char *parent = NULL;
        H5_SCOPED hid_t group = H5I_INVALID_HID;
        status = h5_open_group(&group, all, names.name[i], path, err);
        if (status == STATUS_OK)
            status = h5_get_text(&parent, group, "parent", false, path, err);
        if (status == STATUS_OK && parent && strcmp(parent, from) == 0)
            status = H5Adelete(group, "parent") < 0 ? h5_fail(err, "H5Adelete", "write", path)
                                                    : h5_put_text(group, "parent", to, path, err);
        free(parent);
    }
    h5_free_names(&names);
    return status;
}

enum status clusters_rename(hid_t file, const char *from, const char *to, const char *path,
                            struct error *err)
{
    char old[2 * FEATURE_NAME_MAX], new[2 * FEATURE_NAME_MAX];
    snprintf(old, sizeof old, "clusters/%s", from);
    snprintf(new, sizeof new, "clusters/%s", to);
    if (H5Lmove(file, old, file, new, H5P_DEFAULT, H5P_DEFAULT) < 0)
        return h5_fail(err, "H5Lmove", "write", path);
    if (rename_parent(file, from, to, path, err))
        return STATUS_FAILED;
    for (int i = 0; i < OWN_AXES; i++) {
        axis_name(old, own_axis[i], from);
        axis_name(new, own_axis[i], to);
        if (h5_is_object(file, old, H5O_TYPE_DATASET) &&
            H5Lmove(file, old, file, new, H5P_DEFAULT, H5P_DEFAULT) < 0)
            return h5_fail(err, "H5Lmove", "write", path);
    }
    return STATUS_OK;
}
