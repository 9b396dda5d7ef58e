/* threads.h: runs one function in several threads. */
#ifndef CLPIPE_BASE_THREADS_H
#define CLPIPE_BASE_THREADS_H

#define THREADS_MOST 256

/* Calls run(context) in `wanted` threads, at most THREADS_MOST, including the caller's, and returns
 * after all have. If threads cannot be started, it uses fewer, at least the caller's. */
void threads_run(void *(*run)(void *context), void *context, unsigned wanted);

#endif
