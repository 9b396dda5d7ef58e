/* class_groups.h: /classes in a file that is written or verified. */
#ifndef CLPIPE_RESULT_CLASS_GROUPS_H
#define CLPIPE_RESULT_CLASS_GROUPS_H

#include "result/verify_report.h"

/* Copies those of `from`, which may be NULL, and adds those of features whose model is open. */
enum status class_groups_write(hid_t file, const struct feature_set *features, struct result *from,
                               const char *path, struct error *err);

/* Each layer has the shape of its feature, and the model of it. */
enum status class_groups_verify(struct verify *verify, struct error *err);

#endif
