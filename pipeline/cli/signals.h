/* signals.h: requests to stop a run: when convenient (SIGINT, SIGTERM, the warnings of batch systems
 * SIGUSR1, SIGUSR2 and SIGXCPU, the end of --max-time), or now (a second SIGINT). */
#ifndef CLPIPE_CLI_SIGNALS_H
#define CLPIPE_CLI_SIGNALS_H

#include "base/stop.h"
#include "cli/options.h"
#include <signal.h>

/* Seconds after its start at which the process stops by itself: --max-time, else, in a Slurm job, shortly
 * before the job's end (SLURM_JOB_END_TIME), with a message. 0: never. */
double signals_time_limit(const struct options *options);
/* Sets whether the time is that of a job's end. */
bool signals_limit_is_job(void);

/* Blocks these signals in this thread, and in those that it starts. *before: what was blocked. */
void signals_block(sigset_t *before);

/* From now on the signals set *signals_stop(), as does the process when it reaches the age of
 * `seconds` (0: never); a second SIGINT ends the program with 130, leaving the terminal's line
 * clean. Commands that cannot stop half-way do not call this, so signals have their default effect.
 * Once, before other threads start. */
void signals_install(double seconds);

/* The stop request that stages check. */
struct stop *signals_stop(void);

#endif
