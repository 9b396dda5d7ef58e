/* net_step.c: runs a network with the host's engine on CPU devices and with kernels on others, in
 * batches of pictures; or a model of ONNX Runtime in its process. */
#include "device/net_step.h"

#include "base/minmax.h"
#include "base/random.h"
#include "base/workers.h"
#include "device/plan.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "features/kind.h"
#include "net/device_plan.h"
#include "net/host_engine.h"
#include "net_sources_generated.h"
#include "ocl/ocl_ndrange.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MOST 1024u
#define BUILDERS   8u /* number of threads that build programs */

static const char *const programs[] = {"net_layer", "net_tensor", NULL};

struct net {
    struct ocl_context *context;
    const struct feature *feature;
    const struct net_model *model; /* NULL: by ONNX Runtime */
    const struct net_output *output;
    struct host_engine *engine; /* for CPU devices; NULL: kernels */
    struct net_plan plan;
    const char *tiles;   /* program of the plan's tiles */
    cl_kernel *kernel;   /* the plan's, which holds the array */
    cl_mem constants[2]; /* of plain kernels: the model; the plan's packed weights */
};

/* --- opening --------------------------------------------------------------------------------- */

static void close_net(void **state)
{
    struct net *net = *state;
    if (!net)
        return;
    for (unsigned i = 0; net->kernel && i < net->plan.kernel_count; i++)
        if (net->kernel[i])
            clReleaseKernel(net->kernel[i]);
    ocl_buffer_release(&net->constants[0]);
    ocl_buffer_release(&net->constants[1]);
    host_engine_close(&net->engine);
    net_plan_close(&net->plan);
    free(net);
    *state = NULL;
}

static bool is_host(const struct ocl_device *device)
{
    return device->type == CL_DEVICE_TYPE_CPU;
}

static enum status open_net(void **state, struct step_needs *needs, struct ocl_context *context,
                            const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    const struct feature *feature = node->config;
    const struct ocl_device *device = ocl_context_device(context);
    const bool emulated = node->parameter == NET_STEP_EMULATED;
    /* With mma.m16n8k32 for bytes. */
    const bool has_tiles = emulated || (device->nvidia && device->nvidia_major >= 8);
    enum status status = STATUS_OK;
    (void)launch_bytes;
    if (!feature->net.model && !feature->net.runtime)
        return error_set(err, STATUS_USAGE, "feature %s has no model", feature->name);
    struct net *net = *state = calloc(1, sizeof *net);
    if (!net)
        return error_memory(err, sizeof *net, node->step->name);
    *net = (struct net){.context = context, .feature = feature, .model = feature->net.model};
    net->tiles = emulated ? "net_emulated" : programs[1];
    if (net->model)
        net->output = net_model_output(net->model, feature->net.output);
    if (net->model && is_host(device)) {
        status = host_engine_open(&net->engine, net->model, NULL, err);
    } else if (net->model) {
        status = net_plan_open(&net->plan, net->model, ocl_range_option(device), has_tiles, err);
        net->kernel = held_array(&net->plan.held, net->plan.kernel_count, sizeof *net->kernel);
        if (status == STATUS_OK)
            status = held_check(&net->plan.held, "a network", err);
    }
    if (status != STATUS_OK)
        close_net(state);
    *needs = (struct step_needs){.lists = 1, .counts = 1, .events = 1};
    return status;
}

/* The workspace for a batch of pictures; 0: the host's engine and ONNX Runtime have their own. */
static uint64_t work_bytes(const struct step_node *node, const struct ocl_device *device,
                           uint64_t most)
{
    const struct feature *feature = node->config;
    struct net_plan plan;
    struct error err = ERROR_INIT;
    if (is_host(device) || !feature->net.model ||
        net_plan_open(&plan, feature->net.model, "", false, &err) != STATUS_OK)
        return 0;
    const uint64_t bytes = plan.bytes;
    uint64_t batch = min_u64(min_u64(most, device->max_allocation), UINT32_MAX) / bytes;
    batch = min_u64(max_u64(batch, 1), BATCH_MOST);
    net_plan_close(&plan);
    return batch * bytes;
}

/* The first kernels, which are plain, come last. */
static enum status build_kernel(void *context, uint64_t i, struct error *err)
{
    struct net *net = context;
    const unsigned at = net->plan.kernel_count - 1 - (unsigned)i;
    return ocl_context_kernel(&net->kernel[at], net->context,
                              at < NET_PLAIN_KERNELS ? programs[0] : net->tiles,
                              net->plan.names[at], net->plan.options[at], err);
}

