/* codebook_groups.h: /codebooks in a file that is written or verified. */
#ifndef CLPIPE_RESULT_CODEBOOK_GROUPS_H
#define CLPIPE_RESULT_CODEBOOK_GROUPS_H

#include "result/verify_report.h"

/* Writes those of the features that have one; no group where none has. */
enum status codebook_groups_write(hid_t file, const struct feature_set *features, const char *path,
                                  struct error *err);

/* Each codebook can be used and is that of its digest; each feature that names one has it. */
enum status codebook_groups_verify(struct verify *verify, struct error *err);

#endif
