/* h5_error.h: turns HDF5's errors into one sentence, the same wherever a file is opened or read.
 *
 * HDF5 keeps an error stack per thread, and prints it unless the thread disables that. */
#ifndef CLPIPE_MATRIX_H5_ERROR_H
#define CLPIPE_MATRIX_H5_ERROR_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

/* Stops HDF5 from printing; each thread calls it before its first HDF5 call that may fail. */
void h5_quiet(void);
/* How many calls of quiet threads have failed so far. */
uint64_t h5_failed_calls(void);

/* Turns the calling thread's error stack into STATUS_FAILED "cannot WHAT PATH: ...", clearing
 * it. */
enum status h5_fail(struct error *err, const char *call, const char *what, const char *path);

/* The same for a system call with that error number. */
enum status h5_system_failed(struct error *err, int native, const char *call, const char *what,
                             const char *path);

/* Opens a file with access properties `access`. STATUS_FAILED: not an HDF5 file, a newer format,
 * damaged, open for writing elsewhere, or left open by a program that ended. */
enum status h5_open(hid_t *file, const char *path, bool writable, hid_t access, struct error *err);

#endif
