/* net_step.c: CPU devices compute a network by the host's engine, others by kernels, a batch of pictures
 * at a time. */
#include "steps/net_step.h"

#include "base/random.h"
#include "net/host_engine.h"
#include "net/net_synthetic.h"
#include "net/reference.h"
#include "net_part.h"
#include "ocl/ocl_ndrange.h"
#include "steps/proof.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MOST  256u
#define GROUP_MOST  64u
#define ALIGNMENT   64u
#define THREADS_MAX 256u

enum { TAKE, CONVOLUTION, POOL, SUM, EACH, GIVE, KERNELS };

static const char *const kernel_names[KERNELS] = {"net_take", "net_convolution", "net_pool",
                                                  "net_sum",  "net_each",        "net_give"};
static const char *const programs[] = {"net_layer", NULL};

/* Where the tensors of a picture lie in a workspace: those that are not needed at the same time may
 * share a place. */
struct places {
    size_t *place; /* of each tensor */
    size_t bytes;  /* of all */
};

struct net {
    struct ocl_context *context;
    const struct feature *feature;
    const struct net_model *model;
    const struct net_output *output;
    struct host_engine *engine; /* of CPU devices; NULL: kernels */
    uint32_t batch;
    struct places places;
    char options[128];
    cl_program program;
    cl_kernel kernel[KERNELS];
    cl_mem constants, shapes, work;
};

/* --- the workspace --------------------------------------------------------------------------- */

static size_t bytes_of(const struct net_model *model, uint32_t tensor)
{
    return (net_tensor_bytes(&model->tensors[tensor]) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The last layer that reads each tensor; outputs are read behind all. */
static void find_last_use(uint32_t *last, const struct net_model *model)
{
    for (uint32_t i = 0; i <= model->layer_count; i++)
        last[i] = i;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct net_fields *f = &model->layers[i].f;
        last[f->a] = i + 1;
        if (f->kind == NET_ADD || f->kind == NET_MULTIPLY)
            last[f->b] = i + 1;
    }
    for (uint32_t i = 0; i < model->output_count; i++)
        last[model->outputs[i].tensor] = UINT32_MAX;
}

/* The lowest place that no tensor has while this one is needed. */
static enum status places_open(struct places *places, const struct net_model *model,
                               struct error *err)
{
    const size_t count = (size_t)model->layer_count + 1;
    uint32_t *last = malloc(count * sizeof *last);
    places->place = calloc(count, sizeof *places->place);
    places->bytes = 0;
    if (!last || !places->place) {
        free(last);
        return error_memory(err, count * sizeof *places->place, "a network");
    }
    find_last_use(last, model);
    for (uint32_t t = 0; t < count; t++) {
        size_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t i = 0; i < t; i++) {
                const size_t end = places->place[i] + bytes_of(model, i);
                if (last[i] >= t && places->place[i] < at + bytes_of(model, t) && at < end) {
                    at = end;
                    moved = true;
                }
            }
        }
        places->place[t] = at;
        if (at + bytes_of(model, t) > places->bytes)
            places->bytes = at + bytes_of(model, t);
    }
    free(last);
    return STATUS_OK;
}

/* --- opening --------------------------------------------------------------------------------- */

static void close_net(void **state)
{
    struct net *net = *state;
    for (unsigned i = 0; net && i < KERNELS; i++)
        if (net->kernel[i])
            clReleaseKernel(net->kernel[i]);
    if (net && net->program)
        clReleaseProgram(net->program);
    if (net) {
        ocl_buffer_release(&net->constants);
        ocl_buffer_release(&net->shapes);
        ocl_buffer_release(&net->work);
        host_engine_close(&net->engine);
        free(net->places.place);
    }
    free(net);
    *state = NULL;
}

static enum status open_net(void **state, struct step_needs *needs, struct ocl_context *context,
                            const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    const struct feature *feature = node->config;
    const struct net_model *model = feature->net.model;
    const struct ocl_device *device = ocl_context_device(context);
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
    const bool host = device->type == CL_DEVICE_TYPE_CPU;
    if (places_open(&net->places, model, err) != STATUS_OK ||
        (host && host_engine_open(&net->engine, model, NULL, err) != STATUS_OK)) {
        close_net(state);
        return err->status;
    }
    uint64_t batch = 2 * launch_bytes / net->places.bytes;
    batch = batch < BATCH_MOST ? batch : BATCH_MOST;
    batch = batch < UINT32_MAX / net->places.bytes ? batch : UINT32_MAX / net->places.bytes;
    net->batch = batch > 0 ? (uint32_t)batch : 1;
    snprintf(net->options, sizeof net->options, "%s", ocl_range_option(device));
    *needs = (struct step_needs){.lists = 1, .counts = 1, .events = 1};
    return STATUS_OK;
}

