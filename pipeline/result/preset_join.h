/* preset_join.h: how the features of a preset are joined, from the root attribute `preset`. */
#ifndef CLPIPE_RESULT_PRESET_JOIN_H
#define CLPIPE_RESULT_PRESET_JOIN_H

#include "matrix/joined.h"
#include "result/result.h"

struct preset_join {
    unsigned count;
    char name[JOINED_MOST][FEATURE_NAME_MAX];
    double weight[JOINED_MOST];
    /* For clusterings; pca 0: rows are not projected. */
    uint32_t pca;
    double whiten;
    uint32_t rank_pca; /* components for rankings, not whitened; 0: rows as stored */
};

/* Reads the attribute's JSON. STATUS_FAILED: this version does not understand it. */
enum status preset_join_read(struct preset_join *out, const char *json, struct error *err);

/* The name shown to users if `feature` consists of the features of the file's preset: "preset
 * fast", or the names of the features for few images. `result` may be NULL. Returns text. */
const char *preset_join_title(char *text, size_t size, const struct result *result,
                              const char *feature);

#endif
