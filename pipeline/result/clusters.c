/* clusters.c: writes the parts of a clustering as datasets; decides what may be replaced. */
#include "result/clusters.h"
#include "base/path.h"
#include "result/change.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum status put_attributes(hid_t group, const struct result_clusters *c, struct error *err)
{
    const struct attribute *attribute = result_clusters_attribute;
    const bool set[] = {c->fitted_rows > 0, c->level > 0, *c->parent, *c->space};
    if (h5_put_attributes(group, attribute, RESULT_CLUSTERS_REQUIRED, c, err) ||
        (c->origin.bytes > 0 && h5_put_attributes(group, result_origin_attribute,
                                                  RESULT_ORIGIN_ATTRIBUTES, &c->origin, err)))
        return STATUS_FAILED;
    for (int i = RESULT_CLUSTERS_REQUIRED; i < RESULT_CLUSTERS_ATTRIBUTES; i++)
        if (set[i - RESULT_CLUSTERS_REQUIRED] && h5_put_attributes(group, &attribute[i], 1, c, err))
            return STATUS_FAILED;
    return STATUS_OK;
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
                      const struct result_clusters *c)
{
    char clusters[AXIS_NAME_MAX], iterations[AXIS_NAME_MAX], rows[AXIS_NAME_MAX],
        values[AXIS_NAME_MAX], columns[AXIS_NAME_MAX];
    axis_name(clusters, "cluster", c->name);
    axis_name(iterations, "iteration", c->name);
    if (has_scale(file, image_table.axis, c->rows))
        snprintf(rows, sizeof rows, "%s", image_table.axis);
    else
        axis_name(rows, "row", c->name);
    /* Projected rows have axes of their own. */
    if (*c->space || !has_scale(file, axis_name(values, "feature", c->feature), c->dimension))
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
                                      const struct cluster_sweep *sweep,
                                      const struct column *column, struct error *err)
{
    const size_t size = value_size(column->type);
    const hsize_t length = sweep->count;
    uint8_t *values = malloc(sweep->count * size);
    if (!values)
        return error_memory(err, sweep->count * size, "the values of k");
    for (uint32_t i = 0; i < sweep->count; i++)
        memcpy(values + i * size, (const uint8_t *)&sweep->values[i] + column->offset, size);
    const enum status status =
        h5_put_values(file, group, column->name, column->type, 1, &length, &axis, values, err);
    free(values);
    return status;
}

static enum status write_sweep(hid_t file, hid_t parent, const char *name,
                               const struct cluster_sweep *sweep, struct error *err)
{
    char axis[AXIS_NAME_MAX];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    axis_name(axis, SWEEP_AXIS, name);
    if (h5_create_group(&group, parent, "sweep", err) ||
        h5_put_attributes(group, result_sweep_attribute, RESULT_SWEEP_ATTRIBUTES, sweep, err))
        return STATUS_FAILED;
    const int columns = sweep->has_classes ? SWEEP_COLUMNS : SWEEP_COLUMNS_PLAIN;
    for (int i = 0; i < columns; i++)
        if (write_sweep_column(file, group, axis, sweep, &sweep_column[i], err))
            return STATUS_FAILED;
    return STATUS_OK;
}

