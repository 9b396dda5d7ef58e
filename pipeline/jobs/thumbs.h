/* thumbs.h: thumbnails of all rows of a result, and sheets of thumbnails for pages.
 *
 *   thumbs_open    reads those of the file (/thumbnails); pictures of rows without one are
 *                  decoded again, scaled if the format supports it, on all threads
 *   thumbs_read    returns one of them: a JPEG file
 *   thumbs_sheets  writes any sequence of rows to sheets: JPEG files with a grid of square cells
 *
 * A thumbnail is an upright RGB picture whose longest side is at most `size` pixels. A row has none
 * if its picture is missing, has changed, or can no longer be decoded, which is not an error. The
 * result is used in thumbs_open only. */
#ifndef CLPIPE_JOBS_THUMBS_H
#define CLPIPE_JOBS_THUMBS_H

#include "base/held.h"
#include "base/workers.h"
#include "jobs/machine.h"

struct thumbs {
    struct result *result; /* used in thumbs_open only */
    const struct clustering_machine *machine;
    uint64_t rows, used;
    uint64_t missing; /* rows without one */
    uint32_t size;    /* longest side, pixels */
    int spool;        /* unlinked file of all thumbnails */
    uint64_t *at;     /* offset of each row, */
    uint32_t *length; /* in bytes; 0: no thumbnail */
    struct workers *workers;
    struct held held; /* at and length */
};

/* directory: an existing one, for an unlinked temporary file of all thumbnails. machine: must outlive them; a
 * picture that needs more than its memory to be decoded is decoded alone. STATUS_INTERRUPTED: stopped.
 * STATUS_FAILED: no memory, disk error, or damaged file. */
enum status thumbs_open(struct thumbs **out, struct result *result, const char *directory,
                        const struct clustering_machine *machine, struct error *err);
/* Accepts NULL. */
void thumbs_close(struct thumbs **thumbs);

/* Reads the JPEG file of a row, thumbs->length[row] bytes, to *buffer (*room bytes), which is enlarged
 * as needed; free() it. Any thread. */
enum status thumbs_read(uint8_t **buffer, size_t *room, const struct thumbs *thumbs, uint64_t row,
                        struct error *err);

/* Position of a thumbnail: pixels from the upper left corner of its sheet. width and height are 0
 * if the row has none; its cell is grey. */
struct thumb_place {
    uint16_t x, y, width, height;
};

/* A sheet is a grid of columns x rows square cells of `cell` pixels, with a thumbnail in the upper
 * left corner of each; the last sheet has only the rows of cells that it needs. */
struct sheet_grid {
    uint32_t cell, columns, rows;
};
/* The grid for these thumbnails, at most 2048 pixels a side: 32 x 32 cells of 64 pixels, 12 x 12 of
 * 160. */
struct sheet_grid thumbs_grid(const struct thumbs *thumbs);

struct sheets_config {
    const uint64_t *rows; /* in the order of the cells; rows may repeat */
    uint64_t count;
    uint32_t first; /* number of the first sheet, for `write` */
    /* Receives a finished JPEG file. Called by several threads at a time, for sheets in any order;
     * `data` is valid until it returns. */
    enum status (*write)(void *context, uint32_t sheet, const uint8_t *data, size_t bytes,
                         struct error *err);
    void *context;
};

/* Makes sheets of the given rows on the configured threads: ceil(count / (columns * rows)) of them.
 * places: `count` elements. Coefficients of clpipe's own thumbnails are copied, not encoded again.
 * The bytes do not depend on threads. The first error of `write` ends the call. */
enum status thumbs_sheets(struct thumb_place *places, struct thumbs *thumbs,
                          const struct sheets_config *config, struct error *err);

#endif
