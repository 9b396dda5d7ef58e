/* launch.c: who prints, and what each process gets of the machine. */
#include "cli/launch.h"
#include "base/log.h"
#include "cli/signals.h"
#include "ranks/processes.h"
#include "version_generated.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* The others are silent, and end once the first has told it. */
static enum status refuse(const struct command *command, struct error *err)
{
    error_set(err, STATUS_USAGE,
              "clpipe %s does not share its work, and %s has started several of it: start one",
              command->name, processes_told());
    error_remedy(err, REMEDY_ALONE);
    launch_misuse(err);
    if (processes_told_rank() > 0)
        processes_let_read();
    return STATUS_USAGE;
}

enum status launch_open(struct options *options, int argc, char *const *argv, struct error *err)
{
    static const char *const choices[] = {"auto", "openmpi", "mpich", "off"};
    const struct command *command = options->command;
    sigset_t before;
    if (!command->ranks_share && !command->ranks_apart && processes_started() &&
        strcmp(choices[options->mpi], "off") != 0)
        return refuse(command, err);
    if (!options->merges_shards && !command->ranks_share)
        return STATUS_OK;
    char *words = join_words(argc, argv);
    /* MPI's threads must not get them. */
    signals_block(&before);
    enum status status = processes_open(&options->processes, choices[options->mpi], words, err);
    free(words);
    if (status != STATUS_OK) {
        if (!options->processes)
            launch_misuse(err);
        return status;
    }
    if (!options->processes) {
        /* Until the command waits for them, they end it. */
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return STATUS_OK;
    }
    if (options->paths && strcmp(options->paths, "-") == 0)
        return misuse(err, options->command,
                      "--paths - cannot be read by several processes: name a file");
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

enum status launch_finish(struct options *options, enum status status, struct error *err)
{
    if (err->remedy == REMEDY_OTHER_WRITER && processes_started() &&
        option_find(options->command, "shard", strlen("shard")))
        error_remedy(err, REMEDY_SHARE);
    status = processes_finish(options->processes, status, err);
    if (!processes_first(options->processes))
        log_set_level(LOG_QUIET);
    return status;
}

void launch_told(const struct options *options, enum status status)
{
    if ((status == STATUS_FAILED || status == STATUS_USAGE) &&
        (options->processes || processes_told()))
        processes_let_read();
}

void launch_misuse(const struct error *err)
{
    if (err->native == ENOMEM && processes_told()) {
        log_error(err);
        raise(SIGTERM);
    }
    if (processes_told_rank() > 0)
        log_set_level(LOG_QUIET);
}