static struct net_shape shape_of(const struct net *net, uint32_t tensor)
{
    const struct net_model *model = net->model;
    const struct net_tensor *made = &model->tensors[tensor];
    struct net_shape s = {.place = (uint32_t)(net->places.place[tensor] * net->batch),
                          .bytes = (uint32_t)bytes_of(model, tensor),
                          .height = made->height,
                          .width = made->width,
                          .channels = made->channels};
    if (tensor == 0)
        return s;
    const struct net_layer *layer = &model->layers[tensor - 1];
    const struct net_fields *f = &layer->f;
    const struct net_tensor *a = &model->tensors[f->a];
    const void *weights = f->kind == NET_TABLE ? (const void *)layer->tables : layer->weights;
    s.kind = f->kind;
    s.place_a = (uint32_t)(net->places.place[f->a] * net->batch);
    s.bytes_a = (uint32_t)bytes_of(model, f->a);
    s.height_a = a->height;
    s.width_a = a->width;
    s.channels_a = a->channels;
    s.zero_a = a->zero;
    s.place_b = (uint32_t)(net->places.place[f->b] * net->batch);
    s.bytes_b = (uint32_t)bytes_of(model, f->b);
    s.zero_b = model->tensors[f->b].zero;
    s.kernel_y = f->kernel_y;
    s.kernel_x = f->kernel_x;
    s.stride_y = f->stride_y;
    s.stride_x = f->stride_x;
    s.dilation_y = f->dilation_y;
    s.dilation_x = f->dilation_x;
    s.top = f->top;
    s.left = f->left;
    s.groups = f->groups;
    s.zero = f->zero;
    s.low = f->low;
    s.high = f->high;
    s.mul_a = f->mul_a;
    s.mul_b = f->mul_b;
    s.shift = f->shift;
    s.counts_padding = f->counts_padding;
    if (weights)
        s.weights = (uint32_t)((const uint8_t *)weights - model->bytes);
    if (f->kind == NET_CONVOLUTION) {
        s.bias = (uint32_t)((const uint8_t *)layer->bias - model->bytes);
        s.mul = (uint32_t)((const uint8_t *)layer->mul - model->bytes);
        s.shifts = (uint32_t)((const uint8_t *)layer->shift - model->bytes);
    }
    return s;
}

/* The layers as kernels read them, that of tensor t at t. */
static enum status make_shapes(struct net *net, struct error *err)
{
    const uint32_t count = net->model->layer_count + 1;
    struct net_shape *shapes = calloc(count, sizeof *shapes);
    if (!shapes)
        return error_memory(err, count * sizeof *shapes, "a network");
    for (uint32_t t = 0; t < count; t++)
        shapes[t] = shape_of(net, t);
    const enum status status =
        ocl_buffer(&net->shapes, net->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                   count * sizeof *shapes, shapes, "a network", err);
    free(shapes);
    return status;
}

static enum status build_net(void *state, struct error *err)
{
    struct net *net = state;
    if (net->engine)
        return STATUS_OK;
    if (ocl_program_build(&net->program, net->context, programs[0], NULL, net->options, err) !=
            STATUS_OK ||
        make_shapes(net, err) != STATUS_OK ||
        ocl_buffer(&net->constants, net->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                   net->model->size, net->model->bytes, "a network", err) != STATUS_OK ||
        ocl_buffer(&net->work, net->context, CL_MEM_READ_WRITE, net->batch * net->places.bytes, NULL,
                   "the values of a network", err) != STATUS_OK)
        return STATUS_FAILED;
    for (unsigned i = 0; i < KERNELS; i++)
        if (ocl_kernel(&net->kernel[i], net->program, kernel_names[i], err) != STATUS_OK)
            return STATUS_FAILED;
    return STATUS_OK;
}

/* --- parts ----------------------------------------------------------------------------------- */

/* Only whole pictures that the scale step has made. */
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

/* Pictures that threads take one after another. */
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

/* On as many threads as the device has compute units, this one among them. */
static enum status compute_all(struct host_job *job, struct error *err)
{
    pthread_t threads[THREADS_MAX];
    const uint32_t units = ocl_context_device(job->net->context)->compute_units;
    unsigned started = 0;
    while (started + 1 < units && started + 1 < job->count && started < THREADS_MAX &&
           pthread_create(&threads[started], NULL, compute_pictures, job) == 0)
        started++;
    compute_pictures(job);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return job->next >= job->count || !job->no_memory
               ? STATUS_OK
               : error_memory(err, host_scratch_bytes(job->net->engine), "the values of a network");
}

