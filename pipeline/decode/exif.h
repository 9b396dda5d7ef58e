/* exif.h: reads the orientation from an Exif block (Exif 2.32, TIFF 6.0). */
#ifndef CLPIPE_DECODE_EXIF_H
#define CLPIPE_DECODE_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* tiff points to the TIFF header ("II*\0" or "MM\0*"). Returns 1 to 8; 1 if absent, malformed or
 * out of range. */
uint8_t exif_orientation(const uint8_t *tiff, size_t size);

#endif
