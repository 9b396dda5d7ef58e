/* verify_features.h: the values of a feature. */
#ifndef CLPIPE_FILE_VERIFY_FEATURES_H
#define CLPIPE_FILE_VERIFY_FEATURES_H

#include "file/verify_report.h"

enum status verify_feature(struct verify *verify, const struct result_feature *feature,
                           struct error *err);

#endif
