/* block_reader.h: reads rows of a matrix in the metric's space, block by block. One thread. */
#ifndef CLPIPE_NEIGHBOURS_BLOCK_READER_H
#define CLPIPE_NEIGHBOURS_BLOCK_READER_H

#include "kmeans/transform.h"
#include "neighbours/neighbour_types.h"

struct block_reader {
    const struct matrix_source *source;
    const struct neighbours_config *config;
    struct workers *workers; /* config->threads of them; owned */
    struct transform transform;
    uint32_t stride; /* values of a row in a block, padded with zeros */
    double seconds;  /* spent reading so far */
};

/* Starts the threads. Close it even after an error. */
enum status block_reader_open(struct block_reader *reader, const struct matrix_source *source,
                              const struct neighbours_config *config, struct error *err);
void block_reader_close(struct block_reader *reader);

/* Reads rows [first, first + count) into count x stride values. Errors name the row. */
enum status block_reader_read(struct block_reader *reader, uint64_t first, uint32_t count,
                              float *rows, struct error *err);

/* Reads `count` queries from number `first` on into count x stride values; own: gets the row number of
 * each that is a row; may be NULL. STATUS_USAGE: there is no such row. */
enum status block_reader_queries(struct block_reader *reader, const struct queries *queries,
                                 uint64_t first, uint32_t count, float *values, uint32_t *own,
                                 struct error *err);

/* The number of rows from one position of a block to the next: neighbouring rows are often alike,
 * and first rows from all over the block tell more about the reach of all. */
uint32_t block_reader_step(uint32_t rows);

#endif