/* Has other processes compile the programs of net_tensor. */
static enum status build_net(void *state, struct error *err)
{
    struct net *net = state;
    const unsigned tiles = net->plan.kernel_count - NET_PLAIN_KERNELS;
    struct workers *workers = NULL;
    if (net->engine || !net->model)
        return STATUS_OK;
    ocl_programs_compile(ocl_context_device(net->context), programs[1],
                         net->plan.options + NET_PLAIN_KERNELS, tiles);
    enum status status = workers_open(&workers, tiles > 0 ? BUILDERS : 1, err);
    if (status == STATUS_OK)
        status = workers_try(workers, build_kernel, net, net->plan.kernel_count, err);
    workers_close(&workers);
    if (status != STATUS_OK)
        return status;
    const void *const bytes[2] = {net->model->bytes, net->plan.packed};
    const size_t sizes[2] = {net->model->size, net->plan.packed_bytes + 16};
    for (int i = 0; i < 2; i++)
        if (bytes[i] &&
            ocl_buffer(&net->constants[i], net->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                       sizes[i], (void *)(uintptr_t)bytes[i], "a network", err) != STATUS_OK)
            return STATUS_FAILED;
    return STATUS_OK;
}

/* --- parts ----------------------------------------------------------------------------------- */

/* Counts only whole pictures from the scale step. */
static void count_pictures(uint32_t *count, const void *state, const struct part_shape *in)
{
    const struct net *net = state;
    const struct runtime_job *job = &net->feature->net.job;
    count[0] = part_is_whole(in) &&
               in->width == (net->model ? net->model->header->width : job->width) &&
               in->height == (net->model ? net->model->header->height : job->height);
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    const struct net *net = state;
    if (entry->count[0] > 0)
        ((struct net_part *)table)[entry->first[0]] = (struct net_part){
            .offset = entry->in_offset,
            .words = entry->given_up ? NET_NO_WORDS : entry->values + net->feature->offset};
}

/* --- on the host ----------------------------------------------------------------------------- */

/* Pictures and their words. */
struct host_job {
    const struct net *net;
    const uint8_t **pictures;
    float **rows; /* of the host's engine: integers */
    uint32_t count;
    atomic_uint next; /* below `count` at the end: no thread had memory */
};

/* One thread's share: the pictures that it takes. */
static void compute_pictures(void *context, uint64_t thread)
{
    (void)thread;
    struct host_job *job = context;
    const struct host_engine *engine = job->net->engine;
    uint8_t *scratch = host_scratch(engine);
    for (uint32_t i; scratch && (i = job->next++) < job->count;) {
        host_engine_run(engine, scratch, job->pictures[i]);
        host_engine_words((uint32_t *)(void *)job->rows[i], engine, scratch, job->net->output);
    }
    free(scratch);
}

/* The host's engine uses as many threads as the device has compute units. */
static enum status compute_all(struct host_job *job, struct error *err)
{
    const struct feature_net *net = &job->net->feature->net;
    const uint32_t units = ocl_context_device(job->net->context)->compute_units;
    const uint32_t threads = min_u32(units, job->count);
    uint32_t values = net->values;
    if (!job->net->engine)
        return runtime_rows(net->runtime, &net->job, &values, job->pictures, job->rows, job->count,
                            err);
    workers_once(threads, compute_pictures, job, threads);
    return job->next >= job->count
               ? STATUS_OK
               : error_memory(err, host_scratch_bytes(job->net->engine), "the values of a network");
}

