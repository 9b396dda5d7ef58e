/* signature.h: a JSON text that says how a result was made. Two signatures are equivalent if and
 * only if the rows of one result are valid in the other. */
#ifndef CLPIPE_RESULT_SIGNATURE_H
#define CLPIPE_RESULT_SIGNATURE_H

#include "result/content.h"
#include "result/result.h"

/* The caller frees it; NULL with *err set. */
char *signature_of_content(const struct content *content, struct error *err);

/* The input of a signature, as far as it affects rows and the file's parameters: sources, features
 * (without codebooks), decode_scale, preset and parameters. Clear it even after a failure. */
struct signature_parts {
    struct content content; /* points into the following members */
    struct feature_set features;
    char **sources, **directories; /* ended by NULL */
    char *parameters, *preset;
};
enum status signature_parse(struct signature_parts *parts, const char *signature,
                            struct error *err);
/* The same for a finished file, with its share, directories and size of thumbnails; texts may belong to
 * `result`. */
enum status signature_parts_of(struct signature_parts *parts, const struct result *result,
                               struct error *err);
void signature_parts_clear(struct signature_parts *parts);

#endif
