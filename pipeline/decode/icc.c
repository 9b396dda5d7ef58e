/* icc.c: colour transforms through lcms2.
 *
 * Profiles are untrusted: they may refer to a table many times, or have any number of stages. So
 * each transform has its own lcms2 context with counted memory, and profiles with many
 * floating-point stages are refused, since lcms2 evaluates them at each of the tens of thousands of
 * points of a table. */
#include "decode/colours.h"
#include "decode/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lcms2.h>
#include <lcms2_plugin.h>

/* Limits on memory: for building one transform, and for all that are kept. */
#define BUILD_MOST  (32u << 20)
#define KEEP_MOST   (4u << 20)
#define KEPT        16
#define STAGES_MOST 32u

struct transform {
    cmsContext context;
    cmsHTRANSFORM transform; /* NULL: the profile is not usable */
    uint8_t *profile;        /* NULL: unused entry */
    size_t size;
    enum icc_space space;
    bool differs;          /* from sRGB */
    uint64_t memory, held; /* peak bytes while building, bytes kept */
    uint64_t used;         /* time of last use, by icc's clock */
};

struct icc {
    struct transform kept[KEPT], *now;
    uint64_t clock;
};

const char *decode_icc_library(void)
{
    static _Thread_local char text[32];
    int version = cmsGetEncodedCMMversion();
    snprintf(text, sizeof text, "lcms2 %d.%02d", version / 1000, version % 1000 / 10);
    return text;
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Memory of the thread's transforms. Each allocation is preceded by its size. */
static _Thread_local uint64_t taken, most_taken, limit;
static _Thread_local bool starved; /* the system was out of memory */
#define FRONT 16u

static void *counted_realloc(cmsContext context, void *at, cmsUInt32Number size)
{
    (void)context;
    uint8_t *old = at ? (uint8_t *)at - FRONT : NULL;
    uint64_t before = 0;
    if (old)
        memcpy(&before, old, sizeof before);
    if (size > limit || taken - before > limit - size)
        return NULL;
    uint8_t *block = realloc(old, FRONT + (size_t)size);
    if (!block) {
        starved = true;
        return NULL;
    }
    uint64_t now = size;
    memcpy(block, &now, sizeof now);
    taken = taken - before + now;
    most_taken = taken > most_taken ? taken : most_taken;
    return block + FRONT;
}

static void *counted_malloc(cmsContext context, cmsUInt32Number size)
{
    return counted_realloc(context, NULL, size);
}

static void counted_free(cmsContext context, void *at)
{
    (void)context;
    if (!at)
        return;
    uint64_t size;
    memcpy(&size, (uint8_t *)at - FRONT, sizeof size);
    taken -= size;
    free((uint8_t *)at - FRONT);
}

static cmsPluginMemHandler memory_plugin = {
    .base = {.Magic = cmsPluginMagicNumber,
             .ExpectedVersion = 2000,
             .Type = cmsPluginMemHandlerSig},
    .MallocPtr = counted_malloc,
    .FreePtr = counted_free,
    .ReallocPtr = counted_realloc,
};

/* --- transforms ------------------------------------------------------------------------------ */

/* Is the profile for such pixels, and of a class that describes pixels? */
static bool is_for(cmsHPROFILE profile, enum icc_space space)
{
    static const cmsColorSpaceSignature spaces[] = {
        [ICC_GREY] = cmsSigGrayData, [ICC_RGB] = cmsSigRgbData, [ICC_CMYK] = cmsSigCmykData};
    cmsProfileClassSignature kind = cmsGetDeviceClass(profile);
    return cmsGetColorSpace(profile) == spaces[space] &&
           (kind == cmsSigInputClass || kind == cmsSigDisplayClass || kind == cmsSigOutputClass ||
            kind == cmsSigColorSpaceClass);
}

/* Compares colours of 5 levels per channel with sRGB. */
static bool differs(const struct transform *t)
{
    bool other = t->space == ICC_CMYK;
    for (int i = 0; i < 125 && !other; i++) {
        const bool grey = t->space == ICC_GREY;
        const uint8_t in[3] = {(uint8_t)(i % 5 * 63), (uint8_t)((grey ? i : i / 5) % 5 * 63),
                               (uint8_t)((grey ? i % 5 : i / 25) * 63)};
        uint8_t out[3];
        cmsDoTransform(t->transform, in, out, 1);
        for (int c = 0; c < 3; c++)
            other |= abs(in[c] - out[c]) > 2;
    }
    return other;
}

static void build(struct transform *t)
{
    static const cmsUInt32Number formats[] = {
        /* Reads the first of three bytes. */
        [ICC_GREY] = COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(2) | BYTES_SH(1),
        [ICC_RGB] = TYPE_RGB_8,
        [ICC_CMYK] = TYPE_CMYK_8_REV};
    t->context = cmsCreateContext(&memory_plugin, NULL);
    if (!t->context)
        return;
    cmsHPROFILE from = cmsOpenProfileFromMemTHR(t->context, t->profile, (cmsUInt32Number)t->size);
    cmsHPROFILE to = cmsCreate_sRGBProfileTHR(t->context);
    /* Reads the number of floating-point stages from the tag: lcms2 takes quadratic time to read a
     * list of them. */
    uint8_t head[16] = {0};
    if (from && cmsIsTag(from, cmsSigDToB0Tag))
        cmsReadRawTag(from, cmsSigDToB0Tag, head, sizeof head);
    const bool is_long = head[12] || head[13] || head[14] || head[15] > STAGES_MOST;
    if (from && to && is_for(from, t->space) && !is_long)
        t->transform = cmsCreateTransformTHR(t->context, from, formats[t->space], to, TYPE_RGB_8,
                                             INTENT_PERCEPTUAL, 0);
    t->differs = t->transform && differs(t);
    if (from)
        cmsCloseProfile(from);
    if (to)
        cmsCloseProfile(to);
}

static void drop(struct transform *t)
{
    if (t->transform)
        cmsDeleteTransform(t->transform);
    if (t->context)
        cmsDeleteContext(t->context);
    free(t->profile);
    *t = (struct transform){0};
}

static struct transform *find(struct icc *icc, const void *profile, size_t size,
                              enum icc_space space)
{
    for (size_t i = 0; i < KEPT; i++) {
        struct transform *t = &icc->kept[i];
        if (t->profile && t->size == size && t->space == space &&
            memcmp(t->profile, profile, size) == 0)
            return t;
    }
    return NULL;
}

/* Builds a transform for a profile; NULL: no memory. */
static struct transform *add(struct icc *icc, const void *profile, size_t size,
                             enum icc_space space)
{
    struct transform *t = &icc->kept[0]; /* least recently used, or empty */
    for (size_t i = 1; i < KEPT; i++) {
        if (icc->kept[i].used < t->used)
            t = &icc->kept[i];
    }
    drop(t);
    t->profile = malloc(size);
    if (!t->profile)
        return NULL;
    memcpy(t->profile, profile, size);
    t->size = size;
    t->space = space;
    const uint64_t before = taken;
    most_taken = taken;
    limit = taken + BUILD_MOST;
    starved = false;
    build(t);
    t->memory = most_taken - before + 3 * (uint64_t)size;
    t->held = taken - before + size;
    if (!starved)
        return t;
    drop(t); /* lcms2 may have continued after a failed allocation */
    return NULL;
}

enum reason icc_begin(struct colours *colours, uint64_t *memory, const void *profile, size_t size,
                      enum icc_space space, struct failure *failure)
{
    if (!colours->icc)
        colours->icc = calloc(1, sizeof *colours->icc);
    struct icc *icc = colours->icc;
    struct transform *t = icc ? find(icc, profile, size, space) : NULL;
    if (icc && !t)
        t = add(icc, profile, size, space);
    if (!t)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a colour profile");
    t->used = ++icc->clock;
    icc->now = t;
    colours->managed = t->transform != NULL;
    colours->differs = t->differs;
    colours->space = space;
    *memory += t->memory;
    return REASON_NONE;
}

void icc_row(const struct colours *colours, uint8_t *dst, const uint8_t *src, uint32_t count)
{
    cmsDoTransform(colours->icc->now->transform, src, dst, count);
}

void icc_end(struct colours *colours)
{
    struct icc *icc = colours->icc;
    uint64_t held = 0;
    for (size_t i = 0; icc && i < KEPT; i++)
        held += icc->kept[i].held;
    while (held > KEEP_MOST) {
        struct transform *largest = &icc->kept[0];
        for (size_t i = 1; i < KEPT; i++) {
            if (icc->kept[i].held > largest->held)
                largest = &icc->kept[i];
        }
        held -= largest->held;
        drop(largest);
    }
}

void icc_close(struct colours *colours)
{
    for (size_t i = 0; colours->icc && i < KEPT; i++)
        drop(&colours->icc->kept[i]);
    free(colours->icc);
    colours->icc = NULL;
}
