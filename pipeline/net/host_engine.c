/* host_engine.c: a network on the CPU: lays out weights and memory, and computes layer by layer.
 *
 * Each tensor of a scratch has a border of its zero point, as wide as layers read past its edges,
 * so that windows need no checks. A convolution gathers the inputs of some output pixels into a
 * panel, a row each, and multiplies it by one block of channels after another; if the rows are
 * already adjacent in the tensor, that serves as the panel. Depthwise convolutions read the
 * tensor. */
#include "net/host_engine.h"

#include "base/avx2.h"
#include "net/host_kernels.h"
#include "net/reference.h"

#include <stdlib.h>
#include <string.h>

#define PANEL_BYTES ((size_t)96 << 10) /* fits the L2 cache together with its block's weights */
#define PANEL_MOST  (64 * HOST_TILE)   /* pixels */
#define ALIGNMENT   64u

/* How a convolution is computed. */
struct plan {
    bool is_depthwise, is_direct; /* neither: through panels */
    size_t values, steps; /* of k in a row of a panel, or taps; steps to process them */
    size_t run;           /* bytes adjacent in the input */
    size_t *places;       /* of the runs, or taps, relative to the first; owned */
    size_t place_count;
    unsigned blocks;  /* per group */
    uint8_t *weights; /* groups x blocks x block_bytes; owned */
    size_t block_bytes;
    struct host_parameters *parameters; /* groups x blocks; owned */
    bool shifts_first;
};

struct host_engine {
    const struct net_model *model;
    const struct host_kernels *kernels;
    struct plan *plans; /* one per layer */
    size_t *offset;     /* per tensor: its first value in a scratch */
    size_t *pitch;      /* bytes between rows */
    uint64_t weight_bytes, scratch_bytes;
    size_t panel; /* offset of the panel in a scratch */
};

struct host_scratch {
    uint8_t *memory;
    uint8_t *out[PANEL_MOST];
};

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* Zeroed aligned_alloc(); at least one byte. */
static void *allocate(uint64_t *sum, size_t bytes)
{
    const size_t whole = round_up(bytes + 1, ALIGNMENT);
    void *memory = aligned_alloc(ALIGNMENT, whole);
    if (memory)
        memset(memory, 0, whole);
    *sum += whole;
    return memory;
}

/* --- weights ------------------------------------------------------------------------------------- */

static void set_parameters(struct host_parameters *p, unsigned at, const struct net_layer *layer,
                           uint32_t channel)
{
    const int32_t s = layer->shift[channel], pre = s < 33 ? 33 - s : 0, shift = s + pre - 32;
    p->bias[at] = layer->bias[channel];
    p->mul[at] = layer->mul[channel];
    p->add[at] = (1 << (shift - 1)) + ((int32_t)layer->f.zero << shift);
    p->shift[at] = shift;
    p->pre[at] = pre;
}

static unsigned block_vectors(const struct host_kernels *k, bool is_depthwise, uint32_t channels)
{
    const unsigned needed = (channels + k->lanes - 1) / k->lanes;
    /* Vectors of 8 channels are interleaved over the whole block. */
    return is_depthwise || k->lanes < 16 || needed > k->vectors ? k->vectors : needed;
}

/* Packs the block's weights: steps x vectors x lanes x step values. */
static void pack_block(void *out, const struct host_kernels *k, const struct plan *plan,
                       const struct net_layer *layer, struct host_parameters *parameters,
                       uint32_t first, uint32_t count)
{
    const unsigned vectors = block_vectors(k, plan->is_depthwise, count);
    for (unsigned v = 0; v < vectors; v++)
        for (unsigned lane = 0; lane < k->lanes; lane++) {
            const unsigned c = k->channel(vectors, v, lane);
            if (c >= count)
                continue;
            const int8_t *from = layer->weights + (size_t)(first + c) * plan->values;
            set_parameters(parameters, v * k->lanes + lane, layer, first + c);
            for (size_t i = 0; i < plan->values; i++) {
                const size_t at =
                    ((i / k->step * vectors + v) * k->lanes + lane) * k->step + i % k->step;
                if (k->value == 2)
                    ((int16_t *)out)[at] = from[i];
                else
                    ((int8_t *)out)[at] = from[i];
            }
        }
}

