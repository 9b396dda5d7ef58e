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
    else if (none != process) {
        error_set(err, STATUS_FAILED,
                  "fork: this process was forked from one that uses clpipe, whose drivers do not "
                  "work here; start a new process instead (in Python: the start method "
                  "\"spawn\")");
        return error_cause(err, CAUSE_FORKED, 0);
    }
    return STATUS_OK;
}

/* --- errors ------------------------------------------------------------------------------------ */

static int code_of(const struct error *why)
{
    const bool other = why->cause == CAUSE_OTHER;
    return why->status == STATUS_OK                                                ? CLPIPE_OK
           : why->status == STATUS_USAGE                                           ? CLPIPE_ARGUMENT
           : why->status == STATUS_INTERRUPTED                                     ? CLPIPE_STOPPED
           : why->cause == CAUSE_FORKED                                            ? CLPIPE_FORK
           : why->cause == CAUSE_CLOSED                                            ? CLPIPE_CLOSED
           : why->remedy == REMEDY_LESS_MEMORY || (other && why->native == ENOMEM) ? CLPIPE_MEMORY
           : why->remedy == REMEDY_OTHER_DEVICE || why->cause == CAUSE_OPENCL      ? CLPIPE_DEVICE
                                                                                   : CLPIPE_DATA;
}

/* Stores the code and a line of text in *err; returns the code. */
static int tell(const struct error *why, struct clpipe_error *err)
{
    const int code = code_of(why);
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

bool library_take(void *out, size_t size, const void *in, const char *what, struct error *err)
{
    size_t given = 0;
    memset(out, 0, size);
    if (in)
        memcpy(&given, in, sizeof given);
    if (!REQUIRE(given >= sizeof given && given <= 4096, err, "struct %s is %s", what,
                 in ? "without its size: CLPIPE_INIT sets it" : "NULL"))
        return false;
    bool known = true;
    for (size_t i = size; i < given; i++)
        known &= ((const char *)in)[i] == 0;
    memcpy(out, in, min_u64(given, size));
    return REQUIRE(known, err, "struct %s has members that this clpipe is too old for", what);
}

/* --- devices ----------------------------------------------------------------------------------- */

const char *clpipe_version(void)
{
    return CLPIPE_VERSION;
}

int clpipe_devices(struct clpipe_device *out, unsigned *count, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct ocl_devices devices = {0};
    char *at = (char *)out;
    if (check_process(&why) != STATUS_OK ||
        !REQUIRE(count && (*count == 0 || out), &why, "no room for devices: NULL"))
        return tell(&why, err);
    pthread_mutex_lock(&drivers);
    ocl_devices_open(&devices, cpus_available(), &why);
    pthread_mutex_unlock(&drivers);
    for (unsigned i = 0; i < *count && i < devices.count; i++) {
        const struct ocl_device *from = &devices.device[i];
        struct clpipe_device to;
        if (!library_take(&to, sizeof to, at, "clpipe_device", &why))
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
    return tell(&why, err);
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
    if (check_process(why) != STATUS_OK ||
        !REQUIRE(!library_calls_back, why, "a callback called clpipe with a handle") ||
        (watch && !library_take(&watching, sizeof watching, watch, "clpipe_watch", why)))
        return NULL;
    pthread_mutex_lock(&lock);
    struct library *library = *find(clpipe);
    if (library)
        library->users++;
    pthread_mutex_unlock(&lock);
    if (!library) {
        error_set(why, STATUS_FAILED,
                  "the handle is not open: it was closed, or clpipe_open did not return it");
        error_cause(why, CAUSE_CLOSED, 0);
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
    if (library) {
        pthread_mutex_unlock(&library->call);
        release(library);
    }
    return tell(why, err);
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

static void tell_iteration(void *context, uint32_t iteration, double inertia, uint64_t moved,
                           double pruned, double seconds)
{
    const struct library *library = context;
    (void)inertia, (void)moved, (void)pruned, (void)seconds;
    library_phase(context, "iterations", iteration, library->iterations);
}

/* *out must be released even after a failure. */
static enum status open_library(struct library **out, const struct clpipe_options *options,
                                struct error *err)
{
    const uint64_t memory = memory_available();
    struct library *library = *out = calloc(1, sizeof *library);
    if (!library)
        return error_memory(err, sizeof *library, "a handle");
    library->users = 1;
    pthread_mutex_init(&library->call, NULL);
    library->memory = options->memory;
    library->machine = (struct clustering_machine){
        .threads = options->threads ? options->threads : cpus_available(),
        .memory = options->memory ? options->memory
                  : memory        ? memory / 2
                                  : (uint64_t)1 << 30,
        .device_memory = options->device_memory,
        .watch = {&library->stop, library_phase, library},
        .progress.iteration = tell_iteration,
    };
    struct ocl_selection *found = &library->machine.found;
    found->devices = &library->devices;
    found->chosen = library->chosen;
    pthread_mutex_lock(&drivers);
    if (ocl_devices_open(&library->devices, library->machine.threads, err) != STATUS_OK ||
        ocl_devices_select(library->chosen, &found->count, CLUSTERING_DEVICES, &library->devices,
                           options->device, err) != STATUS_OK)
        error_remedy(err, REMEDY_OTHER_DEVICE);
    else
        clustering_contexts_open(&library->contexts, &library->machine, CLUSTERING_DEVICES, err);
    pthread_mutex_unlock(&drivers);
    return err->status;
}

int clpipe_open(struct clpipe **out, const struct clpipe_options *given, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct clpipe_options options = {0};
    struct library *library = NULL;
    if (out)
        *out = NULL;
    if (check_process(&why) == STATUS_OK && REQUIRE(out, &why, "no room for a handle: NULL") &&
        (!given || library_take(&options, sizeof options, given, "clpipe_options", &why)) &&
        REQUIRE(options.threads <= LIBRARY_THREADS_MOST, &why, "%u threads are too many",
                options.threads) &&
        open_library(&library, &options, &why) == STATUS_OK) {
        pthread_mutex_lock(&lock);
        library->number = ++last_number;
        library->next = opened;
        opened = library;
        pthread_mutex_unlock(&lock);
        *out = (struct clpipe *)library->number;
    } else if (library) {
        release(library);
    }
    return tell(&why, err);
}

int clpipe_name(char *name, size_t size, struct clpipe *clpipe, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = library_begin(clpipe, NULL, &why);
    if (library && REQUIRE(name && size > 0, &why, "there is no room for a name: NULL"))
        snprintf(name, size, "%s", library->contexts.names);
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
