/* stored_options.h: the options of an ingest that are stored in its file, in the JSON of its parameters. */
#ifndef CLPIPE_CLI_STORED_OPTIONS_H
#define CLPIPE_CLI_STORED_OPTIONS_H

#include "base/json.h"
#include "cli/options.h"
#include "result/parameters.h"

/* Members of the open object: how the options that choose files and shape values stand. */
void stored_write(struct json *json, const struct options *options);

/* Sets the options that were not given as the parameters have them; `shaping`: only those that shape values.
 * Texts are those of the parameters. STATUS_FAILED: no memory. */
enum status stored_take(struct options *options, const struct parameters *parameters, bool shaping,
                        struct error *err);

/* The options that are given otherwise than the parameters have them: "--alpha is white there and black
 * here, ..."; "" without. But for limits on files that are raised: whether there are. Returns buffer. */
const char *stored_differences(char *buffer, size_t size, bool *raised,
                               const struct options *options, const struct parameters *parameters);

/* A text or a number of the parameters as it would be typed, or NULL. */
const char *stored_text(char *buffer, size_t size, const struct parameters *parameters,
                        const char *key);

#endif
