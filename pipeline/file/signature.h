/* signature.h: what a result was made from and how, as one JSON text that is equal if and only if
 * the rows of one can stand in for those of the other. */
#ifndef CLPIPE_FILE_SIGNATURE_H
#define CLPIPE_FILE_SIGNATURE_H

#include "file/result.h"
#include "file/store.h"

/* The signature of a command, or of a finished file (its features in the order in which `config`
 * names them, so that equal sets give equal texts). Free the result; NULL with *err filled. */
char *signature_of_config(const struct store_config *config, struct error *err);
char *signature_of_result(const struct result *result, const struct store_config *config,
                          struct error *err);

/* What a signature was made from, as far as it shapes rows and the file's parameters: sources,
 * features, decode_scale and parameters. Clear it also after a failure. */
struct signature_parts {
    struct store_config config; /* points into what follows */
    struct feature_set features;
    char **sources, *parameters;
};
enum status signature_parse(struct signature_parts *parts, const char *signature,
                            struct error *err);
void signature_parts_clear(struct signature_parts *parts);

/* False if the two are equal. Otherwise writes what differs first, for people: "normalize is "l1"
 * there and "none" here". */
bool signature_difference(char *buffer, size_t size, const char *there, const char *here);

#endif