/* Finds where the taps, or the runs of adjacent bytes, begin. */
static bool find_places(struct plan *plan, const struct host_engine *engine,
                        const struct net_fields *f, uint64_t *bytes)
{
    const struct net_tensor *a = &engine->model->tensors[f->a];
    const bool joined = !plan->is_depthwise && f->groups == 1 && f->dilation_x == 1;
    const uint32_t across = joined ? 1 : f->kernel_x;
    const size_t step = plan->is_depthwise ? engine->kernels->step : 1;
    const size_t count = (size_t)f->kernel_y * across;
    plan->run = (size_t)(joined ? f->kernel_x : 1) * (a->channels / f->groups);
    plan->place_count = count;
    plan->places = allocate(bytes, round_up(count, step) * sizeof *plan->places);
    if (!plan->places)
        return false;
    for (uint32_t y = 0; y < f->kernel_y; y++)
        for (uint32_t x = 0; x < across; x++)
            plan->places[(size_t)y * across + x] = (size_t)y * f->dilation_y * engine->pitch[f->a] +
                                                   (size_t)x * f->dilation_x * a->channels;
    return true;
}

static enum status prepare_convolution(struct plan *plan, struct host_engine *engine,
                                       const struct net_layer *layer, struct error *err)
{
    const struct host_kernels *k = engine->kernels;
    const struct net_fields *f = &layer->f;
    const struct net_tensor *a = &engine->model->tensors[f->a];
    const uint32_t made = f->channels / f->groups;
    const unsigned width = k->lanes * k->vectors;
    plan->is_depthwise = f->groups > 1 && f->groups == a->channels && made == 1;
    plan->values = (size_t)f->kernel_y * f->kernel_x * (a->channels / f->groups);
    plan->steps = (plan->values + k->step - 1) / k->step;
    plan->is_direct = f->kernel_y * f->kernel_x * f->groups == 1 && k->value == 1 &&
                      f->stride_y == 1 && f->stride_x == 1 &&
                      engine->pitch[f->a] == (size_t)f->width * a->channels;
    const uint32_t groups = plan->is_depthwise ? 1 : f->groups;
    const uint32_t of_group = plan->is_depthwise ? f->channels : made;
    plan->blocks = (of_group + width - 1) / width;
    plan->block_bytes = round_up(plan->steps * width * k->step * k->value, ALIGNMENT);
    plan->weights =
        allocate(&engine->weight_bytes, (size_t)groups * plan->blocks * plan->block_bytes);
    plan->parameters =
        allocate(&engine->weight_bytes, (size_t)groups * plan->blocks * sizeof *plan->parameters);
    if (!plan->weights || !plan->parameters || !find_places(plan, engine, f, &engine->weight_bytes))
        return error_memory(err, (size_t)groups * plan->blocks * plan->block_bytes,
                            "a network's weights");
    for (uint32_t g = 0; g < groups; g++)
        for (unsigned b = 0; b < plan->blocks; b++) {
            const size_t at = (size_t)g * plan->blocks + b;
            const uint32_t first = b * width, left = of_group - first;
            pack_block(plan->weights + at * plan->block_bytes, k, plan, layer,
                       &plan->parameters[at], g * of_group + first, left < width ? left : width);
        }
    for (uint32_t c = 0; c < f->channels; c++)
        plan->shifts_first |= layer->shift[c] < 33;
    return STATUS_OK;
}

/* --- opening ------------------------------------------------------------------------------------- */

/* Computes the layout of a scratch. */
static void lay_out(struct host_engine *engine)
{
    const struct net_model *model = engine->model;
    size_t at = HOST_SLACK;
    for (uint32_t i = 0; i <= model->layer_count; i++) {
        const struct net_tensor *t = &model->tensors[i];
        const size_t pixel = (size_t)t->channels * (t->is_sum ? sizeof(int32_t) : 1);
        const size_t rows = (size_t)t->height + t->top + t->bottom;
        engine->pitch[i] = ((size_t)t->width + t->left + t->right) * pixel;
        engine->offset[i] = at + t->top * engine->pitch[i] + t->left * pixel;
        at = round_up(at + rows * engine->pitch[i] + HOST_SLACK, ALIGNMENT);
    }
    engine->panel = at;
}

