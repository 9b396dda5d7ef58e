/* shown.h: a digest of what HDF5 says of a file's own objects beside the values that checksums cover: their
 * names, types, shapes and attributes, which scales are on which axes, and which axes scales say to be on.
 *
 * The attribute `shown` of /checksums has it for all but /runs, that of /runs for the runs: so two files of equal
 * content differ in /runs alone. Data of others, layouts and filters do not count. */
#ifndef CLPIPE_RESULT_SHOWN_H
#define CLPIPE_RESULT_SHOWN_H

#include "result/h5.h"

#define SHOWN "shown"

struct verify;

/* Of a file that is complete but for what others have added. */
enum status shown_write(hid_t file, const char *path, struct error *err);

/* Reports what is not as it was written, also in the rows of runs' maps. */
enum status shown_verify(struct verify *verify, struct error *err);

#endif
