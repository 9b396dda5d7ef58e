/* main.c: finds the command, runs it, and reports its outcome. */
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process.h"
#include "base/unnamed_file.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/options.h"
#include "cli/remedy.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/usage.h"
#include "ocl/ocl_trial.h"
#include "ranks/processes.h"
#include "result/h5.h"
#include "result/merge.h"
#include "version_generated.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* True if -h or --help stands anywhere before "--". */
static bool wants_help(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

/* Once: clears the error. command: the one that failed, or NULL. */
static void tell(const struct command *command, struct error *err)
{
    log_status_line(NULL);
    if (err->status != STATUS_OK) {
        remedy_append(err, command);
        log_error(err);
    }
    err->status = STATUS_OK;
}

static enum status unknown_command(const char *name, const char *nearest, struct error *err)
{
    const char *shown = PATH_TEXT_IN(120, name);
    if (name[0] == '-')
        return misuse(err, "the command comes first: clpipe COMMAND %s", shown);
    if (nearest)
        return misuse(err, "unknown command '%s' (did you mean %s?)", shown, nearest);
    return misuse(err, "unknown command '%s'", shown);
}

/* clpipe help [COMMAND] */
static enum status print_help(int argc, char *const *argv, struct error *err)
{
    const char *nearest;
    if (argc < 3 || wants_help(argc, argv))
        return usage_program(err);
    if (argc > 3)
        return misuse(err, "clpipe help takes one command");
    const struct command *command = command_find(argv[2], &nearest);
    return command ? usage_command(command, err) : unknown_command(argv[2], nearest, err);
}

/* Writes the JSON report and the trace. Returns the final status. */
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

/* --- one of the processes that a launcher of MPI has started: --mpi ------------------------- */

/* The version and the words of the command line. */
static char *join_words(int argc, char *const *argv)
{
    size_t size = sizeof CLPIPE_VERSION;
    for (int i = 1; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *text = malloc(size);
    if (!text)
        return NULL;
    char *end = stpcpy(text, CLPIPE_VERSION);
    for (int i = 1; i < argc; i++) {
        *end++ = '\n';
        end = stpcpy(end, argv[i]);
    }
    return text;
}

/* For errors before the processes have joined each other: only the first prints them. A process
 * that is out of memory, perhaps alone, ends by a signal, since MPICH's mpiexec would otherwise not
 * end the others, which are waiting for it. */
static void launch_misuse(const struct error *err)
{
    if (err->native == ENOMEM && processes_told()) {
        log_error(err);
        raise(SIGTERM);
    }
    if (processes_told_rank() > 0)
        log_set_level(LOG_QUIET);
}

/* The others are silent and end after the first has printed the error. */
static enum status refuse(const struct command *command, struct error *err)
{
    error_set(
        err, STATUS_USAGE,
        "clpipe %s does not share its work, and %s has started it more than once: start it once",
        command->name, processes_told());
    error_remedy(err, REMEDY_ALONE);
    launch_misuse(err);
    if (processes_told_rank() > 0)
        processes_let_read();
    return STATUS_USAGE;
}

/* For commands whose processes share the work, and ingests that merge their shards: joins the other processes, if
 * any, as options->processes. Other commands are refused if a launcher has started them (STATUS_USAGE), except
 * through a script or with --mpi off. In all processes but the first, the options are set to print and write
 * nothing but their own errors. Threads are divided among the processes of this machine unless their number was
 * given. Call it before other threads start. */
static enum status launch_open(struct options *options, int argc, char *const *argv,
                               struct error *err)
{
    const char *mpi = CHOICE_WORD(options, "mpi");
    const struct command *command = options->command;
    sigset_t before;
    if (!command->ranks_share && !command->ranks_apart && processes_started() &&
        strcmp(mpi, "off") != 0)
        return refuse(command, err);
    if (!options->merges_shards && !command->ranks_share)
        return STATUS_OK;
    char *words = join_words(argc, argv);
    /* MPI's threads must not receive the signals. */
    signals_block(&before);
    enum status status = processes_open(&options->processes, mpi, words, err);
    free(words);
    if (status != STATUS_OK) {
        if (!options->processes)
            launch_misuse(err);
        return status;
    }
    if (!options->processes) {
        /* Until the command handles signals, they end the process. */
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return STATUS_OK;
    }
    if (options->paths && strcmp(options->paths, "-") == 0)
        return misuse(err, "--paths - cannot be read by several processes: name a file");
    if (options->threads == 0)
        options->threads = processes_cpus(options->processes);
    log_set_plain();
    if (processes_first(options->processes))
        return STATUS_OK;
    log_set_rank(processes_comm(options->processes)->rank);
    log_set_level(options->verbose ? LOG_DEBUG : LOG_ERROR);
    options->progress = PROGRESS_NEVER;
    options->json = options->profile = NULL;
    return STATUS_OK;
}

/* Ends the command with the same status and error in all processes; only the first prints the
 * error, before processes_close. */
static enum status launch_finish(struct options *options, enum status status, struct error *err)
{
    if (err->remedy == REMEDY_OTHER_WRITER && processes_started() &&
        option_find(options->command, "shard", strlen("shard")))
        error_remedy(err, REMEDY_SHARE);
    status = processes_finish(options->processes, status, err);
    if (!processes_first(options->processes))
        log_set_level(LOG_QUIET);
    return status;
}

/* After the first has printed the common error: processes_let_read. */
static void launch_told(const struct options *options, enum status status)
{
    if ((status == STATUS_FAILED || status == STATUS_USAGE) &&
        (options->processes || processes_told()))
        processes_let_read();
}

/* --- several files that a command takes as one ---------------------------------------------- */

/* The files merged by reference, in an unnamed file in $TMPDIR with their paths and failures. */
struct joined_input {
    int fd;        /* negative: there is at most one file */
    char path[32]; /* the path to open it by */
    char names[300];
};

static bool is_hdf5(const char *path)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    char start[sizeof signature] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool same = fd >= 0 && read(fd, start, sizeof start) == (ssize_t)sizeof start &&
                      memcmp(start, signature, sizeof start) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}

static enum status open_unnamed(int *fd, struct error *err)
{
    const char *directory = process_temporary_directory();
    *fd = unnamed_file(directory);
    return *fd >= 0 ? STATUS_OK
                    : error_errno(err, STATUS_FAILED, errno, "open", "cannot create a file in %s",
                                  PATH_TEXT(directory));
}

/* The operands to join: all, or those before a PICTURE. */
static enum status count_files(unsigned *count, const struct options *options, unsigned first,
                               struct error *err)
{
    const unsigned all = options->operand_count - first;
    const bool pictures = options->command->joins_first;
    for (*count = 0; *count < all && is_hdf5(options->operand[first + *count]); ++*count)
        ;
    return all < 2 || pictures || *count == all
               ? STATUS_OK
               : misuse(err, "unexpected argument '%s': only clpipe files can be read as one",
                        PATH_TEXT(options->operand[first + (*count ? *count : 1)]));
}

/* Merges the INPUTs of a command that accepts several (command->joins) and replaces them by one
 * operand. Errors are those of merge_files; STATUS_USAGE: not all are clpipe files, or the result
 * requires a separate file. Close it also after a failure. */
static enum status joined_input_open(struct joined_input *out, struct options *options,
                                     struct error *err)
{
    struct merge_report report;
    unsigned count;
    *out = (struct joined_input){.fd = -1};
    if (options->command->joins == 0)
        return STATUS_OK;
    const unsigned first = options->command->joins - 1u;
    enum status status = count_files(&count, options, first, err);
    if (status != STATUS_OK || count < 2)
        return status;
    const bool *all = option_at(options, "all");
    if (all && *all)
        return misuse(err, "--all stores neighbours in one file: run clpipe merge first");
    if (options->command->joins_output && !options->output)
        return misuse(err, "the result for several files requires a separate file: give -o");
    const char **const file = &options->operand[first];
    snprintf(out->names, sizeof out->names, "%s (and %u more)", PATH_TEXT_IN(200, *file),
             count - 1);
    status = open_unnamed(&out->fd, err);
    if (status != STATUS_OK)
        return status;
    snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->fd);
    const struct store_run run = {.command = options->command_line};
    const struct merge_config config = {
        .input = file, .count = count, .output = out->path, .unnamed = true, .run = &run};
    status = merge_files(&report, &config, err);
    *file = out->path;
    memmove(file + 1, file + count,
            (options->operand_count - first - count) * sizeof *options->operand);
    options->operand_count -= count - 1;
    return status;
}

