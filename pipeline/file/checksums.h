/* checksums.h: /checksums: for each dataset of the format (but for /runs) the digests of its values'
 * pieces, under its own path, with the dataset's identity as attribute `root`; and the identity of
 * the file as attribute `identity` of the group. */
#ifndef CLPIPE_FILE_CHECKSUMS_H
#define CLPIPE_FILE_CHECKSUMS_H

#include "file/defined.h"
#include "file/pieces.h"
#include "file/verify_report.h"

/* Writes the checksums of a file that is open for writing: those that are there already stand for
 * their datasets, which must not have changed; those of datasets that are gone are left out. Flushes
 * the file. */
enum status checksums_write(hid_t file, const char *path, struct error *err);

/* Takes out those at and below an object (without a leading '/') that is removed or will be another:
 * checksums_write will compute them again. */
enum status checksums_forget(hid_t file, const char *name, const char *path, struct error *err);

/* Digests the datasets at and below `name` (absolute, "/" for all but clusterings and neighbours)
 * and reports what is not as it was written, with its rows. */
enum status checksums_verify(struct verify *verify, const char *name, struct error *err);

#endif
