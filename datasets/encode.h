/* encode.h: a canvas as the bytes of a JPEG or PNG file, in the many ways that real files are made.
 */
#ifndef CLPIPE_ENCODE_H
#define CLPIPE_ENCODE_H

#include "scene.h"
#include <stddef.h>

enum encoding_kind { ENCODING_JPEG, ENCODING_PNG };

enum jpeg_space { JPEG_COLOUR, JPEG_GREY, JPEG_CMYK };

enum png_space { PNG_COLOUR, PNG_COLOUR_ALPHA, PNG_GREY, PNG_GREY_ALPHA, PNG_INDEXED };

struct encoding {
    const char *extension; /* with the dot */
    enum encoding_kind kind;
    /* JPEG */
    enum jpeg_space jpeg;
    int quality;
    int sampling_h, sampling_v; /* of luma; chroma is 1x1 */
    int progressive;
    int restart;     /* MCUs between restart markers, 0: none */
    int orientation; /* EXIF, 0: no such tag; the stored picture is turned so that it shows upright
                      */
    int big_endian;  /* of the EXIF block */
    /* PNG */
    enum png_space png;
    int depth;
    int interlaced;
    int transparent; /* indexed: the first palette entry is */
};

struct bytes {
    unsigned char *data;
    size_t size;
};

/* The caller frees out->data. Ends the program with a message where there is no memory. */
void encode(struct bytes *out, const struct canvas *canvas, const struct encoding *encoding);

void *allocate(size_t count, size_t size);

#endif
