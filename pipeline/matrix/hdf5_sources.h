/* hdf5_sources.h: datasets whose values lie in other files. HDF5 reads fill values, most often zeros,
 * for what is missing there; here it is an error. */
#ifndef CLPIPE_MATRIX_HDF5_SOURCES_H
#define CLPIPE_MATRIX_HDF5_SOURCES_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"

/* Checks that the sources of a virtual dataset, and theirs, and external files have the values that
 * `dataset` of the file at `path` takes from them. `open` opens a file for reading. */
enum status hdf5_sources_check(hid_t dataset, const char *path,
                               enum status (*open)(hid_t *file, const char *path,
                                                   struct error *err),
                               struct error *err);

#endif
