/* fuzz_network.c: networks: the reader, and what the processor's engines make of what it accepts. */
#include "fuzz.h"

#include "base/hash.h"
#include "net/host_engine.h"
#include "net/host_kernels.h"
#include "net/reference.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PRODUCTS (1u << 16)
#define MOST_BYTES    (1u << 20)
#define SMALL         8u  /* most networks that are computed are at most 1 / SMALL of that */
#define LARGE_EVERY   32u /* but one of so many */

/* All tensors of a picture by the reference, or NULL: they are too large to be tried. */
static void **compute(const struct net_model *model, const uint8_t *picture, uint32_t share)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i <= model->layer_count; i++)
        bytes += net_tensor_bytes(&model->tensors[i]);
    if (model->products > MOST_PRODUCTS / share || bytes > MOST_BYTES / share)
        return NULL;
    void **tensors = calloc(model->layer_count + 1, sizeof *tensors);
    fuzz_check(tensors);
    for (uint32_t i = 0; i <= model->layer_count; i++)
        fuzz_check((tensors[i] = malloc(net_tensor_bytes(&model->tensors[i]))) != NULL);
    memcpy(tensors[0], picture, net_tensor_bytes(&model->tensors[0]));
    for (uint32_t i = 0; i < model->layer_count; i++)
        net_reference_layer(model, i, tensors);
    return tensors;
}

/* The same outputs by an engine. */
static void check_engine(const struct net_model *model, void *const *tensors, const char *kernels)
{
    struct error err = ERROR_INIT;
    struct host_engine *engine = NULL;
    struct host_scratch *scratch = NULL;
    void *outputs[NET_OUTPUTS_MAX];
    if (host_engine_open(&engine, model, kernels, &err) != STATUS_OK)
        return; /* this processor has them not */
    if (host_scratch_bytes(engine) > 16 * MOST_BYTES) {
        host_engine_close(&engine);
        return;
    }
    fuzz_check(host_scratch_open(&scratch, engine, &err) == STATUS_OK);
    for (uint32_t i = 0; i < model->output_count; i++) {
        const size_t bytes = net_tensor_bytes(&model->tensors[model->outputs[i].tensor]);
        fuzz_check((outputs[i] = malloc(bytes)) != NULL);
        memset(outputs[i], 0xa5, bytes);
    }
    host_engine_run(engine, scratch, tensors[0], outputs);
    for (uint32_t i = 0; i < model->output_count; i++) {
        const uint32_t tensor = model->outputs[i].tensor;
        fuzz_check(memcmp(outputs[i], tensors[tensor],
                          net_tensor_bytes(&model->tensors[tensor])) == 0);
        free(outputs[i]);
    }
    host_scratch_close(&scratch);
    host_engine_close(&engine);
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
    void **tensors = compute(model, picture, data[size - 1] % LARGE_EVERY ? SMALL : 1);
    for (unsigned i = 0; tensors && host_kernels_name(i); i++)
        check_engine(model, tensors, host_kernels_name(i));
    for (uint32_t i = 0; tensors && i <= model->layer_count; i++)
        free(tensors[i]);
    free(tensors);
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