static enum status enqueue_host(const struct net *net, struct ocl_queue *queue, struct step_io *io,
                                struct error *err)
{
    struct host_job job = {.net = net, .count = io->counts[0]};
    cl_mem buffers[] = {io->in, io->table, io->values};
    const cl_map_flags flags[] = {CL_MAP_READ, CL_MAP_READ, CL_MAP_READ | CL_MAP_WRITE};
    void *mapped[3] = {NULL};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < 3 && status == STATUS_OK; i++) {
        size_t bytes = 0;
        clGetMemObjectInfo(buffers[i], CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
        status = ocl_enqueue_map(&mapped[i], queue, "map for the network", buffers[i], true, flags[i],
                                 0, bytes, io->waits, NULL, err);
    }
    job.pixels = mapped[0];
    job.parts = mapped[1];
    job.words = mapped[2];
    if (status == STATUS_OK)
        status = compute_all(&job, err);
    for (unsigned i = 0; i < 3; i++)
        if (mapped[i] &&
            ocl_enqueue_unmap(queue, "unmap", buffers[i], mapped[i], OCL_NO_WAITS,
                              i == 2 ? &io->events[0] : NULL, status == STATUS_OK ? err : NULL) !=
                STATUS_OK)
            status = STATUS_FAILED;
    io->last = &io->events[0];
    return status;
}

/* --- by kernels ------------------------------------------------------------------------------ */

/* Tensor t of `pictures` pictures. */
static enum status launch(const struct net *net, struct ocl_queue *queue, unsigned kernel,
                          uint32_t t, uint32_t pictures, struct ocl_waits waits, cl_event *event,
                          struct error *err)
{
    const struct ocl_device *device = ocl_context_device(net->context);
    size_t local = GROUP_MOST;
    while (local > device->max_work_group || local > device->max_work_item[0])
        local /= 2;
    const size_t global = ocl_range_size(
        device, pictures * net_tensor_values(&net->model->tensors[t]), local);
    return ocl_enqueue_kernel(queue, kernel_names[kernel], net->kernel[kernel], 1, &global, &local,
                              waits, event, err);
}

