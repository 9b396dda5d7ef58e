/* host_engine.c: a network on the CPU: lays out weights and memory, and computes layer by layer.
 *
 * Each tensor of a scratch has a border of its zero point, as wide as layers read past its edges,
 * so that windows need no checks. A convolution gathers the inputs of some output pixels into a
 * panel, a row each, and multiplies it by one block of channels after another; if the rows are
 * already adjacent in the tensor, that serves as the panel. Depthwise convolutions read the
 * tensor. */
#include "net/host_engine.h"

#include "base/avx2.h"
#include "base/held.h"
#include "base/minmax.h"
#include "net/host_kernels.h"

#include <stdlib.h>
#include <string.h>

#define PANEL_BYTES ((size_t)96 << 10) /* fits the L2 cache together with its block's weights */
#define PANEL_MOST  (64 * HOST_TILE)   /* pixels */
#define ALIGNMENT   64u

/* How a convolution is computed. */
struct plan {
    bool is_depthwise, is_direct; /* neither: through panels */
    size_t values, steps;         /* of k in a row of a panel, or taps; steps to process them */
    size_t row, pixels;           /* bytes of a row of a panel; rows */
    size_t run, runs;             /* bytes adjacent in the input; how many are copied to a row */
    size_t *places;               /* of the runs, or taps, relative to the first tap */
    uint32_t groups, blocks;      /* blocks per group */
    struct host_block *block;     /* groups x blocks */
};

struct host_engine {
    struct held held; /* all arrays */
    const struct net_model *model;
    const struct host_kernels *kernels;
    struct plan *plans; /* one per layer */
    size_t *first,
        *pitch; /* per tensor: offset in a scratch of its first value; bytes between rows */
    size_t panel, panel_bytes; /* offset of the panel in a scratch */
};

/* A layer in a scratch. */
struct run {
    const struct net_layer *layer;
    const struct net_tensor *a, *b; /* its inputs */
    const uint8_t *from_a, *from_b;
    uint8_t *out;
    size_t pitch_a, pitch_b, pitch;
};

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

static size_t pixel_bytes(const struct net_tensor *tensor)
{
    return (size_t)tensor->channels * (tensor->is_sum ? sizeof(int32_t) : 1);
}

/* --- weights ------------------------------------------------------------------------------------- */

/* The block's channel in a lane of a vector. Packing the sums of two vectors of 8 lanes, or of four,
 * interleaves them (host_vectors.h). */
static unsigned channel_of(const struct host_kernels *k, unsigned vectors, unsigned vector,
                           unsigned lane)
{
    return k->lanes == 8 || vectors == 4 ? 4 * vectors * (lane / 4) + 4 * vector + lane % 4
                                         : vector * k->lanes + lane;
}

/* Packs the weights of a block: steps x vectors x lanes x step values. */
static void pack_block(void *out, struct host_parameters *parameters,
                       const struct host_block *block, const struct host_kernels *k,
                       const struct plan *plan, const struct net_layer *layer)
{
    for (unsigned v = 0; v < block->vectors; v++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            const unsigned c = channel_of(k, block->vectors, v, lane);
            if (c >= block->count)
                continue;
            const uint32_t channel = (uint32_t)block->first + c;
            const struct net_scaling scaling = net_layer_scaling(layer, channel);
            const unsigned number = v * k->lanes + lane;
            const int8_t *from = layer->weights + channel * plan->values;
            parameters->bias[number] = layer->bias[channel];
            parameters->mul[number] = scaling.mul;
            parameters->add[number] = scaling.add;
            parameters->shift[number] = scaling.shift;
            parameters->pre[number] = scaling.pre;
            for (size_t i = 0; i < plan->values; i++) {
                const size_t at =
                    ((i / k->step * block->vectors + v) * k->lanes + lane) * k->step + i % k->step;
                if (k->value == 2)
                    ((int16_t *)out)[at] = from[i];
                else
                    ((int8_t *)out)[at] = from[i];
            }
        }
}

