/* compare.h: how the rows to be written compare with those of the finished file. */
#ifndef CLPIPE_FILE_COMPARE_H
#define CLPIPE_FILE_COMPARE_H

#include "file/build.h"

/* What is the same. */
struct build_difference {
    bool same_rows; /* the images' values are equal: clusters stay right */
    bool same_all;  /* everything is: there is nothing to write */
};
enum status build_compare(struct build_difference *difference, const struct build_config *build,
                          struct error *err);

#endif
