/* network_run.c: a network on pictures, without anything around it.
 *
 *     network_run MODEL PICTURES OUT [ENGINE [THREADS [REPEATS]]]
 *
 * PICTURES holds bytes of 8-bit RGB, as many pictures of the network's size as there are. OUT gets,
 * for each picture, the tensor of each output. A MODEL that ends in .onnx is computed by ONNX
 * Runtime as a feature is: pictures of 224 x 224 (x - 127.5) / 127.5, OUT in float32; ENGINE is
 * then "runtime", or "cuda". Else ENGINE is "reference" (default: plain C), "host" for the best
 * instructions of this processor, or the name of others. Prints a line of JSON: the least time of
 * all REPEATS (1), in milliseconds per picture, by the clock and by the processors. ENGINE
 * "device:SEL" is the OpenCL device that --device SEL would be: all pictures at once, REPEATS times
 * in a row, for each output; its line has the seconds of opening and of a batch, and those of the
 * floor: of as many bytes as layers read and write, at the rate at which this device copies (0 if
 * REPEATS is 1). CLPIPE_NETWORK_TRACE names a file for the times of all kernels. scons builds it as
 * build/release/network_run.
 */
#include "base/clock.h"
#include "base/workers.h"
#include "device/net_step.h"
#include "device/plan.h"
#include "net/device_plan.h"
#include "net/host_engine.h"
#include "net/runtime.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POISON 0xa5

