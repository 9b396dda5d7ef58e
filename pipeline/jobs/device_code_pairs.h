/* device_code_pairs.h: code_pairs.h on a device, with the same result. */
#ifndef CLPIPE_JOBS_DEVICE_CODE_PAIRS_H
#define CLPIPE_JOBS_DEVICE_CODE_PAIRS_H

#include "jobs/code_pairs.h"
#include "ocl/ocl.h"

/* Like code_pairs_find; ignores config->workers and how. The kernel counts bits, or multiplies on
 * tensor cores if the device takes inline PTX and has them (compute capability 8 or higher). It is
 * checked against plain C with a thousand codes first. STATUS_FAILED: the device does not support
 * it, computes wrong results or lacks memory; use the host instead. */
enum status device_code_pairs_find(struct code_pairs *out, struct ocl_context *context,
                                   const struct code_pairs_config *config, struct error *err);

#endif
