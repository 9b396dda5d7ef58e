/* h5_driver.h: HDF5's default file driver, with a record of failures.
 *
 * When a read fails, some HDF5 functions report that an object does not exist (H5Oget_info,
 * H5Aexists). The caller may ignore the difference as long as it checks for failed reads at the
 * end.
 *
 * Failed writes are hidden from HDF5: 1.10 crashes after one when it copies objects (H5Ocopy) or
 * closes what it could not write. All further writes to the file are dropped.
 *
 * For HDF5's one thread, except h5_driver_lock. */
#ifndef CLPIPE_MATRIX_H5_DRIVER_H
#define CLPIPE_MATRIX_H5_DRIVER_H

#define H5_USE_110_API
#include <hdf5.h>

#include <stdbool.h>

/* Makes a file access property list use this driver. */
void h5_driver_use(hid_t access);

/* The descriptor of the file of an object, which HDF5 keeps open; -1: not a file of this driver. */
int h5_driver_descriptor(hid_t object);

/* The error number of the first failed read of an open file, with its name; or 0, or
 * H5_DRIVER_DAMAGE: the data read was invalid (h5_driver_note_damage, for `object` or its file). */
#define H5_DRIVER_DAMAGE -1
int h5_driver_read_failed(const char **path);
void h5_driver_note_damage(hid_t object);

/* Call it around H5Ocopy, which crashes if data cannot be read: reads then yield zeros, and the
 * failure is recorded. */
void h5_driver_copy(bool begin);

/* HDF5 may be built for one thread: lock around its calls in parallel readers. Not recursive. */
void h5_driver_lock(void);
void h5_driver_unlock(void);

/* The name of the file of an object, as given when it was opened or by h5_driver_set_name; NULL: not a file of this
 * driver. */
const char *h5_driver_name(hid_t object);
void h5_driver_set_name(hid_t file, const char *name);

/* The error number of the first failed write to the file of `object`, or of the file closed last; or 0. */
int h5_driver_write_failed(hid_t object);
int h5_driver_closed_failed(void);

/* Drops all further writes to `file`. */
void h5_driver_drop(hid_t file);

#endif
