/* graph.c: adds neighbours to a copy of a file, and reads them. */
#include "result/graph.h"
#include "base/path.h"
#include "result/change.h"
#include "result/result_internal.h"
#include <stdio.h>

#define GROUP "neighbours"

static char *graph_name(char buffer[FEATURE_NAME_MAX + 15], const char *feature)
{
    snprintf(buffer, FEATURE_NAME_MAX + 15, GROUP "/%s", feature);
    return buffer;
}

enum status graph_check(struct result *result, const char *feature, bool replace, struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    const char *shown = PATH_TEXT(result->path);
    if (!schema_name_valid(feature))
        return error_set(
            err, STATUS_USAGE,
            "neighbours are stored for single features, not for %s, which joins several", feature);
    if (H5Lexists(result->file, GROUP, H5P_DEFAULT) > 0 &&
        H5Lexists(result->file, graph_name(name, feature), H5P_DEFAULT) > 0 && !replace) {
        error_set(err, STATUS_USAGE, "%s already has neighbours of %s", shown, feature);
        return error_remedy(err, REMEDY_REPLACE_LABELS);
    }
    return STATUS_OK;
}

static enum status write_graph(void *context, hid_t file, struct error *err)
{
    const struct graph_values *values = context;
    char axis[AXIS_NAME_MAX];
    const hsize_t size[2] = {values->rows, values->n};
    const char *const axes[] = {image_table.axis, axis};
    const uint8_t is_squared = 1;
    H5_SCOPED hid_t all = H5I_INVALID_HID, group = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    axis_name(axis, "neighbour", values->feature);
    if (h5_make_group(&all, file, GROUP, err) ||
        h5_create_group(&group, all, values->feature, err) ||
        h5_put_text(group, "feature", values->feature, err) ||
        h5_put_text(group, "metric", values->metric, err) ||
        h5_put_text(group, "content", values->content, err) ||
        h5_put_number(group, "n", VALUE_U32, &values->n, err) ||
        h5_put_number(group, "squared", VALUE_U8, &is_squared, err) ||
        h5_put_values(file, group, "rows", VALUE_I64, 2, size, axes, values->neighbours, err) ||
        h5_create_on_scales(&dataset, file, group, "distances", VALUE_F32, 2, size, axes, err) ||
        h5_write_rows(dataset, VALUE_F64, 0, values->rows, values->squared, err))
        return STATUS_FAILED;
    return h5_finish_dataset(&dataset, err);
}

enum status graph_write(struct result *result, const struct graph_values *values, struct error *err)
{
    char name[FEATURE_NAME_MAX + 16] = "/";
    const struct change change = {.output = result->path,
                                  .base = result,
                                  .replaces = name,
                                  .add = write_graph,
                                  .context = (void *)(uintptr_t)values};
    graph_name(name + 1, values->feature);
    return change_make(&change, err);
}

/* --- reading ----------------------------------------------------------------------------------- */

enum status graph_open(struct graph *out, struct result *result, const char *feature,
                       struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    hsize_t rows[2], distances[2];
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    *out = (struct graph){.rows_dataset = H5I_INVALID_HID, .distances_dataset = H5I_INVALID_HID};
    graph_name(name, feature);
    if (!h5_is_object(result->file, GROUP, H5O_TYPE_GROUP) ||
        !h5_is_object(result->file, name, H5O_TYPE_GROUP))
        return STATUS_END;
    enum status status = STATUS_OK;
    if (h5_open_group(&group, result->file, name, err) ||
        h5_open_dataset(&out->rows_dataset, group, "rows", VALUE_I64, 2, rows, err) ||
        h5_open_dataset(&out->distances_dataset, group, "distances", VALUE_F32, 2, distances,
                        err) ||
        h5_get_short_text(out->metric, sizeof out->metric, group, "metric", err) ||
        h5_get_short_text(out->content, sizeof out->content, group, "content", err))
        status = STATUS_FAILED;
    else if (rows[0] != result_images(result) || distances[0] != rows[0] ||
             distances[1] != rows[1] || rows[1] == 0 || rows[1] > UINT32_MAX)
        status = h5_damaged(err, result->path, "/%s has an impossible size", name);
    if (status) {
        graph_close(out);
        return status;
    }
    out->rows = rows[0];
    out->n = (uint32_t)rows[1];
    return STATUS_OK;
}

enum status graph_read(struct graph *graph, uint64_t first, uint64_t count, int64_t *neighbours,
                       float *squared, struct error *err)
{
    if (h5_read_rows(graph->rows_dataset, VALUE_I64, first, count, neighbours, err))
        return STATUS_FAILED;
    return h5_read_rows(graph->distances_dataset, VALUE_F32, first, count, squared, err);
}

void graph_close(struct graph *graph)
{
    h5_close(&graph->rows_dataset);
    h5_close(&graph->distances_dataset);
}
