/* fuzz_network.c: the reader of networks, and the results of the processor's engines for accepted
 * networks. */
#include "fuzz.h"

#include "base/hash.h"
#include "net/host_engine.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PRODUCTS (1u << 16)
#define MOST_BYTES    (1u << 20)
#define SMALL         8u  /* most computed networks are at most 1 / SMALL of these limits */
#define LARGE_EVERY   32u /* one of this many may be larger */

/* Computes all outputs into `words`, one after another. Returns false if this processor lacks the
 * instructions. */
static bool compute(uint32_t *words, const struct net_model *model, const uint8_t *picture,
                    const char *kernels)
{
    struct error err = ERROR_INIT;
    struct host_engine *engine = NULL;
    if (host_engine_open(&engine, model, kernels, &err) != STATUS_OK)
        return false;
    uint8_t *scratch = host_scratch(engine);
    fuzz_check(scratch);
    host_engine_run(engine, scratch, picture);
    for (uint32_t i = 0; i < model->header->outputs; i++) {
        host_engine_words(words, engine, scratch, &model->outputs[i]);
        words += net_tensor_values(&model->tensors[model->outputs[i].tensor]);
    }
    free(scratch);
    host_engine_close(&engine);
    return true;
}

/* The size of the words of all outputs; 0 if the network is too large to be computed. */
static size_t word_bytes(const struct net_model *model, uint32_t share)
{
    uint64_t bytes = 0, words = 0;
    for (uint32_t i = 0; i <= model->header->layers; i++) {
        const struct net_tensor *t = &model->tensors[i];
        bytes += (t->height + (uint64_t)t->top + t->bottom) *
                 (t->width + (uint64_t)t->left + t->right) * t->channels;
    }
    for (uint32_t i = 0; i < model->header->outputs; i++)
        words += net_tensor_values(&model->tensors[model->outputs[i].tensor]);
    return model->products > MOST_PRODUCTS / share || bytes > MOST_BYTES / share ? 0 : 4 * words;
}

static const char *const engines[] = {"avx512-vnni", "avx-vnni", "avx2", "plain"};

void fuzz_network(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    struct error err = ERROR_INIT;
    struct net_model *model;
    uint8_t *copy = malloc(size + 1);
    fuzz_check(copy);
    memcpy(copy, data, size);
    if (net_model_read(&model, copy, size, "bytes", &err) != STATUS_OK) {
        fuzz_check(!model && err.status != STATUS_OK && !strchr(err.sentence, '\n'));
        return;
    }
    const size_t picture_bytes = net_tensor_values(&model->tensors[0]);
    uint8_t *picture = malloc(picture_bytes);
    fuzz_check(picture);
    for (size_t i = 0; i < picture_bytes; i++)
        picture[i] = (uint8_t)(data[i % size] * 31u + i);
    /* The last byte belongs to a digest, so it is practically random. */
    const size_t bytes = word_bytes(model, data[size - 1] % LARGE_EVERY ? SMALL : 1);
    uint32_t *words = malloc(2 * bytes + 1), *wanted = words + bytes / sizeof *words;
    fuzz_check(words);
    memset(words, 0xa5, bytes);
    if (bytes > 0)
        compute(wanted, model, picture, HOST_REFERENCE);
    for (size_t i = 0; bytes > 0 && i < sizeof engines / sizeof *engines; i++)
        fuzz_check(!compute(words, model, picture, engines[i]) ||
                   memcmp(words, wanted, bytes) == 0);
    free(words);
    free(picture);
    net_model_close(&model);
}

/* Corrects the number of bytes and the digest. */
void fuzz_seal_network(uint8_t *data, size_t size)
{
    const uint64_t bytes = size;
    if (size < 128)
        return;
    memcpy(data, "clp-net1", 8);
    memcpy(data + 8, &bytes, sizeof bytes);
    sha256_of(data + size - 32, data, size - 32);
}
