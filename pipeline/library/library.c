/* library.c: devices, handles (numbers in a table) and errors. A forked process is detected by
 * its id before any lock is taken, since another thread of its parent may have held the lock. */
#include "library/library.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/minmax.h"
#include "version_generated.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A larger value is certainly a mistake. */
#define LIBRARY_THREADS_MOST 4096u

static _Atomic int owner; /* the process that uses clpipe; 0: none yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct library *opened;
static uintptr_t last_number;
_Thread_local bool library_calls_back;
/* Guards calls of drivers and their loader, which read and change the environment. */
static pthread_mutex_t drivers = PTHREAD_MUTEX_INITIALIZER;

/* Fails in a process forked from one that uses clpipe. Every function calls it first. */
static enum status check_process(struct error *err)
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

static int code_of(const struct error *why)
{
    return why->status == STATUS_OK                                     ? CLPIPE_OK
           : why->status == STATUS_USAGE                                ? CLPIPE_ARGUMENT
           : why->status == STATUS_INTERRUPTED                          ? CLPIPE_STOPPED
           : strncmp(why->sentence, "fork: ", 6) == 0                   ? CLPIPE_FORK
           : why->remedy == REMEDY_LESS_MEMORY || why->native == ENOMEM ? CLPIPE_MEMORY
           : why->remedy == REMEDY_OTHER_DEVICE || strncmp(why->name, "CL_", 3) == 0 ? CLPIPE_DEVICE
                                                                                     : CLPIPE_DATA;
}

/* Stores the code and a line of text in *err; returns the code. */
static int tell(int code, const struct error *why, struct clpipe_error *err)
{
    const size_t begin = offsetof(struct clpipe_error, text);
    if (code == CLPIPE_OK || !err || err->size <= begin || err->size > 2 * sizeof *err)
        return code;
    const size_t room = min_u64(err->size - begin, sizeof err->text);
    err->status = code;
    if (code == CLPIPE_STOPPED)
        snprintf(err->text, room, "stopped by the caller");
    else
        error_line(err->text, room, why);
    return code;
}

enum status library_take(void *out, size_t size, const void *in, const char *what,
                         struct error *err)
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

/* --- devices ----------------------------------------------------------------------------------- */

static enum status find_devices(struct ocl_devices *out, unsigned threads, struct error *err)
{
    if (check_process(err) != STATUS_OK)
        return err->status;
    pthread_mutex_lock(&drivers);
    const enum status status = ocl_devices_open(out, threads, err);
    pthread_mutex_unlock(&drivers);
    return status;
}

const char *clpipe_version(void)
{
    return CLPIPE_VERSION;
}

int clpipe_devices(struct clpipe_device *out, unsigned *count, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct ocl_devices devices;
    char *at = (char *)out;
    if (!count || (*count > 0 && !out))
        error_set(&why, STATUS_USAGE, "clpipe_devices has no room for devices: NULL");
    if (why.status != STATUS_OK || find_devices(&devices, cpus_available(), &why) != STATUS_OK)
        return tell(code_of(&why), &why, err);
    for (unsigned i = 0; i < *count && i < devices.count; i++) {
        const struct ocl_device *from = &devices.device[i];
        struct clpipe_device to;
        if (library_take(&to, sizeof to, at, "clpipe_device", &why) != STATUS_OK)
            break;
        to.usable = from->usable;
        to.memory = from->global_memory;
        snprintf(to.type, sizeof to.type, "%s", ocl_device_type_name(from->type));
        memcpy(to.name, from->name, sizeof to.name);
        memcpy(to.platform, from->platform, sizeof to.platform);
        memcpy(to.driver, from->driver, sizeof to.driver);
        memcpy(to.reason, from->reason, sizeof to.reason);
        memcpy(at, &to, min_u64(to.size, sizeof to));
        at += to.size;
    }
    *count = devices.count;
    ocl_devices_close(&devices);
    return tell(code_of(&why), &why, err);
}

/* --- handles ----------------------------------------------------------------------------------- */

/* The handle's place in the table. With the lock. */
static struct library **find(const struct clpipe *clpipe)
{
    struct library **at = &opened;
    while (*at && (*at)->number != (uintptr_t)clpipe)
        at = &(*at)->next;
    return at;
}

static void release(struct library *library)
{
    pthread_mutex_lock(&lock);
    const bool last = --library->users == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    pthread_mutex_destroy(&library->call);
    clustering_contexts_close(&library->contexts);
    ocl_devices_close(&library->devices);
    free(library);
}

struct library *library_begin(const struct clpipe *clpipe, const struct clpipe_watch *watch,
                              struct error *why)
{
    struct clpipe_watch watching = {0};
    if (check_process(why) != STATUS_OK)
        return NULL;
    if (library_calls_back)
        error_set(why, STATUS_USAGE, "a callback called clpipe with a handle");
    else if (watch)
        library_take(&watching, sizeof watching, watch, "clpipe_watch", why);
    if (why->status != STATUS_OK)
        return NULL;
    pthread_mutex_lock(&lock);
    struct library *library = *find(clpipe);
    if (library)
        library->users++;
    pthread_mutex_unlock(&lock);
    if (!library) {
        error_set(why, STATUS_FAILED,
                  "the handle is not open: it was closed, or is none of this kind");
        return NULL;
    }
    pthread_mutex_lock(&library->call);
    atomic_store(&library->stop.cause, STOP_NONE);
    atomic_store(&library->stop.since, 0);
    library->watch = watching;
    return library;
}