/* Pixels per panel, at least a tile. */
static size_t panel_pixels(const struct plan *plan, const struct host_kernels *k)
{
    const size_t pixels = PANEL_BYTES / (plan->steps * k->step * k->value);
    return pixels < HOST_TILE ? HOST_TILE : pixels > PANEL_MOST ? PANEL_MOST : pixels;
}

enum status host_engine_open(struct host_engine **out, const struct net_model *model,
                             const char *kernels, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct host_engine *engine = NULL;
    size_t panel = 0;
    *out = NULL;
    const struct host_kernels *k = host_kernels_choose(kernels);
    if (!k)
        return error_set(err, STATUS_USAGE, "this processor has no instructions \"%s\"", kernels);
    engine = calloc(1, sizeof *engine);
    if (engine) {
        *engine = (struct host_engine){.model = model, .kernels = k};
        engine->plans = calloc(model->layer_count, sizeof *engine->plans);
        engine->offset = calloc(model->layer_count + 1, sizeof *engine->offset);
        engine->pitch = calloc(model->layer_count + 1, sizeof *engine->pitch);
    }
    if (!engine || !engine->plans || !engine->offset || !engine->pitch) {
        status = error_memory(err, model->layer_count * sizeof *engine->plans, "a network");
        goto out;
    }
    lay_out(engine);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        struct plan *plan = &engine->plans[i];
        if (model->layers[i].f.kind != NET_CONVOLUTION)
            continue;
        status = prepare_convolution(plan, engine, &model->layers[i], err);
        if (status != STATUS_OK)
            goto out;
        const size_t row = plan->steps * k->step * k->value;
        if (!plan->is_direct && !plan->is_depthwise && panel < panel_pixels(plan, k) * row)
            panel = panel_pixels(plan, k) * row;
    }
    engine->scratch_bytes = round_up(engine->panel + panel + HOST_SLACK, ALIGNMENT);
    *out = engine;
    engine = NULL;
    status = STATUS_OK;
out:
    host_engine_close(&engine);
    return status;
}

void host_engine_close(struct host_engine **engine)
{
    struct host_engine *e = *engine;
    if (!e)
        return;
    for (uint32_t i = 0; e->plans && i < e->model->layer_count; i++) {
        free(e->plans[i].places);
        free(e->plans[i].weights);
        free(e->plans[i].parameters);
    }
    free(e->plans);
    free(e->offset);
    free(e->pitch);
    free(e);
    *engine = NULL;
}

const char *host_engine_kernels(const struct host_engine *engine)
{
    return engine->kernels->name;
}

uint64_t host_engine_bytes(const struct host_engine *engine)
{
    return engine->weight_bytes;
}

uint64_t host_scratch_bytes(const struct host_engine *engine)
{
    return engine->scratch_bytes;
}

enum status host_scratch_open(struct host_scratch **out, const struct host_engine *engine,
                              struct error *err)
{
    const struct net_model *model = engine->model;
    uint64_t bytes = 0;
    struct host_scratch *scratch = *out = calloc(1, sizeof *scratch);
    if (scratch)
        scratch->memory = allocate(&bytes, engine->scratch_bytes);
    if (!scratch || !scratch->memory) {
        host_scratch_close(out);
        return error_memory(err, engine->scratch_bytes, "a network's values");
    }
    for (uint32_t i = 0; i <= model->layer_count; i++) {
        const struct net_tensor *t = &model->tensors[i];
        const size_t before = t->top * engine->pitch[i] + (size_t)t->left * t->channels;
        if (!t->is_sum)
            memset(scratch->memory + engine->offset[i] - before, (int)t->zero,
                   ((size_t)t->height + t->top + t->bottom) * engine->pitch[i]);
    }
    return STATUS_OK;
}

void host_scratch_close(struct host_scratch **scratch)
{
    if (*scratch)
        free((*scratch)->memory);
    free(*scratch);
    *scratch = NULL;
}

/* --- convolutions -------------------------------------------------------------------------------- */

static struct host_block block_of(const struct host_engine *engine, const struct net_layer *layer,
                                  const struct plan *plan, uint32_t group, unsigned block)
{
    const struct host_kernels *k = engine->kernels;
    const unsigned width = k->lanes * k->vectors;
    const uint32_t of_group =
        plan->is_depthwise ? layer->f.channels : layer->f.channels / layer->f.groups;
    const uint32_t left = of_group - block * width, count = left < width ? left : width;
    const size_t at = (size_t)group * plan->blocks + block;
    return (struct host_block){.weights = plan->weights + at * plan->block_bytes,
                               .parameters = &plan->parameters[at],
                               .vectors = block_vectors(k, plan->is_depthwise, count),
                               .count = count,
                               .shifts_first = plan->shifts_first,
                               .low = (uint8_t)layer->f.low,
                               .high = (uint8_t)layer->f.high};
}

