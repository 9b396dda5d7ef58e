/* usage.h: help texts, made from the tables that the parser uses. */
#ifndef CLPIPE_CLI_USAGE_H
#define CLPIPE_CLI_USAGE_H

#include "cli/options.h"

/* Prints the commands by purpose: for --help, on standard output. */
enum status usage_program(struct error *err);
/* Prints the short form on standard error, for a call without a command. */
void usage_short(void);
/* Prints all commands and options as JSON on standard output, from which completions and the man
 * page are generated. */
enum status usage_json(struct error *err);
/* Prints one command with all its options and defaults on standard output. */
enum status usage_command(const struct command *command, struct error *err);

#endif
