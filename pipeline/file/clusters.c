/* clusters.c: adds clusterings to a copy of a file.
 *
 * A finished file is never modified: its bytes are shared with or copied to a new one by the file
 * system, where the clustering is added before the new file takes its name. References between HDF5
 * objects are offsets, so they hold in the copy. */
#include "file/clusters.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/path.h"
#include "file/scales.h"
#include "file/sweep_group.h"
#include "version_generated.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5_hl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)

/* The scales that belong to one clustering alone. */
#define OWN_AXES 5
static const char *const own_axis[OWN_AXES] = {"cluster", "iteration", "row", "dimension",
                                               SWEEP_AXIS};

static enum status put_attributes(hid_t group, const struct result_clustering *c, const char *path,
                                  struct error *err)
{
    uint8_t converged = c->converged;
    const struct {
        const char *name, *text;
    } texts[] = {{"feature", c->feature},
                 {"init", c->init},
                 {"metric", c->metric},
                 {"parameters", c->parameters},
                 {"content", c->content}};
    const struct {
        const char *name;
        enum value_type type;
        const void *value;
    } numbers[] = {{"k", VALUE_U32, &c->k},
                   {"seed", VALUE_I64, &c->seed},
                   {"iterations", VALUE_U32, &c->iterations},
                   {"converged", VALUE_U8, &converged},
                   {"inertia", VALUE_F64, &c->inertia}};
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
        status = h5_put_text(group, texts[i].name, texts[i].text ? texts[i].text : "", path, err);
    for (size_t i = 0; !status && i < sizeof numbers / sizeof *numbers; i++)
        status =
            h5_put_number(group, numbers[i].name, numbers[i].type, numbers[i].value, path, err);
    return status;
}

/* True if the file has a scale of that name and length. */
static bool has_scale(hid_t file, const char *name, uint64_t length)
{
    if (!h5_is_object(file, name, H5O_TYPE_DATASET))
        return false;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    bool right = H5Sget_simple_extent_npoints(space) == (hssize_t)length;
    h5_close(&space);
    h5_close(&dataset);
    return right;
}

/* The names of the scales on the axes of every part; those that the file has not are created. */
static enum status make_axes(char axis[PART_COUNT][2][AXIS_NAME_MAX], hid_t file,
                             const struct result_clustering *c, const char *path, struct error *err)
{
    char clusters[AXIS_NAME_MAX], iterations[AXIS_NAME_MAX], rows[AXIS_NAME_MAX],
        values[AXIS_NAME_MAX];
    axis_name(clusters, "cluster", c->name);
    axis_name(iterations, "iteration", c->name);
    if (has_scale(file, image_table.axis, c->rows))
        snprintf(rows, sizeof rows, "%s", image_table.axis);
    else
        axis_name(rows, "row", c->name);
    if (!has_scale(file, axis_name(values, "feature", c->feature), c->dimension))
        axis_name(values, "dimension", c->name);
    enum status status = h5_create_scale(file, clusters, c->k, path, err);
    if (!status)
        status = h5_create_scale(file, iterations, c->iterations, path, err);
    if (!status)
        status = h5_create_scale(file, rows, c->rows, path, err);
    if (!status)
        status = h5_create_scale(file, values, c->dimension, path, err);
    if (!status)
        status = h5_create_scale(file, RANK_AXIS, NEAREST_COUNT, path, err);
    for (int p = 0; p < PART_COUNT; p++) {
        snprintf(axis[p][0], AXIS_NAME_MAX, "%s",
                 cluster_part_of_rows(p) ? rows
                 : p == PART_HISTORY     ? iterations
                                         : clusters);
        snprintf(axis[p][1], AXIS_NAME_MAX, "%s", p == PART_CENTROIDS ? values : RANK_AXIS);
    }
    return status;
}

