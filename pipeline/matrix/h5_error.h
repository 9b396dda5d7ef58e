/* h5_error.h: the reasons of HDF5 as one sentence, the same wherever a file is opened or read.
 *
 * HDF5 keeps a stack of errors for each thread, and prints it unless that thread tells it not to. */
#ifndef CLPIPE_MATRIX_H5_ERROR_H
#define CLPIPE_MATRIX_H5_ERROR_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"
#include <stdbool.h>

/* Keeps HDF5 from printing: in each thread, before its first call that may fail. */
void h5_quiet(void);

/* Turns the calling thread's error stack into STATUS_FAILED "cannot WHAT PATH: ..." and clears it. */
enum status h5_fail(struct error *err, const char *call, const char *what, const char *path);

/* The same for a system call with that error number. */
enum status h5_system_failed(struct error *err, int native, const char *call, const char *what,
                             const char *path);

/* Opens a file with these properties of access. STATUS_FAILED: it is no HDF5 file, of a newer
 * format, damaged, open for writing elsewhere, or was left open by a program that ended. */
enum status h5_open(hid_t *file, const char *path, bool writable, hid_t access, struct error *err);

#endif
