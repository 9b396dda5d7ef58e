/* flags.h: flags of doubtful images, from the kind quality, sizes and stored neighbours. docs/features.md
 * has the rules. */
#ifndef CLPIPE_RESULT_FLAGS_H
#define CLPIPE_RESULT_FLAGS_H

#include "features/quality.h"
#include "result/result.h"

#define FLAGS      10u
#define FLAGS_TEXT 128u

/* Bit i of an image's flags is number i: "dark". */
extern const char *const flag_names[FLAGS];

struct flags {
    const struct result_feature *feature; /* a feature of the kind quality; NULL: there is none */
    uint32_t *of;                         /* flags of each image; NULL: there are no images */
    uint32_t known;                       /* flags that can be computed from the file */
    uint64_t count[FLAGS];                /* images with each */
};

/* Computes the flags of all images. Call flags_clear even after a failure. */
enum status flags_read(struct flags *out, struct result *result, struct error *err);
void flags_clear(struct flags *flags);

/* The bits of names separated by commas. STATUS_USAGE: there is no such flag. */
enum status flags_parse(uint32_t *out, const char *names, struct error *err);
/* STATUS_USAGE, with advice: one of them cannot be computed from the file. */
enum status flags_check(const struct flags *flags, uint32_t wanted, const struct result *result,
                        struct error *err);
/* Names separated by `sign`; "" for none. Returns text. */
char *flags_text(char text[FLAGS_TEXT], uint32_t flags, char sign);

#endif