enum status clusters_create(hid_t part[PART_COUNT], hid_t file, const struct result_clustering *c,
                            const char *path, struct error *err)
{
    char axis[PART_COUNT][2][AXIS_NAME_MAX];
    struct cluster_shape shape = {c->k, c->dimension, c->iterations, c->rows};
    hid_t all = H5I_INVALID_HID, group = H5I_INVALID_HID;
    enum status status = make_axes(axis, file, c, path, err);
    if (!status && H5Lexists(file, "clusters", H5P_DEFAULT) > 0) {
        all = H5Gopen2(file, "clusters", H5P_DEFAULT);
        if (all < 0)
            status = h5_fail(err, "H5Gopen2", "write", path);
    } else if (!status) {
        status = h5_create_group(&all, file, "clusters", path, err);
    }
    if (!status)
        status = h5_create_group(&group, all, c->name, path, err);
    if (!status)
        status = put_attributes(group, c, path, err);
    for (int p = 0; !status && p < PART_COUNT; p++) {
        const struct cluster_part_kind *kind = &cluster_part_kind[p];
        hsize_t size[2];
        if (p == PART_WEIGHTS && !c->weighted)
            continue;
        cluster_part_dimensions(size, p, &shape);
        status =
            h5_create_dataset(&part[p], group, kind->name, kind->type, kind->rank, size, path, err);
        for (int a = 0; !status && a < kind->rank; a++)
            status = h5_attach_scale(file, part[p], (unsigned)a, axis[p][a], path, err);
    }
    if (!status)
        status = sweep_group_write(file, group, c, path, err);
    h5_close(&group);
    h5_close(&all);
    return status;
}

/* Closes the parts; an error that comes only now counts, unless there was one before. */
static enum status close_parts(hid_t part[PART_COUNT], enum status status, const char *path,
                               struct error *err)
{
    for (int p = 0; p < PART_COUNT; p++)
        if (!status)
            status = h5_finish_dataset(&part[p], path, err);
    return status;
}

static const struct result_cluster_entry *entry_of(const struct result *result,
                                                   const struct result_clusters *clusters)
{
    const struct result_cluster_entry *entry = result->clusters;
    while (&entry->clusters != clusters)
        entry++;
    return entry;
}

enum status clusters_copy(hid_t file, const char *path, struct result *from,
                          const struct result_clusters *clusters, struct error *err)
{
    const struct result_cluster_entry *entry = entry_of(from, clusters);
    struct result_clustering clustering = {.name = clusters->name,
                                           .feature = clusters->feature,
                                           .init = clusters->init,
                                           .metric = clusters->metric,
                                           .parameters = clusters->parameters,
                                           .content = clusters->content,
                                           .k = clusters->k,
                                           .dimension = clusters->dimension,
                                           .iterations = clusters->iterations,
                                           .rows = clusters->rows,
                                           .seed = clusters->seed,
                                           .converged = clusters->converged,
                                           .weighted = clusters->weighted,
                                           .inertia = clusters->inertia};
    struct cluster_shape shape = {clusters->k, clusters->dimension, clusters->iterations,
                                  clusters->rows};
    struct result_sweep sweep;
    hid_t part[PART_COUNT] = {0};
    enum status status = result_sweep_read(&sweep, from, clusters, err);
    if (status)
        return status;
    clustering.agreement = clusters->has_agreement ? &clusters->agreement : NULL;
    clustering.sweep = sweep.values ? &sweep : NULL;
    status = clusters_create(part, file, &clustering, path, err);
    result_sweep_clear(&sweep);
    for (int p = 0; !status && p < PART_COUNT; p++) {
        enum value_type type = cluster_part_kind[p].type;
        hsize_t size[2];
        if (part[p] <= 0)
            continue;
        cluster_part_dimensions(size, p, &shape);
        size_t row = value_size(type) * (cluster_part_kind[p].rank == 2 ? size[1] : 1);
        uint64_t block = row < COPY_BYTES ? COPY_BYTES / row : 1;
        void *data = malloc(block * row);
        if (!data)
            status = error_memory(err, block * row, "a clustering");
        for (uint64_t first = 0; !status && first < size[0]; first += block) {
            uint64_t count = size[0] - first < block ? size[0] - first : block;
            status = h5_read_rows(entry->part[p], type, first, count, data, from->path, err);
            if (!status)
                status = h5_write_rows(part[p], type, first, count, data, path, err);
        }
        free(data);
    }
    return close_parts(part, status, path, err);
}

/* Copies all bytes of `input` to the empty file `to`: by sharing its extents where the file system
 * can, by copying inside the kernel where that can, else through memory. */
