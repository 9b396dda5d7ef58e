/* net_step.c: runs a network with the host's engine on CPU devices, and with kernels on others, in
 * batches of pictures. */
#include "device/net_step.h"

#include "base/minmax.h"
#include "base/random.h"
#include "base/threads.h"
#include "device/on_host.h"
#include "device/proof.h"
#include "net/device_plan.h"
#include "net/host_engine.h"
#include "net/net_synthetic.h"
#include "net_sources_generated.h"
#include "ocl/ocl_ndrange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MOST  1024u
#define BUILDERS    8u /* number of threads that build programs */
#define GROUP_MOST  64u
#define THREADS_MAX 256u

enum { TAKE, CONVOLUTION, POOL, SUM, EACH, GIVE, KERNELS };

static const char *const kernel_names[KERNELS] = {"net_take", "net_convolution", "net_pool",
                                                  "net_sum",  "net_each",        "net_give"};
static const char *const programs[] = {"net_layer", "net_tensor", NULL};

/* A program of net_tensor. */
struct variant {
    char options[NET_OPTIONS + 64];
    cl_program program;
    cl_kernel kernel;
};

struct net {
    struct ocl_context *context;
    const struct feature *feature;
    const struct net_model *model;
    const struct net_output *output;
    struct host_engine *engine; /* for CPU devices; NULL: kernels */
    struct net_plan plan;
    char options[128];
    cl_program program;
    cl_kernel kernel[KERNELS];
    struct variant *variants; /* plan.variant_count */
    cl_mem constants, shapes, packed;
};

/* --- opening --------------------------------------------------------------------------------- */

static void release(cl_kernel *kernel, cl_program *program)
{
    if (*kernel)
        clReleaseKernel(*kernel);
    if (program && *program)
        clReleaseProgram(*program);
}

static void close_net(void **state)
{
    struct net *net = *state;
    for (unsigned i = 0; net && i < KERNELS; i++)
        release(&net->kernel[i], i == 0 ? &net->program : NULL);
    for (unsigned i = 0; net && net->variants && i < net->plan.variant_count; i++)
        release(&net->variants[i].kernel, &net->variants[i].program);
    if (net) {
        ocl_buffer_release(&net->constants);
        ocl_buffer_release(&net->shapes);
        ocl_buffer_release(&net->packed);
        host_engine_close(&net->engine);
        net_plan_close(&net->plan);
        free(net->variants);
    }
    free(net);
    *state = NULL;
}

/* Does it have mma.m16n8k32 for bytes (compute capability 8.0 or later)? */
static bool has_tensor_cores(const struct ocl_device *device)
{
    return device->nvidia && device->nvidia_major >= 8;
}

static bool is_host(const struct ocl_device *device)
{
    return device->type == CL_DEVICE_TYPE_CPU;
}

/* Writes the build options of the net_tensor variants, which also name them. */
static enum status name_variants(struct net *net, bool emulated, struct error *err)
{
    const unsigned count = net->plan.variant_count;
    net->variants = calloc(count + 1, sizeof *net->variants);
    if (!net->variants)
        return error_memory(err, count * sizeof *net->variants, "a network");
    for (unsigned i = 0; i < count; i++)
        snprintf(net->variants[i].options, sizeof net->variants[i].options, "-cl-std=CL1.2 %s%s",
                 emulated ? "-DEMULATE " : "", net->plan.variants[i]);
    return STATUS_OK;
}

static enum status open_net(void **state, struct step_needs *needs, struct ocl_context *context,
                            const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    const struct feature *feature = node->config;
    const struct net_model *model = feature->net.model;
    const struct ocl_device *device = ocl_context_device(context);
    const bool emulated = node->parameter == NET_STEP_EMULATED;
    (void)launch_bytes;
    if (!model)
        return error_set(err, STATUS_USAGE, "feature %s has no model", feature->name);
    struct net *net = calloc(1, sizeof *net);
    if (!net)
        return error_memory(err, sizeof *net, node->step->name);
    *state = net;
    net->context = context;
    net->feature = feature;
    net->model = model;
    net->output = &model->outputs[net_model_output(model, feature->net.output)];
    const enum status status =
        is_host(device)
            ? host_engine_open(&net->engine, model, NULL, err)
            : net_plan_open(&net->plan, model, emulated || has_tensor_cores(device), err);
    if (status != STATUS_OK || name_variants(net, emulated, err) != STATUS_OK) {
        close_net(state);
        return err->status;
    }
    snprintf(net->options, sizeof net->options, "%s", ocl_range_option(device));
    *needs = (struct step_needs){.lists = 1, .counts = 1, .events = 1};
    return STATUS_OK;
}

