/* host_engine.h: a network on this processor.
 *
 * The engine holds the weights in the order of the processor's instructions; any number of threads may
 * use it. Each thread has a scratch of its own and computes one picture after the other in it. The
 * values are those of net/reference.h. */
#ifndef CLPIPE_NET_HOST_ENGINE_H
#define CLPIPE_NET_HOST_ENGINE_H

#include "net/model.h"

struct host_engine;
struct host_scratch;

/* Prepares a model, which must outlive the engine, for the best instructions that this processor has, or
 * for those that `kernels` names (host_kernels.h). STATUS_USAGE: this processor has none of this name. */
enum status host_engine_open(struct host_engine **out, const struct net_model *model,
                             const char *kernels, struct error *err);

/* Accepts NULL in *engine, and leaves it. */
void host_engine_close(struct host_engine **engine);

/* "avx512-vnni", "avx-vnni", "avx2" or "plain". */
const char *host_engine_kernels(const struct host_engine *engine);

/* Bytes of the engine's weights, and of one scratch. */
uint64_t host_engine_bytes(const struct host_engine *engine);
uint64_t host_scratch_bytes(const struct host_engine *engine);

enum status host_scratch_open(struct host_scratch **out, const struct host_engine *engine,
                              struct error *err);
void host_scratch_close(struct host_scratch **scratch);

/* Computes a picture: height x width x 3 bytes. outputs[i] gets the tensor of the model's output i, densely
 * packed; NULL: it is not wanted. Whatever the outputs held before does not matter. */
void host_engine_run(const struct host_engine *engine, struct host_scratch *scratch,
                     const uint8_t *picture, void *const *outputs);

#endif
