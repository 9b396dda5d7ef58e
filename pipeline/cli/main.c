/* main.c: which command, and what its outcome means to the caller. */
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/joined_input.h"
#include "cli/launch.h"
#include "cli/remedy.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "cli/usage.h"
#include "ocl/ocl_trial.h"
#include "ranks/processes.h"
#include "result/h5.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

/* True if -h or --help stands anywhere before "--". */
static bool wants_help(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

/* Once: there is no error any more then. */
static void tell(struct error *err)
{
    log_status_line(NULL);
    if (err->status != STATUS_OK) {
        remedy_append(err);
        log_error(err);
    }
    err->status = STATUS_OK;
}

static enum status unknown_command(const char *name, const char *nearest, struct error *err)
{
    char shown[120];
    path_for_message(shown, sizeof shown, name);
    if (name[0] == '-')
        return misuse(err, NULL, "the command comes first: clpipe COMMAND %s", shown);
    if (nearest)
        return misuse(err, NULL, "unknown command '%s' (did you mean %s?)", shown, nearest);
    return misuse(err, NULL, "unknown command '%s'", shown);
}

/* clpipe help [COMMAND] */
static enum status print_help(int argc, char *const *argv, struct error *err)
{
    const char *nearest;
    if (argc < 3 || wants_help(argc, argv))
        return usage_program(err);
    if (argc > 3)
        return misuse(err, NULL, "clpipe help takes one command");
    const struct command *command = command_find(argv[2], &nearest);
    return command ? usage_command(command, err) : unknown_command(argv[2], nearest, err);
}

/* Writes the report where --json says, and the trace. Returns what the command comes to then. */
static enum status call_end(const struct options *options, enum status status, struct error *err)
{
    struct call *call = options->call;
    progress_end(&call->progress);
    summary_wall(options);
    report_end(options, err);
    if (status == STATUS_OK || status == STATUS_PARTIAL || call->tells_errors) {
        struct error trouble = ERROR_INIT;
        if (report_write(options, &trouble) != STATUS_OK) {
            *err = trouble;
            status = trouble.status;
        }
    }
    json_clear(&call->json);
    return compute_close(&call->compute, status, err);
}

static enum status dispatch(int argc, char *const *argv, struct error *err)
{
    const char *nearest = NULL;
    if (argc < 2) {
        usage_short();
        return STATUS_USAGE;
    }
    if (argc == 3 && strcmp(argv[1], "--help") == 0 && strcmp(argv[2], "--json") == 0)
        return usage_json(err);
    if (strcmp(argv[1], "help") == 0)
        return print_help(argc, argv, err);
    const struct command *command = command_find(argv[1], &nearest);
    if (wants_help(argc, argv) && command)
        return usage_command(command, err);
    if (wants_help(argc, argv) && argv[1][0] == '-')
        return usage_program(err);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
        strcmp(argv[1], "version") == 0) {
        if (argc > 2)
            return misuse(err, NULL, "%s takes no arguments", argv[1]);
        return print_version(err);
    }
    if (!command)
        return unknown_command(argv[1], nearest, err);

    struct options *options;
    struct call call = {.tells_errors = false};
    enum status status = options_parse(&options, command, argc, argv, err);
    if (status != STATUS_OK) {
        launch_misuse(err);
        report_misuse(command, argc, argv, err);
        goto out;
    }
    log_set_level(options->quiet ? LOG_ERROR : options->verbose ? LOG_DEBUG : LOG_INFO);
    struct joined_input joined = {.fd = -1};
    options->call = &call;
    progress_stage(&call.progress, "start");
    json_init(&call.json, false);
    call.json.failed = !options->json; /* drops everything */
    bool reports = false; /* --json names nothing that a report must not overwrite */
    status = launch_open(options, argc, argv, err);
    if (status == STATUS_OK) {
        status = report_check(options, err);
        reports = status == STATUS_OK;
    }
    if (status == STATUS_OK)
        status = joined_input_open(&joined, options, err);
    if (!command->computes && !command->threads)
        progress_stage(&call.progress, command->name);
    if (status == STATUS_OK)
        status = summary_outcome(call_end(options, command->run(options, err), err), err);
    joined_input_close(&joined, err);
    status = launch_finish(options, status, err);
    if (reports)
        report_failure(options, err);
    tell(err);
    launch_told(options, status);
    processes_close(&options->processes);
out:
    options_close(&options);
    return status;
}

static int run_command(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    if (argc == 2 && strcmp(argv[1], OCL_TRIAL_ARGUMENT) == 0)
        return ocl_trial_serve();
    ocl_trial_enable();
    enum status status = dispatch(argc, argv, &err);
    tell(&err);
    return (int)status;
}

int main(int argc, char **argv)
{
    clock_process_start();
    process_repair();
#ifdef __GLIBC__
    /* What codecs free goes back to the system. Left to itself glibc raises both thresholds to the
     * sizes that it meets and keeps dozens of megabytes for each decode thread, which no bound
     * counts. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
    h5_without_exit_handler();
    return process_run(run_command, argc, argv);
}