/* Maps the slot's buffers while the host computes. */
static enum status enqueue_host(const struct net *net, struct ocl_queue *queue, struct step_io *io,
                                struct error *err)
{
    cl_mem buffers[] = {io->in, io->table, io->values};
    const cl_map_flags flags[] = {CL_MAP_READ, CL_MAP_READ, CL_MAP_READ | CL_MAP_WRITE};
    void *mapped[3] = {NULL};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < 3 && status == STATUS_OK; i++) {
        size_t bytes = 0;
        clGetMemObjectInfo(buffers[i], CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
        status = ocl_enqueue_map(&mapped[i], queue, "map for the network", buffers[i], true,
                                 flags[i], 0, bytes, io->waits, NULL, err);
    }
    const struct net_part *parts = mapped[1];
    struct held held = {0};
    struct host_job job = {.net = net,
                           .pictures = held_array(&held, io->counts[0], sizeof *job.pictures),
                           .rows = held_array(&held, io->counts[0], sizeof *job.rows)};
    if (status == STATUS_OK)
        status = held_check(&held, "the rows of a network", err);
    for (uint32_t i = 0; i < io->counts[0] && status == STATUS_OK; i++)
        if (parts[i].words != NET_NO_WORDS) {
            job.pictures[job.count] = (const uint8_t *)mapped[0] + parts[i].offset;
            job.rows[job.count++] = (float *)mapped[2] + parts[i].words;
        }
    if (status == STATUS_OK)
        status = compute_all(&job, err);
    held_free(&held);
    for (unsigned i = 0; i < 3; i++)
        if (mapped[i] && ocl_enqueue_unmap(queue, "unmap", buffers[i], mapped[i], OCL_NO_WAITS,
                                           i == 2 ? &io->events[0] : NULL,
                                           status == STATUS_OK ? err : NULL) != STATUS_OK)
            status = STATUS_FAILED;
    io->last = &io->events[0];
    return status;
}

/* --- with kernels ---------------------------------------------------------------------------- */

/* Pictures [first, first + pictures) of a slot, in a workspace for `batch`. */
struct launch {
    const struct net *net;
    struct ocl_queue *queue;
    cl_mem work;
    cl_uint first, pictures, batch;
};

/* Launches a kernel; group: work-items, 0: the usual number. */
static enum status launch(const struct launch *l, unsigned kernel, size_t items, size_t group,
                          struct ocl_waits waits, cl_event *event, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(l->net->context);
    const size_t local = group ? group : slot_kernel_group(device);
    const size_t global = ocl_range_size(device, items, local);
    return ocl_enqueue_kernel(l->queue, l->net->plan.names[kernel], l->net->kernel[kernel], 1,
                              &global, &local, waits, event, err);
}

