/* processes.c: finds the launcher and its module, and joins the processes. */
#include "ranks/processes.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/process.h"
#include "ranks/comm_processes.h"
#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READING_TIME 250000000 /* ns */
#define JOINING_TIME 60        /* s */

static const char *const modules[] = {"openmpi", "mpich"};

/* What launchers put into the environment of the processes that they start. mpirun and mpiexec may
 * have started their daemons through srun, and a shell may be a step of one task, so the first
 * launcher that announces several processes counts. Variables with a job's number of tasks are not
 * used: a batch script has them, too. */
static const struct launcher {
    const char *name, *module;
    const char *rank, *size;
    bool decides; /* even with one process */
} launchers[] = {
    {"mpirun of Open MPI", "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true},
    {"mpiexec of MPICH or srun --mpi=pmi2", "mpich", "PMI_RANK", "PMI_SIZE", false},
    {"srun --mpi=pmix", "openmpi", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", false},
    {"srun", NULL, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", false},
};

/* Between two calls of comm_processes_watch: each one wakes the waiting ranks. */
#define WATCH_NS 100000000

struct processes {
    const struct mpi_table *mpi;
    struct mpi_place place;
    struct comm *comm;
    struct comm *part; /* of processes_part, if all ranks are in it; else NULL */
    int64_t watched;   /* clock_now() of the last processes_watch that did something */
    unsigned cpus;
};

/* --- the launcher ---------------------------------------------------------------------------- */

static uint32_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t number = 0;
    return text && parse_u64(&number, text, 0, INT32_MAX) ? (uint32_t)number : 0;
}

/* The launcher that has started this process with others, or NULL. */
static const struct launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *launcher = &launchers[i];
        if (!getenv(launcher->rank) || !getenv(launcher->size))
            continue;
        if (number_of(launcher->size) > 1)
            return launcher;
        if (launcher->decides)
            return NULL;
    }
    return NULL;
}

const char *processes_told(void)
{
    const struct launcher *launcher = find_launcher();
    return launcher ? launcher->name : NULL;
}

uint32_t processes_told_rank(void)
{
    const struct launcher *launcher = find_launcher();
    return launcher ? number_of(launcher->rank) : 0;
}

/* The number after `part` in a line of a /proc file, or in a text before a NUL; -1: not found. */
static long proc_find(long process, const char *name, int end, const char *part)
{
    char path[64], *text = NULL, *at = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%ld/%s", process, name);
    FILE *file = fopen(path, "re");
    while (file && !at && getdelim(&text, &size, end, file) > 0)
        at = strstr(text, part);
    const long number = at ? labs(strtol(at + strlen(part), NULL, 10)) : -1;
    free(text);
    if (file)
        fclose(file);
    return number;
}

/* The parent, if it has this process's rank (a launcher's daemon, which may be root's, has not),
 * else 0. mpi: an ancestor that has loaded MPI. */
static long find_parent(const struct launcher *launcher, bool mpi)
{
    char rank[64];
    snprintf(rank, sizeof rank, "%s=%u", launcher->rank, number_of(launcher->rank));
    long process = getppid();
    while (process > 1 && proc_find(process, "environ", '\0', rank) >= 0) {
        if (!mpi || proc_find(process, "maps", '\n', "/libmpi") >= 0)
            return process;
        process = proc_find(process, "status", '\n', "PPid:");
    }
    return 0;
}

bool processes_started(void)
{
    const struct launcher *launcher = find_launcher();
    return launcher && find_parent(launcher, false) == 0;
}

/* --- the module ------------------------------------------------------------------------------ */

/* The table of an installed module, or NULL and the reason. */
static const struct mpi_table *load_module(const char *name, int scope, char *why, size_t size)
{
    char path[PATH_MAX + 64], file[64];
    snprintf(file, sizeof file, "mpi-%s.so", name);
    if (!process_file_beside(path, sizeof path, file)) {
        snprintf(why, size, "not built in");
        return NULL;
    }
    void *module = dlopen(path, RTLD_NOW | scope);
    if (!module) {
        snprintf(why, size, "%s", dlerror());
        return NULL;
    }
    const struct mpi_table *table = dlsym(module, MPI_TABLE_SYMBOL);
    if (table && table->version == MPI_TABLE_VERSION)
        return table;
    snprintf(why, size, "the module belongs to a different version of clpipe");
    return NULL;
}

bool processes_module(unsigned i, const char **name, char *text, size_t size)
{
    if (i >= sizeof modules / sizeof *modules)
        return false;
    *name = modules[i];
    const struct mpi_table *table = load_module(modules[i], RTLD_LOCAL, text, size);
    if (table)
        snprintf(text, size, "%.*s", (int)strcspn(table->library(), "\n,"), table->library());
    text[strcspn(text, "\n")] = '\0';
    for (char *at = text; *at; at++) /* MPICH puts a tab after a label */
        *at = *at == '\t' ? ' ' : *at;
    return true;
}

