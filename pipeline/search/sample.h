/* sample.h: chooses a code space from a sample of rows spread over the matrix. */
#ifndef CLPIPE_SEARCH_SAMPLE_H
#define CLPIPE_SEARCH_SAMPLE_H

#include "search/block_reader.h"
#include "search/codes.h"

enum status sample_space(struct code_space *space, struct block_reader *reader, struct error *err);

#endif
