/* tiff_source.h: a file as libtiff sees it, through reads at offsets of our own. Inside decode. */
#ifndef CLPIPE_DECODE_TIFF_SOURCE_H
#define CLPIPE_DECODE_TIFF_SOURCE_H

#include "base/failure.h"
#include "decode/input.h"
#include <stdbool.h>
#include <stdint.h>

#include <tiffio.h>

struct tiff_source {
    struct input *input;
    struct failure *failure; /* of the current call */
    bool reading;            /* pixels: errors count */
    bool ended;              /* a read reached beyond the end of the file */
    bool opening;            /* the directory is read */
    uint64_t directory_bytes;
    uint64_t position, file_bytes;
};

/* Opens the first directory; NULL if none can be read. The source must not move until the file is
 * closed. */
TIFF *tiff_source_open(struct tiff_source *source);

/* Makes a failure from a message, unless there is one already. */
void tiff_source_note(struct tiff_source *source, const char *text);

#endif