/* The workspace for a batch of pictures; 0: the host's engine allocates its own. */
static uint64_t work_bytes(const struct step_node *node, const struct ocl_device *device, uint64_t most)
{
    const struct feature *feature = node->config;
    struct net_plan plan;
    struct error err = ERROR_INIT;
    if (is_host(device) || !feature->net.model ||
        net_plan_open(&plan, feature->net.model, false, &err) != STATUS_OK)
        return 0;
    const uint64_t bytes = plan.bytes;
    uint64_t batch = min_u64(min_u64(most, device->max_allocation), UINT32_MAX) / bytes;
    batch = min_u64(max_u64(batch, 1), BATCH_MOST);
    net_plan_close(&plan);
    return batch * bytes;
}

/* The layers in the form for kernels, indexed by their output tensor. */
static enum status make_shapes(struct net *net, struct error *err)
{
    const uint32_t count = net->model->layer_count + 1;
    struct net_shape *shapes = calloc(count, sizeof *shapes);
    if (!shapes)
        return error_memory(err, count * sizeof *shapes, "a network");
    for (uint32_t t = 0; t < count; t++)
        shapes[t] = net_plan_shape(&net->plan, t);
    const enum status status =
        ocl_buffer(&net->shapes, net->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                   count * sizeof *shapes, shapes, "a network", err);
    free(shapes);
    return status;
}

/* Work list of the build threads: net_layer, then the variants. */
struct building {
    struct net *net;
    atomic_uint next;
    atomic_bool failed;
    struct error err; /* of the first failure */
};

static void *build_variants(void *context)
{
    struct building *building = context;
    struct net *net = building->net;
    for (unsigned i; (i = building->next++) <= net->plan.variant_count;) {
        struct error err = ERROR_INIT;
        struct variant *variant = i > 0 ? &net->variants[i - 1] : NULL;
        if (ocl_program_build(variant ? &variant->program : &net->program, net->context,
                              programs[i > 0], NULL, variant ? variant->options : net->options,
                              &err) != STATUS_OK &&
            !atomic_exchange(&building->failed, true))
            building->err = err;
    }
    return NULL;
}

static enum status build_programs(struct net *net, struct error *err)
{
    struct building building = {.net = net};
    threads_run(build_variants, &building, net->plan.packed ? BUILDERS : 1);
    if (building.failed) {
        *err = building.err;
        return STATUS_FAILED;
    }
    if (!net->plan.packed)
        return STATUS_OK;
    for (uint32_t i = 0; i < net->model->layer_count; i++) {
        const struct net_plan_layer *layer = &net->plan.layers[i];
        struct variant *variant = &net->variants[layer->variant];
        if (layer->kind != NET_TILE_NONE && !variant->kernel &&
            ocl_kernel(&variant->kernel, variant->program, net_plan_kernel(layer->kind), err) !=
                STATUS_OK)
            return STATUS_FAILED;
    }
    return ocl_buffer(&net->packed, net->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                      net->plan.packed_bytes + 16, net->plan.packed, "a network", err);
}

static enum status build_net(void *state, struct error *err)
{
    struct net *net = state;
    if (net->engine)
        return STATUS_OK;
    if (build_programs(net, err) != STATUS_OK || make_shapes(net, err) != STATUS_OK ||
        ocl_buffer(&net->constants, net->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                   net->model->size, net->model->bytes, "a network", err) != STATUS_OK)
        return STATUS_FAILED;
    for (unsigned i = 0; i < KERNELS; i++)
        if (ocl_kernel(&net->kernel[i], net->program, kernel_names[i], err) != STATUS_OK)
            return STATUS_FAILED;
    return STATUS_OK;
}

/* --- parts ----------------------------------------------------------------------------------- */

/* Counts only whole pictures from the scale step. */
static void count_pictures(uint32_t *count, const void *state, const struct part_shape *in)
{
    const struct net_model *model = ((const struct net *)state)->model;
    count[0] = part_is_whole(in) && in->width == model->width && in->height == model->height;
}

