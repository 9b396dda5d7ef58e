/* commands.c: the table of commands. */
#include "cli/commands.h"

#define ROW(name) &command_##name,

const struct command *const commands[] = {COMMANDS(ROW) NULL};
