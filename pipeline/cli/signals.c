/* signals.c: a thread that waits for signals.
 *
 * They are blocked in all other threads, so handlers do not matter: LLVM, in the OpenCL runtimes of
 * CPUs, installs its own when it first compiles, and one of them swallows SIGUSR1. */
#include "cli/signals.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A stop takes seconds, an iteration of k-means over rows that do not fit into memory may take longer. */
#define MARGIN_SECONDS   120.0
#define NO_TIME          1e-9
#define MOST_JOB_SECONDS (366 * 86400.0) /* a job without a limit */

static const int asked[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
static bool by_job; /* the time limit is a job's; before other threads start */
static struct stop stop;
static sigset_t waited;  /* written before the thread starts */
static int64_t deadline; /* of clock_now(); 0: none; likewise */

struct stop *signals_stop(void)
{
    return &stop;
}

/* The next signal, or 0 when the deadline has passed. */
static int next_signal(bool timed)
{
    for (;;) {
        int64_t left = deadline - clock_now();
        if (timed && left <= 0)
            return 0;
        struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        int number = timed ? sigtimedwait(&waited, NULL, &wait) : sigwaitinfo(&waited, NULL);
        if (number > 0)
            return number;
    }
}

static void *watch(void *unused)
{
    (void)unused;
    unsigned interrupts = 0;
    bool timed = deadline > 0;
    for (;;) {
        int number = next_signal(timed);
        if (number == 0)
            timed = false;
        stop_request(&stop, number == 0 ? STOP_TIME : STOP_SIGNAL);
        if (number == SIGINT && ++interrupts == 2) {
            /* Not through the log: a stuck thread may hold its lock. */
            static const char clean[] = "\r\033[K\033[?7h";
            ssize_t written = log_is_terminal() ? write(STDERR_FILENO, clean, sizeof clean - 1) : 0;
            (void)written; /* errors can no longer be reported */
            _exit(130);
        }
    }
    return NULL;
}

double signals_time_limit(const struct options *options)
{
    const char *text = getenv("SLURM_JOB_END_TIME");
    char *end;
    if (options_given(options, "max-time") && options->max_time == 0)
        return NO_TIME;
    if (options_given(options, "max-time") || !text || !getenv("SLURM_JOB_ID"))
        return options->max_time;
    const long long moment = strtoll(text, &end, 10);
    const double left = (double)(moment - (long long)time(NULL));
    if (*end || end == text || left <= 0 || left > MOST_JOB_SECONDS)
        return 0;
    const double margin = fmin(MARGIN_SECONDS, left / 10);
    log_message(LOG_INFO,
                "stops in %s, %s before the end of the Slurm job (--max-time sets another limit)",
                DURATION_TEXT(left - margin), DURATION_TEXT(margin));
    by_job = true;
    return left - margin + clock_seconds_since(clock_process_start());
}

bool signals_limit_is_job(void)
{
    return by_job;
}

void signals_block(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        sigaddset(&set, asked[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

void signals_install(double seconds)
{
    static bool installed;
    pthread_t thread;
    if (installed)
        return;
    installed = true;
    sigemptyset(&waited);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        /* Signals ignored at the start (nohup, background jobs of scripts) stay ignored. */
        struct sigaction old;
        if (sigaction(asked[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&waited, asked[i]);
    }
    if (seconds > 0)
        deadline = clock_process_start() + (int64_t)(fmin(seconds, 1e9) * 1e9);
    if (deadline > 0 && clock_now() >= deadline)
        stop_request(&stop, STOP_TIME); /* before anything begins */
    pthread_sigmask(SIG_BLOCK, &waited, NULL);
    int failed = pthread_create(&thread, NULL, watch, NULL);
    if (failed) {
        pthread_sigmask(SIG_UNBLOCK, &waited, NULL);
        log_message(LOG_NOTICE,
                    "notice: cannot start the thread that handles signals (%s): an interrupt ends "
                    "the program at once",
                    strerror(failed));
        return;
    }
    pthread_detach(thread);
}
