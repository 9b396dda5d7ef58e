/* scales.h: is what HDF5 keeps for dimension scales whole? Its functions that attach and detach
 * scales trust it, and write beyond their memory where it is damaged; so it is looked at before a
 * copy of a file is changed. */
#ifndef CLPIPE_FILE_SCALES_H
#define CLPIPE_FILE_SCALES_H

#include "file/result_internal.h"

/* Of a scale at the root; one that is missing is fine. */
enum status scales_check_scale(struct result *result, const char *name, struct error *err);

/* The same of a scale that is to be deleted: it must have no values. */
enum status scales_check_own(struct result *result, const char *name, struct error *err);

/* Of a dataset that has scales; none is fine. */
enum status scales_check_dataset(struct result *result, hid_t dataset, struct error *err);

#endif
