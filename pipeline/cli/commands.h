/* commands.h: what each command does. Each returns its exit code as a status; where that is not
 * STATUS_OK *err says why in one line, unless the command has said it already (err untouched). */
#ifndef CLPIPE_CLI_COMMANDS_H
#define CLPIPE_CLI_COMMANDS_H

#include "cli/options.h"

/* One for each row of the table of commands (commands.c). */
enum status command_run(const struct options *options, struct error *err);
enum status command_ingest(const struct options *options, struct error *err);
enum status command_list(const struct options *options, struct error *err);
enum status command_codebook(const struct options *options, struct error *err);
enum status command_cluster(const struct options *options, struct error *err);
enum status command_assign(const struct options *options, struct error *err);
enum status command_merge(const struct options *options, struct error *err);
enum status command_import(const struct options *options, struct error *err);
enum status command_similar(const struct options *options, struct error *err);
enum status command_evaluate(const struct options *options, struct error *err);
enum status command_info(const struct options *options, struct error *err);
enum status command_duplicates(const struct options *options, struct error *err);
enum status command_verify(const struct options *options, struct error *err);
enum status command_repair(const struct options *options, struct error *err);
enum status command_report(const struct options *options, struct error *err);
enum status command_export(const struct options *options, struct error *err);
enum status command_select(const struct options *options, struct error *err);
enum status command_remove(const struct options *options, struct error *err);
enum status command_rename(const struct options *options, struct error *err);
enum status command_devices(const struct options *options, struct error *err);
enum status command_formats(const struct options *options, struct error *err);
enum status command_self_test(const struct options *options, struct error *err);
enum status command_bench(const struct options *options, struct error *err);
enum status command_ndrange(const struct options *options, struct error *err);
enum status command_tune(const struct options *options, struct error *err);

/* --version. */
enum status print_version(struct error *err);

#endif
