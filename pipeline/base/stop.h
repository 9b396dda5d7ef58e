/* stop.h: the word that a run should end early. One per run, passed to every stage; setting it is
 * async-signal-safe. Stages look at it between items and never wait longer than 100 ms without. */
#ifndef CLPIPE_BASE_STOP_H
#define CLPIPE_BASE_STOP_H

#include <stdatomic.h>

enum stop_cause {
    STOP_NONE = 0,
    STOP_SIGNAL, /* SIGINT, SIGTERM or SIGUSR1 */
    STOP_TIME,   /* --max-time is over */
    STOP_STRICT, /* --strict and a failure */
    STOP_ERROR,  /* another stage failed: its error is the run's */
};

struct stop {
    _Atomic int cause;
};

static inline enum stop_cause stop_requested(struct stop *stop)
{
    return (enum stop_cause)atomic_load_explicit(&stop->cause, memory_order_acquire);
}

/* The first cause wins. */
static inline void stop_request(struct stop *stop, enum stop_cause cause)
{
    int none = STOP_NONE;
    atomic_compare_exchange_strong(&stop->cause, &none, (int)cause);
}

#endif
