/* isolate_worker.h: the processes on the other side of isolate.h. Inside decode. */
#ifndef CLPIPE_DECODE_ISOLATE_WORKER_H
#define CLPIPE_DECODE_ISOLATE_WORKER_H

#include "decode/decode.h"

/* The template's life; does not return. Each worker decodes with these options, and has
 * ISOLATE_BOARD and `slot_bytes` of shared memory. */
_Noreturn void template_main(int control, const struct decode_options *options,
                             uint64_t slot_bytes);

#endif
