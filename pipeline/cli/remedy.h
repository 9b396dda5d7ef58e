/* remedy.h: advice on errors, in terms of the command line. */
#ifndef CLPIPE_CLI_REMEDY_H
#define CLPIPE_CLI_REMEDY_H

#include "base/error.h"
#include "base/failure.h"
#include "cli/options.h"

/* Appends the advice for err->remedy, in terms of options, to err->sentence. command: the one that failed, or
 * NULL. */
void remedy_append(struct error *err, const struct command *command);

/* A sentence on the meaning of a file's failure and what to do about it; not for REASON_NONE. */
const char *remedy_of_reason(enum reason reason);

#endif
