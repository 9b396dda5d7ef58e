/* ocl_trial.c: the second process reads "DEVICE\0SOURCE\0OPTIONS\0OPTIONS\0..." from its standard
 * input. */
#include "ocl/ocl_trial.h"

#include "base/log.h"
#include "base/process.h"
#include "base/workers.h"
#include "ocl/ocl.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Address space that the first process needs, apart from drivers and their compiler. */
#define REST_BYTES (256u << 20)
#define PROCESSES  6u /* that compile at the same time; each needs device memory for its context */

static bool enabled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static bool compiles;

void ocl_trial_enable(void)
{
    enabled = true;
}

/* Runs the second process with the file as input, to which it appends its output; 0 or errno. It inherits
 * the blocked signals of a program that handles them: a Ctrl-C is the first process's to report. */
static int run(int *status, int file)
{
    static char *const arguments[] = {"clpipe", OCL_TRIAL_ARGUMENT, NULL};
    posix_spawn_file_actions_t actions;
    pid_t process;
    lseek(file, 0, SEEK_SET);
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_adddup2(&actions, file, fd);
    const int code = posix_spawn(&process, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (code == 0 && waitpid(process, status, 0) < 0 && errno == EINTR)
        ;
    return code;
}

enum status ocl_trial(unsigned device, const char *source, const char *options, const char *what,
                      struct error *err)
{
    int status = 0, code = 0;
    int64_t since = 0;
    pthread_mutex_lock(&lock);
    const bool tried = !enabled || compiles;
    const int file = tried ? -1 : memfd_create("clpipe-trial", MFD_CLOEXEC);
    const int asked =
        tried ? 0 : dprintf(file, "%u%c%s%c%s%c", device, 0, source ? source : "", 0, options, 0);
    do
        code = tried ? 0 : asked < 0 ? errno : run(&status, file);
    while (code && asked >= 0 && process_wait_for(&since, code, "a process that compiles kernels"));
    compiles = compiles || (source && !code && status == 0);
    pthread_mutex_unlock(&lock);
    char said[200] = "";
    if (status != 0 && pread(file, said, sizeof said - 1, asked) < 0)
        said[0] = '\0';
    if (file >= 0)
        close(file);
    if (code)
        return error_errno(err, STATUS_FAILED, code, "posix_spawn", "%s%s", what, process_limits());
    said[strcspn(said, "\n(")] = '\0';
    return status == 0
               ? STATUS_OK
               : error_set(err, STATUS_FAILED, "%s: the driver ended: %s%s%s%s", what,
                           WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "",
                           WIFSIGNALED(status) && said[0] ? ": " : "", said, process_limits());
}

struct sharing {
    unsigned device, count;
    const char *source, *const *options;
};

/* Has a process compile its share of the programs. */
static void compile_share(void *context, uint64_t process)
{
    const struct sharing *sharing = context;
    int status = 0;
    const int file = memfd_create("clpipe-programs", MFD_CLOEXEC);
    bool asked = file >= 0 && dprintf(file, "%u%c%s%c", sharing->device, 0, sharing->source, 0) > 0;
    for (uint64_t i = process; i < sharing->count && asked; i += PROCESSES)
        asked = dprintf(file, "%s%c", sharing->options[i], 0) > 0;
    const int code = asked ? run(&status, file) : errno;
    if (code || status != 0)
        log_message(LOG_DEBUG, "a process that compiles kernels: %s, status %d",
                    code ? strerror(code) : "ended", status);
    if (file >= 0)
        close(file);
}

void ocl_trial_compile(unsigned device, const char *source, const char *const *options,
                       unsigned count)
{
    struct sharing sharing = {
        .device = device, .source = source, .options = options, .count = count};
    const unsigned processes = count < PROCESSES ? count : PROCESSES;
    if (enabled)
        workers_once(processes, compile_share, &sharing, processes);
}

int ocl_trial_serve(void)
{
    struct ocl_devices devices;
    struct ocl_context *context = NULL;
    struct error err = ERROR_INIT;
    cl_program program = NULL;
    char text[1 << 20];
    const char *const end = text + fread(text, 1, sizeof text - 2, stdin);
    memset(text + (end - text), 0, 2);
    const unsigned device = (unsigned)strtoul(text, NULL, 10);
    const char *source = text + strlen(text) + 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_level(LOG_QUIET); /* the caller reports kernel errors */
    enum status status = ocl_devices_open(&devices, 1, &err);
    if (status == STATUS_OK &&
        mmap(NULL, REST_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        status = error_memory(&err, REST_BYTES, "what comes after the drivers");
    if (status == STATUS_OK && *source && device < devices.count) {
        status = ocl_context_open(&context, &devices.device[device], NULL, &err);
        for (const char *options = source + strlen(source) + 1;
             options < end && status == STATUS_OK; options += strlen(options) + 1)
            if (ocl_program_build_source(&program, context, "tried", source, options, NULL) ==
                STATUS_OK)
                clReleaseProgram(program);
        ocl_context_close(&context);
    }
    ocl_devices_close(&devices);
    if (status != STATUS_OK)
        fprintf(stderr, "%s\n", err.sentence);
    return status;
}
