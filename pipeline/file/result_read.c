/* result_read.c: rows, labels and runs of an open result. */
#include "base/path.h"
#include "file/result_internal.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status result_feature_read_raw(struct result *result, const struct result_feature *feature,
                                    uint64_t first, uint64_t count, void *rows, struct error *err)
{
    assert(first <= feature->rows && count <= feature->rows - first);
    return h5_read_rows(result_feature_dataset(result, feature),
                        feature->is_float ? VALUE_F32 : VALUE_U32, first, count, rows, result->path,
                        err);
}

enum status result_feature_read(struct result *result, const struct result_feature *feature,
                                uint64_t first, uint64_t count, float *rows, struct error *err)
{
    enum status status = result_feature_read_raw(result, feature, first, count, rows, err);
    if (status || feature->is_float)
        return status;
    /* In place: HDF5's own conversion of integers to floats is slow. */
    for (uint64_t i = 0; i < count * feature->dimension; i++) {
        uint32_t value;
        memcpy(&value, &rows[i], sizeof value);
        rows[i] = (float)value;
    }
    return STATUS_OK;
}

enum status result_feature_read_counts(struct result *result, const struct result_feature *feature,
                                       uint64_t first, uint64_t count, uint32_t *rows,
                                       struct error *err)
{
    assert(!feature->is_float);
    return result_feature_read_raw(result, feature, first, count, rows, err);
}

enum status result_image_at(struct result *result, uint64_t row, struct result_image *image,
                            struct error *err)
{
    assert(row < result_images(result));
    const void *found;
    const char *raw;
    enum status status = rows_at(result->images, row, &found, &raw, err);
    if (status)
        return status;
    const struct image_row *from = found;
    if (from->source >= result->source_count)
        return result_damaged(result, err, "image %llu has a source that is not in the list",
                              (unsigned long long)row);
    *image = (struct result_image){.path = from->path,
                                   .path_raw = raw,
                                   .width = from->width,
                                   .height = from->height,
                                   .orientation = from->orientation,
                                   .channels = from->channels,
                                   .source = from->source,
                                   .bytes = from->bytes,
                                   .mtime_ns = from->mtime_ns,
                                   .digest = {from->digest[0], from->digest[1]}};
    /* All but the last byte, which stays NUL. */
    memcpy(image->format, from->format, sizeof image->format - 1);
    return STATUS_OK;
}

enum status result_failure_at(struct result *result, uint64_t row, struct result_failure *failure,
                              struct error *err)
{
    assert(row < result_failures(result));
    const void *found;
    const char *raw;
    enum status status = rows_at(result->failures, row, &found, &raw, err);
    if (status)
        return status;
    const struct failure_row *from = found;
    char name[sizeof from->reason + 1] = "";
    memcpy(name, from->reason, sizeof from->reason);
    enum reason reason = reason_from_name(name);
    if (reason == REASON_NONE || reason == REASON_COUNT)
        return result_damaged(result, err, "failure %llu has a reason that does not exist",
                              (unsigned long long)row);
    if (from->source >= result->source_count)
        return result_damaged(result, err, "failure %llu has a source that is not in the list",
                              (unsigned long long)row);
    *failure = (struct result_failure){.path = from->path,
                                       .path_raw = raw,
                                       .reason = reason,
                                       .message = from->message,
                                       .bytes = from->bytes,
                                       .error_number = from->error_number,
                                       .source = from->source,
                                       .mtime_ns = from->mtime_ns};
    return STATUS_OK;
}

enum status result_clusters_read(struct result *result, const struct result_clusters *clusters,
                                 float *centroids, int32_t *labels, float *distances,
                                 uint64_t *sizes, int64_t *nearest, struct error *err)
{
    const struct result_cluster_entry *entry = NULL;
    for (unsigned i = 0; i < result->clusters_count; i++)
        if (&result->clusters[i].clusters == clusters)
            entry = &result->clusters[i];
    assert(entry);
    void *const to[PART_COUNT] = {[PART_CENTROIDS] = centroids,
                                  [PART_LABELS] = labels,
                                  [PART_DISTANCES] = distances,
                                  [PART_SIZES] = sizes,
                                  [PART_NEAREST] = nearest};
    struct cluster_shape shape = {clusters->k, clusters->dimension, clusters->iterations,
                                  clusters->rows};
    enum status status = STATUS_OK;
    for (int p = 0; !status && p < PART_COUNT; p++) {
        hsize_t size[2];
        cluster_part_dimensions(size, p, &shape);
        if (to[p])
            status = h5_read_rows(entry->part[p], cluster_part_kind[p].type, 0, size[0], to[p],
                                  result->path, err);
    }
    return status;
}

enum status result_run_at(struct result *result, uint64_t i, struct result_run *run,
                          struct error *err)
{
    assert(i < result->run_count);
    static const char *const names[] = {"command", "device", "driver", "host", "details"};
    const char **const texts[] = {&run->command, &run->device, &run->driver, &run->host,
                                  &run->json};
    char name[32];
    snprintf(name, sizeof name, "runs/%llu", (unsigned long long)result->runs[i]);
    hid_t group = H5Gopen2(result->file, name, H5P_DEFAULT);
    if (group < 0)
        return h5_fail(err, "H5Gopen2", "read", result->path);
    enum status status = STATUS_OK;
    for (int t = 0; !status && t < 5; t++) {
        free(result->run_text[t]);
        status =
            vlen_text_attribute(&result->run_text[t], result->vlen, group, names[t], true, err);
        *texts[t] = result->run_text[t];
        if (!status && !utf8_valid(*texts[t], strlen(*texts[t])))
            status = result_damaged(result, err, "/%s has a text that is not UTF-8", name);
    }
    if (!status && !h5_get_real(group, "seconds", &run->seconds))
        status = result_damaged(result, err, "/%s has no attribute 'seconds'", name);
    h5_close(&group);
    return status;
}
