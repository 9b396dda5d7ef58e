/* scales.h: is what HDF5 keeps for dimension scales whole? Its functions that attach and detach
 * scales trust it, and write beyond their memory where it is damaged; so it is looked at before a
 * copy of a file is changed. */
#ifndef CLPIPE_FILE_SCALES_H
#define CLPIPE_FILE_SCALES_H

#include "file/result_internal.h"

/* Whether the list of what a scale is attached to has the form that it must have. */
bool scales_references_whole(hid_t scale);

/* Checks a scale at the root; it may be missing. */
enum status scales_check_scale(struct result *result, const char *name, struct error *err);

/* The same for a scale that is to be deleted: it must have no values. */
enum status scales_check_own(struct result *result, const char *name, struct error *err);

/* Checks the scales of a dataset; it may have none. */
enum status scales_check_dataset(struct result *result, hid_t dataset, struct error *err);

#endif
