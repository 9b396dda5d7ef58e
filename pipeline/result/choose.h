/* choose.h: selects a feature or clustering of a file by a name that may be missing or wrong. */
#ifndef CLPIPE_RESULT_CHOOSE_H
#define CLPIPE_RESULT_CHOOSE_H

#include "result/result.h"

/* The feature of that name; NULL: the only one. STATUS_USAGE: no such feature, or several and no
 * name; the message lists them. STATUS_FAILED: there are none. */
enum status choose_feature(const struct result_feature **out, const struct result *result,
                           const char *name, struct error *err);
/* The same for a clustering. */
enum status choose_clusters(const struct result_clusters **out, const struct result *result,
                            const char *name, struct error *err);

#endif