/* Makes the blocks; the weights of each are followed by its parameters. */
static enum status make_blocks(struct plan *plan, struct host_engine *engine,
                               const struct net_layer *layer, struct error *err)
{
    const struct host_kernels *k = engine->kernels;
    const struct net_fields *f = &layer->f;
    const unsigned most = plan->is_depthwise ? k->across : k->vectors;
    const unsigned width = k->lanes * most;
    const uint32_t made = f->channels / plan->groups;
    plan->blocks = (made + width - 1) / width;
    const size_t count = (size_t)plan->groups * plan->blocks;
    const size_t weights = round_up(plan->steps * width * k->step * k->value, ALIGNMENT);
    const size_t each = weights + round_up(sizeof(struct host_parameters), ALIGNMENT);
    uint8_t *bytes = held_array(&engine->held, count * each + ALIGNMENT, 1);
    plan->block = held_array(&engine->held, count, sizeof *plan->block);
    if (held_check(&engine->held, "a network's weights", err) != STATUS_OK)
        return STATUS_FAILED;
    bytes += (0 - (uintptr_t)bytes) % ALIGNMENT;
    for (size_t i = 0; i < count; i++) {
        const size_t first = i % plan->blocks * width, left = made - first;
        const unsigned needed = (unsigned)(left + k->lanes - 1) / k->lanes;
        /* Vectors of 8 channels are interleaved over the whole block. */
        const bool whole = plan->is_depthwise || k->lanes < 16 || needed > most;
        uint8_t *at = bytes + i * each;
        struct host_parameters *parameters = (struct host_parameters *)(void *)(at + weights);
        plan->block[i] = (struct host_block){.weights = at,
                                             .parameters = parameters,
                                             .first = i / plan->blocks * made + first,
                                             .vectors = whole ? most : needed,
                                             .count = (unsigned)(left < width ? left : width),
                                             .low = (uint8_t)f->low,
                                             .high = (uint8_t)f->high};
        pack_block(at, parameters, &plan->block[i], k, plan, layer);
    }
    return STATUS_OK;
}

static enum status prepare_convolution(struct plan *plan, struct host_engine *engine,
                                       const struct net_layer *layer, struct error *err)
{
    const struct host_kernels *k = engine->kernels;
    const struct net_fields *f = &layer->f;
    const uint32_t channels = engine->model->tensors[f->a].channels;
    const size_t pitch = engine->pitch[f->a];
    plan->is_depthwise = f->groups > 1 && f->groups == channels && f->channels == f->groups;
    plan->groups = plan->is_depthwise ? 1 : f->groups;
    plan->values = (size_t)f->kernel_y * f->kernel_x * (channels / f->groups);
    plan->steps = (plan->values + k->step - 1) / k->step;
    plan->is_direct = f->kernel_y * f->kernel_x * f->groups == 1 && k->value == 1 &&
                      f->stride_y == 1 && f->stride_x == 1 && pitch == (size_t)f->width * channels;
    plan->row = plan->is_direct ? channels : plan->steps * k->step * k->value;
    plan->pixels = plan->is_direct ? PANEL_MOST : PANEL_BYTES / plan->row;
    plan->pixels = min_u64(max_u64(plan->pixels, HOST_TILE), PANEL_MOST);
    /* Where the taps, or the runs of adjacent bytes, begin. */
    const bool joined = !plan->is_depthwise && f->groups == 1 && f->dilation_x == 1;
    const size_t across = joined ? 1 : f->kernel_x, count = f->kernel_y * across;
    plan->places = held_array(&engine->held, round_up(count, k->step), sizeof *plan->places);
    for (size_t i = 0; i < count && plan->places; i++)
        plan->places[i] =
            i / across * f->dilation_y * pitch + i % across * f->dilation_x * channels;
    if (!plan->is_direct && !plan->is_depthwise) {
        plan->runs = count;
        plan->run = plan->values / count;
        engine->panel_bytes = max_u64(engine->panel_bytes, plan->pixels * plan->row);
    }
    return make_blocks(plan, engine, layer, err);
}

/* --- opening ------------------------------------------------------------------------------------- */

