/* watch.h: how a long job reports its progress, and learns that it should stop. */
#ifndef CLPIPE_BASE_WATCH_H
#define CLPIPE_BASE_WATCH_H

#include "base/stop.h"

struct watch {
    struct stop *stop; /* may be NULL */
    /* May be NULL. Called by one thread at a time: the calling one, unless a job says otherwise;
     * `phase` is static. */
    void (*show)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

static inline void watch_show(const struct watch *watch, const char *phase, uint64_t done,
                              uint64_t total)
{
    if (watch->show)
        watch->show(watch->context, phase, done, total);
}

/* As stop_check. */
static inline enum status watch_check(const struct watch *watch, const char *what,
                                      struct error *err)
{
    return stop_check(watch->stop, what, err);
}

#endif
