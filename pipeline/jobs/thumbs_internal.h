/* thumbs_internal.h: shared by thumbs.c and sheets.c. */
#ifndef CLPIPE_JOBS_THUMBS_INTERNAL_H
#define CLPIPE_JOBS_THUMBS_INTERNAL_H

#include "base/workers.h"
#include "jobs/thumbs.h"

struct thumbs {
    struct thumbs_config config;
    uint64_t rows, missing, used;
    uint32_t size;
    int spool;        /* unlinked file of all thumbnails */
    uint64_t *at;     /* offset of each row, */
    uint32_t *length; /* in bytes; 0: no thumbnail */
    struct workers *workers;
    uint8_t *buffer; /* for thumbs_read */
    size_t room;
};

/* Reads the thumbnail of a row, thumbs->length[row] bytes, to *buffer (*room bytes), which is
 * enlarged as needed; free() it. Any thread. */
enum status thumbs_fetch(uint8_t **buffer, size_t *room, const struct thumbs *thumbs, uint64_t row,
                         struct error *err);

#endif
