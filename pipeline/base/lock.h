/* lock.h: locks held for less time than it takes to put a thread to sleep. */
#ifndef CLPIPE_BASE_LOCK_H
#define CLPIPE_BASE_LOCK_H

#include <pthread.h>

/* Initialises a lock on which a thread spins briefly before it sleeps, if the C library supports
 * it. */
void lock_init_short(pthread_mutex_t *lock);

#endif