static enum status copy_bytes(int to, const char *to_path, const char *input, struct error *err)
{
    char shown[256];
    path_for_message(shown, sizeof shown, input);
    int from = open(input, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_errno(err, STATUS_FAILED, errno, "open", "cannot read %s", shown);
    enum status status = STATUS_OK;
    char *buffer = NULL;
    if (ioctl(to, FICLONE, from) == 0)
        goto out;
    ssize_t n;
    while ((n = copy_file_range(from, NULL, to, NULL, 1u << 30, 0)) > 0)
        ;
    /* Some kernels say that they copied nothing where they cannot; both positions are then where
     * the rest begins. */
    buffer = malloc(COPY_BYTES);
    if (!buffer)
        status = error_memory(err, COPY_BYTES, "a copy");
    while (!status && (n = read(from, buffer, COPY_BYTES)) != 0) {
        if (n < 0 && errno != EINTR)
            status = error_errno(err, STATUS_FAILED, errno, "read", "cannot read %s", shown);
        else if (n > 0)
            status = write_all(to, buffer, (size_t)n, to_path, err);
    }
out:
    free(buffer);
    close(from);
    return status;
}

/* Everything that HDF5 will read when `feature` is clustered and `old` (may be NULL) replaced. */
static enum status check_scales(struct result *base, const char *feature,
                                const struct result_clusters *old, struct error *err)
{
    char values[AXIS_NAME_MAX];
    enum status status = scales_check_scale(base, image_table.axis, err);
    if (!status)
        status = scales_check_scale(base, RANK_AXIS, err);
    if (!status)
        status = scales_check_scale(base, axis_name(values, "feature", feature), err);
    for (int i = 0; !status && old && i < OWN_AXES; i++)
        status = scales_check_own(base, axis_name(values, own_axis[i], old->name), err);
    for (int p = 0; !status && old && p < PART_COUNT; p++)
        if (p != PART_WEIGHTS || old->weighted)
            status = scales_check_dataset(base, entry_of(base, old)->part[p], err);
    return status;
}

/* Takes one clustering out of the file: scales that others share forget it, its own go with it. */
static enum status remove_clustering(hid_t file, struct result *result,
                                     const struct result_clusters *clusters, const char *path,
                                     struct error *err)
{
    const struct result_cluster_entry *entry = entry_of(result, clusters);
    enum status status = STATUS_OK;
    for (int p = 0; !status && p < PART_COUNT; p++) {
        char name[2 * FEATURE_NAME_MAX], axis[AXIS_NAME_MAX];
        if (p == PART_WEIGHTS && !clusters->weighted)
            continue;
        snprintf(name, sizeof name, "clusters/%s/%s", clusters->name, cluster_part_kind[p].name);
        hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
        if (dataset < 0)
            return h5_fail(err, "H5Dopen2", "write", path);
        for (int a = 0; !status && a < cluster_part_kind[p].rank; a++) {
            status = vlen_axis(axis, sizeof axis, result->vlen, entry->part[p], (unsigned)a, err);
            hid_t scale = !status && *axis ? H5Dopen2(file, axis, H5P_DEFAULT) : H5I_INVALID_HID;
            if (scale > 0 && H5DSdetach_scale(dataset, scale, (unsigned)a) < 0)
                status = h5_fail(err, "H5DSdetach_scale", "write", path);
            h5_close(&scale);
        }
        h5_close(&dataset);
    }
    char name[2 * FEATURE_NAME_MAX];
    snprintf(name, sizeof name, "clusters/%s", clusters->name);
    if (!status && H5Ldelete(file, name, H5P_DEFAULT) < 0)
        status = h5_fail(err, "H5Ldelete", "write", path);
    for (int i = 0; !status && i < OWN_AXES; i++) {
        axis_name(name, own_axis[i], clusters->name);
        if (h5_is_object(file, name, H5O_TYPE_DATASET) && H5Ldelete(file, name, H5P_DEFAULT) < 0)
            status = h5_fail(err, "H5Ldelete", "write", path);
    }
    return status;
}

/* The attributes of a file that holds clusterings alone. */
static enum status put_root(hid_t file, const char *path, struct error *err)
{
    int32_t format = SCHEMA_FORMAT;
    char created[32];
    clock_iso8601(created, clock_created());
    enum status status = h5_put_number(file, "clpipe_format", VALUE_I32, &format, path, err);
    if (!status)
        status = h5_put_text(file, "clpipe_version", CLPIPE_VERSION, path, err);
    if (!status)
        status = h5_put_text(file, "created", created, path, err);
    if (!status)
        status = h5_put_text(file, "parameters", "{}", path, err);
    return status;
}

/* Whether `output` may be written: *existing is it, if it is a clpipe file. */
static enum status check_output(struct result **existing, const char *output, const char *input,
                                const struct result_clustering *clustering, bool replace,
                                struct error *err)
{
    char shown[256];
    struct stat out, in;
    path_for_message(shown, sizeof shown, output);
    *existing = NULL;
    if (stat(output, &out))
        return STATUS_OK; /* output_open says what there is to say */
    if (input && stat(input, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return STATUS_OK;
    if (!S_ISREG(out.st_mode))
        return STATUS_OK;
    struct error why = ERROR_INIT;
    if (result_open(existing, output, &why))
        return error_set(err, STATUS_FAILED,
                         "%s is there and is not overwritten (%s): name another output", shown,
                         why.sentence);
    if (!input && (*existing)->has_images)
        return error_set(err, STATUS_USAGE, "%s holds features of other data: name another output",
                         shown);
    if (!replace && (input || result_clusters_find(*existing, clustering->name)))
        return error_set(err, STATUS_USAGE,
                         "%s is there already: --force replaces it, or name another output", shown);
    return STATUS_OK;
}

static enum status write_parts(hid_t file, const struct result_clustering *c, const char *path,
                               struct error *err)
{
    const void *const data[PART_COUNT] = {
        [PART_CENTROIDS] = c->centroids, [PART_LABELS] = c->labels,
        [PART_DISTANCES] = c->distances, [PART_SIZES] = c->sizes,
        [PART_NEAREST] = c->nearest,     [PART_HISTORY] = c->inertia_history,
        [PART_WEIGHTS] = c->weights};
    struct cluster_shape shape = {c->k, c->dimension, c->iterations, c->rows};
    hid_t part[PART_COUNT] = {0};
    enum status status = clusters_create(part, file, c, path, err);
    for (int p = 0; !status && p < PART_COUNT; p++) {
        hsize_t size[2];
        cluster_part_dimensions(size, p, &shape);
        if (part[p] > 0)
            status =
                h5_write_rows(part[p], cluster_part_kind[p].type, 0, size[0], data[p], path, err);
    }
    return close_parts(part, status, path, err);
}

/* What does not fit could not be read again. */
static bool texts_fit(const struct result_clustering *c)
{
    struct result_clusters read;
    return strlen(c->feature) < sizeof read.feature && strlen(c->metric) < sizeof read.metric &&
           strlen(c->init) < sizeof read.init;
}

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, bool replace,
                                  struct error *err)
{
    struct result *existing = NULL, *base = NULL;
    struct output *out = NULL;
    hid_t file = H5I_INVALID_HID;
    char shown[256];
    assert(texts_fit(clustering));
    if (!schema_name_valid(clustering->name))
        return error_set(err, STATUS_USAGE,
                         "'%s' cannot be the name of a clustering: use 1 to %d letters, digits, "
                         "'_', '.' and '-'",
                         path_for_message(shown, sizeof shown, clustering->name),
                         FEATURE_NAME_MAX - 1);
    enum status status = check_output(&existing, output, input, clustering, replace, err);
    /* A file of clusters alone takes further ones. */
    if (!status && !input && existing)
        input = output;
    result_close(&existing);
    if (!status && input)
        status = result_open(&base, input, err);
    const struct result_clusters *old = base ? result_clusters_find(base, clustering->name) : NULL;
    if (!status && old && !replace)
        status = error_set(err, STATUS_USAGE,
                           "%s holds clusters '%s' already: --force replaces them, --name NAME "
                           "keeps both",
                           path_for_message(shown, sizeof shown, input), clustering->name);
    if (!status && base && base->has_images && clustering->rows != result_images(base))
        status = error_set(err, STATUS_FAILED, "%s has %llu images, the clusters %llu rows",
                           path_for_message(shown, sizeof shown, input),
                           (unsigned long long)result_images(base),
                           (unsigned long long)clustering->rows);
    if (!status && base)
        status = check_scales(base, clustering->feature, old, err);
    if (!status)
        status = output_open(&out, output, err);
    if (!status && base)
        status = copy_bytes(output_descriptor(out), output, input, err);
    if (!status && base)
        status = h5_open_file(&file, output_temporary(out), true, err);
    else if (!status)
        status = h5_create_file(&file, output_temporary(out), err);
    if (!status && !base)
        status = put_root(file, output, err);
    if (!status && old)
        status = remove_clustering(file, base, old, output, err);
    if (!status)
        status = write_parts(file, clustering, output, err);
    if (!status)
        status = h5_finish_file(&file, output, err);
    if (file > 0)
        h5_discard_file(&file);
    if (!status)
        status = output_commit(out, err);
    output_close(&out);
    result_close(&base);
    return status;
}
