/* network_run.c: a network on pictures, without anything around it.
 *
 *     network_run MODEL PICTURES OUT
 *
 * PICTURES holds bytes of 8-bit RGB, as many pictures of the network's size as there are. OUT gets, for
 * each picture, the tensor of each output, as the plain reference makes it. Prints a line of JSON.
 * scons builds it as build/release/network_run.
 */
#include "base/clock.h"
#include "net/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xa5

static int fail(const char *what)
{
    fprintf(stderr, "network_run: %s\n", what);
    return 1;
}

/* All of a file; NULL: it cannot be read. */
static uint8_t *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *size = (size_t)ftell(file);
        rewind(file);
        bytes = malloc(*size + 1);
        if (bytes && fread(bytes, 1, *size, file) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file)
        fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct net_model *model;
    size_t size = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: network_run MODEL PICTURES OUT\n");
        return 2;
    }
    if (net_model_open(&model, argv[1], &err) != STATUS_OK)
        return fail(err.sentence);
    uint8_t *pictures = slurp(argv[2], &size);
    const size_t each = net_tensor_bytes(&model->tensors[0]), count = size / each;
    FILE *out = fopen(argv[3], "wb");
    void **tensors = calloc(model->layer_count + 1, sizeof *tensors);
    if (!pictures || size % each || !out || !tensors)
        return fail("the pictures cannot be read, or the output cannot be written");
    for (uint32_t i = 0; i < model->layer_count; i++)
        if (!(tensors[i + 1] = malloc(net_tensor_bytes(&model->tensors[i + 1]))))
            return fail("out of memory");
    const int64_t started = clock_now();
    for (size_t p = 0; p < count; p++) {
        tensors[0] = pictures + p * each;
        for (uint32_t i = 0; i < model->layer_count; i++) {
            memset(tensors[i + 1], POISON, net_tensor_bytes(&model->tensors[i + 1]));
            net_reference_layer(model, i, tensors);
        }
        for (uint32_t i = 0; i < model->output_count; i++) {
            const uint32_t tensor = model->outputs[i].tensor;
            fwrite(tensors[tensor], 1, net_tensor_bytes(&model->tensors[tensor]), out);
        }
    }
    printf("{\"engine\": \"reference\", \"pictures\": %zu, \"ms\": %.4f}\n", count,
           count ? clock_seconds_since(started) * 1e3 / (double)count : 0);
    for (uint32_t i = 0; i < model->layer_count; i++)
        free(tensors[i + 1]);
    free(tensors);
    free(pictures);
    net_model_close(&model);
    return fclose(out) == 0 ? 0 : fail("the output cannot be written");
}