/* Computes the layout of a scratch; tensors that are not needed at the same time share memory. */
static enum status lay_out(struct host_engine *engine, struct error *err)
{
    const struct net_model *model = engine->model;
    const uint32_t count = model->header->layers + 1;
    uint32_t *last = held_array(&engine->held, count, sizeof *last);
    size_t *room = held_array(&engine->held, count, sizeof *room);
    engine->first = held_array(&engine->held, count, sizeof *engine->first);
    engine->pitch = held_array(&engine->held, count, sizeof *engine->pitch);
    engine->plans = held_array(&engine->held, count, sizeof *engine->plans);
    const enum status status = held_check(&engine->held, "a network", err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        const struct net_tensor *t = &model->tensors[i];
        const size_t pitch = ((size_t)t->width + t->left + t->right) * pixel_bytes(t);
        engine->pitch[i] = pitch;
        last[i] = t->last;
        room[i] =
            round_up(((size_t)t->height + t->top + t->bottom) * pitch + HOST_SLACK, ALIGNMENT);
    }
    engine->panel = HOST_SLACK + net_find_places(engine->first, room, last, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct net_tensor *t = &model->tensors[i];
        engine->first[i] += HOST_SLACK + t->top * engine->pitch[i] + t->left * pixel_bytes(t);
    }
    return STATUS_OK;
}

enum status host_engine_open(struct host_engine **out, const struct net_model *model,
                             const char *kernels, struct error *err)
{
    *out = NULL;
    const struct host_kernels *k = host_kernels_choose(kernels);
    if (!k)
        return error_set(err, STATUS_USAGE, "this processor has no instructions \"%s\"", kernels);
    struct host_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return error_memory(err, sizeof *engine, "a network");
    *engine = (struct host_engine){.model = model, .kernels = k};
    enum status status = lay_out(engine, err);
    for (uint32_t i = 0; i < model->header->layers && status == STATUS_OK; i++)
        if (model->layers[i].f.kind == NET_CONVOLUTION)
            status = prepare_convolution(&engine->plans[i], engine, &model->layers[i], err);
    *out = engine;
    if (status != STATUS_OK)
        host_engine_close(out);
    return status;
}

void host_engine_close(struct host_engine **engine)
{
    if (*engine)
        held_free(&(*engine)->held);
    free(*engine);
    *engine = NULL;
}

const char *host_engine_kernels(const struct host_engine *engine)
{
    return engine->kernels->name;
}

uint64_t host_scratch_bytes(const struct host_engine *engine)
{
    return round_up(engine->panel + engine->panel_bytes + HOST_SLACK, ALIGNMENT);
}

