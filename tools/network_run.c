/* network_run.c: a network on pictures, without anything around it.
 *
 *     network_run MODEL PICTURES OUT [ENGINE [THREADS [REPEATS]]]
 *
 * PICTURES holds bytes of 8-bit RGB, as many pictures of the network's size as there are. OUT gets, for
 * each picture, the tensor of each output. A MODEL that ends in .onnx is computed by ONNX Runtime as a feature
 * is: pictures of 224 x 224 (x - 127.5) / 127.5, OUT in float32; ENGINE is then "runtime". Else ENGINE is "reference" (default), "host" for the best
 * instructions of this processor, or the name of others. Prints a line of JSON: the least time of all
 * REPEATS (1), in milliseconds a picture, of the clock and of the processors. scons builds it as
 * build/release/network_run.
 */
#include "base/clock.h"
#include "base/threads.h"
#include "net/host_engine.h"
#include "net/reference.h"
#include "net/runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POISON 0xa5

struct job {
    const struct net_model *model;
    const struct host_engine *engine; /* NULL: the reference */
    const uint8_t *pictures;
    uint8_t *results;
    size_t count, picture_bytes, result_bytes;
    atomic_size_t next;
    atomic_bool failed;
};

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

static void run_reference(const struct job *job, void **tensors, const uint8_t *picture,
                          void *const *outputs)
{
    const struct net_model *model = job->model;
    tensors[0] = (void *)(uintptr_t)picture;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        memset(tensors[i + 1], POISON, net_tensor_bytes(&model->tensors[i + 1]));
        net_reference_layer(model, i, tensors);
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        const uint32_t tensor = model->outputs[i].tensor;
        memcpy(outputs[i], tensors[tensor], net_tensor_bytes(&model->tensors[tensor]));
    }
}

