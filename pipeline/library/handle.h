/* handle.h: handles of the library, which are numbers in a table, and its errors. */
#ifndef CLPIPE_LIBRARY_HANDLE_H
#define CLPIPE_LIBRARY_HANDLE_H

#include "base/error.h"
#include "base/stop.h"
#include "library/clpipe.h"
#include <pthread.h>
#include <stdbool.h>

/* The first member of what a handle stands for. */
struct handle {
    uintptr_t number;          /* what the caller has as a pointer; never given again */
    unsigned users;            /* calls in progress or waiting, and the table */
    pthread_mutex_t call;      /* held by the call in progress */
    struct stop stop;          /* of it */
    struct clpipe_watch watch; /* of it */
    struct handle *next;
    void (*free)(struct handle *handle);
};

/* Is this a process that clpipe works in? To be asked first by every function. */
enum status handle_process(struct error *err);

/* Set while this thread is in a callback, which would wait for ever for the handle of its own call. */
extern _Thread_local bool handle_calls_back;

/* Enters a handle into the table, and gives the caller's pointer. */
void *handle_add(struct handle *handle, void (*free)(struct handle *handle));

/* Begins a call: finds the handle and waits until it is free. NULL: there is no such one. *err and *status (CLPIPE_CLOSED,
 * CLPIPE_FORK, CLPIPE_ARGUMENT) are set then. */
void *handle_begin(const void *pointer, const struct clpipe_watch *watch, struct clpipe_error *err,
                   int *status);
/* Ends it, tells *err what `why` says, and returns the status. */
int handle_end(void *handle, enum status status, const struct error *why, struct clpipe_error *err);

/* Takes a handle out of the table; the last call in progress frees it. */
int handle_remove(const void *pointer);
int handle_stop(const void *pointer);

/* Tells the watch of the call, whose answer may be a stop; the engines' `phase` callback. */
void handle_phase(void *handle, const char *phase, uint64_t done, uint64_t total);

/* What a call without a handle returns. */
int handle_tell(enum status status, const struct error *why, struct clpipe_error *err);

/* Copies a struct of the caller that begins with its size into one of `size` bytes, with 0 for what his version lacks.
 * STATUS_USAGE: no size that can be, or members that this version does not know. */
enum status handle_take(void *out, size_t size, const void *in, const char *what,
                        struct error *err);

#endif
