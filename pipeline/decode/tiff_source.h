/* tiff_source.h: a file for libtiff, read at offsets through callbacks. Internal to decode. */
#ifndef CLPIPE_DECODE_TIFF_SOURCE_H
#define CLPIPE_DECODE_TIFF_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <tiffio.h>

struct tiff_source {
    struct input *input;
    struct failure *failure; /* of the current call */
    bool reading;            /* reading pixels: errors count */
    bool ended;              /* a read reached past the end of the file */
    bool opening;            /* reading the directory */
    uint64_t directory_bytes;
    uint64_t position;
};

/* Opens the first directory; NULL on failure. The source must not move until the file is closed. */
TIFF *tiff_source_open(struct tiff_source *source);

/* Sets a failure from a message, unless one is set. */
void tiff_source_note(struct tiff_source *source, const char *text);

#endif
