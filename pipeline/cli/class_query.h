/* class_query.h: similar --class: images in the order of a class score. */
#ifndef CLPIPE_CLI_CLASS_QUERY_H
#define CLPIPE_CLI_CLASS_QUERY_H

#include "result/result.h"

/* The `n` images with the highest scores of the class of that name, whatever its case, or that has it among
 * its names, separated by commas and slashes (several have the highest of theirs); feature: whose classes,
 * NULL: the only one's. Where there are fewer, rows are -1 and scores NaN. STATUS_USAGE: no such class: the
 * line has the nearest names; no classes at all. */
enum status class_query(int64_t *rows, double *scores, uint32_t n, struct result *result,
                        const char *feature, const char *name, struct error *err);

#endif
