/* icc_without.c: replaces icc.c in builds without lcms2. options.icc is refused before anything is
 * decoded, so these functions are never called. */
#include "decode/icc.h"

#include <stdlib.h>

const char *decode_icc_library(void)
{
    return NULL;
}

enum reason icc_begin(bool *applies, uint64_t *memory, struct icc **icc, const void *profile,
                      size_t size, enum icc_space space, struct failure *failure)
{
    (void)memory;
    (void)icc;
    (void)profile;
    (void)size;
    (void)space;
    (void)failure;
    *applies = false;
    return REASON_NONE;
}

bool icc_differs(const struct icc *icc)
{
    (void)icc;
    return false;
}

void icc_row(const struct icc *icc, uint8_t *dst, const uint8_t *src, const uint8_t *alpha,
             uint32_t count, enum alpha_mode mode)
{
    (void)icc;
    (void)dst;
    (void)src;
    (void)alpha;
    (void)count;
    (void)mode;
    abort();
}

void icc_end(struct icc *icc)
{
    (void)icc;
}

void icc_close(struct icc **icc)
{
    (void)icc;
}
