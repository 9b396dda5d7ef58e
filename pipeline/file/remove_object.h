/* remove_object.h: takes objects with their dimension scales out of a copy of a file. */
#ifndef CLPIPE_FILE_REMOVE_OBJECT_H
#define CLPIPE_FILE_REMOVE_OBJECT_H

#include "file/result_internal.h"

/* Removes a dataset, or a group with its datasets and groups, from `file`, a copy of the file of `result`. `name` is
 * its path without a leading '/'. Scales that others share forget it; those that nothing uses any
 * more go with it. HDF5 trusts what it keeps for scales, so that is checked first: STATUS_FAILED
 * where it is damaged. `path` is the file's final name, for messages. */
enum status remove_object(hid_t file, struct result *result, const char *name, const char *path,
                          struct error *err);

#endif
