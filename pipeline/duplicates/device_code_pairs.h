/* device_code_pairs.h: the same pairs as code_pairs.h, on a device. */
#ifndef CLPIPE_DUPLICATES_DEVICE_CODE_PAIRS_H
#define CLPIPE_DUPLICATES_DEVICE_CODE_PAIRS_H

#include "duplicates/code_pairs.h"
#include "ocl/ocl.h"

/* As code_pairs_find; config->workers and how are not used. The kernel counts bits, or multiplies by
 * tensor cores where the device takes inline PTX and has them (compute capability 8 or higher). It is
 * compared with plain C on a thousand codes before it is used. STATUS_FAILED: the device cannot, is
 * wrong, or lacks memory: the host can do it instead. */
enum status device_code_pairs_find(struct code_pairs *out, struct ocl_context *context,
                                   const struct code_pairs_config *config, struct error *err);

#endif
