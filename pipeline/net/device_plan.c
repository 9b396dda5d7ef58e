/* device_plan.c: offsets of tensors, the table of kernels, and their weights. */
#include "net/device_plan.h"

#include "base/minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXEL_CHANNELS 4u
#define WORD_CHANNELS  16u
#define ALIGNMENT      16u
#define OPTIONS        288u
#define PACKED_MOST    (1u << 30)
#define DEEP           64u /* input channels per step of a product */
#define WARPS          (NET_TILE_ITEMS / 32)
#define TAPS_MOST      64u /* with 4-byte pixels */
#define TILES_MOST     8u  /* of 8 channels, with 4-byte pixels */

static const char *const plain_names[NET_PLAIN_KERNELS] = {[NET_CONVOLUTION] = "net_convolution",
                                                           [NET_ADD] = "net_each",
                                                           [NET_MULTIPLY] = "net_each",
                                                           [NET_MAX] = "net_pool",
                                                           [NET_MEAN] = "net_pool",
                                                           [NET_SUM] = "net_sum",
                                                           [NET_TABLE] = "net_each",
                                                           [NET_TAKE] = "net_take",
                                                           [NET_GIVE] = "net_give"};

static uint32_t round_up(uint32_t value, uint32_t to)
{
    return (value + to - 1) / to * to;
}

/* Bytes per pixel. */
static uint32_t pitch_of(const struct net_tensor *tensor)
{
    return tensor->is_sum                       ? tensor->channels * (uint32_t)sizeof(int32_t)
           : tensor->channels <= PIXEL_CHANNELS ? PIXEL_CHANNELS
                                                : round_up(tensor->channels, WORD_CHANNELS);
}

size_t net_plan_bytes(const struct net_tensor *tensor)
{
    return (size_t)tensor->height * tensor->width * pitch_of(tensor);
}

/* --- fused additions -------------------------------------------------------------------------- */

/* Whether a layer is computed as rows times channels. */
static bool is_window(const struct net_model *model, uint32_t layer)
{
    const struct net_fields *f = &model->layers[layer].f;
    return f->kind == NET_CONVOLUTION && f->groups == 1 &&
           model->tensors[f->a].channels > PIXEL_CHANNELS && f->channels > PIXEL_CHANNELS;
}

/* Fuses each addition with the later one of its convolutions that nothing else reads: the
 * convolution's input must then stay until the addition. tiles: kernels of net_tensor are used. */
static void join_additions(struct net_plan *plan, uint32_t *last, bool tiles)
{
    const struct net_model *model = plan->model;
    for (uint32_t i = 0; i < model->header->layers; i++) {
        const struct net_fields *f = &model->layers[i].f;
        const uint32_t later = max_u32(f->a, f->b);
        plan->made[i + 1].convolution = f->kind == NET_CONVOLUTION ? i : NET_NO_LAYER;
        if (f->kind != NET_ADD || f->a == f->b || model->tensors[later].readers != 1 ||
            !is_window(model, later - 1))
            continue;
        plan->made[i + 1].convolution = later - 1;
        plan->made[later].is_made_later = tiles;
        const uint32_t input = model->layers[later - 1].f.a;
        last[input] = max_u32(last[input], i + 1);
    }
}

/* --- the table ------------------------------------------------------------------------------- */

/* Shapes for rows by channels, by the number of output channels padded to 16: tiles of 8 channels
 * and of 16 rows per warp, and turns. Measured on an H100; the last line is for all others. */
static const struct {
    uint32_t channels, nt, mt, turns;
} window_table[] = {
    {16, 2, 2, 1},  {32, 4, 1, 1},  {48, 6, 2, 1},  {80, 10, 2, 1}, {96, 6, 2, 4},
    {144, 6, 1, 4}, {240, 8, 2, 4}, {480, 8, 2, 4}, {672, 8, 2, 4}, {0, 8, 2, 1},
};

/* Depthwise kernels by side and stride, for outputs of up to `height` rows: rows per work-item. */
static const struct {
    uint32_t kernel, stride, height, rows;
} depthwise_table[] = {
    {3, 1, 14, 7}, {3, 1, 8192, 4}, {3, 2, 14, 2}, {3, 2, 8192, 4}, {5, 1, 7, 7},
    {5, 1, 14, 2}, {5, 1, 8192, 7}, {5, 2, 7, 7},  {5, 2, 8192, 4},
};

