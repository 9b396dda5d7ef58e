/* thumbs_internal.h: what thumbs.c and sheets.c share. */
#ifndef CLPIPE_THUMBS_THUMBS_INTERNAL_H
#define CLPIPE_THUMBS_THUMBS_INTERNAL_H

#include "cluster/workers.h"
#include "thumbs/thumbs.h"

struct thumbs {
    struct thumbs_config config;
    uint64_t rows, missing, used;
    uint32_t size;
    int spool;        /* unlinked: all thumbnails */
    uint64_t *at;     /* of each row in it, */
    uint32_t *length; /* its bytes, 0: it has none */
    struct workers *workers;
    uint8_t *buffer; /* of thumbs_read */
    size_t room;
};

/* Reads the thumbnail of a row, thumbs->length[row] bytes, to *buffer, which it makes larger as needed
 * (*room bytes; free()). Any thread. */
enum status thumbs_fetch(uint8_t **buffer, size_t *room, const struct thumbs *thumbs, uint64_t row,
                         struct error *err);

#endif
