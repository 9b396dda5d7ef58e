/* commands.h: all commands. Each command is one file with its code, its options and its texts. Its function
 * returns the exit code as a status. If that is not STATUS_OK, *err has the reason in one line, or is
 * unchanged if the command has already printed it. */
#ifndef CLPIPE_CLI_COMMANDS_H
#define CLPIPE_CLI_COMMANDS_H

#include "cli/options.h"

/* All commands, in the order of the help: command_NAME is a struct command. */
/* clang-format off */
#define COMMANDS(COMMAND)                                                                          \
    COMMAND(run)                                                                                   \
    COMMAND(ingest) COMMAND(list) COMMAND(codebook) COMMAND(cluster) COMMAND(assign)               \
    COMMAND(import) COMMAND(merge)                                                                 \
    COMMAND(info) COMMAND(report) COMMAND(export) COMMAND(similar) COMMAND(evaluate)               \
    COMMAND(select) COMMAND(remove) COMMAND(rename) COMMAND(duplicates) COMMAND(verify)            \
    COMMAND(repair)                                                                                \
    COMMAND(devices) COMMAND(formats) COMMAND(self_test) COMMAND(bench) COMMAND(tune)              \
    COMMAND(ndrange)
/* clang-format on */

#define DECLARE_COMMAND(name) extern const struct command command_##name;
COMMANDS(DECLARE_COMMAND)
#undef DECLARE_COMMAND

/* --version. */
enum status print_version(struct error *err);

#endif
