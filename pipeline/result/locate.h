/* locate.h: locates the images of a file. */
#ifndef CLPIPE_RESULT_LOCATE_H
#define CLPIPE_RESULT_LOCATE_H

#include "result/result.h"

/* One per file, initially zeroed. */
struct locator {
    char *working;      /* text of the working directory */
    char *source;       /* path of the last image's, */
    char *base;         /* the base of its relative paths, if it is a list, */
    uint16_t source_of; /* its number, */
    bool source_is_directory, is_list;
    char *path; /* of the last image */
    size_t size;
};

/* The absolute path of an image, in bytes, valid until the next call. Relative sources are resolved where they
 * were given or, if they exist only there, in the working directory. Members have paths below their archives.
 * Does not check that the image exists. */
enum status locate_image(struct locator *locator, const char **path, const struct result *result,
                         unsigned source, const char *path_raw, struct error *err);
void locator_clear(struct locator *locator);

#endif
