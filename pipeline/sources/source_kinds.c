/* source_kinds.c: the table of kinds of SOURCE. */
#include "sources/source.h"

#define ROW(name) &source_##name,

const struct source_kind *const source_kinds[] = {SOURCE_KINDS(ROW) NULL};
