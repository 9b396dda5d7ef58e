/* source_range.h: "shard-{0000..0999}.tar" as a SOURCE stands for 1,000 names, as in shells and in
 * WebDataset. */
#ifndef CLPIPE_CLI_SOURCE_RANGE_H
#define CLPIPE_CLI_SOURCE_RANGE_H

#include "base/error.h"

/* Replaces names that hold a range {FIRST..LAST} of decimal numbers by those that it stands for, in
 * ascending or descending order, with as many digits as the longer number where one begins with 0. A
 * name that exists stays as it is; of several ranges the last varies fastest. Free (*made)[i] for
 * i < *made_count, then *made. STATUS_USAGE: more than `most` names. */
enum status source_range_expand(const char ***names, unsigned *count, char ***made,
                                unsigned *made_count, unsigned most, struct error *err);

#endif
