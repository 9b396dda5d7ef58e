/* thumbs.h: the thumbnails of all rows of a result, and sheets of them for pages.
 *
 *   thumbs_open    takes those that the file has (/thumbnails); pictures of rows without one are
 *                  decoded anew, scaled where the format allows that, on all threads
 *   thumbs_read    one of them: a JPEG file
 *   thumbs_sheets  puts any sequence of rows into sheets: JPEG files that hold a grid of square cells
 *
 * A thumbnail is an upright RGB picture whose longest side is at most thumbs_size() pixels. A row
 * has none if its picture is gone, has changed since, or cannot be decoded any more: that is no
 * error. All functions are for one thread at a time. The result is used in
 * thumbs_open only. */
#ifndef CLPIPE_THUMBS_THUMBS_H
#define CLPIPE_THUMBS_THUMBS_H

#include "base/error.h"
#include "base/stop.h"
#include "file/result.h"
#include <stdbool.h>
#include <stdint.h>

struct thumbs;

struct thumbs_config {
    struct result *result; /* used in thumbs_open only */
    uint32_t size;         /* of those that are to be decoded; 0: thumbnail_suitable_size() */
    unsigned threads;      /* at least 1 */
    uint64_t memory;       /* bytes for decoding; one picture that needs more is decoded alone */
    const char *directory; /* an existing one, for an unlinked temporary file of all thumbnails */
    struct stop *stop;     /* may be NULL */
    /* May be NULL. Called from the calling thread while pictures are decoded, about ten times a
     * second. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

/* STATUS_INTERRUPTED: a stop was requested. STATUS_FAILED: memory, disk, or a damaged file. */
enum status thumbs_open(struct thumbs **out, const struct thumbs_config *config, struct error *err);
/* Accepts NULL and NULLs. */
void thumbs_close(struct thumbs **thumbs);

uint32_t thumbs_size(const struct thumbs *thumbs); /* longest side, pixels */
uint64_t thumbs_missing(const struct thumbs *thumbs); /* rows without one */

/* The JPEG file of a row; *bytes is 0 where it has none. *data is valid until the next call. */
enum status thumbs_read(struct thumbs *thumbs, uint64_t row, const uint8_t **data, uint32_t *bytes,
                        struct error *err);

/* Where a thumbnail lies: pixels from the upper left corner of its sheet. width and height are 0
 * where the row has none; its cell is grey then. */
struct thumb_place {
    uint32_t sheet;
    uint16_t x, y, width, height;
};

/* A sheet is a grid of columns x rows square cells of `cell` pixels, a thumbnail in the upper left
 * corner of each; the last one has only as many rows of cells as it needs. */
struct sheet_grid {
    uint32_t cell, columns, rows;
};
/* Of these thumbnails: at most 2048 pixels a side: 32 x 32 cells of 64 pixels, 12 x 12 of 160. */
struct sheet_grid thumbs_grid(const struct thumbs *thumbs);

struct sheets_config {
    const uint64_t *rows; /* in the order of the cells; a row may come more than once */
    uint64_t count;
    uint32_t first; /* the number of the first sheet: places and `write` count from it */
    /* Takes a finished JPEG file. Called by several threads at a time, for different sheets in any
     * order; `data` is valid until it returns. */
    enum status (*write)(void *context, uint32_t sheet, const uint8_t *data, size_t bytes,
                         struct error *err);
    void *context;
    void (*progress)(void *context, uint64_t done, uint64_t total); /* sheets; or NULL */
    void *progress_context;
};

/* Sheets of the given rows, on the configured threads: ceil(count / (columns * rows)) of them.
 * places: `count` of them. The coefficients of clpipe's own thumbnails are copied, not encoded a
 * second time. The bytes do not depend on threads. The first error of `write` ends the call. */
enum status thumbs_sheets(struct thumb_place *places, struct thumbs *thumbs,
                          const struct sheets_config *config, struct error *err);

#endif