static enum status launch_layer(const struct net *net, struct ocl_queue *queue, cl_uint t,
                                cl_uint pictures, struct error *err)
{
    const uint32_t kind = net->model->layers[t - 1].f.kind;
    const unsigned kernel = kind == NET_CONVOLUTION                 ? CONVOLUTION
                            : kind == NET_MAX || kind == NET_MEAN ? POOL
                            : kind == NET_SUM                     ? SUM
                                                                  : EACH;
    if (ocl_args(net->kernel[kernel], err, sizeof net->shapes, &net->shapes, sizeof t, &t,
                 sizeof pictures, &pictures, sizeof net->work, &net->work, sizeof net->constants,
                 &net->constants, OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return launch(net, queue, kernel, t, pictures, OCL_NO_WAITS, NULL, err);
}

/* Pictures [first, first + pictures) of the slot. */
static enum status enqueue_batch(const struct net *net, struct ocl_queue *queue, struct step_io *io,
                                 cl_uint first, cl_uint pictures, cl_event *event,
                                 struct error *err)
{
    const cl_uint input = 0, output = net->output->tensor;
    const cl_uint wide = net->model->tensors[output].is_sum;
    if (ocl_args(net->kernel[TAKE], err, sizeof io->in, &io->in, sizeof io->table, &io->table,
                 sizeof net->shapes, &net->shapes, sizeof input, &input, sizeof first, &first,
                 sizeof pictures, &pictures, sizeof net->work, &net->work, OCL_ARGS_END) !=
            STATUS_OK ||
        launch(net, queue, TAKE, input, pictures, io->waits, NULL, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t t = 1; t <= output; t++)
        if (launch_layer(net, queue, t, pictures, err) != STATUS_OK)
            return STATUS_FAILED;
    if (ocl_args(net->kernel[GIVE], err, sizeof net->shapes, &net->shapes, sizeof output, &output,
                 sizeof first, &first, sizeof pictures, &pictures, sizeof net->work, &net->work,
                 sizeof io->table, &io->table, sizeof wide, &wide, sizeof io->values, &io->values,
                 OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return launch(net, queue, GIVE, output, pictures, OCL_NO_WAITS, event, err);
}

static enum status enqueue_net(void *state, struct ocl_queue *queue, struct step_io *io,
                               struct error *err)
{
    const struct net *net = state;
    const uint32_t count = io->counts[0];
    if (count == 0)
        return STATUS_OK;
    if (net->engine)
        return enqueue_host(net, queue, io, err);
    for (uint32_t first = 0; first < count; first += net->batch) {
        const uint32_t left = count - first;
        const uint32_t pictures = left < net->batch ? left : net->batch;
        if (enqueue_batch(net, queue, io, first, pictures,
                          pictures == left ? &io->events[0] : NULL, err) != STATUS_OK)
            return STATUS_FAILED;
        io->waits = OCL_NO_WAITS;
    }
    io->last = &io->events[0];
    return STATUS_OK;
}

/* --- the proof ------------------------------------------------------------------------------- */

#define TEST_PICTURES 3u

/* The words of a picture by the reference. */
static void compute_wanted(uint32_t *words, const struct net *net, const uint8_t *pixels,
                           uint8_t *work, void **tensors)
{
    const struct net_model *model = net->model;
    for (uint32_t t = 0; t <= model->layer_count; t++)
        tensors[t] = work + net->places.place[t];
    memcpy(tensors[0], pixels, net_tensor_bytes(&model->tensors[0]));
    for (uint32_t i = 0; i < net->output->tensor; i++)
        net_reference_layer(model, i, tensors);
    put_words(words, net, tensors[net->output->tensor]);
}

/* A random picture, one that was given up, and one of black and white stripes, whose words must come over
 * those that lie there. */
static enum status test_model(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                              const void *subject, struct error *err)
{
    struct feature own = *(const struct feature *)subject;
    const struct net_model *model = own.net.model;
    const struct step_node node = {.step = &net_step, .config = &own};
    const size_t picture = net_tensor_bytes(&model->tensors[0]);
    const size_t apart = (picture + 127) / 128 * 128;
    const size_t pixel_bytes = TEST_PICTURES * apart, word_bytes = TEST_PICTURES * own.words * 4;
    const size_t most = pixel_bytes > word_bytes ? pixel_bytes : word_bytes;
    struct proof_part parts[TEST_PICTURES] = {{.in_offset = 0}};
    struct net net = {.model = model,
                      .output = &model->outputs[net_model_output(model, own.net.output)]};
    uint8_t *pixels = malloc(2 * most + word_bytes), *work = NULL;
    void **tensors = malloc(((size_t)model->layer_count + 1) * sizeof *tensors);
    enum status status = STATUS_FAILED;
    own.offset = 0;
    *compared = *wrong = 0;
    if (places_open(&net.places, model, err) == STATUS_OK)
        work = aligned_alloc(ALIGNMENT, net.places.bytes);
    if (!pixels || !tensors || !work) {
        error_memory(err, 2 * most, "the self-test");
        goto out;
    }
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
        if (i != 1)
            compute_wanted(wanted + parts[i].values, &net, pixels + i * apart, work, tensors);
    }
    status = proof_run((uint8_t *)got, parts, TEST_PICTURES, &node, context, pixels, most, err);
    for (size_t i = 0; i < word_bytes / 4 && status == STATUS_OK; i++)
        *wrong += 4 * (got[i] != wanted[i]);
    *compared = word_bytes;
out:
    free(net.places.place);
    free(work);
    free(tensors);
    free(pixels);
    return status;
}

/* Both outputs of a synthetic network. */
static enum status test_synthetic(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                                  struct error *err)
{
    struct net_model *model;
    enum status status = net_synthetic(&model, RANDOM_START, err);
    *compared = *wrong = 0;
    for (uint32_t i = 0; status == STATUS_OK && i < model->output_count; i++) {
        struct feature feature = {.name = "test", .net.model = model};
        uint64_t here, bad;
        strcpy(feature.net.output, model->outputs[i].name);
        feature.words = (uint32_t)net_tensor_values(&model->tensors[model->outputs[i].tensor]);
        status = test_model(&here, &bad, context, &feature, err);
        if (status == STATUS_OK) {
            *compared += here;
            *wrong += bad;
        }
    }
    net_model_close(&model);
    return status;
}

static enum status prove_net(void *state, struct error *err)
{
    const struct net *net = state;
    char options[sizeof net->options + 72];
    snprintf(options, sizeof options, "%s %s", net->options, net->model->digest);
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
    .build = build_net,
    .prove = prove_net,
    .count = count_pictures,
    .fill = fill_entry,
    .enqueue = enqueue_net,
    .self_test_name = "networks",
    .self_test = test_synthetic,
};
