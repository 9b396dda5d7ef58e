/* commands.c: the table of commands. */
#include "cli/commands.h"

const struct command *const commands[] = {&command_run,        &command_ingest,
                                          &command_list,       &command_codebook,
                                          &command_cluster,    &command_assign,
                                          &command_import,     &command_merge,
                                          &command_info,       &command_report,
                                          &command_export,     &command_similar,
                                          &command_evaluate,   &command_select,
                                          &command_remove,     &command_rename,
                                          &command_duplicates, &command_verify,
                                          &command_repair,     &command_devices,
                                          &command_formats,    &command_self_test,
                                          &command_bench,      &command_tune,
                                          &command_ndrange,    NULL};