#define DEPTHWISE_ROWS (sizeof depthwise_table / sizeof *depthwise_table)

static bool has_limits(const struct net_fields *f)
{
    return f->low > 0 || f->high < 255;
}

/* Chooses the kernel of a convolution, and its options; NULL: a plain one. */
static const char *choose(struct net_made *made, char options[OPTIONS], const struct net_plan *plan,
                          const struct net_fields *addition)
{
    const struct net_layer *layer = &plan->model->layers[made->convolution];
    const struct net_fields *f = &layer->f;
    const struct net_tensor *a = &plan->model->tensors[f->a];
    const struct net_tile *tile = &made->tile;
    const uint32_t taps = f->kernel_y * f->kernel_x;
    unsigned row = 0;
    int shifts = 0;
    for (uint32_t c = 0; c < f->channels; c++)
        shifts |= net_layer_scaling(layer, c).pre;
    const size_t used = (size_t)snprintf(
        options, OPTIONS, "-cl-std=CL1.2 -DWARPS=%u -DLIMITS=%d -DSHIFTS=%d -DADDS=%d", WARPS,
        has_limits(f) || (addition && has_limits(addition)), shifts > 0, addition != NULL);
    options += used;
    made->columns = tile->pitch;
    if (is_window(plan->model, made->convolution)) {
        const bool one = taps == 1 && f->stride_y == 1 && f->stride_x == 1 &&
                         f->top + f->left == 0 && f->height == a->height && f->width == a->width;
        while (window_table[row].channels != 0 && window_table[row].channels != tile->pitch)
            row++;
        const uint32_t nt = window_table[row].nt, mt = window_table[row].mt;
        made->kind = NET_TILE_WINDOW;
        made->units = f->height * f->width;
        made->group = 16 * mt * WARPS * window_table[row].turns;
        made->columns = 8 * nt;
        snprintf(options, OPTIONS - used,
                 " -DWINDOW -DTAPS=%d -DNT=%u -DMT=%u -DTURNS=%u -DTAIL=%u", one ? 1 : 2, nt, mt,
                 window_table[row].turns, (tile->pitch_a % DEEP + DEEP / 2 - 1) / (DEEP / 2));
        return "net_window";
    }
    if (f->groups == 1 && tile->pitch_a == PIXEL_CHANNELS && f->channels > PIXEL_CHANNELS &&
        taps <= TAPS_MOST && tile->pitch <= 8 * TILES_MOST) {
        made->kind = NET_TILE_PIXELS;
        made->units = f->height;
        made->group = WARPS;
        snprintf(options, OPTIONS - used, " -DPIXELS -DTAPS=%u -DKERNEL=%u -DNT=%u", taps,
                 f->kernel_x, tile->pitch / 8);
        return "net_pixels";
    }
    if (f->groups != f->channels || f->groups != a->channels || f->channels <= PIXEL_CHANNELS ||
        f->kernel_y != f->kernel_x || f->stride_y != f->stride_x || f->dilation_y != 1 ||
        f->dilation_x != 1)
        return NULL;
    while (row < DEPTHWISE_ROWS &&
           (depthwise_table[row].kernel != f->kernel_y ||
            depthwise_table[row].stride != f->stride_y || depthwise_table[row].height < f->height))
        row++;
    if (row == DEPTHWISE_ROWS)
        return NULL;
    const uint32_t down = depthwise_table[row].rows;
    const uint32_t across = f->kernel_y == 5 && f->stride_y == 1 ? 4 : 2;
    made->kind = NET_TILE_DEPTHWISE;
    made->units = (f->width + across - 1) / across * ((f->height + down - 1) / down) *
                  (tile->pitch / PIXEL_CHANNELS);
    made->group = NET_TILE_ITEMS;
    snprintf(options, OPTIONS - used,
             " -DDEPTHWISE -DKERNEL=%u -DSTRIDE=%u -DTOP=%u -DLEFT=%u -DOY=%u -DCHANNELS=%u "
             "-DHEIGHT=%u -DWIDTH=%u -DHEIGHT_A=%u -DWIDTH_A=%u",
             f->kernel_y, f->stride_y, f->top, f->left, down, tile->pitch, f->height, f->width,
             a->height, a->width);
    return "net_depthwise";
}

/* --- weights --------------------------------------------------------------------------------- */

/* The channel of column g of tile j of eight: column pairs of the tiles are interleaved. */
static uint32_t channel_of(uint32_t nt, uint32_t j, uint32_t g)
{
    return 2 * nt * (g / 2) + 2 * j + g % 2;
}

