/* h5_driver.h: how HDF5 reads and writes files: as its default driver does, but failures are noted.
 *
 * A read that fails makes functions of HDF5 say that something is not there (H5Oget_info, H5Aexists):
 * who asked need not know the difference, as long as nothing is made of the answer in the end.
 *
 * A write that fails is none to HDF5: 1.10 crashes after one, where it copies objects (H5Ocopy) or
 * closes what it could not write. Whatever else it writes to the file is dropped.
 *
 * HDF5's one thread. */
#ifndef CLPIPE_MATRIX_H5_DRIVER_H
#define CLPIPE_MATRIX_H5_DRIVER_H

#define H5_USE_110_API
#include <hdf5.h>

#include <stdbool.h>
#include <stdint.h>

/* Makes a list of file access properties use this driver; whether an open file does. */
void h5_driver_use(hid_t access);
bool h5_driver_used(hid_t file);

/* The error number of the first read that failed of a file that is open, with its name; or 0, or
 * H5_DRIVER_DAMAGE: what was read made no sense (h5_driver_note_damage, to `object` or its file). */
#define H5_DRIVER_DAMAGE -1
int h5_driver_read_failed(const char **path);
void h5_driver_note_damage(hid_t object);

/* Around H5Ocopy, which crashes where data cannot be read: they are zeros then, and the failure is
 * noted. */
void h5_driver_copy(bool begin);

/* HDF5 may have been built for one thread: around what threads call that read rows side by side. Not
 * to be nested. */
void h5_driver_lock(void);
void h5_driver_unlock(void);

/* The error number of the first write to `file` that failed, or 0; of the file that was closed last. */
int h5_driver_write_failed(hid_t file);
int h5_driver_closed_failed(void);

/* Drops what will be written to `file`. */
void h5_driver_drop(hid_t file);

#endif
