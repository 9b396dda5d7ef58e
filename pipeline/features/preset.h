/* preset.h: features that are computed, and joined, together, as measurements on labelled photographs
 * have chosen them; docs/features.md has the numbers. */
#ifndef CLPIPE_FEATURES_PRESET_H
#define CLPIPE_FEATURES_PRESET_H

#include "base/error.h"
#include "features/feature.h"

#define PRESET_FEATURES_MAX 6
#define PRESET_DEFAULT      "fast" /* of a new file, where neither features nor a preset are named */

struct preset {
    const char *name;
    struct preset_feature {
        const char *spec; /* NAME=KIND...; NULL: no more */
        double weight;
    } feature[PRESET_FEATURES_MAX];
    /* Before a clustering: rows are reduced to so many principal components (0: they are not), each
     * divided by the power `whiten` / 2 of its variance. */
    uint32_t pca;
    double whiten;
    /* Rankings take so many components, at most `pca`, without whitening; 0: rows as they are. */
    uint32_t rank_pca;
    const struct preset *few; /* for few images: none of its features learns; NULL: nor do these */
};

/* By name; NULL: there is none. `presets` ends with an entry without a name. */
extern const struct preset presets[];
const struct preset *preset_find(const char *name);

unsigned preset_count(const struct preset *preset);

/* What is stored with a file (docs/file-format.md): names and weights of the features, and how they
 * are joined. Free it; NULL: no memory. */
char *preset_json(const struct preset *preset);

#endif
