/* class_layer.c: /classes/NAME, from a model or another file, and the scores. */
#include "result/class_layer.h"
#include "features/kind.h"
#include "result/copies.h"
#include "result/verify_report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP       "classes"
#define MARK        "model_digest"
#define MOST_BYTES  ((uint64_t)1 << 30)
#define USUAL_SCORE 36 /* length of a row times that of a class's weights, as usual in networks */
#define LANES       8

/* --- writing ----------------------------------------------------------------------------------- */

/* The model's layer, if its input is what the feature stores; NULL: it has none. */
static const struct net_classes *classes_of(const struct feature *feature)
{
    const struct net_model *model = feature->kind->network ? feature->net.model : NULL;
    const bool own =
        model && model->classes.count > 0 &&
        net_model_output(model, feature->net.output) == &model->outputs[model->classes.output];
    return own ? &model->classes : NULL;
}

/* Rows were scaled to unit length; the scales compensate for it. */
static void scale_classes(float *out, const struct net_classes *classes, bool unit)
{
    double squares = 0;
    for (uint32_t c = 0; c < classes->count; c++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < classes->columns; i++) {
            const int weight = classes->weights[(size_t)c * classes->columns + i];
            sum += weight * weight;
        }
        squares += (double)classes->scale[c] * classes->scale[c] * (double)sum;
    }
    const double length = squares > 0 ? USUAL_SCORE / sqrt(squares / classes->count) : 1;
    for (uint32_t c = 0; c < classes->count; c++)
        out[c] = unit ? (float)(classes->scale[c] * length) : classes->scale[c];
}

/* Splits names into lines, each a string in `copy`. */
static void split_names(const char **name, char *copy, const struct net_classes *classes)
{
    memcpy(copy, classes->names, classes->names_bytes);
    for (uint32_t c = 0; c < classes->count; c++) {
        name[c] = copy;
        copy += strcspn(copy, "\n");
        *copy++ = '\0';
    }
}

static enum status write_layer(hid_t file, hid_t all, const struct feature *feature,
                               const struct net_classes *classes, struct error *err)
{
    const hsize_t size[2] = {classes->count, classes->columns};
    const size_t room =
        classes->names_bytes + 1 + classes->count * (sizeof(char *) + sizeof(float));
    char own[AXIS_NAME_MAX], values[AXIS_NAME_MAX];
    const char *const axes[] = {own, values};
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    const char **name = malloc(room);
    if (!name)
        return error_memory(err, room, "the names of classes");
    float *const scale = (float *)(name + classes->count);
    split_names(name, (char *)(scale + classes->count), classes);
    scale_classes(scale, classes, feature->normalize == NORMALIZE_UNIT);
    axis_name(own, "class", feature->name);
    axis_name(values, "feature", feature->name);
    const bool failed =
        h5_create_group(&group, all, feature->name, err) ||
        h5_put_text(group, MARK, feature->net.digest, err) ||
        h5_put_texts(file, group, "name", name, classes->count, own, err) ||
        h5_put_values(file, group, "matrix", VALUE_I8, 2, size, axes, classes->weights, err) ||
        h5_put_values(file, group, "scale", VALUE_F32, 1, size, axes, scale, err) ||
        h5_put_values(file, group, "offset", VALUE_F32, 1, size, axes, classes->bias, err);
    free(name);
    return failed ? STATUS_FAILED : STATUS_OK;
}

enum status class_groups_write(hid_t file, const struct feature_set *features, struct result *from,
                               struct error *err)
{
    const struct copies copies = {.from = from, .to = file};
    enum status status = STATUS_OK;
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    if (from && h5_is_object(from->file, GROUP, H5O_TYPE_GROUP))
        status = copies_make(&copies, "/" GROUP, err);
    for (unsigned i = 0; i < features->count && status == STATUS_OK; i++) {
        const struct feature *feature = &features->feature[i];
        const struct net_classes *classes = classes_of(feature);
        if (!classes)
            continue;
        if (all < 0)
            status = h5_make_group(&all, file, GROUP, err);
        if (status == STATUS_OK && H5Lexists(all, feature->name, H5P_DEFAULT) <= 0)
            status = write_layer(file, all, feature, classes, err);
    }
    return status;
}

/* --- reading ----------------------------------------------------------------------------------- */

static enum status read_names(struct class_layer *layer, hid_t group, struct error *err)
{
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    hsize_t size[2];
    if (h5_open_dataset(&dataset, group, "name", VALUE_TEXT, 1, size, err))
        return STATUS_FAILED;
    return size[0] == layer->count
               ? h5_read_texts(&layer->name, dataset, layer->count, "the names of classes", err)
               : h5_wrong(err, group, "has a different number of names than rows");
}