/* Replaces the unnamed file in a message by the names of the files. */
static void joined_input_close(struct joined_input *joined, struct error *err)
{
    char line[sizeof err->sentence];
    char *at = joined->fd >= 0 ? strstr(err->sentence, joined->path) : NULL;
    if (at) {
        const char *rest = at + strlen(joined->path);
        snprintf(line, sizeof line, "%.*s%s%.400s", (int)(at - err->sentence), err->sentence,
                 joined->names, rest);
        snprintf(err->sentence, sizeof err->sentence, "%s", line);
    }
    if (joined->fd >= 0)
        close(joined->fd);
    joined->fd = -1;
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
            return misuse(err, "%s takes no arguments", argv[1]);
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
        tell(command, err);
        goto out;
    }
    log_set_level(options->quiet ? LOG_ERROR : options->verbose ? LOG_DEBUG : LOG_INFO);
    struct joined_input joined = {.fd = -1};
    options->call = &call;
    progress_stage(&call.progress, "start");
    json_init(&call.json, false);
    call.json.failed = !options->json; /* drops everything */
    bool reports = false;              /* --json names no file that a report must not overwrite */
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
    tell(command, err);
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
    tell(NULL, &err);
    return (int)status;
}

int main(int argc, char **argv)
{
    clock_process_start();
    process_repair();
#ifdef __GLIBC__
    /* Returns memory freed by codecs to the system. By default, glibc raises both thresholds to the
     * sizes that it sees and keeps dozens of megabytes per decode thread outside every limit. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
    h5_without_exit_handler();
    return process_run(run_command, argc, argv);
}
