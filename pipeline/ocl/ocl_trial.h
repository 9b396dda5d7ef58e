/* ocl_trial.h: a second process tries first what can end a process.
 *
 * PoCL aborts where its compiler lacks a linker, memory, descriptors, space or the right to start threads. So
 * before a process compiles anything for it, a second clpipe compiles the same program. */
#ifndef CLPIPE_OCL_OCL_TRIAL_H
#define CLPIPE_OCL_OCL_TRIAL_H

#include "base/error.h"

/* The argument of the second process, which ocl_trial_serve() is for: it returns the exit status. */
#define OCL_TRIAL_ARGUMENT "--try-to-compile"
int ocl_trial_serve(void);

/* The executable of this process takes the argument; without this call nothing is tried. One thread. */
void ocl_trial_enable(void);

/* Has a second process open the devices and, unless source is NULL, compile the program for device number
 * `device`; later programs are not tried. What is wrong with a kernel is left to the caller. STATUS_FAILED: the
 * second process ended, or cannot be started; `what` begins the sentence. Any thread. */
enum status ocl_trial(unsigned device, const char *source, const char *options, const char *what,
                      struct error *err);

#endif