/* Reads `matrix` (rank 2), which may be stored as int8, `scale` or `offset`, as new float32. */
static enum status read_values(float **out, struct class_layer *layer, hid_t group,
                               const char *name, int rank, struct error *err)
{
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    hsize_t size[2] = {0, 1};
    enum value_type type = VALUE_I8;
    if (rank == 1 || h5_open_dataset(&dataset, group, name, type, rank, size, NULL)) {
        type = VALUE_F32;
        if (h5_open_dataset(&dataset, group, name, type, rank, size, err))
            return STATUS_FAILED;
    }
    if (rank == 1 && size[0] != layer->count)
        return h5_wrong(err, group, "has a different number of values than rows");
    if (rank == 2 && (size[0] == 0 || size[0] > UINT32_MAX || size[1] != layer->columns ||
                      size[0] * size[1] > MOST_BYTES / sizeof(float)))
        return h5_damaged(err, h5_path(group),
                          "/" GROUP "/%s/matrix is not a layer on the feature's %u values",
                          layer->feature, layer->columns);
    const size_t count = (size_t)(size[0] * (rank == 2 ? size[1] : 1));
    float *values = *out = malloc(count * sizeof *values);
    layer->count = (uint32_t)size[0];
    if (!values)
        return error_memory(err, count * sizeof *values, "the classes");
    if (h5_read_rows(dataset, type, 0, size[0], values, err))
        return STATUS_FAILED;
    /* Backwards, since the bytes lie before their converted values. */
    for (size_t i = count; type == VALUE_I8 && i-- > 0;)
        values[i] = ((const int8_t *)values)[i];
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return h5_wrong(err, rank == 2 ? dataset : group, "has a value that is not a number");
    return STATUS_OK;
}

/* Multiplies the weights by the scores' own scale. */
static void multiply(struct class_layer *layer, const float *scale)
{
    double squares = 0;
    for (uint32_t c = 0; c < layer->count; c++)
        for (uint32_t i = 0; i < layer->columns; i++) {
            float *weight = &layer->weights[(size_t)c * layer->columns + i];
            *weight *= scale[c];
            squares += (double)*weight * *weight;
        }
    layer->length = squares > 0 ? USUAL_SCORE / sqrt(squares / layer->count) : 1;
}

static enum status read_layer(struct class_layer *out, hid_t all,
                              const struct result_feature *feature, struct error *err)
{
    float *scale = NULL;
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    snprintf(out->feature, sizeof out->feature, "%s", feature->name);
    out->columns = feature->dimension;
    if (h5_open_group(&group, all, feature->name, err) ||
        h5_get_short_text(out->digest, sizeof out->digest, group, MARK, err) ||
        read_values(&out->weights, out, group, "matrix", 2, err))
        return STATUS_FAILED;
    enum status status = read_values(&scale, out, group, "scale", 1, err);
    if (status == STATUS_OK) {
        multiply(out, scale);
        status = read_values(&out->offset, out, group, "offset", 1, err);
    }
    free(scale);
    return status == STATUS_OK ? read_names(out, group, err) : status;
}

enum status class_layer_read(struct class_layer *out, struct result *result, const char *feature,
                             struct error *err)
{
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    *out = (struct class_layer){.count = 0};
    if (!h5_is_object(result->file, GROUP, H5O_TYPE_GROUP))
        return STATUS_END;
    if (h5_open_group(&all, result->file, GROUP, err))
        return STATUS_FAILED;
    enum status status = STATUS_END;
    for (unsigned i = 0; i < result->feature_count && status == STATUS_END; i++) {
        const struct result_feature *one = &result->features[i];
        if ((!feature || strcmp(feature, one->name) == 0) &&
            h5_is_object(all, one->name, H5O_TYPE_GROUP) &&
            H5Aexists_by_name(all, one->name, MARK, H5P_DEFAULT) > 0)
            status = read_layer(out, all, one, err);
    }
    return status;
}

void class_layer_clear(struct class_layer *layer)
{
    texts_free(layer->name);
    free(layer->weights);
    free(layer->offset);
    *layer = (struct class_layer){.count = 0};
}

static float product(const float *a, const float *b, uint32_t count)
{
    float lanes[LANES] = {0}, rest = 0;
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += a[i + l] * b[i + l];
    for (; i < count; i++)
        rest += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        rest += lanes[l];
    return rest;
}

void class_layer_scores(float *scores, const struct class_layer *layer, const float *rows,
                        uint64_t count)
{
    for (uint32_t c = 0; c < layer->count; c++)
        for (uint64_t i = 0; i < count; i++)
            scores[i * layer->count + c] =
                layer->offset[c] + product(layer->weights + (size_t)c * layer->columns,
                                           rows + i * layer->columns, layer->columns);
}

/* --- checks ------------------------------------------------------------------------------------ */

void class_groups_verify(struct verify *verify)
{
    struct result *result = verify->result;
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = &result->features[i];
        struct class_layer layer;
        struct error why = ERROR_INIT;
        const char *model = strstr(feature->spec, ",model=");
        const enum status status = class_layer_read(&layer, result, feature->name, &why);
        if (status != STATUS_OK && status != STATUS_END)
            verify_broken(verify, "/" GROUP "/%s: %s", feature->name, why.sentence);
        else if (status == STATUS_OK && model &&
                 strncmp(model + strlen(",model="), layer.digest, strlen(layer.digest)) != 0)
            verify_broken(verify, "/" GROUP "/%s belongs to a different model than the feature",
                          feature->name);
        class_layer_clear(&layer);
    }
}
