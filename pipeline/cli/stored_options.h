/* stored_options.h: the options of an ingest that are stored in its file, in the JSON of its parameters. */
#ifndef CLPIPE_CLI_STORED_OPTIONS_H
#define CLPIPE_CLI_STORED_OPTIONS_H

#include "base/json.h"
#include "cli/options.h"
#include "result/parameters.h"

/* Writes the options that select files and affect values as members of the open object. */
void stored_write(struct json *json, const struct options *options);

/* Sets the options that were not given from the parameters, which own the texts. STATUS_FAILED: no memory. */
enum status stored_take(struct options *options, const struct parameters *parameters,
                        struct error *err);

/* Describes the options that differ from the parameters: "--alpha is white there and black here, ...";
 * "" if there are none. Raised limits on files are left out; returns whether there are any. Returns
 * buffer. */
const char *stored_differences(char *buffer, size_t size, bool *raised,
                               const struct options *options, const struct parameters *parameters);

/* The value of the option of that name in the parameters, a text or number as typed, or NULL. */
const char *stored_text(char *buffer, size_t size, const struct parameters *parameters,
                        const char *name);

#endif