/* The first tap of an output pixel. */
static const uint8_t *first_tap(const struct host_engine *engine, const struct net_fields *f,
                                const uint8_t *in, size_t y, size_t x)
{
    const size_t channels = engine->model->tensors[f->a].channels;
    return in + (y * f->stride_y * engine->pitch[f->a] + x * f->stride_x * channels) -
           (f->top * engine->pitch[f->a] + f->left * channels);
}

static void run_depthwise(const struct host_engine *engine, uint32_t i, const uint8_t *in,
                          uint8_t *out)
{
    const struct net_layer *layer = &engine->model->layers[i];
    const struct net_fields *f = &layer->f;
    const struct plan *plan = &engine->plans[i];
    const unsigned width = engine->kernels->lanes * engine->kernels->vectors;
    for (unsigned b = 0; b < plan->blocks; b++) {
        struct host_depthwise d = {.step = (size_t)f->stride_x * f->channels,
                                   .taps = plan->places,
                                   .steps = plan->steps,
                                   .pixels = f->width,
                                   .out_step = f->channels,
                                   .block = block_of(engine, layer, plan, 0, b)};
        for (uint32_t y = 0; y < f->height; y++) {
            d.in = first_tap(engine, f, in, y, 0) + b * width;
            d.out = out + y * engine->pitch[i + 1] + b * width;
            engine->kernels->depthwise(&d);
        }
    }
}

/* Gathers the inputs of `count` output pixels starting at `pixel`, and where to store them. */
static void gather(const struct host_engine *engine, struct host_scratch *scratch, uint32_t i,
                   const uint8_t *in, uint8_t *out, size_t pixel, size_t count, size_t row)
{
    const struct net_fields *f = &engine->model->layers[i].f;
    const struct plan *plan = &engine->plans[i];
    uint8_t *panel = scratch->memory + engine->panel;
    for (size_t p = 0; p < count; p++, pixel++, panel += row) {
        const size_t y = pixel / f->width, x = pixel % f->width;
        scratch->out[p] = out + y * engine->pitch[i + 1] + x * f->channels;
        if (plan->is_direct)
            continue;
        const uint8_t *from = first_tap(engine, f, in, y, x);
        uint8_t *to = panel;
        for (size_t r = 0; r < plan->place_count; r++, to += plan->run * engine->kernels->value)
            engine->kernels->copy(to, from + plan->places[r], plan->run);
    }
}

static void run_convolution(const struct host_engine *engine, struct host_scratch *scratch,
                            uint32_t i, const uint8_t *in, uint8_t *out)
{
    const struct net_layer *layer = &engine->model->layers[i];
    const struct net_fields *f = &layer->f;
    const struct plan *plan = &engine->plans[i];
    const struct host_kernels *k = engine->kernels;
    const unsigned width = k->lanes * k->vectors;
    const uint32_t each = engine->model->tensors[f->a].channels / f->groups;
    const size_t all = (size_t)f->height * f->width;
    const size_t row = plan->is_direct ? each : plan->steps * k->step * k->value;
    const size_t most = plan->is_direct ? PANEL_MOST : panel_pixels(plan, k);
    struct host_multiply m = {.stride = row, .steps = plan->steps};
    for (uint32_t g = 0; g < f->groups; g++)
        for (size_t pixel = 0; pixel < all; pixel += m.pixels) {
            m.pixels = (unsigned)(all - pixel < most ? all - pixel : most);
            m.panel = plan->is_direct ? in + pixel * row : scratch->memory + engine->panel;
            m.out = scratch->out;
            gather(engine, scratch, i, in + (size_t)g * each, out, pixel, m.pixels, row);
            for (unsigned b = 0; b < plan->blocks; b++) {
                m.block = block_of(engine, layer, plan, g, b);
                m.first = (size_t)g * (f->channels / f->groups) + b * width;
                k->multiply(&m);
            }
        }
}

