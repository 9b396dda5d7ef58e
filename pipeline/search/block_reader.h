/* block_reader.h: rows of a matrix, in the metric's space, a block at a time. */
#ifndef CLPIPE_SEARCH_BLOCK_READER_H
#define CLPIPE_SEARCH_BLOCK_READER_H

#include "cluster/transform.h"
#include "search/neighbour_types.h"

struct block_reader {
    const struct matrix_source *source;
    const struct neighbours_config *config;
    struct workers *workers;
    struct transform transform;
    uint32_t stride;   /* values of a row as blocks have them, padded with zeros */
    float *raw;        /* rows_at_once x dimension; NULL where rows need no padding */
    uint32_t raw_rows; /* rows that are read at a time, */
    uint32_t part_rows; /* by a thread where several read */
    double seconds;    /* of reading, so far */
};

enum status block_reader_open(struct block_reader *reader, const struct matrix_source *source,
                              const struct neighbours_config *config, struct workers *workers,
                              struct error *err);
void block_reader_close(struct block_reader *reader);

/* Rows [first, first + count) into count x stride values. */
enum status block_reader_read(struct block_reader *reader, uint64_t first, uint32_t count,
                              float *rows, struct error *err);

#endif
