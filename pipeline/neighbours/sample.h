/* sample.h: chooses a code space from a sample of rows spread over the matrix. */
#ifndef CLPIPE_NEIGHBOURS_SAMPLE_H
#define CLPIPE_NEIGHBOURS_SAMPLE_H

#include "neighbours/block_reader.h"
#include "neighbours/codes.h"

enum status sample_space(struct code_space *space, struct block_reader *reader, struct error *err);

#endif
