/* ocl_watch.h: reports the completion of events by polling.
 *
 * For drivers whose event callbacks occupy a core: NVIDIA's driver starts a thread for them that
 * spins (half a core, measured while an ingest waits for its decoder), which decoding needs. Here a
 * thread sleeps while no event is watched, and otherwise polls every WATCH_NS. */
#ifndef CLPIPE_OCL_OCL_WATCH_H
#define CLPIPE_OCL_OCL_WATCH_H

#include "ocl/ocl.h"

/* The polling interval in nanoseconds: short compared with a slot's time on the device. */
#define WATCH_NS 200000

struct ocl_watch;

enum status ocl_watch_open(struct ocl_watch **out, struct error *err);
/* Returns when all watched events have completed. Accepts a pointer to NULL. */
void ocl_watch_close(struct ocl_watch **watch);

/* Calls done(status, context) once from the watching thread; the caller must have the event's queue
 * flushed. Any thread. */
enum status ocl_watch_add(struct ocl_watch *watch, cl_event event,
                          void (*done)(cl_int status, void *context), void *context,
                          struct error *err);

/* The event's status; below zero, too, if the query fails. */
cl_int ocl_watch_state(cl_event event);

#endif
