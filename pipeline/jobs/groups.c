/* groups.c: names of kinds, and memory of groups. */
#include "jobs/duplicates.h"

#include <stdlib.h>
#include <string.h>

const char *duplicates_kind_name(enum duplicates_kind kind)
{
    static const char *const name[DUPLICATES_KINDS] = {"bytes", "pixels", "near"};
    return name[kind];
}

void duplicates_clear(struct duplicates *duplicates)
{
    free(duplicates->group);
    free(duplicates->member);
    memset(duplicates, 0, sizeof *duplicates);
}