static void *work(void *context)
{
    struct job *job = context;
    const struct net_model *model = job->model;
    struct error err = ERROR_INIT;
    struct host_scratch *scratch = NULL;
    void **tensors = calloc(model->layer_count + 1, sizeof *tensors);
    bool ready = tensors != NULL;
    if (job->engine)
        ready = ready && host_scratch_open(&scratch, job->engine, &err) == STATUS_OK;
    else
        for (uint32_t i = 1; ready && i <= model->layer_count; i++)
            ready = (tensors[i] = malloc(net_tensor_bytes(&model->tensors[i]))) != NULL;
    if (!ready)
        atomic_store(&job->failed, true);
    for (size_t p; ready && (p = atomic_fetch_add(&job->next, 1)) < job->count;) {
        void *outputs[NET_OUTPUTS_MAX];
        uint8_t *at = job->results + p * job->result_bytes;
        for (uint32_t i = 0; i < model->output_count; i++) {
            outputs[i] = at;
            at += net_tensor_bytes(&model->tensors[model->outputs[i].tensor]);
        }
        if (job->engine)
            host_engine_run(job->engine, scratch, job->pictures + p * job->picture_bytes, outputs);
        else
            run_reference(job, tensors, job->pictures + p * job->picture_bytes, outputs);
    }
    for (uint32_t i = 1; tensors && i <= model->layer_count; i++)
        free(tensors[i]);
    free(tensors);
    host_scratch_close(&scratch);
    return NULL;
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* All pictures by the runtime, as the step gives them. */
static int run_onnx(const char *path, const char *pictures, const char *output, unsigned threads, int repeats)
{
    struct error err = ERROR_INIT;
    struct runtime *runtime = runtime_of(path);
    const struct runtime_job job = {.width = 224, .height = 224, .layout = RUNTIME_NCHW,
                                    .mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}};
    size_t size = 0;
    const uint8_t *bytes = slurp(pictures, &size), **at = calloc(size / (224 * 224 * 3) + 1, sizeof *at);
    const uint32_t count = (uint32_t)(size / (224 * 224 * 3));
    uint32_t values = 0;
    double wall = 1e9;
    runtime_configure(&(struct runtime_config){.threads = threads});
    if (!runtime || !bytes || !at || count == 0)
        return fail("the pictures cannot be read");
    for (uint32_t i = 0; i < count; i++)
        at[i] = bytes + (size_t)i * 224 * 224 * 3;
    if (runtime_start(runtime, false, &err) != STATUS_OK ||
        runtime_rows(runtime, &job, &values, at, NULL, count, &err) != STATUS_OK)
        return fail(err.sentence);
    float *made = malloc((size_t)count * values * sizeof *made), **rows = calloc(count, sizeof *rows);
    FILE *out = fopen(output, "wb");
    if (!made || !rows || !out)
        return fail("the output cannot be written");
    for (uint32_t i = 0; i < count; i++)
        rows[i] = made + (size_t)i * values;
    for (int r = 0; r < repeats; r++) {
        const int64_t started = clock_now();
        if (runtime_rows(runtime, &job, &values, at, rows, count, &err) != STATUS_OK)
            return fail(err.sentence);
        wall = clock_seconds_since(started) < wall ? clock_seconds_since(started) : wall;
    }
    printf("{\"engine\": \"%s\", \"pictures\": %u, \"ms\": %.4f}\n", runtime_about(runtime)->made_by,
           count, 1e3 * wall / count);
    fwrite(made, sizeof *made, (size_t)count * values, out);
    return fclose(out) == 0 ? 0 : fail("the output cannot be written");
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct net_model *model;
    struct host_engine *engine = NULL;
    size_t size = 0;
    if (argc < 4 || argc > 7) {
        fprintf(stderr, "usage: network_run MODEL PICTURES OUT [ENGINE [THREADS [REPEATS]]]\n");
        return 2;
    }
    const char *name = argc > 4 ? argv[4] : "reference";
    const unsigned threads = argc > 5 ? (unsigned)atoi(argv[5]) : 1;
    const int repeats = argc > 6 ? atoi(argv[6]) : 1;
    if (strcmp(name, "runtime") == 0)
        return run_onnx(argv[1], argv[2], argv[3], threads, repeats);
    if (net_model_open(&model, argv[1], &err) != STATUS_OK)
        return fail(err.sentence);
    if (strcmp(name, "reference") != 0 &&
        host_engine_open(&engine, model, strcmp(name, "host") == 0 ? NULL : name, &err) !=
            STATUS_OK)
        return fail(err.sentence);
    struct job job = {.model = model,
                      .engine = engine,
                      .pictures = slurp(argv[2], &size),
                      .picture_bytes = net_tensor_bytes(&model->tensors[0])};
    for (uint32_t i = 0; i < model->output_count; i++)
        job.result_bytes += net_tensor_bytes(&model->tensors[model->outputs[i].tensor]);
    job.count = size / job.picture_bytes;
    job.results = malloc(job.count * job.result_bytes + 1);
    FILE *out = fopen(argv[3], "wb");
    if (!job.pictures || size % job.picture_bytes || !out || !job.results)
        return fail("the pictures cannot be read, or the output cannot be written");
    double wall = 1e9, processors = 1e9;
    for (int r = 0; r < repeats && !job.failed; r++) {
        memset(job.results, POISON, job.count * job.result_bytes);
        atomic_store(&job.next, 0);
        const int64_t started = clock_now();
        const double used = processor_seconds();
        threads_run(work, &job, threads);
        const double now = clock_seconds_since(started), spent = processor_seconds() - used;
        wall = now < wall ? now : wall;
        processors = spent < processors ? spent : processors;
    }
    if (job.failed)
        return fail("out of memory");
    const double each = job.count ? 1e3 / (double)job.count : 0;
    printf("{\"engine\": \"%s\", \"pictures\": %zu, \"ms\": %.4f, \"processor_ms\": %.4f, "
           "\"weights\": %llu, \"scratch\": %llu}\n",
           engine ? host_engine_kernels(engine) : name, job.count, wall * each, processors * each,
           (unsigned long long)(engine ? host_engine_bytes(engine) : 0),
           (unsigned long long)(engine ? host_scratch_bytes(engine) : 0));
    fwrite(job.results, 1, job.count * job.result_bytes, out);
    host_engine_close(&engine);
    net_model_close(&model);
    free((void *)(uintptr_t)job.pictures);
    free(job.results);
    return fclose(out) == 0 ? 0 : fail("the output cannot be written");
}
