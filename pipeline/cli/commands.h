/* commands.h: all commands. Each is a file: what it does, its options and its texts. Its function returns its
 * exit code as a status; where that is not STATUS_OK *err says why in one line, unless the command has said it
 * already (err untouched). */
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
