/* ocl_watch.h: tells when events complete, by looking at them now and then.
 *
 * For drivers whose event callbacks cost a core: NVIDIA's starts a thread for them that spins (half
 * of a core measured while an ingest waits for its decoder), which decoding needs. Here a thread
 * sleeps while nothing is watched, and otherwise looks every WATCH_NS. */
#ifndef CLPIPE_OCL_OCL_WATCH_H
#define CLPIPE_OCL_OCL_WATCH_H

#include "ocl/ocl.h"

/* Between two looks, nanoseconds: short beside a slot's time on the device. */
#define WATCH_NS 200000

struct ocl_watch;

enum status ocl_watch_open(struct ocl_watch **out, struct error *err);
/* Returns when everything watched has completed. Accepts a pointer to NULL. */
void ocl_watch_close(struct ocl_watch **watch);

/* Calls done(status, context) once from the watching thread; the event's queue must be flushed by
 * somebody. Any thread. */
enum status ocl_watch_add(struct ocl_watch *watch, cl_event event,
                          void (*done)(cl_int status, void *context), void *context,
                          struct error *err);

/* The event's status; below zero also where the driver will not tell. */
cl_int ocl_watch_state(cl_event event);

#endif
