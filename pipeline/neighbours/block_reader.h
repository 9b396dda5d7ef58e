/* block_reader.h: reads rows of a matrix in the metric's space, block by block. One thread. */
#ifndef CLPIPE_NEIGHBOURS_BLOCK_READER_H
#define CLPIPE_NEIGHBOURS_BLOCK_READER_H

#include "kmeans/transform.h"
#include "neighbours/neighbour_types.h"

struct block_reader {
    const struct matrix_source *source;
    const struct neighbours_config *config;
    struct workers *workers;
    struct transform transform;
    uint32_t stride;   /* values of a row in a block, zero-padded */
    float *raw;        /* raw_rows x dimension; NULL if rows need no padding */
    uint32_t raw_rows; /* rows read at a time */
    uint32_t part_rows; /* per thread, if several read */
    double seconds;    /* spent reading so far */
};

enum status block_reader_open(struct block_reader *reader, const struct matrix_source *source,
                              const struct neighbours_config *config, struct workers *workers,
                              struct error *err);
void block_reader_close(struct block_reader *reader);

/* Reads rows [first, first + count) into count x stride values. Errors name the row. */
enum status block_reader_read(struct block_reader *reader, uint64_t first, uint32_t count,
                              float *rows, struct error *err);

#endif
