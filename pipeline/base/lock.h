/* lock.h: locks that are held for less time than it takes to put a thread to sleep. */
#ifndef CLPIPE_BASE_LOCK_H
#define CLPIPE_BASE_LOCK_H

#include <pthread.h>

/* Initialises a lock for which a thread waits actively for a moment before it sleeps, where the C
 * library has such locks. */
void lock_init_short(pthread_mutex_t *lock);

#endif
