/* parts.h: a merged file shows rows of other files, its parts: to other programs through virtual
 * datasets, to clpipe through its manifest.
 *
 *   /parts/path                 of each part, relative to the merged file's directory, without ".."
 *   /parts/rows                 images of each
 *   /parts/thumbnail_bytes      of its /thumbnails/data
 *   /parts/bytes                size of the file
 *   /parts/identity             as its /checksums had it when it was merged
 *
 * HDF5 returns fill values for missing parts; clpipe compares all parts with the manifest when the
 * merged file is opened, and reads them itself: few are open at a time, and the cost of a read
 * depends on its rows, not on the number of parts. Only on HDF5's thread. */
#ifndef CLPIPE_RESULT_PARTS_H
#define CLPIPE_RESULT_PARTS_H

#include "base/list_share.h"
#include "result/pieces.h"
#include <stdbool.h>

#define PARTS_GROUP "parts"
#define PARTS_AXIS  "part"
/* A merge refuses more than these; in a file, they count as damage. */
#define PARTS_MOST SHARDS_MAX

/* An unnamed merged file is opened by such a path; the names of its parts are relative to "/". */
#define PARTS_UNNAMED "/proc/self/fd/"

/* One part, as in the manifest. */
struct part {
    const char *text; /* its name as a UTF-8 text from which the bytes can be restored */
    const char *name; /* relative to the merged file's directory */
    const char *path; /* the path to open it by */
    const char *identity;
    uint64_t rows, thumbnail_bytes, bytes;
};

/* Does nothing for a file that was not merged. Else compares its parts with the manifest; from then on
 * h5_open_dataset accepts virtual datasets that agree with the manifest, h5_read_rows reads them and
 * h5_open_raw opens them. STATUS_FAILED: a part is missing or has changed, or the manifest is
 * damaged. */
enum status parts_attach(hid_t file, const char *path, struct error *err);
/* Call it before a file is closed, even if it has no parts. */
void parts_detach(hid_t file);

/* 0: the file was not merged. */
unsigned parts_count(hid_t file);
struct part parts_at(hid_t file, unsigned i);

/* Whether a merged file, open without parts_attach, has exactly these parts, by their names
 * relative to its directory; *current: and they are unchanged since the merge. */
enum status parts_are(bool *same, bool *current, hid_t file, const char *path,
                      const char *const *name, unsigned count, struct error *err);

/* For a virtual dataset, instead of digests of pieces: those of its roots in the parts (SHA-256 of
 * their text), one for each part with rows of it. */
enum status parts_digest(struct pieces *pieces, hid_t dataset, struct error *err);

/* An attribute of 64 bytes of the object `name` ("checksums/images/path"); false: there is none, and the text is
 * "". parts_identity: `identity` of /checksums. */
bool parts_checksum(char text[65], hid_t file, const char *name, const char *attribute,
                    struct error *err);
bool parts_identity(char identity[65], hid_t file, struct error *err);

/* Writes the manifest. */
enum status parts_write(hid_t file, const struct part *part, unsigned count, struct error *err);

/* Creates a dataset of this type and one or more columns that concatenates the rows of the datasets of that
 * absolute name in the parts. Unwritten and lost values are NaN, or the largest integer. */
enum status parts_create_dataset(hid_t *dataset, hid_t parent, const char *name,
                                 enum value_type type, int rank, uint64_t columns,
                                 const struct part *part, unsigned count, struct error *err);

#endif
