/* shown.h: a digest of a file's own objects as HDF5 describes them, without the values, which
 * checksums cover: names, types, shapes and attributes, the scales of axes, and the axes of scales.
 *
 * It is stored in the attribute `shown` of /checksums for everything except /runs, and of /runs for the runs, so
 * that files of equal content differ only in /runs. Data of other programs, layouts and filters are not
 * included. */
#ifndef CLPIPE_RESULT_SHOWN_H
#define CLPIPE_RESULT_SHOWN_H

#include "result/h5.h"

#define SHOWN "shown"

struct verify;

/* Writes the digests of a file that is complete except for data of other programs. */
enum status shown_write(hid_t file, struct error *err);

/* Reports objects that have changed since they were written, including row maps of runs. */
enum status shown_verify(struct verify *verify, struct error *err);

#endif
