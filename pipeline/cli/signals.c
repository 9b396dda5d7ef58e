/* signals.c: the handlers, which do only what a handler may: atomics, write and _exit. */
#include "cli/signals.h"
#include "base/clock.h"
#include "base/log.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

static struct stop stop;
static _Atomic int interrupts;
static _Atomic int on_terminal; /* looked up before handlers run: isatty is no business of theirs */

struct stop *signals_stop(void)
{
    return &stop;
}

static void on_signal(int number)
{
    int saved_errno = errno;
    if (number == SIGALRM) {
        stop_request(&stop, STOP_TIME);
    } else {
        stop_request(&stop, STOP_SIGNAL);
        if (number == SIGINT && atomic_fetch_add(&interrupts, 1) > 0) {
            static const char clean[] = "\r\033[K\033[?7h";
            if (atomic_load(&on_terminal)) {
                /* There is nobody left to tell if this fails. */
                ssize_t written = write(STDERR_FILENO, clean, sizeof clean - 1);
                (void)written;
            }
            _exit(130);
        }
    }
    errno = saved_errno;
}

static const int caught[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM};
static bool installed, ignore_interrupts;

static void catch_all(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        if (caught[i] != SIGINT || !ignore_interrupts)
            sigaction(caught[i], &action, NULL);
}

void signals_install(void)
{
    struct sigaction old;
    atomic_store(&on_terminal, log_is_terminal());
    /* Started with SIGINT ignored (nohup, a background job of a script): it stays so. */
    ignore_interrupts = sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
    installed = true;
    catch_all();
}

void signals_renew(void)
{
    struct sigaction now;
    if (installed && sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler != on_signal)
        catch_all();
}

void signals_deadline(double seconds)
{
    if (seconds <= 0)
        return;
    double left = seconds - (double)(clock_now() - clock_process_start()) * 1e-9;
    if (left < 1e-6)
        left = 1e-6;
    if (left > 1e9)
        left = 1e9;
    struct itimerval timer = {0};
    timer.it_value.tv_sec = (time_t)left;
    timer.it_value.tv_usec = (suseconds_t)((left - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}