struct job {
    const struct net_model *model;
    const struct host_engine *engine;
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

/* The whole file; NULL: it cannot be read. */
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

/* The size in bytes of an output's values for a picture, as written. */
static size_t output_bytes(const struct net_tensor *tensor)
{
    return net_tensor_values(tensor) * (tensor->is_sum ? sizeof(uint32_t) : 1);
}

/* Stores the words of an output for a picture as bytes of its tensor; returns their end. */
static uint8_t *store_words(uint8_t *result, const uint32_t *words, const struct net_tensor *tensor)
{
    for (size_t i = 0; i < net_tensor_values(tensor); i++) {
        if (tensor->is_sum)
            memcpy(result + 4 * i, words + i, 4);
        else
            result[i] = (uint8_t)words[i];
    }
    return result + output_bytes(tensor);
}

static void work(void *context, uint64_t thread)
{
    (void)thread;
    struct job *job = context;
    const struct net_model *model = job->model;
    uint8_t *scratch = host_scratch(job->engine);
    uint32_t *words = malloc(NET_VALUES_MAX * sizeof *words);
    if (!scratch || !words)
        atomic_store(&job->failed, true);
    for (size_t p; scratch && words && (p = atomic_fetch_add(&job->next, 1)) < job->count;) {
        uint8_t *at = job->results + p * job->result_bytes;
        host_engine_run(job->engine, scratch, job->pictures + p * job->picture_bytes);
        for (uint32_t i = 0; i < model->header->outputs; i++) {
            host_engine_words(words, job->engine, scratch, &model->outputs[i]);
            at = store_words(at, words, &model->tensors[model->outputs[i].tensor]);
        }
    }
    free(words);
    free(scratch);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Computes all pictures by the runtime, in the form in which the step passes them. */
static int run_onnx(const char *path, const char *pictures, const char *output, bool cuda,
                    unsigned threads, int repeats)
{
    struct error err = ERROR_INIT;
    struct runtime *runtime = runtime_of(path);
    const struct runtime_job job = {.width = 224,
                                    .height = 224,
                                    .layout = RUNTIME_NCHW,
                                    .mean = {0.5, 0.5, 0.5},
                                    .std = {0.5, 0.5, 0.5}};
    size_t size = 0;
    const uint8_t *bytes = slurp(pictures, &size),
                  **at = calloc(size / (224 * 224 * 3) + 1, sizeof *at);
    const uint32_t count = (uint32_t)(size / (224 * 224 * 3));
    uint32_t values = 0;
    double wall = 1e9;
    runtime_configure(&(struct runtime_config){.threads = threads});
    if (!runtime || !bytes || !at || count == 0)
        return fail("the pictures cannot be read");
    for (uint32_t i = 0; i < count; i++)
        at[i] = bytes + (size_t)i * 224 * 224 * 3;
    if (runtime_start(runtime, cuda, &err) != STATUS_OK ||
        runtime_rows(runtime, &job, &values, at, NULL, count, &err) != STATUS_OK)
        return fail(err.sentence);
    float *made = malloc((size_t)count * values * sizeof *made),
          **rows = calloc(count, sizeof *rows);
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
    printf("{\"engine\": \"%s\", \"pictures\": %u, \"ms\": %.4f}\n",
           runtime_about(runtime)->made_by, count, 1e3 * wall / count);
    fwrite(made, sizeof *made, (size_t)count * values, out);
    return fclose(out) == 0 ? 0 : fail("the output cannot be written");
}

/* --- on a device ----------------------------------------------------------------------------- */

/* The number of bytes that the layers read and write for a picture. */
static double moved_bytes(const struct net_model *model)
{
    struct net_plan plan;
    struct error err = ERROR_INIT;
    double bytes = 0;
    if (net_plan_open(&plan, model, "", true, &err) != STATUS_OK)
        return 0;
    for (uint32_t i = 0; i < model->header->layers; i++) {
        const struct net_fields *f = &model->layers[i].f;
        const struct net_made *made = &plan.made[i + 1];
        if (made->is_made_later)
            continue;
        const uint32_t joined = made->convolution == i ? NET_NO_LAYER : made->convolution;
        bytes += (double)net_plan_bytes(&model->tensors[i + 1]);
        if (joined != NET_NO_LAYER && f->a == joined + 1)
            bytes += (double)net_plan_bytes(&model->tensors[model->layers[joined].f.a]);
        else
            bytes += (double)net_plan_bytes(&model->tensors[f->a]);
        if (joined != NET_NO_LAYER && f->b == joined + 1)
            bytes += (double)net_plan_bytes(&model->tensors[model->layers[joined].f.a]);
        else if (f->kind == NET_ADD || f->kind == NET_MULTIPLY)
            bytes += (double)net_plan_bytes(&model->tensors[f->b]);
    }
    net_plan_close(&plan);
    return bytes;
}

/* Bytes per second that the device reads and writes when copying; 0: unknown. */
static double copy_rate(struct ocl_context *context)
{
    const size_t bytes = (size_t)256 << 20;
    const cl_context handle = ocl_context_handle(context);
    double rate = 0;
    cl_int code;
    cl_mem from = clCreateBuffer(handle, CL_MEM_READ_WRITE, bytes, NULL, &code);
    cl_mem to = clCreateBuffer(handle, CL_MEM_READ_WRITE, bytes, NULL, &code);
    cl_command_queue queue = clCreateCommandQueue(handle, ocl_context_device(context)->id,
                                                  CL_QUEUE_PROFILING_ENABLE, &code);
    /* The program itself does not need this call. */
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    cl_int (*copy)(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint,
                   const cl_event *, cl_event *) = NULL;
    if (library)
        *(void **)&copy = dlsym(library, "clEnqueueCopyBuffer");
    for (int i = 0; i < 8 && from && to && queue && copy; i++) {
        cl_event event;
        cl_ulong begin = 0, end = 0;
        if (copy(queue, from, to, 0, 0, bytes, 0, NULL, &event) != CL_SUCCESS)
            break;
        clFinish(queue);
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL);
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        clReleaseEvent(event);
        const double seen = end > begin ? 2e9 * (double)bytes / (double)(end - begin) : 0;
        rate = seen > rate ? seen : rate;
    }
    if (queue)
        clReleaseCommandQueue(queue);
    if (to)
        clReleaseMemObject(to);
    if (from)
        clReleaseMemObject(from);
    return rate;
}

/* Computes one output for all pictures, in one batch, `repeats` times; `at` is its place in the
 * results of a picture, `rate` the device's copy rate in bytes per second. */
static enum status run_output(struct job *job, struct ocl_context *context,
                              const struct net_output *output, size_t at, int repeats, double rate,
                              struct error *err)
{
    const struct net_model *model = job->model;
    const struct net_tensor *tensor = &model->tensors[output->tensor];
    struct feature feature = {.name = "network", .net.model = (struct net_model *)(uintptr_t)model};
    const struct step_node node = {.step = &net_step, .config = &feature};
    snprintf(feature.net.output, sizeof feature.net.output, "%s", output->name);
    const struct ocl_device *device = ocl_context_device(context);
    const size_t words = net_tensor_values(tensor);
    struct ocl_queue *queue = NULL;
    void *state = NULL;
    struct step_needs needs;
    cl_mem pixels, values, table, work;
    cl_event event = NULL;
    struct net_part *parts = calloc(job->count, sizeof *parts);
    uint32_t *made = malloc(job->count * words * sizeof *made);
    if (!parts || !made)
        return error_memory(err, job->count * words * sizeof *made, "pictures");
    for (size_t i = 0; i < job->count; i++)
        parts[i] = (struct net_part){.offset = (uint32_t)(i * job->picture_bytes),
                                     .words = (uint32_t)(i * words)};
    const int64_t started = clock_now();
    if (net_step.open(&state, &needs, context, &node, 0, err) != STATUS_OK ||
        net_step.build(state, err) != STATUS_OK ||
        ocl_queue_open(&queue, context, "compute", err) != STATUS_OK)
        return STATUS_FAILED;
    const double opened = clock_seconds_since(started);
    const uint64_t room = net_step.work_bytes(&node, device, device->global_memory / 8);
    const cl_mem_flags copied = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    memset(made, POISON, job->count * words * sizeof *made);
    if (ocl_buffer(&pixels, context, copied, job->count * job->picture_bytes,
                   (void *)(uintptr_t)job->pictures, "pictures", err) != STATUS_OK ||
        ocl_buffer(&table, context, copied, job->count * sizeof *parts, parts, "a table", err) !=
            STATUS_OK ||
        ocl_buffer(&values, context, copied, job->count * words * 4, made, "words", err) !=
            STATUS_OK ||
        ocl_buffer(&work, context, CL_MEM_READ_WRITE, room, NULL, "values", err) != STATUS_OK)
        return STATUS_FAILED;
    const uint32_t counts[1] = {(uint32_t)job->count};
    double best = 1e9;
    for (int turn = 0; turn < (repeats > 1 ? 4 : 1); turn++) {
        const int64_t began = clock_now();
        for (int r = 0; r < (turn ? repeats : 1); r++) {
            struct step_io io = {.in = pixels,
                                 .table = table,
                                 .values = values,
                                 .scratch = work,
                                 .counts = counts,
                                 .events = &event};
            if (net_step.enqueue(state, queue, &io, err) != STATUS_OK)
                return STATUS_FAILED;
            clReleaseEvent(event);
        }
        ocl_finish(queue);
        const double each = clock_seconds_since(began) / repeats;
        best = (turn || repeats == 1) && each < best ? each : best;
    }
    if (ocl_enqueue_read(queue, "read", values, true, 0, job->count * words * 4, made, OCL_NO_WAITS,
                         NULL, err) != STATUS_OK)
        return STATUS_FAILED;
    for (size_t p = 0; p < job->count; p++)
        store_words(job->results + p * job->result_bytes + at, made + p * words, tensor);
    const double bytes = moved_bytes(model) * (double)job->count;
    printf(
        "{\"device\": \"%s\", \"pictures\": %zu, \"open_s\": %.3f, \"batch_s\": %.6f, "
        "\"pictures_s\": %.0f, \"floor_s\": %.6f, \"copy_bytes_s\": %.4g, \"workspace\": %llu}\n",
        device->name, job->count, opened, best, (double)job->count / best,
        rate > 0 ? bytes / rate : 0, rate, (unsigned long long)room);
    ocl_queue_close(&queue);
    net_step.close(&state);
    ocl_buffer_release(&pixels);
    ocl_buffer_release(&table);
    ocl_buffer_release(&values);
    ocl_buffer_release(&work);
    free(parts);
    free(made);
    return STATUS_OK;
}

static enum status run_device(struct job *job, const char *selector, int repeats, struct error *err)
{
    const struct net_model *model = job->model;
    struct ocl_devices devices;
    struct ocl_context *context = NULL;
    struct trace *trace = NULL;
    const char *trace_path = getenv("CLPIPE_NETWORK_TRACE");
    unsigned chosen, count;
    if (ocl_devices_open(&devices, 1, err) != STATUS_OK ||
        ocl_devices_select(&chosen, &count, 1, &devices, selector, err) != STATUS_OK ||
        (trace_path && trace_open(&trace, trace_path, err) != STATUS_OK))
        return STATUS_FAILED;
    struct ocl_device *device = &devices.device[chosen];
    device->type = CL_DEVICE_TYPE_GPU; /* kernels, on processors too */
    if (ocl_context_open(&context, device, trace, err) != STATUS_OK)
        return STATUS_FAILED;
    const double rate = repeats > 1 ? copy_rate(context) : 0;
    size_t at = 0;
    for (uint32_t i = 0; i < model->header->outputs; i++) {
        if (run_output(job, context, &model->outputs[i], at, repeats, rate, err) != STATUS_OK)
            return STATUS_FAILED;
        at += output_bytes(&model->tensors[model->outputs[i].tensor]);
    }
    ocl_context_close(&context);
    ocl_devices_close(&devices);
    return trace_close(&trace, err);
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
    const bool cuda = strcmp(name, "cuda") == 0;
    if (cuda || strcmp(name, "runtime") == 0)
        return run_onnx(argv[1], argv[2], argv[3], cuda, threads, repeats);
    if (net_model_open(&model, argv[1], &err) != STATUS_OK)
        return fail(err.sentence);
    const bool on_device = strncmp(name, "device:", 7) == 0;
    const char *kernels = strcmp(name, "host") == 0        ? NULL
                          : strcmp(name, "reference") == 0 ? HOST_REFERENCE
                                                           : name;
    if (!on_device && host_engine_open(&engine, model, kernels, &err) != STATUS_OK)
        return fail(err.sentence);
    struct job job = {.model = model,
                      .engine = engine,
                      .pictures = slurp(argv[2], &size),
                      .picture_bytes = net_tensor_values(&model->tensors[0])};
    for (uint32_t i = 0; i < model->header->outputs; i++)
        job.result_bytes += output_bytes(&model->tensors[model->outputs[i].tensor]);
    job.count = size / job.picture_bytes;
    job.results = malloc(job.count * job.result_bytes + 1);
    FILE *out = fopen(argv[3], "wb");
    if (!job.pictures || size % job.picture_bytes || !out || !job.results)
        return fail("the pictures cannot be read, or the output cannot be written");
    if (on_device) {
        if (run_device(&job, name + 7, repeats, &err) != STATUS_OK)
            return fail(err.sentence);
        fwrite(job.results, 1, job.count * job.result_bytes, out);
        return fclose(out) == 0 ? 0 : fail("the output cannot be written");
    }
    double wall = 1e9, processors = 1e9;
    for (int r = 0; r < repeats && !job.failed; r++) {
        memset(job.results, POISON, job.count * job.result_bytes);
        atomic_store(&job.next, 0);
        const int64_t started = clock_now();
        const double used = processor_seconds();
        workers_once(threads, work, &job, threads > 0 ? threads : 1);
        const double now = clock_seconds_since(started), spent = processor_seconds() - used;
        wall = now < wall ? now : wall;
        processors = spent < processors ? spent : processors;
    }
    if (job.failed)
        return fail("out of memory");
    const double each = job.count ? 1e3 / (double)job.count : 0;
    printf("{\"engine\": \"%s\", \"pictures\": %zu, \"ms\": %.4f, \"processor_ms\": %.4f, "
           "\"scratch\": %llu}\n",
           host_engine_kernels(engine), job.count, wall * each, processors * each,
           (unsigned long long)host_scratch_bytes(engine));
    fwrite(job.results, 1, job.count * job.result_bytes, out);
    host_engine_close(&engine);
    net_model_close(&model);
    free((void *)(uintptr_t)job.pictures);
    free(job.results);
    return fclose(out) == 0 ? 0 : fail("the output cannot be written");
}
