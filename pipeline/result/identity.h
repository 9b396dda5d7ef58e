/* identity.h: what a file, or the rows of one feature, are, in 64 characters; docs/file-format.md. */
#ifndef CLPIPE_RESULT_IDENTITY_H
#define CLPIPE_RESULT_IDENTITY_H

#include "result/pieces.h"
#include "result/result.h"

/* Prefix of the identities, the roots, of datasets. */
#define IDENTITY_TREE "tree3-"

/* Identity of the file: SHA-256, 64 hexadecimal digits. All values are read. */
enum status result_identity(struct result *result, char hex[65], struct error *err);

/* Identity of the rows of one feature of the file (names, types, shapes, values): the `content`
 * attribute of clusters made from it. */
enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err);

/* --- for those who have digests of pieces already -------------------------------------------- */

/* The digests of a dataset's pieces: pieces_digest, or another source that knows them. */
typedef enum status identity_pieces(void *context, struct pieces *pieces,
                                    const struct serial *serial, hid_t dataset, const char *name,
                                    const struct serial_values *values, struct error *err);

/* Identity of a file. */
enum status identity_of_file(char hex[65], hid_t file, struct axes *axes, const char *path,
                             identity_pieces *digests, void *context, struct error *err);

/* Identity of one dataset of it, IDENTITY_TREE and 58 hexadecimal digits; its pieces go to *pieces,
 * to be cleared, unless that is NULL. */
enum status identity_of_dataset(char root[65], struct pieces *pieces, hid_t dataset,
                                const char *name, struct axes *axes, const char *path,
                                identity_pieces *digests, void *context, struct error *err);
/* As digests: computes them. */
identity_pieces identity_compute;

#endif
