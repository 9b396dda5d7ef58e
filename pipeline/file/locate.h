/* locate.h: where the images of a file are. */
#ifndef CLPIPE_FILE_LOCATE_H
#define CLPIPE_FILE_LOCATE_H

#include "file/result.h"

/* Begins zeroed; one for each file. */
struct locator {
    char *working;      /* absolute working directory */
    char *source;       /* the last image's, */
    uint16_t source_of; /* its number, */
    bool source_is_directory;
    char *path; /* of the last image */
    size_t size;
};

/* The absolute path of an image, in bytes, valid until the next call. Sources are as they were given,
 * so relative ones are looked for in the working directory. Members of archives are below them. Nothing says that the image is there. */
enum status locate_image(struct locator *locator, const char **path, const struct result *result,
                         unsigned source, const char *path_raw, struct error *err);
void locator_clear(struct locator *locator);

#endif