/* Input channels [from, from + 4 * each) of each tap, `each` per lane: nt tiles of 32 lanes. */
static uint8_t *pack_step(uint8_t *out, const struct net_layer *layer, uint32_t channels_a,
                          uint32_t tap, uint32_t first, uint32_t nt, uint32_t from, uint32_t each)
{
    const struct net_fields *f = &layer->f;
    for (uint32_t j = 0; j < nt; j++)
        for (uint32_t lane = 0; lane < 32; lane++)
            for (uint32_t e = 0; e < each; e++, out++) {
                const uint32_t n = first + channel_of(nt, j, lane / 4);
                const uint32_t c = from + lane % 4 * each + e;
                const size_t at = ((size_t)n * f->kernel_y * f->kernel_x + tap) * channels_a + c;
                *out = n < f->channels && c < channels_a ? (uint8_t)layer->weights[at] : 0;
            }
    return out;
}

static uint8_t *pack_window(uint8_t *out, uint8_t **tails, const struct net_made *made,
                            const struct net_layer *layer, uint32_t channels_a)
{
    const uint32_t taps = layer->f.kernel_y * layer->f.kernel_x, nt = made->columns / 8;
    for (uint32_t chunk = 0; chunk < made->tile.chunks; chunk++)
        for (uint32_t tap = 0; tap < taps; tap++)
            for (uint32_t k = 0; k < made->tile.full; k++)
                out =
                    pack_step(out, layer, channels_a, tap, chunk * made->columns, nt, k * DEEP, 16);
    *tails = out;
    for (uint32_t i = 0; made->tile.tail > 0 && i < made->tile.chunks * taps; i++)
        out = pack_step(out, layer, channels_a, i % taps, i / taps * made->columns, nt,
                        made->tile.full * DEEP, made->tile.tail > DEEP / 2 ? 16 : 8);
    return out;
}

/* For each eight taps, nt tiles of 32 lanes: two words, of taps four apart. */
static uint8_t *pack_pixels(uint8_t *out, const struct net_made *made,
                            const struct net_layer *layer, uint32_t channels_a)
{
    const struct net_fields *f = &layer->f;
    const uint32_t taps = f->kernel_y * f->kernel_x, nt = made->columns / 8;
    for (uint32_t i = 0; i < (taps + 7) / 8 * nt * 32; i++) {
        const uint32_t lane = i % 32, n = channel_of(nt, i / 32 % nt, lane / 4);
        for (uint32_t e = 0; e < 8; e++) {
            const uint32_t tap = i / 32 / nt * 8 + e / 4 * 4 + lane % 4;
            const bool is_one = n < f->channels && tap < taps && e % 4 < channels_a;
            *out++ = is_one ? (uint8_t)layer->weights[(n * taps + tap) * channels_a + e % 4] : 0;
        }
    }
    return out;
}

/* For four channels, each row of the window: a word per channel, and another for a fifth tap. */
static uint8_t *pack_depthwise(uint8_t *out, const struct net_layer *layer, uint32_t pitch)
{
    const struct net_fields *f = &layer->f;
    const uint32_t k = f->kernel_y, words = k == 5 ? 2 : 1;
    memset(out, 0, (size_t)pitch * k * words * 4);
    for (uint32_t i = 0; i < f->channels * k * k; i++) {
        const uint32_t c = i / (k * k), y = i / k % k, x = i % k;
        const uint32_t byte = x < 4 ? x : f->stride_x == 1 ? 3 : 2;
        out[(((c / 4 * k + y) * words + x / 4) * 4 + c % 4) * 4 + byte] =
            (uint8_t)layer->weights[i];
    }
    return out + (size_t)pitch * k * words * 4;
}

/* Bias, multiplier, addend and shifts of each channel; for rows by channels, in lane order. */
static uint8_t *pack_parameters(uint8_t *out, const struct net_made *made,
                                const struct net_layer *layer, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, out += 16) {
        uint32_t n = i;
        if (made->kind == NET_TILE_WINDOW)
            n = i / made->columns * made->columns + i % 4 * (made->columns / 4) +
                i % made->columns / 4;
        if (n >= layer->f.channels) {
            memset(out, 0, 16);
            continue;
        }
        const struct net_scaling s = net_layer_scaling(layer, n);
        const int32_t words[4] = {layer->bias[n], s.mul, s.add, s.pre << 8 | s.shift};
        memcpy(out, words, 16);
    }
    return out;
}

