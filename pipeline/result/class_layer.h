/* class_layer.h: the linear layer from a feature's rows to class scores: /classes/NAME. */
#ifndef CLPIPE_RESULT_CLASS_LAYER_H
#define CLPIPE_RESULT_CLASS_LAYER_H

#include "result/result.h"
#include <hdf5.h>

struct class_layer {
    char feature[FEATURE_NAME_MAX], digest[65]; /* digest: of the model */
    uint32_t count, columns;
    char **name;             /* count, UTF-8; then NULL */
    float *weights, *offset; /* count x columns; count: scores are weights * row + offset */
    /* The row length for which scores equal the network's own (docs/networks.md). */
    double length;
};

/* The layer of a feature, or of the first feature that has one (feature NULL). STATUS_END: none;
 * STATUS_FAILED: it is damaged. Clear it even after a failure. */
enum status class_layer_read(struct class_layer *out, struct result *result, const char *feature,
                             struct error *err);
void class_layer_clear(struct class_layer *layer);

/* The scores of `count` rows, count x layer->count. */
void class_layer_scores(float *scores, const struct class_layer *layer, const float *rows,
                        uint64_t count);

/* Copies /classes of `from`, which may be NULL, to a new file, and adds those of features whose model is
 * open. */
enum status class_groups_write(hid_t file, const struct feature_set *features, struct result *from,
                               struct error *err);
/* Verifies that each layer fits the shape and the model of its feature. */
struct verify;
void class_groups_verify(struct verify *verify);

#endif
