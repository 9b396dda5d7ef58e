/* commands.h: all commands. Each command is one file with its code, its options and its texts. Its function
 * returns the exit code as a status. If that is not STATUS_OK, *err has the reason in one line, or is
 * unchanged if the command has already printed it. */
#ifndef CLPIPE_CLI_COMMANDS_H
#define CLPIPE_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct command command_run, command_ingest, command_list, command_codebook,
    command_cluster, command_assign, command_merge, command_import, command_similar,
    command_evaluate, command_info, command_duplicates, command_verify, command_repair,
    command_report, command_export, command_select, command_remove, command_rename, command_devices,
    command_formats, command_self_test, command_bench, command_ndrange, command_tune;

/* --version. */
enum status print_version(struct error *err);

#endif
