/* colours.c: processing of colours and alpha, common to codecs whose files may have profiles. */
#include "decode/colours.h"

#include <stdlib.h>

enum reason colours_start(struct colours *colours, struct failure *failure)
{
    if (colours->alphas_wanted == 0 || colours->alphas)
        return REASON_NONE;
    colours->alphas = malloc(colours->alphas_wanted);
    return colours->alphas ? REASON_NONE
                           : failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a row");
}

enum reason colours_profile(struct colours *colours, uint64_t *memory, const void *profile,
                            size_t size, enum icc_space space, struct failure *failure)
{
    if (!profile)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a colour profile");
    if (!colours->wanted || size == 0 || size > ICC_PROFILE_MAX)
        return REASON_NONE;
    return icc_begin(colours, memory, profile, size, space, failure);
}

bool colours_tell(const struct colours *colours, bool has_profile)
{
    return colours->wanted ? colours->managed && colours->differs : has_profile;
}

/* The colour of premultiplied sample c with alpha a. */
static uint8_t unmultiplied(uint32_t c, uint32_t a)
{
    const uint32_t v = a ? (c * 255 + a / 2) / a : 0;
    return (uint8_t)(v < 255 ? v : 255);
}

void colours_finish(const struct colours *colours, uint8_t *dst, uint8_t *src, uint32_t count)
{
    const uint8_t *alphas = colours->alphas;
    const bool premultiplied = alphas && colours->premultiplied;
    const size_t samples = colours->space == ICC_CMYK ? 4 : 3;
    for (size_t i = 0; premultiplied && colours->managed && i < samples * count; i++)
        src[i] = unmultiplied(src[i], alphas[i / samples]);
    if (colours->managed)
        icc_row(colours, dst, src, count);
    for (size_t x = 0; alphas && colours->mode != ALPHA_DROP && x < count; x++) {
        for (size_t i = 3 * x; i < 3 * x + 3; i++)
            dst[i] = premultiplied && !colours->managed
                         ? pixel_over_premultiplied(dst[i], alphas[x], colours->mode)
                         : pixel_over(dst[i], alphas[x], colours->mode);
    }
}

void colours_end(struct colours *colours)
{
    free(colours->alphas);
    icc_end(colours);
    *colours = (struct colours){.icc = colours->icc};
}
