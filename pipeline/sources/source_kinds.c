/* source_kinds.c: the table of kinds of SOURCE. */
#include "sources/source_files.h"

const struct source_kind *const source_kinds[] = {
    &source_stream, &source_list, &source_directory, &source_file, NULL,
};