/* Upper bound on the bytes of a layer. */
static size_t packed_most(const struct net_made *made)
{
    const size_t taps = (size_t)made->tile.f.kernel_y * made->tile.f.kernel_x;
    const size_t wide = round_up(made->tile.pitch, made->columns);
    const size_t deep = made->kind == NET_TILE_DEPTHWISE ? 3
                        : made->kind == NET_TILE_PIXELS  ? 40
                                                         : round_up(made->tile.pitch_a, DEEP);
    return (wide + WORD_CHANNELS) * (taps * deep + 16);
}

static void pack(struct net_plan *plan, struct net_made *made)
{
    const struct net_layer *layer = &plan->model->layers[made->convolution];
    const uint32_t channels_a = plan->model->tensors[layer->f.a].channels;
    struct net_tile *tile = &made->tile;
    uint8_t *at = plan->packed + plan->packed_bytes, *tails = at;
    tile->weights = (uint32_t)plan->packed_bytes;
    at = made->kind == NET_TILE_WINDOW   ? pack_window(at, &tails, made, layer, channels_a)
         : made->kind == NET_TILE_PIXELS ? pack_pixels(at, made, layer, channels_a)
                                         : pack_depthwise(at, layer, tile->pitch);
    tile->tails = (uint32_t)(tails - plan->packed);
    tile->parameters = (uint32_t)(at - plan->packed);
    at =
        pack_parameters(at, made, layer,
                        made->kind == NET_TILE_WINDOW ? tile->chunks * made->columns : tile->pitch);
    plan->packed_bytes = (size_t)(at - plan->packed);
}

/* --- opening --------------------------------------------------------------------------------- */

static uint32_t offset_in(const struct net_model *model, const void *array)
{
    return array ? (uint32_t)((const uint8_t *)array - model->bytes) : 0;
}

/* Plans the plain kernel that makes a tensor, or takes the picture. */
static void plan_plain(struct net_plan *plan, uint32_t tensor, const size_t *place)
{
    const struct net_model *model = plan->model;
    const struct net_tensor *out = &model->tensors[tensor];
    const struct net_layer picture = {
        .f = {.height = out->height, .width = out->width, .channels = out->channels}};
    const struct net_layer *layer = tensor > 0 ? &model->layers[tensor - 1] : &picture;
    const struct net_tensor *a = &model->tensors[layer->f.a], *b = &model->tensors[layer->f.b];
    struct net_made *made = &plan->made[tensor];
    made->kernel = tensor > 0 ? layer->f.kind : NET_TAKE;
    made->units = tensor > 0 ? (uint32_t)net_tensor_values(out)
                             : (out->height * out->width + NET_TAKEN - 1) / NET_TAKEN;
    made->group = 1;
    made->tile = (struct net_tile){
        .place = place[tensor],
        .place_a = place[layer->f.a],
        .place_b = place[layer->f.b],
        .weights = offset_in(model, layer->tables ? (const void *)layer->tables : layer->weights),
        .parameters = offset_in(model, layer->bias),
        .pitch = pitch_of(out),
        .height_a = a->height,
        .width_a = a->width,
        .pitch_a = pitch_of(a),
        .chunks = 1,
        .zero = a->zero * 0x1010101u,
        .channels_a = a->channels,
        .zero_b = b->zero,
        .f = layer->f};
}

/* Adds the fused addition, layer i, to the launch of its convolution. */
static void set_addition(struct net_tile *tile, const struct net_plan *plan, uint32_t i)
{
    const struct net_fields *f = &plan->model->layers[i].f;
    const struct net_tensor *tensors = plan->model->tensors;
    const bool is_a = f->a == plan->made[i + 1].convolution + 1;
    const int32_t zeros =
        (int32_t)tensors[f->a].zero * f->mul_a + (int32_t)tensors[f->b].zero * f->mul_b;
    tile->place_b = plan->made[is_a ? f->b : f->a].tile.place;
    tile->add = *f;
    tile->add.mul_a = is_a ? f->mul_a : f->mul_b;
    tile->add.mul_b = is_a ? f->mul_b : f->mul_a;
    tile->added = (1 << (f->shift - 1)) + (int32_t)(f->zero << f->shift) - zeros;
}

