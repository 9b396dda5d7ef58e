/* icc_without.c: replaces icc.c in builds without lcms2. options.icc is refused before anything is
 * decoded, so profiles are never wanted and pictures never managed. */
#include "decode/colours.h"
#include "decode/decode.h"

#include <stdlib.h>

const char *decode_icc_library(void)
{
    return NULL;
}

enum reason icc_begin(struct colours *colours, uint64_t *memory, const void *profile, size_t size,
                      enum icc_space space, struct failure *failure)
{
    (void)colours, (void)memory, (void)profile, (void)size, (void)space, (void)failure;
    abort();
}

void icc_row(const struct colours *colours, uint8_t *dst, const uint8_t *src, uint32_t count)
{
    (void)colours, (void)dst, (void)src, (void)count;
    abort();
}

void icc_end(struct colours *colours)
{
    (void)colours;
}

void icc_close(struct colours *colours)
{
    (void)colours;
}
