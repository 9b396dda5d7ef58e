/* kind.h: what a kind of feature is: one file and one row of the table in kinds.c.
 *
 * A kind turns the pixels of a grid cell into `cell_bins` 32-bit words. Most kinds count: every
 * pixel falls into one bin, or into one bin of each of its channels, by a formula that is one
 * header in kernels/ (histogram_bins_rgb.h says how) and that every variant of the histogram kernels
 * includes. A kind whose words depend on neighbours, or are no counters, brings a kernel of its
 * own. Either way the C reference has the last word: kernels are proven against it before they are
 * used. */
#ifndef CLPIPE_FEATURES_KIND_H
#define CLPIPE_FEATURES_KIND_H

#include "features/feature.h"

struct feature_kind {
    const char *name;  /* in a SPEC, in feature names, and stored: "rgb" */
    const char *alias; /* in a SPEC, too; NULL: none */
    /* Where a SPEC has no bins=. Three numbers: bins=AxBxC, a joint histogram; one: bins=B. Of two
     * kinds of one name the one that fits bins= is meant, and the first where that is left out. */
    uint32_t bins[3];
    uint32_t channels; /* bytes of a pixel with a histogram of bins=B each; 0: one bin a pixel */
    uint32_t border;   /* neighbours read: columns and rows that are counted less; see below */

    /* The rest of the sizes, once bins, grid and border are known: sets cell_bins. STATUS_USAGE
     * with a sentence that begins "feature 'SPEC': ". NULL: as bins and channels say. */
    enum status (*settle)(struct feature *feature, const char *spec, struct error *err);

    const char *macro; /* KIND in kernels: "RGB" */
    const char *
        header; /* in kernels/: the bins of KIND, "histogram_bins_rgb.h"; NULL: `kernel` needs none */
    /* kernels/NAME.cl, whose kernel has the same name, the arguments and the launch of
     * histogram_global, and counts every feature of FEATURES; NULL: the histogram variants do. */
    const char *kernel;

    /* The C reference, for `rows` rows of `width` pixels of one cell, `stride` bytes apart: adds to
     * the cell's words. With a border b the rows have b pixels more, there are b rows more, and
     * `pixels` is the first neighbour of the first pixel counted. Slow and obvious. */
    void (*count)(uint32_t *words, const struct feature *feature, const uint8_t *pixels,
                  size_t stride, uint32_t width, uint32_t rows);

    /* How the words of the parts of a picture (strips, pieces of rows) become the picture's: they
     * are added. A kind whose values are placed instead of counted sets `placed`: each word is
     * written, in place of added to, for the one part in which its cell begins (starts_cell in
     * histogram_tile.h), and stays 0 in all others, so that the sum is that word to the bit. */
    bool placed;

    /* One picture's words to what is stored, as feature_store_values; called for every
     * normalisation but none. NULL: counts, each divided by the pixels of its cell. */
    void (*finish)(void *values, const struct feature *feature, const uint32_t *words);

    /* Learns a codebook from a sample of values before any picture is counted; see feature_train.
     * out is empty; on failure it stays so. STATUS_USAGE: the sample is too small for what the spec
     * asks; a failed read's status as it is. NULL: nothing to learn. */
    enum status (*train)(struct feature_codebook *out, const struct feature *feature,
                         const struct feature_sample *sample, struct error *err);

    const char *const *examples; /* specs for the self-test, ended by NULL; names are distinct */
};

/* Ended by NULL, in the order in which messages list them. */
extern const struct feature_kind *const feature_kinds[];

extern const struct feature_kind feature_rgb, feature_rgb_joint, feature_gray, feature_hsv;

#endif
