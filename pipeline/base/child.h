/* child.h: work in a child process, for libraries that may crash on damaged data. */
#ifndef CLPIPE_BASE_CHILD_H
#define CLPIPE_BASE_CHILD_H

#include "base/error.h"

struct child {
    enum status (*work)(void *answer, void (*line)(const char *line, void *context), void *context,
                        struct error *err);
    void *answer; /* `size` bytes, no pointers: copied to the child and back */
    size_t size;
    void (*line)(const char *line, void *context); /* receives the lines of the work */
    void *context;
};

/* Does the work in a child, relays its lines as they come, and returns its status and error. If the
 * child crashes (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL), *died is the signal's name, a last line
 * reports it, the answer is unchanged and the status is STATUS_OK; else *died is NULL. If no child
 * can be started, the caller does the work. Call while the process has one thread. */
enum status child_run(const struct child *child, const char **died, struct error *err);

#endif
