/* duplicates.h: how many images have the same bytes as an earlier one. */
#ifndef CLPIPE_FILE_DUPLICATES_H
#define CLPIPE_FILE_DUPLICATES_H

#include "file/result.h"

enum status result_duplicates(struct result *result, uint64_t *copies, struct error *err);

#endif
