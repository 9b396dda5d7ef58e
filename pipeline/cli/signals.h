/* signals.h: what the outside may say to a run: stop when convenient (SIGINT, SIGTERM, SIGUSR1, or
 * the end of --max-time), stop now (a second SIGINT). */
#ifndef CLPIPE_CLI_SIGNALS_H
#define CLPIPE_CLI_SIGNALS_H

#include "base/stop.h"

/* From now on the three signals set *signals_stop(), as does the process reaching the age of
 * `seconds` (0: never); a second SIGINT ends the program with 130, leaving the terminal's line
 * clean. Commands that cannot stop half-way do not call this: there a signal does what it does by
 * default. Once, before other threads start. */
void signals_install(double seconds);

/* The word that stages look at. */
struct stop *signals_stop(void);

#endif
