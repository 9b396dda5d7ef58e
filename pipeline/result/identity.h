/* identity.h: identities of files and of the rows of a feature: digests of 64 characters, and the bytes
 * that are digested; docs/file-format.md, "Checksums and identity".
 *
 * "group NAME\n" or "dataset NAME TYPE SHAPE AXES\n", NAME being absolute for each attribute, by name:
 * "attribute NAME TYPE scalar\n" and its value
 *
 * Values: numbers in little-endian order, texts of datasets with their padding, those of attributes as
 * their length (8 bytes, little-endian) and their bytes. HDF5's attributes of dimension scales
 * (addresses) are left out; AXES has the names of the scales instead. */
#ifndef CLPIPE_RESULT_IDENTITY_H
#define CLPIPE_RESULT_IDENTITY_H

#include "result/axes.h"
#include "result/pieces.h"
#include "result/result.h"

struct defined;

/* Prefix of the identities, the roots, of datasets. */
#define IDENTITY_TREE "tree3-"

/* Identity of the file: SHA-256, 64 hexadecimal digits. Reads all values. */
enum status result_identity(struct result *result, char hex[65], struct error *err);

/* Identity of the rows of one feature of the file (names, types, shapes, values): the `content`
 * attribute of clusters made from it. */
enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err);

/* --- for those who write and verify checksums ------------------------------------------------- */

/* Objects without the values of datasets. */
struct serial {
    struct sha256 sha;
    struct axes *axes;
    bool (*counts)(const struct defined *defined, const char *attribute);
    bool exact; /* refuses objects whose form differs from clpipe's, even with equal content */
};
void serial_init(struct serial *serial, struct axes *axes,
                 bool (*counts)(const struct defined *defined, const char *attribute));
enum status serial_add(struct serial *serial, hid_t object, const char *name,
                       const struct defined *defined, struct error *err);
void serial_finish(char hex[65], const struct serial *serial);

/* Identity of one dataset, IDENTITY_TREE and 58 hexadecimal digits. *pieces NULL: digests its rows.
 * Else computes unknown pieces, for rows in parts from the parts' checksums. Clear *pieces even
 * after a failure: it may then have the readable ones. */
enum status identity_of_dataset(char root[65], struct pieces *pieces, hid_t dataset,
                                const char *name, struct axes *axes, struct error *err);

/* Identity of a file. `root` provides the root of each dataset except those of /runs, even if it
 * does not count; NULL: the roots are computed. */
typedef enum status identity_root(void *context, char root[65], hid_t dataset, const char *name,
                                  struct error *err);
enum status identity_of_file(char hex[65], hid_t file, struct axes *axes, identity_root *root,
                             void *context, struct error *err);

#endif
