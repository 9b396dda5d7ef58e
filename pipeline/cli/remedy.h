/* remedy.h: what the command line offers against an error of the library. */
#ifndef CLPIPE_CLI_REMEDY_H
#define CLPIPE_CLI_REMEDY_H

#include "base/error.h"
#include "base/failure.h"

/* Appends the advice for err->remedy, in terms of options, to err->sentence. */
void remedy_append(struct error *err);

/* A sentence on what such a failure of a file means and what can be done; not of REASON_NONE. */
const char *remedy_of_reason(enum reason reason);

#endif