/* Plans a kernel of net_tensor for layer i, or for the convolution fused with it; there may be none. */
static enum status plan_tile(struct net_plan *plan, uint32_t i, struct error *err)
{
    struct net_made made = plan->made[i + 1];
    const bool joined = made.convolution != i;
    char *options = held_array(&plan->held, OPTIONS, 1);
    if (held_check(&plan->held, "a network", err) != STATUS_OK)
        return STATUS_FAILED;
    made.tile = plan->made[made.convolution + 1].tile;
    made.tile.place = plan->made[i + 1].tile.place;
    const char *name = choose(&made, options, plan, joined ? &plan->model->layers[i].f : NULL);
    const size_t bytes = plan->packed_bytes + packed_most(&made);
    if (!name || bytes > PACKED_MOST) {
        plan->made[made.convolution + 1].is_made_later = false;
        return STATUS_OK;
    }
    if (made.kind == NET_TILE_WINDOW) {
        made.tile.chunks = (made.tile.pitch + made.columns - 1) / made.columns;
        made.tile.full = made.tile.pitch_a / DEEP;
        made.tile.tail = made.tile.pitch_a % DEEP;
    }
    if (joined)
        set_addition(&made.tile, plan, i);
    uint8_t *packed = realloc(plan->packed, bytes);
    if (!packed)
        return error_memory(err, bytes, "a network's weights");
    plan->packed = packed;
    pack(plan, &made);
    plan->names[plan->kernel_count] = name;
    plan->options[plan->kernel_count] = options;
    made.kernel = NET_PLAIN_KERNELS;
    while (strcmp(plan->options[made.kernel], options) != 0)
        made.kernel++;
    plan->kernel_count += made.kernel == plan->kernel_count;
    plan->made[i + 1] = made;
    return STATUS_OK;
}

enum status net_plan_open(struct net_plan *plan, const struct net_model *model, const char *plain,
                          bool tiles, struct error *err)
{
    const uint32_t count = model->header->layers + 1;
    *plan = (struct net_plan){.model = model, .kernel_count = NET_PLAIN_KERNELS};
    uint32_t *last = held_array(&plan->held, count, sizeof *last);
    size_t *room = held_array(&plan->held, count, sizeof *room); /* multiples of ALIGNMENT */
    size_t *place = held_array(&plan->held, count, sizeof *place);
    plan->made = held_array(&plan->held, count, sizeof *plan->made);
    plan->names = held_array(&plan->held, NET_PLAIN_KERNELS + count, sizeof *plan->names);
    plan->options = held_array(&plan->held, NET_PLAIN_KERNELS + count, sizeof *plan->options);
    enum status status = held_check(&plan->held, "a network", err);
    if (status == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            room[i] = (net_plan_bytes(&model->tensors[i]) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            last[i] = model->tensors[i].last;
        }
        for (unsigned i = 0; i < NET_PLAIN_KERNELS; i++) {
            plan->names[i] = plain_names[i];
            plan->options[i] = plain;
        }
        join_additions(plan, last, tiles);
        plan->bytes = net_find_places(place, room, last, count);
        if (plan->bytes > UINT32_MAX)
            status = error_memory(err, plan->bytes, "the values of a network");
        for (uint32_t i = 0; i < count; i++)
            plan_plain(plan, i, place);
    }
    for (uint32_t i = 0; i < model->header->layers && tiles && status == STATUS_OK; i++)
        if (plan->made[i + 1].convolution != NET_NO_LAYER && !plan->made[i + 1].is_made_later)
            status = plan_tile(plan, i, err);
    if (status != STATUS_OK)
        net_plan_close(plan);
    return status;
}

void net_plan_close(struct net_plan *plan)
{
    held_free(&plan->held);
    free(plan->packed);
    *plan = (struct net_plan){.model = NULL};
}

size_t net_plan_launch(struct net_tile *tile, const struct net_plan *plan, uint32_t tensor,
                       uint32_t pictures, uint32_t batch)
{
    const struct net_made *made = &plan->made[tensor];
    const size_t units = (size_t)pictures * made->units;
    *tile = made->tile;
    tile->place *= batch;
    tile->place_a *= batch;
    tile->place_b *= batch;
    tile->rows = made->kind == NET_TILE_NONE || made->kind == NET_TILE_DEPTHWISE ? pictures
                                                                                 : (uint32_t)units;
    return made->is_made_later ? 0
                               : (units + made->group - 1) / made->group * tile->chunks *
                                     (made->kind == NET_TILE_NONE ? 1 : NET_TILE_ITEMS);
}