/* --- opening --------------------------------------------------------------------------------- */

/* Computes this process's share of CPUs; CPUs that others may use as well count partially. */
static enum status share_cpus(struct processes *processes, struct error *err)
{
    const struct mpi_place *place = &processes->place;
    cpu_set_t *sets = calloc(place->local_size, sizeof *sets), *own = sets + place->local_rank;
    size_t *ends = calloc(place->local_size, sizeof *ends);
    enum status status = STATUS_OK;
    if (!sets || !ends) {
        status = error_memory(err, place->local_size * sizeof *sets, "ranks");
        goto out;
    }
    if (sched_getaffinity(0, sizeof *own, own) != 0)
        memset(own, 0xff, sizeof *own);
    for (uint32_t i = 0; i < place->local_size; i++)
        ends[i] = (i + 1) * sizeof *sets;
    status = comm_processes_meet(processes->comm, err);
    if (status == STATUS_OK)
        status = comm_processes_check(processes->comm,
                                      processes->mpi->gather(place->local, sets, ends), err);
    if (status != STATUS_OK)
        goto out;
    double share = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        unsigned users = 0;
        for (uint32_t i = 0; i < place->local_size && CPU_ISSET(cpu, own); i++)
            users += CPU_ISSET(cpu, &sets[i]) ? 1 : 0;
        share += users > 0 ? 1.0 / users : 0;
    }
    /* A cgroup quota applies to all of them together. */
    share *= (double)cpus_available() / CPU_COUNT(own);
    processes->cpus = share > 1 ? (unsigned)share : 1;
    int64_t crowded = share < 1; /* on any process's host: all wait in the same way */
    status = comm_sum(processes->comm, &crowded, &crowded, 1, err);
    processes->mpi->set_crowded(crowded > 0);
out:
    free(sets);
    free(ends);
    return status;
}

enum status processes_agree(struct processes *processes, const char *text, const char *what,
                            struct error *err)
{
    struct comm *comm = processes_comm(processes);
    uint64_t(*digests)[2] = comm ? calloc(comm->size, sizeof *digests) : NULL;
    if (!comm)
        return STATUS_OK;
    if (!digests)
        return error_memory(err, comm->size * sizeof *digests, "ranks");
    murmur3_of(digests[comm->rank], text, strlen(text));
    enum status status = comm_gather_each(comm, digests, sizeof *digests, err);
    for (uint32_t rank = 1; rank < comm->size && status == STATUS_OK; rank++)
        if (memcmp(digests[rank], digests[0], sizeof *digests) != 0) {
            status = error_set(err, STATUS_USAGE, "ranks %u and 0 have different %s", rank, what);
            error_remedy(err, REMEDY_ALONE);
        }
    free(digests);
    return status;
}

static enum status no_module(struct error *err, const struct launcher *launcher, const char *name,
                             const char *why)
{
    if (launcher)
        error_set(err, STATUS_FAILED, "%s has started this program, but its module mpi-%s.so: %s",
                  launcher->name, name, why);
    else
        error_set(err, STATUS_FAILED, "the module mpi-%s.so: %s", name, why);
    error_remedy(err, REMEDY_ALONE);
    return err->status;
}

static enum status open_module(struct processes *processes, const struct launcher *launcher,
                               const char *name, bool ready, struct error *err)
{
    char why[1024];
    /* Plugins that Open MPI loads itself look up its functions globally. */
    processes->mpi = load_module(name, RTLD_GLOBAL, why, sizeof why);
    if (!processes->mpi)
        return no_module(err, launcher, name, why);
    const int code = processes->mpi->open(&processes->place, ready);
    if (code != 0) {
        processes->mpi->explain(why, sizeof why, code);
        return no_module(err, launcher, name, why);
    }
    const struct mpi_place *place = &processes->place;
    const uint32_t started = launcher ? number_of(launcher->size) : place->size;
    if (place->size != started) {
        error_set(err, STATUS_FAILED,
                  "%s has started %u processes, but the MPI of the module mpi-%s.so finds %u: "
                  "start them with that MPI's mpirun",
                  launcher->name, started, name, place->size);
        error_remedy(err, REMEDY_ALONE);
        processes->mpi->close();
        return err->status;
    }
    comm_processes_open(processes->comm, processes->mpi, place->world, place->rank, place->size);
    return STATUS_OK;
}

/* Runs in a separate thread: MPI cannot be interrupted while it waits. */
static void give_up(union sigval value)
{
    const struct launcher *launcher = value.sival_ptr;
    struct error error = ERROR_INIT;
    error_set(&error, STATUS_FAILED,
              "waited %d s in vain for the other processes: all %u that %s has started must run "
              "this command; with --mpi off each works on its own",
              JOINING_TIME, number_of(launcher->size), launcher->name);
    log_error(&error);
    _exit(STATUS_FAILED);
}