static enum status launch_layer(const struct launch *l, uint32_t tensor, struct error *err)
{
    const struct net_made *made = &l->net->plan.made[tensor];
    const bool tiled = made->kind != NET_TILE_NONE;
    const cl_mem constants = l->net->constants[tiled];
    struct net_tile tile;
    const size_t items = net_plan_launch(&tile, &l->net->plan, tensor, l->pictures, l->batch);
    if (items == 0)
        return STATUS_OK;
    if (ocl_args(l->net->kernel[made->kernel], err, OCL_ARG(tile), OCL_ARG(constants),
                 OCL_ARG(l->work), OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return launch(l, made->kernel, items, tiled ? NET_TILE_ITEMS : 0, OCL_NO_WAITS, NULL, err);
}

static enum status enqueue_batch(const struct launch *l, struct step_io *io, cl_event *event,
                                 struct error *err)
{
    const struct net *net = l->net;
    const uint32_t output = net->output->tensor;
    struct net_tile in, out;
    const size_t taken = net_plan_launch(&in, &net->plan, 0, l->pictures, l->batch);
    net_plan_launch(&out, &net->plan, output, l->pictures, l->batch);
    out.rows = l->pictures;
    if (ocl_args(net->kernel[NET_TAKE], err, OCL_ARG(io->in), OCL_ARG(io->table), OCL_ARG(in),
                 OCL_ARG(l->first), OCL_ARG(l->work), OCL_ARGS_END) != STATUS_OK ||
        launch(l, NET_TAKE, taken, 0, io->waits, NULL, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t tensor = 1; tensor <= output; tensor++)
        if (launch_layer(l, tensor, err) != STATUS_OK)
            return STATUS_FAILED;
    if (ocl_args(net->kernel[NET_GIVE], err, OCL_ARG(out), OCL_ARG(l->first), OCL_ARG(l->work),
                 OCL_ARG(io->table), OCL_ARG(io->values), OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return launch(l, NET_GIVE, l->pictures * net_tensor_values(&net->model->tensors[output]), 0,
                  OCL_NO_WAITS, event, err);
}

/* Uses batches of nearly equal size, since small ones are slow. */
static enum status enqueue_net(void *state, struct ocl_queue *queue, struct step_io *io,
                               struct error *err)
{
    const struct net *net = state;
    const uint32_t count = io->counts[0];
    size_t bytes = 0;
    if (count == 0)
        return STATUS_OK;
    if (net->engine || !net->model)
        return enqueue_host(net, queue, io, err);
    clGetMemObjectInfo(io->scratch, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    struct launch l = {.net = net, .queue = queue, .work = io->scratch};
    l.batch = (cl_uint)(bytes / net->plan.bytes);
    const uint32_t batches = (count + l.batch - 1) / l.batch;
    for (uint32_t i = 0; i < batches; i++, l.first += l.pictures) {
        l.pictures = (count - l.first + batches - i - 1) / (batches - i);
        if (enqueue_batch(&l, io, i + 1 == batches ? &io->events[0] : NULL, err) != STATUS_OK)
            return STATUS_FAILED;
        io->waits = OCL_NO_WAITS;
    }
    io->last = &io->events[0];
    return STATUS_OK;
}

/* --- the proof ------------------------------------------------------------------------------- */

/* Tests a random picture, a cancelled one, and one of black and white stripes
 * whose words must overwrite existing ones. */
static enum status test_feature(struct proof *proof, const struct feature *feature,
                                struct error *err)
{
    enum { PICTURES = 3 };
    struct feature own = *feature;
    const struct net_model *model = own.net.model;
    const size_t picture = net_tensor_values(&model->tensors[0]);
    const size_t word_bytes = PICTURES * own.words * sizeof(uint32_t);
    const struct net_output *output = net_model_output(model, own.net.output);
    struct host_engine *engine = NULL;
    uint8_t *scratch = NULL;
    uint32_t random = RANDOM_START;
    proof->node.config = &own;
    own.offset = 0;
    enum status status =
        proof_open(proof, max_u64(PICTURES * (picture + 127), word_bytes), 128, err);
    if (status == STATUS_OK)
        status = host_engine_open(&engine, model, HOST_REFERENCE, err);
    if (status == STATUS_OK && !(scratch = host_scratch(engine)))
        status = error_memory(err, host_scratch_bytes(engine), "the self-test");
    if (status == STATUS_OK)
        proof_poison_words(proof);
    for (uint32_t i = 0; i < PICTURES && status == STATUS_OK; i++) {
        struct proof_part *part = proof_add_rgb(proof, model->header->width, model->header->height);
        for (size_t b = 0; b < picture; b++)
            proof->in[part->in_offset + b] =
                i < 2 ? (uint8_t)(random_next(&random) >> 24) : (uint8_t)(0 - (b / 5 & 1));
        part->values = i * own.words;
        part->given_up = i == 1;
        if (part->given_up)
            continue;
        host_engine_run(engine, scratch, proof->in + part->in_offset);
        host_engine_words((uint32_t *)(void *)proof->wanted + part->values, engine, scratch,
                          output);
    }
    if (status == STATUS_OK)
        status = proof_words(proof, own.words, err);
    free(scratch);
    host_engine_close(&engine);
    return status;
}

/* Without a feature: all outputs of a synthetic network. */
static enum status test_net(struct proof *proof, struct error *err)
{
    struct net_model *model;
    if (proof->node.config)
        return test_feature(proof, proof->node.config, err);
    enum status status = net_synthetic(&model, err);
    for (uint32_t i = 0; status == STATUS_OK && i < model->header->outputs; i++) {
        struct feature feature = {.name = "test", .net.model = model};
        strcpy(feature.net.output, model->outputs[i].name);
        feature.words = (uint32_t)net_tensor_values(&model->tensors[model->outputs[i].tensor]);
        status = test_feature(proof, &feature, err);
    }
    net_model_close(&model);
    return status;
}

/* The cache key of the proof covers kernels, host code and instruction set, and the layers up to
 * the output. */
static enum status prove_net(void *state, struct error *err)
{
    const struct net *net = state;
    const struct step_node node = {.step = &net_step, .config = net->feature};
    char options[512];
    if (!net->model)
        return STATUS_OK; /* ONNX Runtime has no reference */
    snprintf(options, sizeof options, "%s %s %s %s %s",
             ocl_range_option(ocl_context_device(net->context)), NET_SOURCES,
             net->engine ? host_engine_kernels(net->engine) : "kernels", net->model->digest,
             net->output->name);
    return proof_check(node, programs, options, net->context, err);
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->config = feature;
    return feature && feature->kind->network;
}

const struct step net_step = {
    .name = "net",
    .needed = is_needed,
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct net_part),
    .fault = "the network computes",
    STEP_PARTS,
    .open = open_net,
    .close = close_net,
    .work_bytes = work_bytes,
    .build = build_net,
    .prove = prove_net,
    .count = count_pictures,
    .fill = fill_entry,
    .enqueue = enqueue_net,
    .self_test_name = "networks",
    .self_test = test_net,
};
