/* remedy.h: what the command line offers against an error of the library. */
#ifndef CLPIPE_CLI_REMEDY_H
#define CLPIPE_CLI_REMEDY_H

#include "base/error.h"

/* Appends the advice for err->remedy, in terms of options, to err->sentence. */
void remedy_append(struct error *err);

#endif
