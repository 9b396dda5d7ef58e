/* isolate_worker.h: the child processes of isolate.h. Internal to decode. */
#ifndef CLPIPE_DECODE_ISOLATE_WORKER_H
#define CLPIPE_DECODE_ISOLATE_WORKER_H

#include "decode/decode.h"

/* Main loop of the template; does not return. Workers decode with these options and have
 * ISOLATE_BOARD plus `slot_bytes` of shared memory. */
_Noreturn void template_main(int control, const struct decode_options *options,
                             uint64_t slot_bytes);

#endif