/* --- other layers: rows of values ---------------------------------------------------------------- */

struct rows {
    const struct net_layer *layer;
    const uint8_t *a, *b;
    uint8_t *out;
    size_t count; /* values in the row */
    int32_t zero_a, zero_b;
};

ALWAYS_INLINE void add_row(const struct rows *r)
{
    const struct net_fields *f = &r->layer->f;
    const int32_t mul_a = f->mul_a, mul_b = f->mul_b, zero = (int32_t)f->zero;
    const int32_t low = (int32_t)f->low, high = (int32_t)f->high, shift = (int32_t)f->shift;
    for (size_t i = 0; i < r->count; i++) {
        const int32_t sum = (r->a[i] - r->zero_a) * mul_a + (r->b[i] - r->zero_b) * mul_b;
        const int32_t value = ((sum + (1 << (shift - 1))) >> shift) + zero;
        r->out[i] = (uint8_t)(value < low ? low : value > high ? high : value);
    }
}

AVX2_LOOPS static void add_row_avx2(const struct rows *r)
{
    add_row(r);
}

static void add_row_plain(const struct rows *r)
{
    add_row(r);
}

static void multiply_row(const struct rows *r)
{
    const struct net_fields *f = &r->layer->f;
    for (size_t i = 0; i < r->count; i++)
        r->out[i] =
            net_clamp(f, net_requantise((r->a[i] - r->zero_a) * (r->b[i % f->channels] - r->zero_b),
                                        f->mul_a, (int32_t)f->shift));
}

static void table_row(const struct rows *r)
{
    const struct net_fields *f = &r->layer->f;
    const uint8_t *tables = r->layer->tables;
    if (f->groups == 1)
        for (size_t i = 0; i < r->count; i++)
            r->out[i] = tables[r->a[i]];
    else
        for (size_t i = 0; i < r->count; i++)
            r->out[i] = tables[i % f->channels * 256 + r->a[i]];
}

static void run_rows(const struct host_engine *engine, uint32_t i, const uint8_t *a,
                     const uint8_t *b, uint8_t *out)
{
    const struct net_model *model = engine->model;
    const struct net_fields *f = &model->layers[i].f;
    const bool add = f->kind == NET_ADD;
    struct rows r = {&model->layers[i],
                     a,
                     b,
                     out,
                     (size_t)f->width * f->channels,
                     (int32_t)model->tensors[f->a].zero,
                     (int32_t)model->tensors[f->b].zero};
    for (uint32_t y = 0; y < f->height; y++) {
        if (f->kind == NET_TABLE)
            table_row(&r);
        else if (f->kind == NET_MULTIPLY)
            multiply_row(&r);
        else
            (cpu_has_avx2() ? add_row_avx2 : add_row_plain)(&r);
        r.a += engine->pitch[f->a];
        r.b += add ? engine->pitch[f->b] : 0;
        r.out += engine->pitch[i + 1];
    }
}

/* --- pools --------------------------------------------------------------------------------------- */

/* An output pixel of a pool; its taps inside the input are rows x columns starting at `in`. */
struct pixel {
    const uint8_t *in;
    uint8_t *out;
    size_t pitch;
    uint32_t channels, rows, columns;
};

ALWAYS_INLINE void max_pixel(const struct pixel *p)
{
    memcpy(p->out, p->in, p->channels);
    for (uint32_t y = 0; y < p->rows; y++)
        for (uint32_t x = 0; x < p->columns; x++) {
            const uint8_t *q = p->in + y * p->pitch + (size_t)x * p->channels;
            for (uint32_t c = 0; c < p->channels; c++)
                p->out[c] = q[c] > p->out[c] ? q[c] : p->out[c];
        }
}

AVX2_LOOPS static void max_pixel_avx2(const struct pixel *p)
{
    max_pixel(p);
}

static void max_pixel_plain(const struct pixel *p)
{
    max_pixel(p);
}

static void mean_pixel(const struct net_fields *f, const struct pixel *p, int64_t zero)
{
    const int64_t inside = (int64_t)p->rows * p->columns;
    const int64_t taps = f->counts_padding ? (int64_t)f->kernel_y * f->kernel_x : inside;
    for (uint32_t c = 0; c < p->channels; c++) {
        int64_t sum = -zero * inside;
        for (uint32_t y = 0; y < p->rows; y++)
            for (uint32_t x = 0; x < p->columns; x++)
                sum += p->in[y * p->pitch + (size_t)x * p->channels + c];
        p->out[c] = net_mean(f, sum, taps);
    }
}

