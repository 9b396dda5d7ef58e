/* threads.c: starts threads, runs the function in the caller's, and joins them. */
#include "base/threads.h"
#include <pthread.h>

void threads_run(void *(*run)(void *context), void *context, unsigned wanted)
{
    pthread_t thread[THREADS_MOST];
    unsigned started = 0;
    if (wanted > THREADS_MOST)
        wanted = THREADS_MOST;
    while (started + 1 < wanted && pthread_create(&thread[started], NULL, run, context) == 0)
        started++;
    run(context);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}
