/* h5_error.h: closes HDF5's identifiers, and turns its errors into one sentence, the same wherever
 * a file is opened or read.
 *
 * HDF5 keeps an error stack per thread, and prints it unless the thread disables that. */
#ifndef CLPIPE_MATRIX_H5_ERROR_H
#define CLPIPE_MATRIX_H5_ERROR_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"
#include <stdint.h>

/* Closes any HDF5 identifier above zero and makes it H5I_INVALID_HID. */
void h5_close(hid_t *id);
/* Local identifiers, which must be initialised, that are closed when their scope is left. */
#define H5_SCOPED __attribute__((cleanup(h5_close)))

/* Stops HDF5 from printing; each thread calls it before its first HDF5 call that may fail. */
void h5_quiet(void);
/* How many calls have failed so far in quiet threads. */
uint64_t h5_failed_calls(void);

/* Turns the calling thread's error stack into STATUS_FAILED "cannot WHAT PATH: ...", clearing
 * it. */
enum status h5_fail(struct error *err, const char *call, const char *what, const char *path);

/* The same for a system call with that error number. */
enum status h5_system_failed(struct error *err, int native, const char *call, const char *what,
                             const char *path);

/* Opens a file for reading, with access properties `access`. STATUS_FAILED: not an HDF5 file, a
 * newer format, damaged, open for writing elsewhere, or left open by a program that ended. */
enum status h5_open(hid_t *file, const char *path, hid_t access, struct error *err);

#endif