static enum status write_parts(hid_t file, hid_t group, const struct result_clustering *clustering,
                               struct error *err)
{
    const void *const *value = clustering->value;
    struct result_clusters shape = clustering->clusters;
    char axis[PART_COUNT][2][AXIS_NAME_MAX];
    shape.weighted = value[PART_WEIGHTS];
    shape.components = value[PART_COMPONENTS];
    shape.parents = value[PART_PARENTS];
    name_axes(axis, file, &shape);
    for (int p = 0; p < PART_COUNT; p++) {
        const struct cluster_part_kind *kind = &cluster_part_kind[p];
        const char *const axes[] = {axis[p][0], axis[p][1]};
        hsize_t size[2];
        if (cluster_part_size(size, p, &shape) &&
            h5_put_values(file, group, kind->name, kind->type, kind->rank, size, axes, value[p],
                          err))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* Its axes use the scales of the file's images and features if they exist. */
static enum status write_clustering(hid_t file, const struct result_clustering *clustering,
                                    struct error *err)
{
    const struct result_clusters *c = &clustering->clusters;
    H5_SCOPED hid_t all = H5I_INVALID_HID, group = H5I_INVALID_HID;
    return h5_make_group(&all, file, "clusters", err) ||
                   h5_create_group(&group, all, c->name, err) || put_attributes(group, c, err) ||
                   write_parts(file, group, clustering, err) ||
                   (c->folders && h5_put_attributes(group, result_agreement_attribute,
                                                    RESULT_AGREEMENT_ATTRIBUTES, c, err)) ||
                   (clustering->sweep && write_sweep(file, group, c->name, clustering->sweep, err))
               ? STATUS_FAILED
               : STATUS_OK;
}

/* --- paths of rows ----------------------------------------------------------------------------- */

static enum status write_source(hid_t file, hid_t images, const char *source, struct error *err)
{
    char *text = path_utf8(source, strlen(source)), *directory = path_working_directory();
    const char *const sources[] = {text}, *const directories[] = {directory};
    const enum status status = text && directory
                                   ? schema_put_sources(file, images, sources, directories, 1, err)
                                   : error_memory(err, 4 * strlen(source) + 1, "a source");
    free(directory);
    free(text);
    return status;
}

struct naming {
    const struct result_names *names;
    char *text;
};

static const void *path_of_row(void *context, uint64_t row, size_t *bytes)
{
    struct naming *naming = context;
    size_t length;
    const char *name = naming->names->path(naming->names->context, row, &length);
    free(naming->text);
    naming->text = path_utf8(name, length);
    *bytes = naming->text ? strlen(naming->text) : 0;
    return naming->text;
}

/* Writes /images/path, source and sources of rows of other data, in a file of clusters alone. */
static enum status write_names(hid_t file, const struct result_names *names, struct error *err)
{
    struct naming naming = {.names = names};
    const char *const axis = image_table.axis;
    const hsize_t rows = names->count;
    uint16_t *source = calloc(rows + 1, sizeof *source); /* all are of the only one */
    H5_SCOPED hid_t images = H5I_INVALID_HID;
    const bool failed =
        !source || h5_create_group(&images, file, image_table.group, err) ||
        h5_put_column(file, images, "path", rows, axis, path_of_row, &naming, err) ||
        h5_put_values(file, images, "source", VALUE_U16, 1, &rows, &axis, source, err);
    free(naming.text);
    free(source);
    return !source  ? error_memory(err, rows * sizeof *source, "paths of rows")
           : failed ? STATUS_FAILED
                    : write_source(file, images, names->source, err);
}

/* --- adding ---------------------------------------------------------------------------------- */

/* Checks that `output` may be written; *existing is that file, if it is a clpipe file. */
static enum status check_output(struct result **existing, const char *output, const char *input,
                                const char *name, bool replace, struct error *err)
{
    struct stat out, in;
    const char *shown = PATH_TEXT(output);
    *existing = NULL;
    if (stat(output, &out))
        return STATUS_OK; /* change_make reports the problem */
    if (input && stat(input, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return STATUS_OK;
    if (!S_ISREG(out.st_mode))
        return STATUS_OK;
    struct error why = ERROR_INIT;
    if (result_open(existing, output, &why))
        return error_set(err, STATUS_FAILED,
                         "%s exists and is not overwritten (%s): name another output", shown,
                         why.sentence);
    if (!input && (*existing)->has_images)
        return error_set(err, STATUS_USAGE, "%s holds features of other data: name another output",
                         shown);
    if (!replace && (input || result_clusters_find(*existing, name))) {
        error_set(err, STATUS_USAGE, "%s already exists", shown);
        error_remedy(err, REMEDY_REPLACE_OUTPUT);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Checks that the clustering may be added to `base`, from which an old one of that name is left out. root:
 * the name of the finest level. */
static enum status check_base(struct result *base, const struct result_clusters *added,
                              const char *root, bool replace, struct error *err)
{
    const struct result_clusters *old = result_clusters_find(base, added->name), *finest = old;
    const char *shown = PATH_TEXT(base->path);
    for (const struct result_clusters *below = old; below && below->level <= finest->level;) {
        finest = below;
        below = below->level > 1 ? result_clusters_below(base, below) : NULL;
    }
    if (old && strcmp(finest->name, root) != 0) {
        if (finest == old)
            error_set(
                err, STATUS_USAGE,
                "a level of /clusters/%s takes the name of /clusters/%s, which %s already has",
                root, old->name, shown);
        else
            error_set(err, STATUS_USAGE, "/clusters/%s of %s is a level of /clusters/%s", old->name,
                      shown, finest->name);
        return error_remedy(err, REMEDY_OTHER_NAME);
    }
    if (old && !replace) {
        error_set(err, STATUS_USAGE, "%s already holds clusters '%s'", shown, added->name);
        error_remedy(err, REMEDY_REPLACE);
        return STATUS_USAGE;
    }
    if (base->images && added->rows != result_images(base))
        return error_set(err, STATUS_FAILED, "%s has %llu images, the clusters %llu rows", shown,
                         (unsigned long long)result_images(base), (unsigned long long)added->rows);
    return STATUS_OK;
}

struct adding {
    const struct result *base; /* NULL: there is none */
    const struct result_clustering *clustering;
    unsigned count;
};

/* Whether the object is one of the old levels. */
static bool is_replaced(const void *context, const char *name)
{
    const struct adding *adding = context;
    const struct result_clusters *old =
        result_clusters_find(adding->base, adding->clustering->clusters.name);
    for (unsigned i = 0; old && i < RESULT_MOST_LEVELS; i++) {
        if (strncmp(name, "/clusters/", 10) == 0 && strcmp(name + 10, old->name) == 0)
            return true;
        old = *old->parent ? result_clusters_find(adding->base, old->parent) : NULL;
    }
    return false;
}

static enum status add_all(void *context, hid_t file, struct error *err)
{
    const struct adding *adding = context;
    const struct result_names *names = adding->clustering->names;
    enum status status = !adding->base && names ? write_names(file, names, err) : STATUS_OK;
    for (unsigned i = 0; i < adding->count && status == STATUS_OK; i++)
        status = write_clustering(file, &adding->clustering[i], err);
    return status;
}

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, unsigned count,
                                  bool replace, struct error *err)
{
    const char *name = clustering->clusters.name;
    struct result *existing = NULL, *base = NULL;
    struct adding adding = {.clustering = clustering, .count = count};
    struct change change = {.output = output,
                            .parameters = "{}",
                            .leave_out = is_replaced,
                            .add = add_all,
                            .context = &adding,
                            .notes_run = clustering->by_run,
                            .run_clusters = clustering->by_run ? name : NULL};
    for (unsigned i = 0; i < count; i++)
        if (schema_check_name(clustering[i].clusters.name, "clustering", err) != STATUS_OK)
            return err->status;
    enum status status = check_output(&existing, output, input, name, replace, err);
    /* Further clusters can be added to a file of clusters alone. */
    if (!input && existing)
        input = output;
    result_close(&existing);
    if (!status && input)
        status = result_open(&base, input, err);
    for (unsigned i = 0; i < count && base && !status; i++)
        status = check_base(base, &clustering[i].clusters, name, replace, err);
    change.base = base;
    adding.base = base;
    if (base && base->run_clusters && strcmp(base->run_clusters, name) == 0)
        change.notes_run = true;
    if (!status)
        status = change_make(&change, err);
    result_close(&base);
    return status;
}