static void fill_entry(void *table, const void *state, uint32_t list_entries,
                       const struct step_entry *entry)
{
    const struct net *net = state;
    (void)list_entries;
    if (entry->count[0] > 0)
        ((struct net_part *)table)[entry->first[0]] = (struct net_part){
            .offset = entry->in_offset,
            .words = entry->given_up ? NET_NO_WORDS : entry->values + net->feature->offset};
}

/* --- on the host ----------------------------------------------------------------------------- */

/* Work list of pictures for the threads. */
struct host_job {
    const struct net *net;
    const uint8_t *pixels;
    const struct net_part *parts;
    uint32_t *words;
    uint32_t count;
    atomic_uint next;
    atomic_bool no_memory;
};

static void put_words(uint32_t *words, const struct net *net, const void *values)
{
    const struct net_tensor *output = &net->model->tensors[net->output->tensor];
    for (size_t i = 0; i < net_tensor_values(output); i++)
        words[i] = output->is_sum ? ((const uint32_t *)values)[i] : ((const uint8_t *)values)[i];
}

static void *compute_pictures(void *context)
{
    struct host_job *job = context;
    const struct net *net = job->net;
    struct host_scratch *scratch = NULL;
    void *outputs[NET_OUTPUTS_MAX] = {NULL};
    void *values = malloc(net_tensor_bytes(&net->model->tensors[net->output->tensor]));
    outputs[net->output - net->model->outputs] = values;
    if (!values || host_scratch_open(&scratch, net->engine, NULL) != STATUS_OK)
        job->no_memory = true;
    for (uint32_t i; values && scratch && (i = job->next++) < job->count;) {
        const struct net_part *part = &job->parts[i];
        if (part->words == NET_NO_WORDS)
            continue;
        host_engine_run(net->engine, scratch, job->pixels + part->offset, outputs);
        put_words(job->words + part->words, net, values);
    }
    host_scratch_close(&scratch);
    free(values);
    return NULL;
}

/* Uses as many threads as the device has compute units, including this one. */
static enum status compute_all(const void *context, void *const mapped[3], uint32_t entries,
                               struct error *err)
{
    const struct net *net = context;
    struct host_job job = {.net = net,
                           .count = entries,
                           .pixels = mapped[0],
                           .parts = mapped[1],
                           .words = mapped[2]};
    pthread_t threads[THREADS_MAX];
    const uint32_t units = ocl_context_device(net->context)->compute_units;
    unsigned started = 0;
    while (started + 1 < units && started + 1 < job.count && started < THREADS_MAX &&
           pthread_create(&threads[started], NULL, compute_pictures, &job) == 0)
        started++;
    compute_pictures(&job);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return job.next >= job.count || !job.no_memory
               ? STATUS_OK
               : error_memory(err, host_scratch_bytes(net->engine), "the values of a network");
}

/* --- with kernels ---------------------------------------------------------------------------- */

/* Pictures [first, first + pictures) of a slot, in a workspace for `batch`. */
struct launch {
    const struct net *net;
    struct ocl_queue *queue;
    cl_mem work;
    cl_uint first, pictures, batch;
};

/* Launches a kernel with `values` work-items per picture. */
static enum status launch_plain(const struct launch *l, unsigned kernel, size_t values,
                                struct ocl_waits waits, cl_event *event, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(l->net->context);
    size_t local = GROUP_MOST;
    while (local > device->max_work_group || local > device->max_work_item[0])
        local /= 2;
    const size_t global = ocl_range_size(device, l->pictures * values, local);
    return ocl_enqueue_kernel(l->queue, kernel_names[kernel], l->net->kernel[kernel], 1, &global,
                              &local, waits, event, err);
}

