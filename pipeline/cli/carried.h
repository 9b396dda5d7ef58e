/* carried.h: what a command carries from the file that it writes anew. */
#ifndef CLPIPE_CLI_CARRIED_H
#define CLPIPE_CLI_CARRIED_H

#include "cli/options.h"

/* Before a command that has --drop-references writes `path` anew (NULL: none): STATUS_USAGE where other
 * programs have added what cannot be carried (result/foreign.h). What is wrong with the file otherwise, the
 * command says. */
enum status carried_check(const struct options *options, const char *path, struct error *err);

#endif
