/* stop.h: the request that a run end early. One per run, passed to every stage; setting it is
 * async-signal-safe. Stages check it between items and at least every 100 ms while they wait. Items
 * in progress are finished, unless that takes too long. */
#ifndef CLPIPE_BASE_STOP_H
#define CLPIPE_BASE_STOP_H

#include "base/clock.h"
#include "base/error.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum stop_cause {
    STOP_NONE = 0,
    STOP_SIGNAL, /* SIGINT, SIGTERM, SIGUSR1, SIGUSR2 or SIGXCPU */
    STOP_TIME,   /* --max-time has passed */
    STOP_STRICT, /* --strict and a failure */
    STOP_ERROR,  /* another stage failed: its error is the error of the run */
};

/* Nanoseconds that an item in progress may still take after a stop was requested. */
#define STOP_PATIENCE 1000000000

struct stop {
    _Atomic int cause;
    _Atomic int64_t since; /* by clock_now(); 0: not yet */
};

/* STOP_NONE: go on. `stop` may be NULL. */
static inline enum stop_cause stop_requested(struct stop *stop)
{
    return stop ? (enum stop_cause)atomic_load_explicit(&stop->cause, memory_order_acquire)
                : STOP_NONE;
}

/* STATUS_INTERRUPTED "interrupted while WHAT" once a stop was requested. `stop` may be NULL. */
static inline enum status stop_check(struct stop *stop, const char *what, struct error *err)
{
    return stop_requested(stop) != STOP_NONE
               ? error_set(err, STATUS_INTERRUPTED, "interrupted while %s", what)
               : STATUS_OK;
}

/* The first cause wins. */
static inline void stop_request(struct stop *stop, enum stop_cause cause)
{
    int none = STOP_NONE;
    int64_t never = 0;
    atomic_compare_exchange_strong(&stop->since, &never, clock_now());
    atomic_compare_exchange_strong(&stop->cause, &none, (int)cause);
}

/* True if the stop was requested so long ago that items in progress are abandoned. `stop` may be
 * NULL. */
static inline bool stop_overdue(struct stop *stop)
{
    return stop_requested(stop) != STOP_NONE &&
           clock_now() - atomic_load(&stop->since) > STOP_PATIENCE;
}

#endif
