/* preset.h: sets of features that are computed and joined together, chosen by measurements on
 * labelled photographs; docs/features.md has the numbers. */
#ifndef CLPIPE_FEATURES_PRESET_H
#define CLPIPE_FEATURES_PRESET_H

#include "features/feature.h"

#define PRESET_FEATURES_MAX 6
#define PRESET_DEFAULT      "fast" /* for a new file if neither features nor a preset are given */

struct preset {
    const char *name;
    struct preset_feature {
        const char *spec; /* NAME=KIND...; NULL: end */
        double weight;
    } feature[PRESET_FEATURES_MAX];
    /* For clustering, rows are reduced to this many principal components (0: not reduced), each
     * divided by its variance to the power of `whiten` / 2. */
    uint32_t pca;
    double whiten;
    /* Number of components for ranking, at most `pca`, not whitened; 0: rows as stored. */
    uint32_t rank_pca;
    const struct preset *few; /* for few images: its features do not learn; NULL: nor do these */
};

/* Finds a preset by name, including that for few images; NULL: none. A nameless entry ends
 * `presets`. */
extern const struct preset presets[];
const struct preset *preset_find(const char *name);
unsigned preset_count(const struct preset *preset); /* of its features */

/* The description stored in a file (docs/file-format.md): names and weights of the features, and
 * how they are joined. The caller frees it; NULL: no memory. */
char *preset_json(const struct preset *preset);

#endif