/* The taps [*from, return value) of a window starting at `first` that are in [0, size). */
static uint32_t clip(uint32_t *from, int64_t first, uint32_t kernel, uint32_t size)
{
    *from = first < 0 ? (uint32_t)-first : 0;
    return first + kernel > size ? (uint32_t)(size - first) : kernel;
}

static void run_pool(const struct host_engine *engine, uint32_t i, const uint8_t *in, uint8_t *out)
{
    const struct net_fields *f = &engine->model->layers[i].f;
    const struct net_tensor *a = &engine->model->tensors[f->a];
    for (uint32_t y = 0; y < f->height; y++)
        for (uint32_t x = 0; x < f->width; x++) {
            const int64_t at_y = (int64_t)y * f->stride_y - f->top;
            const int64_t at_x = (int64_t)x * f->stride_x - f->left;
            struct pixel p = {.out = out + y * engine->pitch[i + 1] + (size_t)x * f->channels,
                              .pitch = engine->pitch[f->a],
                              .channels = f->channels};
            uint32_t from_y, from_x;
            p.rows = clip(&from_y, at_y, f->kernel_y, a->height) - from_y;
            p.columns = clip(&from_x, at_x, f->kernel_x, a->width) - from_x;
            p.in = in + (size_t)(at_y + from_y) * p.pitch + (size_t)(at_x + from_x) * f->channels;
            if (f->kind == NET_MEAN)
                mean_pixel(f, &p, a->zero);
            else
                (cpu_has_avx2() ? max_pixel_avx2 : max_pixel_plain)(&p);
        }
}

static void run_sum(const struct host_engine *engine, const struct net_fields *f, const uint8_t *in,
                    int32_t *out)
{
    const struct net_tensor *a = &engine->model->tensors[f->a];
    for (uint32_t c = 0; c < f->channels; c++)
        out[c] = 0;
    for (uint32_t y = 0; y < a->height; y++)
        for (uint32_t x = 0; x < a->width; x++) {
            const uint8_t *q = in + y * engine->pitch[f->a] + (size_t)x * a->channels;
            for (uint32_t c = 0; c < f->channels; c++)
                out[c] += q[c] - (int32_t)a->zero;
        }
}

/* --- a picture ----------------------------------------------------------------------------------- */

/* Copies between rows in a scratch and densely packed ones. */
static void copy_rows(uint8_t *to, size_t to_pitch, const uint8_t *from, size_t from_pitch,
                      uint32_t rows, size_t bytes)
{
    for (uint32_t y = 0; y < rows; y++)
        memcpy(to + y * to_pitch, from + y * from_pitch, bytes);
}

void host_engine_run(const struct host_engine *engine, struct host_scratch *scratch,
                     const uint8_t *picture, void *const *outputs)
{
    const struct net_model *model = engine->model;
    const size_t row = (size_t)model->width * 3;
    copy_rows(scratch->memory + engine->offset[0], engine->pitch[0], picture, row, model->height,
              row);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct net_fields *f = &model->layers[i].f;
        const uint8_t *a = scratch->memory + engine->offset[f->a];
        const uint8_t *b = scratch->memory + engine->offset[f->b];
        uint8_t *out = scratch->memory + engine->offset[i + 1];
        if (f->kind == NET_SUM)
            run_sum(engine, f, a, (int32_t *)(void *)out);
        else if (f->kind == NET_MAX || f->kind == NET_MEAN)
            run_pool(engine, i, a, out);
        else if (f->kind != NET_CONVOLUTION)
            run_rows(engine, i, a, b, out);
        else if (engine->plans[i].is_depthwise)
            run_depthwise(engine, i, a, out);
        else
            run_convolution(engine, scratch, i, a, out);
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        const uint32_t tensor = model->outputs[i].tensor;
        const struct net_tensor *t = &model->tensors[tensor];
        const size_t bytes = net_tensor_bytes(t) / t->height;
        if (outputs[i])
            copy_rows(outputs[i], bytes, scratch->memory + engine->offset[tensor],
                      engine->pitch[tensor], t->height, bytes);
    }
}
