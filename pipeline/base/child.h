/* child.h: work in a process of its own, where a library may crash on damaged data. */
#ifndef CLPIPE_BASE_CHILD_H
#define CLPIPE_BASE_CHILD_H

#include "base/error.h"
#include <stdbool.h>

struct child {
    enum status (*work)(void *answer, void (*line)(const char *line, void *context), void *context,
                        struct error *err);
    void *answer; /* of `size` bytes without pointers of its own: copied to the child and back */
    size_t size;
    void (*line)(const char *line, void *context); /* what the work gives to its own `line` */
    void *context;
};

/* Does the work in a child, with the lines as they come, and returns its status and error. Where the
 * child is ended by a signal of its own making (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL), *died is the
 * name, a last line says so, the answer is unchanged, and the status is STATUS_OK; else *died is NULL. Where
 * there can be no child the caller does the work itself. Call while there is one thread. */
enum status child_run(const struct child *child, const char **died, struct error *err);

#endif
