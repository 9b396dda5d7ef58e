/* child.c: lines through a pipe, NUL-terminated; the outcome in shared memory. */
#include "base/child.h"
#include "base/process.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome {
    bool done;
    enum status status;
    struct error error;
    _Alignas(max_align_t) char answer[];
};

static const struct {
    int number;
    const char *name;
} crashes[] = {{SIGSEGV, "SIGSEGV"},
               {SIGBUS, "SIGBUS"},
               {SIGABRT, "SIGABRT"},
               {SIGFPE, "SIGFPE"},
               {SIGILL, "SIGILL"}};

/* A damaged length can make a library ask for any amount of memory, and touch all of it. */
#define MEMORY (UINT64_C(4) << 30)

static void send_line(const char *line, void *context)
{
    fwrite(line, strlen(line) + 1, 1, context);
    fflush(context);
}

static _Noreturn void be_child(const struct child *child, struct outcome *outcome, int fd,
                               pid_t parent)
{
    FILE *lines = fdopen(fd, "w");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!lines || getppid() != parent)
        _exit(STATUS_FAILED);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    struct rlimit data;
    if (!SANITIZED && getrlimit(RLIMIT_DATA, &data) == 0) {
        data.rlim_cur = data.rlim_cur < MEMORY ? data.rlim_cur : MEMORY;
        setrlimit(RLIMIT_DATA, &data);
    }
    outcome->status = child->work(outcome->answer, send_line, lines, &outcome->error);
    outcome->done = true;
    _exit(STATUS_OK);
}

/* Ends when the child does. */
static void relay_lines(const struct child *child, int fd)
{
    FILE *lines = fdopen(fd, "r");
    char *line = NULL;
    size_t size = 0;
    while (lines && getdelim(&line, &size, 0, lines) > 0)
        child->line(line, child->context);
    free(line);
    if (lines)
        fclose(lines);
    else
        close(fd);
}

/* The name of the crash that ended the child; NULL, with an error, if it ended in another way. */
static const char *name_end(int ended, struct error *err)
{
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes && WIFSIGNALED(ended); i++)
        if (WTERMSIG(ended) == crashes[i].number)
            return crashes[i].name;
    if (WIFSIGNALED(ended))
        error_set(err, STATUS_FAILED, "the process that reads the file was ended by signal %d",
                  WTERMSIG(ended));
    else if (SANITIZED)
        return "a sanitizer";
    else
        error_set(err, STATUS_FAILED, "the process that reads the file ended too early");
    return NULL;
}

enum status child_run(const struct child *child, const char **died, struct error *err)
{
    int ends[2], ended = 0;
    const size_t bytes = sizeof(struct outcome) + child->size;
    struct outcome *outcome =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const bool piped = outcome != MAP_FAILED && pipe2(ends, O_CLOEXEC) == 0;
    if (piped)
        memcpy(outcome->answer, child->answer, child->size);
    const pid_t parent = getpid(), process = piped ? fork() : -1;
    *died = NULL;
    if (process == 0) {
        close(ends[0]);
        be_child(child, outcome, ends[1], parent);
    }
    if (piped)
        close(ends[1]);
    if (piped && process < 0)
        close(ends[0]);
    enum status status = STATUS_OK;
    if (process < 0) {
        status = child->work(child->answer, child->line, child->context, err);
    } else {
        relay_lines(child, ends[0]);
        while (waitpid(process, &ended, 0) < 0 && errno == EINTR)
            ;
        if (outcome->done) {
            memcpy(child->answer, outcome->answer, child->size);
            status = outcome->status;
            if (err && status != STATUS_OK)
                *err = outcome->error;
        } else if ((*died = name_end(ended, err))) {
            char line[128];
            snprintf(line, sizeof line,
                     "its metadata is damaged: reading it crashes a library (%s)", *died);
            child->line(line, child->context);
        } else {
            status = STATUS_FAILED;
        }
    }
    if (outcome != MAP_FAILED)
        munmap(outcome, bytes);
    return status;
}
