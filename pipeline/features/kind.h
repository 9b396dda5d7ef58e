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

#include "features/descriptor.h"
#include "features/feature.h"

struct feature_kind {
    const char *name;  /* in a SPEC, in feature names, and stored: "rgb" */
    const char *alias; /* in a SPEC, too; NULL: none */
    /* The default. Three numbers: the kind takes bins=AxBxC, a joint histogram; one: bins=B. If two
     * kinds have the same name, a SPEC means the one that fits its bins=, or the first without. */
    uint32_t bins[3];
    bool fixed;        /* there are no other bins: a SPEC has no bins= */
    uint32_t channels; /* bytes of a pixel with a histogram of bins=B each; 0: one bin a pixel */
    bool zeros;        /* a row of zeros is an answer; of other kinds nothing was counted for it: pictures
                          that are too thin or small, which cannot be compared with others */
    /* The longer side to which pictures are reduced without scale=; a kind that has one is always
     * scaled, so words cannot overflow. 0: as decoded. */
    uint32_t scale;
    /* `kernel` reads (border + 1) x (border + 1) pixels for each that it counts, so the counted image
     * has `border` fewer columns and rows. 0: no neighbours. */
    uint32_t border;

    /* Sets cell_bins, and cell_values where they are not as many, once bins, grid, border and scale
     * are known. STATUS_USAGE with a sentence that begins "feature 'SPEC': ". NULL: they follow from
     * bins and channels. */
    enum status (*settle)(struct feature *feature, const char *spec, struct error *err);

    const char *macro;  /* KIND in kernels: "RGB" */
    const char *header; /* in kernels/: defines the bins of KIND; NULL: `kernel` needs none */
    /* kernels/NAME.cl, whose kernel has the same name, the arguments and the launch of
     * histogram_global, on CPU devices with work-groups of 1, and counts every feature of FEATURES:
     * those of all kinds that name it. NULL: the histogram variants do. */
    const char *kernel;

    /* The C reference: adds `rows` rows of `width` pixels, `stride` bytes apart, to the words of
     * their cell. With a border b there are b more pixels in a row and b more rows, and `pixels` is
     * the first neighbour of the first counted pixel. Slow and obvious. NULL: the words are what a
     * codebook makes of descriptors of the scaled image (steps/words_step.h). */
    void (*count)(uint32_t *words, const struct feature *feature, const uint8_t *pixels,
                  size_t stride, uint32_t width, uint32_t rows);

    /* The words of a picture are the sums of the words of its parts (strips, pieces of rows). A kind
     * whose values are placed instead of counted sets `placed`: only the part in which a cell begins
     * (starts_cell in histogram_tile.h) writes the cell's words; in all other parts they stay 0, so
     * the sum is that word to the bit. It has no levels=, whose cells are sums. */
    bool placed;

    /* Converts the words of a picture's stored cells, cells * cell_bins of them, to the float32 values
     * that are stored, cells * cell_values; not called for normalize=none, which stores the words, and
     * which a kind with another number of values refuses in `settle`. NULL: each word is divided by
     * the sum of its histogram. False: no memory. */
    bool (*finish)(void *values, const struct feature *feature, const uint32_t *words);
    bool whole_numbers; /* `finish` gives uint32, with normalize=none, which `settle` sets */

    /* What the words or sums are made from with the feature's codebook (codebook.h), which is bound
     * before any picture is counted. NULL: the kind needs no codebook. */
    const struct descriptor *descriptor;
    bool fisher; /* it has fisher=K, sums around the words; else words=K, their counts */
    bool network; /* the words are the output of a network (net/model.h) */

    const char *const *examples; /* specs for the self-test, ended by NULL; names are distinct */
};

/* Ended by NULL, in the order in which messages list them. */
extern const struct feature_kind *const feature_kinds[];

extern const struct feature_kind feature_dct_words, feature_dct_fisher, feature_sift_words,
    feature_sift_fisher, feature_opsift_words, feature_opsift_fisher, feature_patch_words,
    feature_patch_fisher;
extern const struct feature_kind feature_rgb, feature_rgb_joint, feature_gray, feature_hsv;
extern const struct feature_kind feature_lbp, feature_oplbp, feature_hog, feature_gradient;
extern const struct feature_kind feature_lab, feature_coledge;
extern const struct feature_kind feature_quality;
extern const struct feature_kind feature_net;

/* Takes one option of a network's spec; false: it is none. */
bool feature_parse_net(struct feature *feature, const char *option, const char *value,
                       enum status *status, const char *spec, struct error *err);
/* The same of what only ONNX files have, and their part of `settle` and of the spec (net_onnx.c). */
bool feature_parse_onnx(struct feature *feature, const char *option, const char *value,
                        enum status *status, const char *spec, struct error *err);
enum status feature_settle_onnx(struct feature *feature, const char *spec, struct error *err);
void feature_write_onnx(char *text, size_t size, const struct feature_net *net);
/* What a network's canonical spec ends with, ",model=..."; "" for other kinds. */
void feature_write_net(char *text, size_t size, const struct feature *feature);

/* Hue in whole degrees, saturation and value of an RGB pixel, by the formula of the kind hsv. */
void feature_hsv_of(int *hue, int *saturation, int *value, const uint8_t *pixel);

#endif
