/* kind.h: a kind of feature is one file and one row of FEATURE_KINDS.
 *
 * A kind computes `cell_bins` 32-bit words from the pixels of a grid cell. Most kinds count: every
 * pixel has one bin, or one bin per channel. The formula is one header in kernels/ (see
 * histogram_bins_rgb.h) that every variant of the histogram kernels includes. A kind whose words
 * depend on neighbours, or are not counters, has its own kernel. The C reference is authoritative:
 * kernels are compared with it before they are used. */
#ifndef CLPIPE_FEATURES_KIND_H
#define CLPIPE_FEATURES_KIND_H

#include "features/descriptor.h"
#include "features/feature.h"

struct feature_kind {
    const char *name;  /* in specs, feature names and files: "rgb" */
    const char *alias; /* also accepted in a SPEC; NULL: none */
    /* The default. Three numbers: the kind accepts bins=AxBxC, a joint histogram; one: bins=B. If
     * two kinds have the same name, a SPEC selects the one that accepts its bins=, or the first one
     * without. */
    uint32_t bins[3];
    bool fixed;        /* bins= is not allowed in a SPEC */
    uint32_t channels; /* bytes of a pixel, with a histogram of bins=B each; 0: one bin per pixel */
    bool zeros;        /* a row of zeros is meaningful; for other kinds it means that nothing was
                        * counted (the picture is too thin or small), and it cannot be compared */
    /* Longer side to which pictures are reduced without scale=. A kind with a default is always
     * scaled, so words cannot overflow. 0: as decoded. */
    uint32_t scale;
    /* `kernel` reads (border + 1) x (border + 1) pixels per counted pixel, so the counted area has
     * `border` fewer columns and rows. 0: no neighbours. */
    uint32_t border;

    /* Sets cell_bins, and cell_values if different, when bins, grid, border and scale are known.
     * STATUS_USAGE with a sentence that begins "feature 'SPEC': ". NULL: derived from bins and
     * channels. */
    enum status (*settle)(struct feature *feature, const char *spec, struct error *err);

    const char *macro;  /* KIND in kernels, e.g. "RGB" */
    const char *header; /* in kernels/: defines the bins of KIND; NULL: not needed by `kernel` */
    /* Name of a kernel and its file kernels/NAME.cl. It has the arguments and launch of
     * histogram_global (on CPU devices with work-groups of 1) and counts every feature of FEATURES:
     * those of all kinds with this kernel. NULL: the histogram variants count. */
    const char *kernel;

    /* The C reference, simple rather than fast: adds a pixel to the words of its cell. With a border b,
     * `pixel` is the first of (b + 1) x (b + 1), in rows `stride` bytes apart. NULL: the words are an
     * aggregate of descriptors of the scaled image (device/words_step.c). */
    void (*count)(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                  size_t stride);

    /* Converts the words of a picture's stored cells (cells * cell_bins) to the stored float32
     * values (cells * cell_values). Not called for normalize=none, which stores the words; kinds
     * with a different number of values refuse that in `settle`. NULL: each word is divided by the
     * sum of its histogram, as for a feature that counts the words of a codebook (words=K). False:
     * no memory. */
    bool (*finish)(void *values, const struct feature *feature, const uint32_t *words);
    bool whole_numbers; /* `finish` produces uint32; with normalize=none, which `settle` sets */

    /* The descriptors that are aggregated with the feature's codebook (codebook.h), which is bound
     * before any picture is counted; needs a `scale`. NULL: no codebook. */
    const struct descriptor *descriptor;
    bool network; /* the words are the output of a network (net/model.h) */

    /* Specs for the self-test, with distinct names; ends with NULL. None: the kind's step has a
     * test. */
    const char *examples[4];
};

/* All kinds, in the order of messages: feature_NAME is a struct feature_kind. TEXT is part of the help
 * of --feature, which joins all of them. */
/* clang-format off */
#define FEATURE_KINDS(KIND)                                                                        \
    KIND(rgb, "rgb (bins=B: three histograms; ")                                                   \
    KIND(rgb_joint, "bins=AxBxC: one joint histogram)")                                            \
    KIND(gray, ", gray")                                                                           \
    KIND(hsv, ", hsv")                                                                             \
    KIND(lab, ", lab")                                                                             \
    KIND(lbp, ", lbp")                                                                             \
    KIND(oplbp, ", oplbp")                                                                         \
    KIND(hog, ", hog")                                                                             \
    KIND(gradient, ", gradient")                                                                   \
    KIND(coledge, ", coledge")                                                                     \
    KIND(quality, ", quality")                                                                     \
    KIND(dct, "; dct")                                                                             \
    KIND(sift, ", sift")                                                                           \
    KIND(opsift, ", opsift")                                                                       \
    KIND(patch, " or patch with words=K or fisher=K instead of bins=")                             \
    KIND(net, "; net:model=FILE: a network")
/* clang-format on */

#define DECLARE_KIND(name, text) extern const struct feature_kind feature_##name;
FEATURE_KINDS(DECLARE_KIND)
#undef DECLARE_KIND
/* All of them, followed by NULL. */
extern const struct feature_kind *const feature_kinds[];

/* Parses one option of a network's spec; false: unknown. *wrong: what the value must be, or NULL. */
bool feature_parse_net(struct feature_net *net, const char *option, const char *value,
                       const char **wrong, enum status *status, const char *spec,
                       struct error *err);
/* Writes the end of a network's canonical spec, ",model=..."; "" for other kinds. */
void feature_write_net(char *text, size_t size, const struct feature *feature);

/* Parses "8x8x8", or with another separator, into at most `max` numbers of 1 to `limit`; returns
 * how many, 0 if invalid. */
unsigned feature_parse_numbers(uint32_t *out, unsigned max, const char *text, char sign,
                               uint32_t limit);

/* Hue in whole degrees, saturation and value of an RGB pixel, as in the kind hsv. */
void feature_hsv_of(int *hue, int *saturation, int *value, const uint8_t *pixel);

#endif
