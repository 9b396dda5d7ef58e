/* kinds.c: the table of feature kinds. */
#include "features/kind.h"

const struct feature_kind *const feature_kinds[] = {
    &feature_rgb,
    &feature_rgb_joint,
    &feature_gray,
    &feature_hsv,
    &feature_lab,
    &feature_lbp,
    &feature_oplbp,
    &feature_hog,
    &feature_gradient,
    &feature_coledge,
    &feature_dct,
    &feature_sift,
    &feature_opsift,
    &feature_patch,
    &feature_quality,
    &feature_net,
    NULL,
};
