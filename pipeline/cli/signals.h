/* signals.h: what the outside may say to a run: stop when convenient (SIGINT, SIGTERM, SIGUSR1, or
 * the end of --max-time), stop now (a second SIGINT). */
#ifndef CLPIPE_CLI_SIGNALS_H
#define CLPIPE_CLI_SIGNALS_H

#include "base/stop.h"

/* From now on the three signals set *signals_stop(), and a second SIGINT ends the program with 130,
 * leaving the terminal's line clean. Commands that cannot stop half-way do not call this: there a
 * signal does what it does by default. Before other threads start. */
void signals_install(void);

/* Puts the handlers back where somebody has taken them: LLVM, inside CPU runtimes of OpenCL, takes
 * SIGUSR1 for itself when it first compiles. To be called now and then; does nothing before
 * signals_install. */
void signals_renew(void);

/* Asks for a stop (STOP_TIME) when the process is `seconds` old. 0: never. */
void signals_deadline(double seconds);

/* The word that stages look at. */
struct stop *signals_stop(void);

#endif
