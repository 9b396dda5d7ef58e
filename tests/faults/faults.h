/* faults.h: declarations shared by the parts of the fault library. */
#ifndef CLPIPE_TESTS_FAULTS_H
#define CLPIPE_TESTS_FAULTS_H

#include <dlfcn.h>

enum call_class {
    CALL_OPEN,
    CALL_READ,
    CALL_LIST,
    CALL_WRITE,
    CALL_COPY,
    CALL_SYNC,
    CALL_RENAME,
    CALL_TRUNCATE,
    CALL_MKDIR,
    CALL_UNLINK,
    CALL_MAP,
    CALL_MEMORY,
    CALL_THREAD,
    CALL_PROCESS,
    CALL_SOCKET,
    CALL_MESSAGE,
    CALL_CONTEXT,
    CALL_QUEUE,
    CALL_BUFFER,
    CALL_PROGRAM,
    CALL_BUILD,
    CALL_KERNEL,
    CALL_ARGUMENT,
    CALL_LAUNCH,
    CALL_TRANSFER,
    CALL_FLUSH,
    CALL_CALLBACK,
    CALL_EVENT,
    CALL_CLASSES
};

/* Returns 0 to let this call through, otherwise the action of the fault. address: its return
 * address. */
int faults_decide(enum call_class class, const void *address);

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

/* Sets `next` to the function that would have been called without this library. */
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next)                                                                                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

#endif
