/* handle.c: the table of handles. A process that was forked is told by its id before any lock is taken: another
 * thread may have held it. */
#include "library/handle.h"
#include "base/log.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int owner; /* the process that uses clpipe; 0: none yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct handle *first;
static uintptr_t last_number;
_Thread_local bool handle_calls_back;

enum status handle_process(struct error *err)
{
    const int process = (int)getpid();
    int none = 0;
    if (atomic_compare_exchange_strong(&owner, &none, process))
        log_set_level(LOG_QUIET);
    else if (none != process)
        return error_set(
            err, STATUS_FAILED,
            "fork: this process was forked from one that uses clpipe, whose drivers do not work "
            "here; start a new process instead (in Python: the start method \"spawn\")");
    return STATUS_OK;
}

/* --- errors ------------------------------------------------------------------------------------ */

static int tell(int status, const char *text, struct clpipe_error *err)
{
    struct clpipe_error whole = {.status = status};
    if (!err || status == CLPIPE_OK || err->size <= offsetof(struct clpipe_error, text) ||
        err->size > 2 * sizeof whole)
        return status;
    const size_t room = err->size - offsetof(struct clpipe_error, text);
    err->status = status;
    snprintf(err->text, room < sizeof err->text ? room : sizeof err->text, "%s", text);
    return status;
}

static int code_of(enum status status, const struct error *why)
{
    return status == STATUS_OK                                          ? CLPIPE_OK
           : status == STATUS_USAGE                                     ? CLPIPE_ARGUMENT
           : status == STATUS_INTERRUPTED                               ? CLPIPE_STOPPED
           : strncmp(why->sentence, "fork: ", 6) == 0                   ? CLPIPE_FORK
           : why->remedy == REMEDY_LESS_MEMORY || why->native == ENOMEM ? CLPIPE_MEMORY
           : why->remedy == REMEDY_OTHER_DEVICE || strncmp(why->name, "CL_", 3) == 0 ? CLPIPE_DEVICE
                                                                                     : CLPIPE_DATA;
}

int handle_tell(enum status status, const struct error *why, struct clpipe_error *err)
{
    char line[sizeof err->text];
    const char *text = status == STATUS_OK            ? ""
                       : status == STATUS_INTERRUPTED ? "stopped by the caller"
                                                      : error_line(line, sizeof line, why);
    return tell(code_of(status, why), text, err);
}

enum status handle_take(void *out, size_t size, const void *in, const char *what, struct error *err)
{
    size_t given = 0;
    memset(out, 0, size);
    if (in)
        memcpy(&given, in, sizeof given);
    if (!in || given < sizeof given || given > 4096)
        return error_set(err, STATUS_USAGE, "struct %s is %s", what,
                         in ? "without its size: CLPIPE_INIT sets it" : "NULL");
    for (size_t i = size; i < given; i++)
        if (((const char *)in)[i])
            return error_set(err, STATUS_USAGE,
                             "struct %s has members that this clpipe is too old for", what);
    memcpy(out, in, given < size ? given : size);
    return STATUS_OK;
}

/* --- the table --------------------------------------------------------------------------------- */

void *handle_add(struct handle *handle, void (*free)(struct handle *handle))
{
    handle->users = 1;
    handle->free = free;
    pthread_mutex_init(&handle->call, NULL);
    pthread_mutex_lock(&lock);
    handle->number = ++last_number;
    handle->next = first;
    first = handle;
    pthread_mutex_unlock(&lock);
    return (void *)handle->number;
}

/* With the lock: where the table has it. */
static struct handle **find(const void *pointer)
{
    struct handle **at = &first;
    while (*at && (*at)->number != (uintptr_t)pointer)
        at = &(*at)->next;
    return at;
}

static void release(struct handle *handle)
{
    pthread_mutex_lock(&lock);
    const bool last = --handle->users == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    pthread_mutex_destroy(&handle->call);
    handle->free(handle);
}

void *handle_begin(const void *pointer, const struct clpipe_watch *watch, struct clpipe_error *err,
                   int *status)
{
    struct error why = ERROR_INIT;
    if (handle_process(&why) != STATUS_OK) {
        *status = handle_tell(why.status, &why, err);
        return NULL;
    }
    if (handle_calls_back) {
        *status = tell(CLPIPE_ARGUMENT, "a callback called clpipe with a handle", err);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct handle *handle = *find(pointer);
    if (handle)
        handle->users++;
    pthread_mutex_unlock(&lock);
    if (handle) {
        pthread_mutex_lock(&handle->call);
        atomic_store(&handle->stop.cause, STOP_NONE);
        atomic_store(&handle->stop.since, 0);
        handle->watch = (struct clpipe_watch){0};
        if (!watch || handle_take(&handle->watch, sizeof handle->watch, watch, "clpipe_watch",
                                  &why) == STATUS_OK)
            return handle;
        *status = handle_end(handle, why.status, &why, err);
        return NULL;
    }
    *status =
        tell(CLPIPE_CLOSED, "the handle is not open: it was closed, or is none of this kind", err);
    return NULL;
}

int handle_end(void *out, enum status status, const struct error *why, struct clpipe_error *err)
{
    struct handle *handle = out;
    pthread_mutex_unlock(&handle->call);
    release(handle);
    return handle_tell(status, why, err);
}

int handle_remove(const void *pointer)
{
    struct error why = ERROR_INIT;
    if (handle_process(&why) != STATUS_OK)
        return CLPIPE_FORK;
    pthread_mutex_lock(&lock);
    struct handle **at = find(pointer), *handle = *at;
    if (handle)
        *at = handle->next;
    pthread_mutex_unlock(&lock);
    if (!handle)
        return CLPIPE_CLOSED;
    release(handle);
    return CLPIPE_OK;
}

int handle_stop(const void *pointer)
{
    struct error why = ERROR_INIT;
    if (handle_process(&why) != STATUS_OK)
        return CLPIPE_FORK;
    pthread_mutex_lock(&lock);
    struct handle *handle = *find(pointer);
    if (handle)
        stop_request(&handle->stop, STOP_SIGNAL);
    pthread_mutex_unlock(&lock);
    return handle ? CLPIPE_OK : CLPIPE_CLOSED;
}

void handle_phase(void *context, const char *phase, uint64_t done, uint64_t total)
{
    struct handle *handle = context;
    const struct clpipe_watch *watch = &handle->watch;
    handle_calls_back = true;
    if (watch->progress && watch->progress(watch->context, phase, done, total))
        stop_request(&handle->stop, STOP_SIGNAL);
    handle_calls_back = false;
}
