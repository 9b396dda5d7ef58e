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

/* Prepares a model, which must outlive the engine, for the best instructions of this CPU, or for
 * those named by `kernels` (host_kernels.h). STATUS_USAGE: this CPU does not support `kernels`;
 * STATUS_FAILED: out of memory. */
enum status host_engine_open(struct host_engine **out, const struct net_model *model,
                             const char *kernels, struct error *err);

/* Accepts a pointer to NULL; sets *engine to NULL. */
void host_engine_close(struct host_engine **engine);

/* "avx512-vnni", "avx-vnni", "avx2" or "plain". */
const char *host_engine_kernels(const struct host_engine *engine);

/* The size of a thread's scratch; and a zeroed scratch, which the caller frees; NULL: out of
 * memory. */
uint64_t host_scratch_bytes(const struct host_engine *engine);
uint8_t *host_scratch(const struct host_engine *engine);

/* Computes a picture: height x width x 3 bytes. */
void host_engine_run(const struct host_engine *engine, uint8_t *scratch, const uint8_t *picture);

/* The values of an output of that picture, widened to 32 bits. */
void host_engine_words(uint32_t *words, const struct host_engine *engine, const uint8_t *scratch,
                       const struct net_output *output);

#endif
