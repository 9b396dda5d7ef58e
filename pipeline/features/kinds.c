/* kinds.c: the table of feature kinds. */
#include "features/kind.h"

const struct feature_kind *const feature_kinds[] = {
    &feature_rgb, &feature_rgb_joint, &feature_gray, &feature_hsv, NULL,
};
