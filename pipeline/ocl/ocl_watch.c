/* ocl_watch.c: a thread that polls events. */
#include "ocl/ocl_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct watched {
    struct watched *next;
    cl_event event;
    void (*done)(cl_int status, void *context);
    void *context;
};

struct ocl_watch {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;
    struct watched *list;
    bool ending;
};

cl_int ocl_watch_state(cl_event event)
{
    cl_int state = CL_QUEUED;
    cl_int code =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return code == CL_SUCCESS ? state : code;
}

/* Removes the completed events from the list. Under the lock. */
static struct watched *take_completed(struct ocl_watch *watch)
{
    struct watched *completed = NULL, **last = &completed;
    for (struct watched **link = &watch->list; *link;) {
        struct watched *item = *link;
        if (ocl_watch_state(item->event) > CL_COMPLETE) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        item->next = NULL;
        *last = item;
        last = &item->next;
    }
    return completed;
}

static void *watch_main(void *argument)
{
    struct ocl_watch *watch = argument;
    pthread_mutex_lock(&watch->lock);
    while (watch->list || !watch->ending) {
        if (!watch->list) {
            pthread_cond_wait(&watch->more, &watch->lock);
            continue;
        }
        struct watched *completed = take_completed(watch);
        pthread_mutex_unlock(&watch->lock);
        if (!completed)
            nanosleep(&(struct timespec){.tv_nsec = WATCH_NS}, NULL);
        while (completed) {
            struct watched *item = completed;
            completed = item->next;
            item->done(ocl_watch_state(item->event), item->context);
            clReleaseEvent(item->event);
            free(item);
        }
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

enum status ocl_watch_open(struct ocl_watch **out, struct error *err)
{
    *out = NULL;
    struct ocl_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return error_memory(err, sizeof *watch, "the event watch");
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->more, NULL);
    int code = pthread_create(&watch->thread, NULL, watch_main, watch);
    if (code != 0) {
        pthread_cond_destroy(&watch->more);
        pthread_mutex_destroy(&watch->lock);
        free(watch);
        return error_errno(err, STATUS_FAILED, code, "pthread_create",
                           "cannot start a thread that watches events");
    }
    *out = watch;
    return STATUS_OK;
}

void ocl_watch_close(struct ocl_watch **out)
{
    struct ocl_watch *watch = *out;
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->more);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->more);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
    *out = NULL;
}

enum status ocl_watch_add(struct ocl_watch *watch, cl_event event,
                          void (*done)(cl_int status, void *context), void *context,
                          struct error *err)
{
    struct watched *item = malloc(sizeof *item);
    if (!item)
        return error_memory(err, sizeof *item, "an event to watch");
    clRetainEvent(event);
    *item = (struct watched){NULL, event, done, context};
    pthread_mutex_lock(&watch->lock);
    /* Appended, so that completions are reported in the order of the enqueues. */
    struct watched **link = &watch->list;
    while (*link)
        link = &(*link)->next;
    *link = item;
    pthread_cond_signal(&watch->more);
    pthread_mutex_unlock(&watch->lock);
    return STATUS_OK;
}