enum status processes_open(struct processes **out, const char *choice, const char *same,
                           struct error *err)
{
    const struct launcher *launcher = find_launcher();
    const bool automatic = strcmp(choice, "auto") == 0;
    *out = NULL;
    if (strcmp(choice, "off") == 0 || (automatic && !launcher))
        return STATUS_OK;
    if (automatic && !launcher->module) {
        error_set(err, STATUS_FAILED,
                  "srun has started %u tasks without MPI: they need srun --mpi=pmix (Open MPI) or "
                  "--mpi=pmi2 (MPICH)",
                  number_of(launcher->size));
        return error_remedy(err, REMEDY_ALONE);
    }
    if (launcher && find_parent(launcher, true) > 0) {
        error_set(err, STATUS_FAILED,
                  "the program that has started this one is itself MPI rank %u, whose place cannot "
                  "be taken",
                  number_of(launcher->rank));
        return error_remedy(err, REMEDY_ALONE);
    }
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_value.sival_ptr = (void *)(uintptr_t)launcher};
    event.sigev_notify_function = give_up;
    timer_t timer;
    const struct itimerspec time = {.it_value.tv_sec = JOINING_TIME};
    const bool timed = launcher && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (timed)
        timer_settime(timer, 0, &time, NULL);
    static struct processes all;
    struct processes *processes = &all;
    processes->comm = comm_processes_reserve();
    const enum status opened = open_module(
        processes, launcher, automatic ? launcher->module : choice, processes->comm && same, err);
    enum status status = opened;
    if (status == STATUS_OK)
        status = processes_agree(processes, same, "command lines, or versions of clpipe", err);
    if (timed)
        timer_delete(timer);
    if (opened != STATUS_OK) {
        comm_processes_close(&processes->comm);
        return opened;
    }
    if (status == STATUS_OK)
        status = share_cpus(processes, err);
    *out = processes;
    return status;
}

void processes_let_read(void)
{
    nanosleep(&(struct timespec){.tv_nsec = READING_TIME}, NULL);
}

enum status processes_finish(struct processes *processes, enum status status, struct error *err)
{
    if (!processes)
        return status;
    if (status != STATUS_OK)
        comm_processes_fail(processes->comm, err);
    else
        comm_processes_meet(processes->comm, err);
    const bool lost = comm_processes_lost(processes->comm);
    if (comm_processes_error(processes->comm, err) != STATUS_OK)
        status = err->status;
    comm_processes_close(&processes->comm);
    if (lost) {
        log_error(err);
        processes_let_read();
        processes->mpi->abort((int)status);
    }
    return status;
}

void processes_close(struct processes **processes)
{
    if (!processes || !*processes)
        return;
    (*processes)->mpi->close();
    *processes = NULL;
}

struct comm *processes_comm(const struct processes *processes)
{
    return processes ? processes->comm : NULL;
}

bool processes_first(const struct processes *processes)
{
    return !processes || processes->place.rank == 0;
}

uint32_t processes_local_rank(const struct processes *processes)
{
    return processes ? processes->place.local_rank : 0;
}

unsigned processes_cpus(const struct processes *processes)
{
    return processes ? processes->cpus : 0;
}

/* --- parts ----------------------------------------------------------------------------------- */

enum status processes_part(struct comm **out, struct processes *processes, uint32_t count,
                           struct error *err)
{
    const struct mpi_place *place = &processes->place;
    const struct mpi_table *mpi = processes->mpi;
    void *group = NULL;
    *out = NULL;
    if (place->rank < count) {
        struct comm *comm = comm_processes_reserve();
        group = comm ? mpi->new_group(count) : NULL;
        if (!group) {
            comm_processes_close(&comm);
            return error_memory(err, count * sizeof count, "ranks");
        }
        comm_processes_open(comm, mpi, group, place->rank, count);
        *out = comm;
    }
    /* A rank that is out of memory has failed, which the others learn here. */
    enum status status = comm_processes_meet(processes->comm, err);
    if (status == STATUS_OK)
        status = comm_processes_check(processes->comm, mpi->first_ranks(group, place->world, count),
                                      err);
    if (status != STATUS_OK)
        comm_processes_close(out);
    processes->part = count >= place->size ? *out : NULL;
    return status;
}

void processes_watch(struct processes *processes, struct stop *stop)
{
    struct error ignored = ERROR_INIT;
    if (!processes || clock_now() - processes->watched < WATCH_NS)
        return;
    processes->watched = clock_now();
    struct comm *comm = processes->part ? processes->part : processes->comm;
    if (comm_processes_watch(comm, &ignored) != STATUS_OK)
        stop_request(stop, STOP_ERROR);
}

void processes_leave_part(struct comm **part, struct processes *processes)
{
    struct error error = ERROR_INIT;
    if (*part && comm_processes_lost(*part)) {
        comm_processes_error(*part, &error);
        comm_processes_lose(processes->comm, &error);
    }
    comm_processes_close(part);
    processes->part = NULL;
}
