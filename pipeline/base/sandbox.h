/* sandbox.h: restrictions of a process that works on untrusted files. */
#ifndef CLPIPE_BASE_SANDBOX_H
#define CLPIPE_BASE_SANDBOX_H

#include <stdint.h>

/* Enters the sandbox, as far as the system supports it: no new files, sockets, programs or
 * processes, no writing to files, no executable memory, no core dump, no privileges by executing
 * programs. Permanent, for this process only. Returns the descriptor of its memory figures, or
 * -1. */
int sandbox_enter(void);

/* Limits private memory to the current amount plus `bytes`, not counting address space that is only
 * reserved. Does nothing under sanitizers, which reserve terabytes, or without /proc. */
void sandbox_allow_memory(int figures, uint64_t bytes);

#endif
