/* parameters.h: the parameters of a result: JSON objects in attributes of files and headers of
 * logs, which are untrusted input.
 *
 * Their text is written by base/json.h and stored verbatim, since it is part of a file's identity.
 * It is compared by meaning: the order of keys, white space and the spelling of numbers and strings
 * do not matter. Texts larger than 8 MiB, nested deeper than 2,048 levels, with duplicate keys in
 * an object, or that are not JSON objects are refused. */
#ifndef CLPIPE_RESULT_PARAMETERS_H
#define CLPIPE_RESULT_PARAMETERS_H

#include "base/error.h"
#include <stdint.h>

struct parameters;

enum status parameters_open(struct parameters **out, const char *json, struct error *err);
void parameters_close(struct parameters **parameters);

/* The text of member `key`, of its entry `i` if it is a list, or of its i-th member if it is an
 * object, whose key is *name (which may be NULL); NULL if there is no such text member. Valid until
 * parameters_close. */
const char *parameters_member(const struct parameters *parameters, const char *key);
const char *parameters_entry(const struct parameters *parameters, const char *key, unsigned i,
                             const char **name);

/* For entry `i` of the list `key`, an object: its text member `text_key` and its number `real_key`;
 * false if they are missing. */
bool parameters_item(const struct parameters *parameters, const char *key, unsigned i,
                     const char *text_key, const char **text, const char *real_key, double *real);

/* A non-negative integer member; `otherwise` if it is missing. */
unsigned parameters_number(const struct parameters *parameters, const char *key,
                           unsigned otherwise);

/* An integer, number or boolean member of at most 64 bits; false if it is missing. */
bool parameters_integer(const struct parameters *parameters, const char *key, uint64_t *value);
bool parameters_real(const struct parameters *parameters, const char *key, double *value);
bool parameters_boolean(const struct parameters *parameters, const char *key, bool *value);

/* Whether, according to `json`, archives in directories are opened. */
bool parameters_archives(const char *json);

/* The value of a text member of `json`; "" if there is none or it does not fit. Returns buffer. */
char *parameters_text(char *buffer, size_t size, const char *json, const char *key);

/* The length of the JSON value at the beginning of `text`; 0: there is none. */
size_t parameters_length(const char *text);

/* False if both mean the same. Otherwise describes the differing members in a text for messages,
 * where `who` has the parameters `there`: "k: WHO has 3; the command asks for 4". */
bool parameters_difference(char *buffer, size_t size, const char *there, const char *here,
                           const char *who);
/* The version of the JSON library. */
const char *parameters_library(void);

#endif