int library_end(struct library *library, const struct error *why, struct clpipe_error *err)
{
    const int code = code_of(why);
    if (!library) /* no data have been examined */
        return tell(code == CLPIPE_DATA ? CLPIPE_CLOSED : code, why, err);
    pthread_mutex_unlock(&library->call);
    release(library);
    return tell(code, why, err);
}

void library_phase(void *context, const char *phase, uint64_t done, uint64_t total)
{
    struct library *library = context;
    const struct clpipe_watch *watch = &library->watch;
    library_calls_back = true;
    if (watch->progress && watch->progress(watch->context, phase, done, total))
        stop_request(&library->stop, STOP_SIGNAL);
    library_calls_back = false;
}

static enum status chosen_devices(void *context, struct clustering_devices *found,
                                  struct error *err)
{
    const struct library *library = context;
    (void)err;
    *found = (struct clustering_devices){&library->devices, library->chosen, library->count, NULL};
    return STATUS_OK;
}

static void tell_iteration(void *context, uint32_t iteration, double inertia, uint64_t moved,
                           double pruned, double seconds)
{
    const struct library *library = context;
    (void)inertia, (void)moved, (void)pruned, (void)seconds;
    library_phase(context, "iterations", iteration, library->iterations);
}

/* *out must be released even after a failure. */
static enum status open_library(struct library **out, const struct clpipe_options *given,
                                struct error *err)
{
    struct clpipe_options options = {0};
    const uint64_t memory = memory_available();
    if (given && library_take(&options, sizeof options, given, "clpipe_options", err) != STATUS_OK)
        return err->status;
    if (options.threads > LIBRARY_THREADS_MOST)
        return error_set(err, STATUS_USAGE, "%u threads are too many", options.threads);
    struct library *library = *out = calloc(1, sizeof *library);
    if (!library)
        return error_memory(err, sizeof *library, "a handle");
    library->users = 1;
    pthread_mutex_init(&library->call, NULL);
    library->memory = options.memory;
    library->machine = (struct clustering_machine){
        .find_devices = chosen_devices,
        .find_devices_context = library,
        .threads = options.threads ? options.threads : cpus_available(),
        .memory = options.memory ? options.memory
                  : memory       ? memory / 2
                                 : (uint64_t)1 << 30,
        .device_memory = options.device_memory,
        .stop = &library->stop,
        .progress = {.iteration = tell_iteration, .phase = library_phase, .context = library},
    };
    if (find_devices(&library->devices, library->machine.threads, err) != STATUS_OK ||
        ocl_devices_select(library->chosen, &library->count, CLUSTERING_DEVICES, &library->devices,
                           options.device, err) != STATUS_OK)
        return error_remedy(err, REMEDY_OTHER_DEVICE);
    pthread_mutex_lock(&drivers);
    clustering_contexts_open(&library->contexts, &library->machine, CLUSTERING_DEVICES, err);
    pthread_mutex_unlock(&drivers);
    return err->status;
}

int clpipe_open(struct clpipe **out, const struct clpipe_options *options, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = NULL;
    if (!out)
        error_set(&why, STATUS_USAGE, "clpipe_open has no room for a handle: NULL");
    else
        *out = NULL;
    if (why.status == STATUS_OK && check_process(&why) == STATUS_OK &&
        open_library(&library, options, &why) == STATUS_OK) {
        pthread_mutex_lock(&lock);
        library->number = ++last_number;
        library->next = opened;
        opened = library;
        pthread_mutex_unlock(&lock);
        *out = (struct clpipe *)library->number;
    } else if (library) {
        release(library);
    }
    return tell(code_of(&why), &why, err);
}

int clpipe_name(char *name, size_t size, struct clpipe *clpipe, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = library_begin(clpipe, NULL, &why);
    if (library && name && size > 0)
        snprintf(name, size, "%s", library->contexts.names);
    else if (library)
        error_set(&why, STATUS_USAGE, "no room for a name");
    return library_end(library, &why, err);
}

int clpipe_close(struct clpipe **clpipe)
{
    struct error why = ERROR_INIT;
    const struct clpipe *given = clpipe ? *clpipe : NULL;
    if (clpipe)
        *clpipe = NULL;
    if (!given)
        return CLPIPE_OK;
    if (check_process(&why) != STATUS_OK)
        return CLPIPE_FORK;
    pthread_mutex_lock(&lock);
    struct library **at = find(given), *library = *at;
    if (library)
        *at = library->next;
    pthread_mutex_unlock(&lock);
    if (library)
        release(library);
    return library ? CLPIPE_OK : CLPIPE_CLOSED;
}

int clpipe_stop(struct clpipe *clpipe)
{
    struct error why = ERROR_INIT;
    if (check_process(&why) != STATUS_OK)
        return CLPIPE_FORK;
    pthread_mutex_lock(&lock);
    struct library *library = *find(clpipe);
    if (library)
        stop_request(&library->stop, STOP_SIGNAL);
    pthread_mutex_unlock(&lock);
    return library ? CLPIPE_OK : CLPIPE_CLOSED;
}