static enum status launch_tile(const struct launch *l, uint32_t layer, struct error *err)
{
    const struct net *net = l->net;
    const struct net_plan_layer *planned = &net->plan.layers[layer];
    const cl_kernel kernel = net->variants[planned->variant].kernel;
    struct net_tile tile;
    const size_t local = 32 * planned->warps;
    const size_t global =
        net_plan_launch(&tile, &net->plan, layer, l->pictures, l->batch) * local;
    if (ocl_args(kernel, err, sizeof tile, &tile, sizeof net->packed, &net->packed, sizeof l->work,
                 &l->work, OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return ocl_enqueue_kernel(l->queue, net_plan_kernel(planned->kind), kernel, 1, &global, &local,
                              OCL_NO_WAITS, NULL, err);
}

/* Launches the layer that computes tensor t. */
static enum status launch_layer(const struct launch *l, cl_uint t, struct error *err)
{
    const struct net *net = l->net;
    const struct net_plan_layer *planned = &net->plan.layers[t - 1];
    const uint32_t kind = net->model->layers[t - 1].f.kind;
    const unsigned kernel = kind == NET_CONVOLUTION                 ? CONVOLUTION
                            : kind == NET_MAX || kind == NET_MEAN ? POOL
                            : kind == NET_SUM                     ? SUM
                                                                  : EACH;
    if (net->plan.packed && planned->is_made_later)
        return STATUS_OK;
    if (net->plan.packed && planned->kind != NET_TILE_NONE)
        return launch_tile(l, t - 1, err);
    if (ocl_args(net->kernel[kernel], err, sizeof net->shapes, &net->shapes, sizeof t, &t,
                 sizeof l->pictures, &l->pictures, sizeof l->batch, &l->batch, sizeof l->work,
                 &l->work, sizeof net->constants, &net->constants, OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return launch_plain(l, kernel, net_tensor_values(&net->model->tensors[t]), OCL_NO_WAITS, NULL,
                        err);
}

static enum status enqueue_batch(const struct launch *l, struct step_io *io, cl_event *event,
                                 struct error *err)
{
    const struct net *net = l->net;
    const cl_uint input = 0, output = net->output->tensor;
    const cl_uint wide = net->model->tensors[output].is_sum;
    const size_t taken =
        ((size_t)net->model->height * net->model->width + NET_TAKEN - 1) / NET_TAKEN;
    if (ocl_args(net->kernel[TAKE], err, sizeof io->in, &io->in, sizeof io->table, &io->table,
                 sizeof net->shapes, &net->shapes, sizeof input, &input, sizeof l->first, &l->first,
                 sizeof l->pictures, &l->pictures, sizeof l->batch, &l->batch, sizeof l->work,
                 &l->work, OCL_ARGS_END) != STATUS_OK ||
        launch_plain(l, TAKE, taken, io->waits, NULL, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t t = 1; t <= output; t++)
        if (launch_layer(l, t, err) != STATUS_OK)
            return STATUS_FAILED;
    if (ocl_args(net->kernel[GIVE], err, sizeof net->shapes, &net->shapes, sizeof output, &output,
                 sizeof l->first, &l->first, sizeof l->pictures, &l->pictures, sizeof l->batch,
                 &l->batch, sizeof l->work, &l->work, sizeof io->table, &io->table, sizeof wide,
                 &wide, sizeof io->values, &io->values, OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return launch_plain(l, GIVE, net_tensor_values(&net->model->tensors[output]), OCL_NO_WAITS,
                        event, err);
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
    if (net->engine)
        return on_host(compute_all, net, queue, io, err);
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

#define TEST_PICTURES 3u

/* Tests a random picture, a cancelled one, and one of black and white stripes whose words must
 * overwrite existing ones. */
static enum status test_node(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                             const struct feature *subject, uint64_t parameter, struct error *err)
{
    struct feature own = *subject;
    const struct net_model *model = own.net.model;
    const struct step_node node = {.step = &net_step, .config = &own, .parameter = parameter};
    const size_t picture = net_tensor_bytes(&model->tensors[0]);
    const size_t apart = (picture + 127) / 128 * 128;
    const size_t pixel_bytes = TEST_PICTURES * apart, word_bytes = TEST_PICTURES * own.words * 4;
    const size_t most = pixel_bytes > word_bytes ? pixel_bytes : word_bytes;
    struct proof_part parts[TEST_PICTURES] = {{.in_offset = 0}};
    struct net net = {.model = model,
                      .output = &model->outputs[net_model_output(model, own.net.output)]};
    struct host_engine *engine = NULL;
    struct host_scratch *scratch = NULL;
    void *outputs[NET_OUTPUTS_MAX] = {NULL};
    uint8_t *pixels = malloc(2 * most + word_bytes);
    void *values = outputs[net.output - model->outputs] =
        malloc(net_tensor_bytes(&model->tensors[net.output->tensor]));
    enum status status = STATUS_FAILED;
    own.offset = 0;
    *compared = *wrong = 0;
    if (!pixels || !values) {
        error_memory(err, 2 * most, "the self-test");
        goto out;
    }
    if (host_engine_open(&engine, model, HOST_REFERENCE, err) != STATUS_OK ||
        host_scratch_open(&scratch, engine, err) != STATUS_OK)
        goto out;
    uint32_t *got = (uint32_t *)(void *)(pixels + most);
    uint32_t *wanted = (uint32_t *)(void *)(pixels + 2 * most);
    uint32_t random = RANDOM_START;
    for (size_t i = 0; i < most; i++)
        pixels[i] = i < 2 * apart ? (uint8_t)(random_next(&random) >> 24) : (uint8_t)(0 - (i / 5 & 1));
    memset(got, 0xa5, most);
    memset(wanted, 0xa5, word_bytes);
    for (uint32_t i = 0; i < TEST_PICTURES; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = in->rect.x1 = model->width;
        in->height = in->rect.y1 = model->height;
        part_set_rgb(in);
        parts[i].in_offset = (uint32_t)(i * apart);
        parts[i].values = i * own.words;
        parts[i].given_up = i == 1;
        if (i == 1)
            continue;
        host_engine_run(engine, scratch, pixels + i * apart, outputs);
        put_words(wanted + parts[i].values, &net, values);
    }
    status = proof_run((uint8_t *)got, parts, TEST_PICTURES, &node, context, pixels, most, err);
    for (size_t i = 0; i < word_bytes / 4 && status == STATUS_OK; i++)
        *wrong += 4 * (got[i] != wanted[i]);
    *compared = word_bytes;
out:
    host_scratch_close(&scratch);
    host_engine_close(&engine);
    free(values);
    free(pixels);
    return status;
}

static enum status test_model(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                              const void *subject, struct error *err)
{
    return test_node(compared, wrong, context, subject, 0, err);
}

/* Tests all outputs of the synthetic networks; emulated: of the one for tensor cores. */
static enum status test_synthetic(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                                  uint64_t parameter, struct error *err)
{
    enum status status = STATUS_OK;
    *compared = *wrong = 0;
    for (unsigned which = parameter ? 1 : 0; which < NET_SYNTHETICS && status == STATUS_OK; which++) {
        struct net_model *model;
        status = net_synthetic(&model, which, RANDOM_START, err);
        for (uint32_t i = 0; status == STATUS_OK && i < model->output_count; i++) {
            struct feature feature = {.name = "test", .net.model = model};
            uint64_t here, bad;
            strcpy(feature.net.output, model->outputs[i].name);
            feature.words = (uint32_t)net_tensor_values(&model->tensors[model->outputs[i].tensor]);
            status = test_node(&here, &bad, context, &feature, parameter, err);
            if (status == STATUS_OK) {
                *compared += here;
                *wrong += bad;
            }
        }
        net_model_close(&model);
    }
    return status;
}

static enum status test_step(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                             struct error *err)
{
    return test_synthetic(compared, wrong, context, 0, err);
}

enum status net_step_test_emulated(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                                   struct error *err)
{
    return test_synthetic(compared, wrong, context, NET_STEP_EMULATED, err);
}

/* The cache key of the proof covers kernels, host code and instruction set, and the layers up to
 * the output. */
static enum status prove_net(void *state, struct error *err)
{
    const struct net *net = state;
    char options[512];
    snprintf(options, sizeof options, "%s %s %s %s %s", net->options, NET_SOURCES,
             net->engine ? host_engine_kernels(net->engine) : "kernels", net->model->digest,
             net->output->name);
    return proof_check_by(&net_step, programs, options, net->context, test_model, net->feature, err);
}

const struct step net_step = {
    .name = "net",
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct net_part),
    .fault = "the network computes",
    .upload = "upload parts",
    .unmap = "unmap parts",
    .map = "map parts",
    .open = open_net,
    .close = close_net,
    .work_bytes = work_bytes,
    .build = build_net,
    .prove = prove_net,
    .count = count_pictures,
    .fill = fill_entry,
    .enqueue = enqueue_net,
    .self_test_name = "networks",
    .self_test = test_step,
};
