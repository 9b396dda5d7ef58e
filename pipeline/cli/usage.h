/* usage.h: help texts, made from the tables that the parser uses. */
#ifndef CLPIPE_CLI_USAGE_H
#define CLPIPE_CLI_USAGE_H

#include "cli/options.h"

/* The commands, by what one wants to do: for --help, on standard output. */
enum status usage_program(struct error *err);
/* The short form, on standard error, for no command at all. */
void usage_short(void);
/* All commands and options as JSON on standard output: what completions and the man page are
 * generated from. */
enum status usage_json(struct error *err);
/* One command with all its options and defaults, on standard output. */
enum status usage_command(const struct command *command, struct error *err);

#endif
