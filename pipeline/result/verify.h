/* verify.h: every invariant of a file, checked on top of its reader. */
#ifndef CLPIPE_RESULT_VERIFY_H
#define CLPIPE_RESULT_VERIFY_H

#include "result/result.h"

/* Checks every invariant and calls `broken` with a line for each that does not hold; *count is the
 * number of calls. */
enum status result_verify(struct result *result, void (*broken)(const char *line, void *context),
                          void *context, uint64_t *count, struct error *err);

#endif