uint8_t *host_scratch(const struct host_engine *engine)
{
    const size_t bytes = host_scratch_bytes(engine);
    uint8_t *memory = aligned_alloc(ALIGNMENT, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

/* --- convolutions -------------------------------------------------------------------------------- */

/* The first tap of an output pixel. */
static const uint8_t *first_tap(const struct run *r, size_t y, size_t x)
{
    const struct net_fields *f = &r->layer->f;
    const size_t channels = r->a->channels;
    return r->from_a + (y * f->stride_y * r->pitch_a + x * f->stride_x * channels) -
           (f->top * r->pitch_a + f->left * channels);
}

static void run_convolution(const struct host_engine *engine, uint8_t *scratch,
                            const struct plan *plan, const struct run *r)
{
    const uint8_t *in[PANEL_MOST];
    uint8_t *out[PANEL_MOST];
    const struct net_fields *f = &r->layer->f;
    const struct host_kernels *k = engine->kernels;
    const size_t each = r->a->channels / f->groups, all = (size_t)f->height * f->width;
    struct host_work work = {
        .in = in, .stride = plan->row, .taps = plan->places, .steps = plan->steps, .out = out};
    for (uint32_t g = 0; g < plan->groups; g++)
        for (size_t first = 0; first < all; first += work.pixels) {
            uint8_t *panel = scratch + engine->panel;
            size_t y = first / f->width, x = first % f->width;
            work.pixels = (unsigned)(min_u64(all - first, plan->pixels));
            work.panel = plan->is_direct ? r->from_a + first * work.stride : panel;
            for (size_t p = 0; p < work.pixels; p++, panel += work.stride) {
                in[p] = first_tap(r, y, x) + g * each;
                out[p] = r->out + y * r->pitch + x * f->channels;
                for (size_t i = 0; i < plan->runs; i++)
                    k->copy(panel + i * plan->run * k->value, in[p] + plan->places[i], plan->run);
                if (++x == f->width) {
                    x = 0;
                    y++;
                }
            }
            for (size_t b = 0; b < plan->blocks; b++) {
                work.block = &plan->block[g * plan->blocks + b];
                (plan->is_depthwise ? k->depthwise : k->multiply)(&work);
            }
        }
}

/* --- other layers -------------------------------------------------------------------------------- */

ALWAYS_INLINE uint8_t clamp(const struct net_fields *f, int64_t value)
{
    value += f->zero;
    return (uint8_t)(value < f->low ? f->low : value > f->high ? f->high : value);
}

/* Elementwise layers: each value depends on the values at the same position. */
ALWAYS_INLINE void run_each(const struct run *r)
{
    const struct net_fields *f = &r->layer->f;
    const int32_t zero_a = (int32_t)r->a->zero, zero_b = (int32_t)r->b->zero;
    const int32_t mul_a = f->mul_a, mul_b = f->mul_b, zero = (int32_t)f->zero;
    const int32_t low = (int32_t)f->low, high = (int32_t)f->high, shift = (int32_t)f->shift;
    const int64_t half = shift ? (int64_t)1 << (shift - 1) : 0;
    const size_t row = (size_t)f->width * f->channels, table = f->groups > 1 ? 256 : 0;
    const size_t step = f->kind == NET_ADD ? row : f->channels;
    for (size_t i = 0; i < f->height * row; i += step) {
        const size_t y = i / row, x = i % row;
        const uint8_t *a = r->from_a + y * r->pitch_a + x, *b = r->from_b;
        uint8_t *out = r->out + y * r->pitch + x;
        if (f->kind == NET_ADD) {
            b += y * r->pitch_b;
            for (size_t c = 0; c < step; c++) {
                const int32_t sum = (a[c] - zero_a) * mul_a + (b[c] - zero_b) * mul_b;
                const int32_t value = ((sum + (int32_t)half) >> shift) + zero;
                out[c] = (uint8_t)(value < low ? low : value > high ? high : value);
            }
        } else if (f->kind == NET_MULTIPLY) {
            for (size_t c = 0; c < step; c++)
                out[c] = clamp(f, ((int64_t)((a[c] - zero_a) * (b[c] - zero_b)) * mul_a + half) >>
                                      shift);
        } else {
            for (size_t c = 0; c < step; c++)
                out[c] = r->layer->tables[c * table + a[c]];
        }
    }
}

/* The taps [*from, return value) of a window starting at `first` that are in [0, size). */
ALWAYS_INLINE uint32_t clip(uint32_t *from, int64_t first, uint32_t kernel, uint32_t size)
{
    *from = first < 0 ? (uint32_t)-first : 0;
    return first + kernel > size ? (uint32_t)(size - first) : kernel;
}

/* The maximum, or the mean, of a window's taps inside the input. */
ALWAYS_INLINE void run_pool(const struct run *r)
{
    const struct net_fields *f = &r->layer->f;
    const size_t channels = f->channels;
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++) {
            uint8_t *out = r->out + y * r->pitch + x * channels;
            uint32_t from_y, from_x;
            const uint32_t to_y =
                clip(&from_y, (int64_t)y * f->stride_y - f->top, f->kernel_y, r->a->height);
            const uint32_t to_x =
                clip(&from_x, (int64_t)x * f->stride_x - f->left, f->kernel_x, r->a->width);
            const uint32_t rows = to_y - from_y, columns = to_x - from_x;
            const uint8_t *in = first_tap(r, y, x) + from_y * r->pitch_a + from_x * channels;
            const int64_t taps =
                f->counts_padding ? (int64_t)f->kernel_y * f->kernel_x : (int64_t)rows * columns;
            if (f->kind == NET_MAX) {
                memcpy(out, in, channels);
                for (uint32_t i = 0; i < rows * columns; i++) {
                    const uint8_t *q = in + i / columns * r->pitch_a + i % columns * channels;
                    for (size_t c = 0; c < channels; c++)
                        out[c] = q[c] > out[c] ? q[c] : out[c];
                }
                continue;
            }
            for (size_t c = 0; c < channels; c++) {
                int64_t sum = -(int64_t)r->a->zero * rows * columns;
                for (uint32_t i = 0; i < rows; i++)
                    for (uint32_t j = 0; j < columns; j++)
                        sum += in[i * r->pitch_a + j * channels + c];
                const int64_t above = 2 * sum * f->mul_a + (taps << f->shift);
                const int64_t below = taps << (f->shift + 1);
                out[c] = clamp(f, above / below - (above % below < 0));
            }
        }
}

ALWAYS_INLINE void run_sum(const struct run *r)
{
    const size_t channels = r->a->channels;
    int32_t *out = (int32_t *)(void *)r->out;
    memset(out, 0, channels * sizeof *out);
    for (uint32_t y = 0; y < r->a->height; y++)
        for (uint32_t x = 0; x < r->a->width; x++)
            for (size_t c = 0; c < channels; c++)
                out[c] += r->from_a[y * r->pitch_a + x * channels + c] - (int32_t)r->a->zero;
}

AVX2_TOO static void run_other(const struct run *r)
{
    const uint32_t kind = r->layer->f.kind;
    if (kind == NET_SUM)
        run_sum(r);
    else if (kind == NET_MAX || kind == NET_MEAN)
        run_pool(r);
    else
        run_each(r);
}

/* --- a picture ----------------------------------------------------------------------------------- */

/* Writes the border of a tensor: since the last picture, its memory has held other tensors. */
static void write_border(uint8_t *scratch, const struct host_engine *engine, uint32_t tensor)
{
    const struct net_tensor *t = &engine->model->tensors[tensor];
    const size_t pitch = engine->pitch[tensor];
    if (t->top + t->bottom + t->left + t->right == 0)
        return;
    const size_t left = (size_t)t->left * t->channels, right = (size_t)t->right * t->channels;
    uint8_t *row = scratch + engine->first[tensor] - left;
    memset(row - t->top * pitch, (int)t->zero, t->top * pitch);
    for (uint32_t y = 0; y < t->height; y++, row += pitch) {
        memset(row, (int)t->zero, left);
        memset(row + pitch - right, (int)t->zero, right);
    }
    memset(row, (int)t->zero, t->bottom * pitch);
}

void host_engine_run(const struct host_engine *engine, uint8_t *scratch, const uint8_t *picture)
{
    const struct net_model *model = engine->model;
    const size_t *first = engine->first, *pitch = engine->pitch,
                 row = (size_t)model->header->width * 3;
    write_border(scratch, engine, 0);
    for (uint32_t y = 0; y < model->header->height; y++)
        memcpy(scratch + first[0] + y * pitch[0], picture + y * row, row);
    for (uint32_t i = 0; i < model->header->layers; i++) {
        const struct net_layer *layer = &model->layers[i];
        const uint32_t a = layer->f.a, b = layer->f.b;
        const struct run r = {.layer = layer,
                              .a = &model->tensors[a],
                              .b = &model->tensors[b],
                              .from_a = scratch + first[a],
                              .from_b = scratch + first[b],
                              .out = scratch + first[i + 1],
                              .pitch_a = pitch[a],
                              .pitch_b = pitch[b],
                              .pitch = pitch[i + 1]};
        write_border(scratch, engine, i + 1);
        if (layer->f.kind != NET_CONVOLUTION)
            run_other(&r);
        else
            run_convolution(engine, scratch, &engine->plans[i], &r);
    }
}

void host_engine_words(uint32_t *words, const struct host_engine *engine, const uint8_t *scratch,
                       const struct net_output *output)
{
    const struct net_tensor *t = &engine->model->tensors[output->tensor];
    for (uint32_t y = 0; y < t->height; y++) {
        const uint8_t *row =
            scratch + engine->first[output->tensor] + y * engine->pitch[output->tensor];
        for (size_t i = 0; i < (size_t)t->width * t->channels; i++)
            *words++ = t->is_sum ? ((const uint32_t *)(const void *)row)[i] : row[i];
    }
}
