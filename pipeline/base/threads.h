/* threads.h: several threads at one piece of work. */
#ifndef CLPIPE_BASE_THREADS_H
#define CLPIPE_BASE_THREADS_H

#define THREADS_MOST 64

/* Calls run(context) in `wanted` threads, at most THREADS_MOST, of which the caller's is one, and returns
 * once all have returned. Where threads cannot be started there are fewer: the caller's at least. */
void threads_run(void *(*run)(void *context), void *context, unsigned wanted);

#endif
