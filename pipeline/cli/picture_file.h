/* picture_file.h: reads a picture from a file of any format; writes one as a BMP. */
#ifndef CLPIPE_CLI_PICTURE_FILE_H
#define CLPIPE_CLI_PICTURE_FILE_H

#include "base/error.h"
#include <stdint.h>

struct picture_file {
    uint8_t *pixels; /* RGB rows without gaps, as stored */
    uint32_t width, height;
    uint8_t orientation; /* EXIF 1 to 8 */
};

/* Decodes the file with an ingest's defaults. STATUS_FAILED: the message names the reason. */
enum status picture_file_read(struct picture_file *out, const char *path, struct error *err);
void picture_file_clear(struct picture_file *picture);

/* Writes the upright picture as a BMP of 24 bits; the file appears complete or not at all. */
enum status picture_file_write_bmp(const char *path, const struct picture_file *picture,
                                   struct error *err);

#endif
