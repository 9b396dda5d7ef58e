/* kinds.c: the table of feature kinds. */
#include "features/kind.h"

#define ROW(name, text) &feature_##name,

const struct feature_kind *const feature_kinds[] = {FEATURE_KINDS(ROW) NULL};
