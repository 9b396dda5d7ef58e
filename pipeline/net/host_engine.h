/* host_engine.h: computes a network on the CPU.
 *
 * The engine holds the weights in the order of the CPU's instructions; any number of threads may
 * use it. Each thread has its own scratch, in which it computes one picture after another. With
 * plain C (HOST_REFERENCE), it is the reference that all instructions and kernels are compared
 * with. */
#ifndef CLPIPE_NET_HOST_ENGINE_H
#define CLPIPE_NET_HOST_ENGINE_H

#include "net/model.h"

#define HOST_REFERENCE "plain"

struct host_engine;
struct host_scratch;

/* Prepares a model, which must outlive the engine, for the best instructions of this CPU, or for
 * those named by `kernels` (host_kernels.h). STATUS_USAGE: this CPU does not support `kernels`;
 * STATUS_FAILED: out of memory. */
enum status host_engine_open(struct host_engine **out, const struct net_model *model,
                             const char *kernels, struct error *err);

/* Accepts a pointer to NULL; sets *engine to NULL. */
void host_engine_close(struct host_engine **engine);

/* "amx", "avx512-vnni", "avx-vnni", "avx2" or "plain". */
const char *host_engine_kernels(const struct host_engine *engine);

/* Bytes of one scratch. */
uint64_t host_scratch_bytes(const struct host_engine *engine);

enum status host_scratch_open(struct host_scratch **out, const struct host_engine *engine,
                              struct error *err);
void host_scratch_close(struct host_scratch **scratch);

/* Computes a picture: height x width x 3 bytes. outputs[i] gets the tensor of the model's output i,
 * densely packed; NULL: not wanted. Does not read outputs. */
void host_engine_run(const struct host_engine *engine, struct host_scratch *scratch,
                     const uint8_t *picture, void *const *outputs);

#endif
