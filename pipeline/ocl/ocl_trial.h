/* ocl_trial.h: compiles programs in other processes.
 *
 * PoCL aborts if its compiler lacks a linker, memory, descriptors, disk space or threads. So before
 * a process compiles its first program with PoCL, a second clpipe compiles the same program. */
#ifndef CLPIPE_OCL_OCL_TRIAL_H
#define CLPIPE_OCL_OCL_TRIAL_H

#include "base/error.h"

/* With this argument, main() calls ocl_trial_serve(), which returns the exit status. */
#define OCL_TRIAL_ARGUMENT "--try-to-compile"
int ocl_trial_serve(void);

/* Enables trials: the executable of this process accepts the argument. Call while there is one
 * thread. */
void ocl_trial_enable(void);

/* Has a second process open the devices and, unless source is NULL, compile the program for device
 * number `device`; after one success nothing is tried again. Kernel errors are left to the caller.
 * STATUS_FAILED: the second process died or cannot be started; `what` begins the sentence. Any
 * thread. */
enum status ocl_trial(unsigned device, const char *source, const char *options, const char *what,
                      struct error *err);

/* Has several processes compile a program with each of the options, into the cache: NVIDIA's compiler
 * works on one program at a time in a process. What fails is left to the caller. Does nothing if
 * trials are not enabled. */
void ocl_trial_compile(unsigned device, const char *source, const char *const *options,
                       unsigned count);

#endif
