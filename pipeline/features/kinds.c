/* kinds.c: the table of feature kinds. */
#include "features/kind.h"

const struct feature_kind *const feature_kinds[] = {
    &feature_rgb,           &feature_rgb_joint,   &feature_gray,
    &feature_hsv,           &feature_lab,         &feature_lbp,
    &feature_oplbp,         &feature_hog,         &feature_gradient,
    &feature_coledge,       &feature_dct_words,   &feature_dct_fisher,
    &feature_sift_words,    &feature_sift_fisher, &feature_opsift_words,
    &feature_opsift_fisher, &feature_patch_words, &feature_patch_fisher,
    &feature_quality,       &feature_net,         NULL,
};
