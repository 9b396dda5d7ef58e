/* identity.h: what a file, or the rows of one feature, are, in 64 hexadecimal digits. */
#ifndef CLPIPE_FILE_IDENTITY_H
#define CLPIPE_FILE_IDENTITY_H

#include "file/result.h"

/* Identity of the file: SHA-256 as docs/file-format.md defines it. */
enum status result_identity(struct result *result, char hex[65], struct error *err);

/* Identity of the rows of one feature of the file (names, types, shapes, values): the `content`
 * attribute of clusters made from it. */
enum status result_feature_identity(struct result *result, const struct result_feature *feature,
                                    char hex[65], struct error *err);

#endif
