/* sample.h: what a few rows from all over a matrix say about its codes. */
#ifndef CLPIPE_SEARCH_SAMPLE_H
#define CLPIPE_SEARCH_SAMPLE_H

#include "search/block_reader.h"
#include "search/codes.h"

enum status sample_space(struct code_space *space, struct block_reader *reader, struct error *err);

#endif
