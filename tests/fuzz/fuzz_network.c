/* fuzz_network.c: networks: the reader, and what the processor's engines make of what it accepts. */
#include "fuzz.h"

#include "base/hash.h"
#include "net/host_engine.h"
#include "net/host_kernels.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PRODUCTS (1u << 16)
#define MOST_BYTES    (1u << 20)
#define SMALL         8u  /* most networks that are computed are at most 1 / SMALL of that */
#define LARGE_EVERY   32u /* but one of so many */

/* Computes all outputs, one after another in `values`. False: this processor has no such
 * instructions. */
static bool compute(uint8_t *values, const struct net_model *model, const uint8_t *picture,
                    const char *kernels)
{
    struct error err = ERROR_INIT;
    struct host_engine *engine = NULL;
    struct host_scratch *scratch = NULL;
    void *outputs[NET_OUTPUTS_MAX];
    if (host_engine_open(&engine, model, kernels, &err) != STATUS_OK)
        return false;
    fuzz_check(host_scratch_open(&scratch, engine, &err) == STATUS_OK);
    for (uint32_t i = 0; i < model->output_count; i++) {
        outputs[i] = values;
        values += net_tensor_bytes(&model->tensors[model->outputs[i].tensor]);
    }
    host_engine_run(engine, scratch, picture, outputs);
    host_scratch_close(&scratch);
    host_engine_close(&engine);
    return true;
}

/* Bytes of all outputs; 0: the network is too large to be computed. */
static size_t output_bytes(const struct net_model *model, uint32_t share)
{
    uint64_t bytes = 0, outputs = 0;
    for (uint32_t i = 0; i <= model->layer_count; i++) {
        const struct net_tensor *t = &model->tensors[i];
        bytes += (t->height + (uint64_t)t->top + t->bottom) *
                 (t->width + (uint64_t)t->left + t->right) * t->channels;
    }
    for (uint32_t i = 0; i < model->output_count; i++)
        outputs += net_tensor_bytes(&model->tensors[model->outputs[i].tensor]);
    return model->products > MOST_PRODUCTS / share || bytes > MOST_BYTES / share ? 0 : outputs;
}

void fuzz_network(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    struct error err = ERROR_INIT;
    struct net_model *model;
    if (net_model_read(&model, data, size, "bytes", &err) != STATUS_OK) {
        fuzz_check(!model && err.status != STATUS_OK && !strchr(err.sentence, '\n'));
        return;
    }
    const size_t picture_bytes = net_tensor_bytes(&model->tensors[0]);
    uint8_t *picture = malloc(picture_bytes);
    fuzz_check(picture);
    for (size_t i = 0; i < picture_bytes; i++)
        picture[i] = (uint8_t)(data[i % size] * 31u + i);
    /* The last byte is one of a digest. */
    const size_t bytes = output_bytes(model, data[size - 1] % LARGE_EVERY ? SMALL : 1);
    uint8_t *values = malloc(2 * bytes + 1), *wanted = values + bytes;
    fuzz_check(values);
    memset(values, 0xa5, bytes);
    if (bytes > 0)
        compute(wanted, model, picture, HOST_REFERENCE);
    for (unsigned i = 0; bytes > 0 && host_kernels_name(i); i++)
        fuzz_check(!compute(values, model, picture, host_kernels_name(i)) ||
                   memcmp(values, wanted, bytes) == 0);
    free(values);
    free(picture);
    net_model_close(&model);
}

/* The number of bytes and the digest. */
void fuzz_seal_network(uint8_t *data, size_t size)
{
    const uint64_t bytes = size;
    if (size < 128)
        return;
    memcpy(data, "clp-net1", 8);
    memcpy(data + 8, &bytes, sizeof bytes);
    sha256_of(data + size - 32, data, size - 32);
}
