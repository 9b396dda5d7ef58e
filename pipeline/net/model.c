/* model.c: reads network files.
 *
 * The arrays of a file have no offsets: each follows from the sizes before it, so that nothing can
 * overlap or be read twice. Layers are checked in file order against the tensors before them; a
 * layer that reads itself or a later one is refused, so there are no cycles. */
#include "net/model.h"

#include "base/hash.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a network is used as stored");

#define FILE_BYTES_MAX     ((uint64_t)1 << 30)
#define TEXT_BYTES_MAX     (1u << 20)
#define CLASSES_MAX        65536u
#define SIDE_MAX           8192u
#define TENSOR_VALUES_MAX  ((uint64_t)1 << 27)
#define TENSORS_VALUES_MAX ((uint64_t)1 << 30)
#define PRODUCTS_MAX       ((uint64_t)1 << 38)
#define TAPS_MAX           65536u
#define SUM_PIXELS_MAX     (1u << 23)

_Static_assert(sizeof(struct net_header) == 96, "as in docs/networks.md");
_Static_assert(sizeof(struct net_output) == 48, "as in docs/networks.md");
_Static_assert(sizeof(struct net_fields) == 96, "as in docs/networks.md");

/* The fields of a kind: a bit for each of their words. */
#define HAS(field) (1u << offsetof(struct net_fields, field) / sizeof(uint32_t))
enum {
    HAS_ALWAYS = HAS(kind) | HAS(a) | HAS(height) | HAS(width) | HAS(channels),
    HAS_WINDOW =
        HAS(kernel_y) | HAS(kernel_x) | HAS(stride_y) | HAS(stride_x) | HAS(top) | HAS(left),
    HAS_DILATION = HAS(dilation_y) | HAS(dilation_x),
    HAS_CLAMP = HAS(zero) | HAS(low) | HAS(high),
    HAS_SCALE = HAS(mul_a) | HAS(shift)
};

static const struct {
    const char *name;
    unsigned has; /* besides HAS_ALWAYS */
} kinds[NET_KINDS] = {
    [NET_CONVOLUTION] = {"convolution", HAS_WINDOW | HAS_DILATION | HAS(groups) | HAS_CLAMP},
    [NET_ADD] = {"add", HAS(b) | HAS_CLAMP | HAS_SCALE | HAS(mul_b)},
    [NET_MULTIPLY] = {"multiply", HAS(b) | HAS_CLAMP | HAS_SCALE},
    [NET_MAX] = {"max", HAS_WINDOW | HAS(zero)},
    [NET_MEAN] = {"mean", HAS_WINDOW | HAS_CLAMP | HAS_SCALE | HAS(counts_padding)},
    [NET_SUM] = {"sum", 0},
    [NET_TABLE] = {"table", HAS(groups) | HAS(zero)},
};

size_t net_tensor_values(const struct net_tensor *tensor)
{
    return (size_t)tensor->height * tensor->width * tensor->channels;
}

/* The state of reading a file. */
struct reading {
    struct net_model *model;
    uint64_t size, at; /* size: without the digest */
};

static bool is_between(uint32_t value, uint32_t least, uint32_t most)
{
    return value >= least && value <= most;
}

/* The next array: `bytes` at the next multiple of NET_ALIGNMENT; NULL, also for all that follow: the file
 * is too short. */
static const void *take(struct reading *reading, uint64_t bytes)
{
    const uint64_t from = (reading->at + NET_ALIGNMENT - 1) / NET_ALIGNMENT * NET_ALIGNMENT;
    const bool fits = from <= reading->size && bytes <= reading->size - from;
    reading->at = fits ? from + bytes : reading->size + 1;
    return fits ? reading->model->bytes + from : NULL;
}

/* --- layers: each function returns what is wrong, or NULL ---------------------------------------- */

static const char *check_fields(const struct net_fields *f, unsigned has)
{
    uint32_t words[sizeof *f / sizeof(uint32_t)];
    memcpy(words, f, sizeof words);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i] && !((has | HAS_ALWAYS) >> i & 1))
            return "a field that it does not have is set";
    if (f->zero > 255 || f->high > 255 || f->low > f->high)
        return "its zero point or its limits do not fit 8 bits";
    if (f->counts_padding > 1)
        return "it is neither with nor without padding";
    return NULL;
}

static const char *check_size(const struct net_tensor *tensor)
{
    if (!is_between(tensor->height, 1, SIDE_MAX) || !is_between(tensor->width, 1, SIDE_MAX) ||
        !is_between(tensor->channels, 1, NET_VALUES_MAX))
        return "a side or the number of channels is 0 or too large";
    if ((uint64_t)tensor->height * tensor->width * tensor->channels > TENSOR_VALUES_MAX)
        return "it makes more than 2^27 values";
    return NULL;
}

/* One direction of windows: does each begin before the input's end and end after its beginning?
 * Widens the border to what they read past the edges. */
static const char *check_direction(uint32_t *border_before, uint32_t *border_behind, uint32_t from,
                                   uint32_t to, uint32_t kernel, uint32_t stride, uint32_t dilation,
                                   uint32_t before)
{
    if (!is_between(kernel, 1, SIDE_MAX) || !is_between(stride, 1, SIDE_MAX) ||
        !is_between(dilation, 1, SIDE_MAX))
        return "its kernel, stride or dilation is 0 or too large";
    const uint64_t last = (uint64_t)(to - 1) * stride, reach = (uint64_t)(kernel - 1) * dilation;
    if (before > reach || last >= (uint64_t)from + before)
        return "a window is outside of the input";
    const uint64_t end = last + reach + 1, limit = (uint64_t)from + before;
    *border_before = max_u32(*border_before, before);
    *border_behind = max_u32(*border_behind, end > limit ? (uint32_t)(end - limit) : 0);
    return NULL;
}

static uint64_t framed_values(const struct net_tensor *t)
{
    return ((uint64_t)t->height + t->top + t->bottom) * ((uint64_t)t->width + t->left + t->right) *
           t->channels;
}

/* Checks the layer's window, with a dilation of 1 if it has none, and records what it reads past
 * the input's edges. */
static const char *check_window(struct net_fields *f, unsigned has, struct net_tensor *a)
{
    if (!(has & HAS_DILATION))
        f->dilation_y = f->dilation_x = 1;
    const char *fault = check_direction(&a->top, &a->bottom, a->height, f->height, f->kernel_y,
                                        f->stride_y, f->dilation_y, f->top);
    if (!fault)
        fault = check_direction(&a->left, &a->right, a->width, f->width, f->kernel_x, f->stride_x,
                                f->dilation_x, f->left);
    if (fault)
        return fault;
    if (a->top + a->bottom > SIDE_MAX || a->left + a->right > SIDE_MAX ||
        framed_values(a) > TENSOR_VALUES_MAX)
        return "its padding is too large";
    return NULL;
}

/* No sum of bias and products, in any order, may overflow int32, even if it is shifted by 33 -
 * shift. */
static const char *check_channel(const int8_t *weights, uint64_t count, int32_t bias, int32_t mul,
                                 int32_t shift)
{
    int64_t most = bias > 0 ? bias : 0, least = bias < 0 ? bias : 0;
    if (mul < 0 || shift < 24 || shift > 54)
        return "a multiplier or a shift is out of range";
    for (uint64_t i = 0; i < count; i++) {
        if (weights[i] > 0)
            most += 255 * weights[i];
        else
            least += 255 * weights[i];
    }
    const int64_t limit = (int64_t)1 << (shift < 33 ? shift - 2 : 31);
    return most < limit && -least < limit ? NULL : "a sum may be too large";
}

static const char *check_add(const struct net_fields *f, const struct net_tensor *a,
                             const struct net_tensor *b)
{
    if (b->height != a->height || b->width != a->width || b->channels != a->channels)
        return "its inputs differ in size";
    if (f->mul_a < 0 || f->mul_b < 0 || !is_between(f->shift, 1, 22) ||
        255 * ((int64_t)f->mul_a + f->mul_b) + ((int64_t)255 << f->shift) +
                ((int64_t)1 << (f->shift - 1)) >
            INT32_MAX)
        return "a sum may be too large";
    return NULL;
}

static const char *check_scaled(const struct net_fields *f, uint32_t most_shift)
{
    return f->mul_a >= 0 && is_between(f->shift, 24, most_shift)
               ? NULL
               : "its multiplier or its shift is out of range";
}

/* Checks what is specific to the kind; a and b exist, and the fields are those of the kind. */
static const char *check_kind(struct net_fields *f, struct net_tensor *a,
                              const struct net_tensor *b)
{
    const unsigned has = kinds[f->kind].has;
    const char *fault = has & HAS_WINDOW ? check_window(f, has, a) : NULL;
    if (fault)
        return fault;
    if (f->kind != NET_CONVOLUTION && f->channels != a->channels)
        return "it changes the number of channels";
    if (!(has & HAS_WINDOW) && f->kind != NET_SUM &&
        (f->height != a->height || f->width != a->width))
        return "it changes the size";
    switch ((enum net_kind)f->kind) {
    case NET_CONVOLUTION:
        return f->groups == 0 || a->channels % f->groups || f->channels % f->groups
                   ? "its groups do not divide the channels"
                   : NULL;
    case NET_ADD:
        return check_add(f, a, b);
    case NET_MULTIPLY:
        return b->height != 1 || b->width != 1 || b->channels != a->channels
                   ? "its factors are not one for each channel"
                   : check_scaled(f, 54);
    case NET_MAX:
        return f->zero != a->zero ? "it changes the zero point" : NULL;
    case NET_MEAN:
        return f->kernel_y * f->kernel_x > TAPS_MAX ? "its window is too large"
                                                    : check_scaled(f, 45);
    case NET_SUM:
        if (f->height != 1 || f->width != 1)
            return "it makes more than one pixel";
        return a->height * a->width > SUM_PIXELS_MAX ? "a sum may be too large" : NULL;
    case NET_TABLE:
        return f->groups != 1 && f->groups != f->channels
                   ? "it has neither one table nor one for each channel"
                   : NULL;
    case NET_KINDS:
        break;
    }
    return "its kind is unknown";
}

static const char too_large[] =
    "the network is too large: more than 2^30 values or 2^38 multiplications for a picture";

static void add_reader(struct net_tensor *tensor, uint32_t last)
{
    tensor->readers++;
    tensor->last = last;
}

/* Checks a layer without its arrays, and describes the tensor that it makes. */
static const char *check_layer(struct net_model *model, uint32_t i)
{
    struct net_fields *f = &model->layers[i].f;
    if (f->kind >= NET_KINDS)
        return "its kind is unknown";
    if (f->a > i || f->b > i)
        return "it reads a tensor that is not made before it";
    struct net_tensor *a = &model->tensors[f->a], *b = &model->tensors[f->b];
    struct net_tensor *made = &model->tensors[i + 1];
    if (a->is_sum || b->is_sum)
        return "it reads a tensor that is not uint8";
    *made = (struct net_tensor){.height = f->height,
                                .width = f->width,
                                .channels = f->channels,
                                .zero = f->zero,
                                .is_sum = f->kind == NET_SUM,
                                .last = i + 1};
    const char *fault = check_fields(f, kinds[f->kind].has);
    fault = fault ? fault : check_size(made);
    fault = fault ? fault : check_kind(f, a, b);
    if (fault)
        return fault;
    add_reader(a, i + 1);
    if (kinds[f->kind].has & HAS(b))
        add_reader(b, i + 1);
    const uint64_t values = net_tensor_values(made);
    uint64_t each = 1; /* steps per value: below 2^26 * 2^16 */
    if (f->kind == NET_SUM)
        each = (uint64_t)a->height * a->width;
    else if (f->kernel_y)
        each = (uint64_t)f->kernel_y * f->kernel_x *
               (f->kind == NET_CONVOLUTION ? a->channels / f->groups : 1);
    return each > PRODUCTS_MAX / values || (model->products += each * values) > PRODUCTS_MAX
               ? too_large
               : NULL;
}

static const char *read_arrays(struct reading *reading, uint32_t i)
{
    struct net_layer *layer = &reading->model->layers[i];
    const struct net_fields *f = &layer->f;
    if (f->kind == NET_TABLE) {
        layer->tables = take(reading, (uint64_t)f->groups * 256);
        return layer->tables ? NULL : "the file ends before its tables do";
    }
    if (f->kind != NET_CONVOLUTION)
        return NULL;
    const uint64_t each =
        (uint64_t)f->kernel_y * f->kernel_x * (reading->model->tensors[f->a].channels / f->groups);
    const uint64_t table = f->channels * sizeof(int32_t);
    layer->weights = take(reading, each * f->channels);
    layer->bias = take(reading, table);
    layer->mul = take(reading, table);
    layer->shift = take(reading, table);
    if (!layer->shift)
        return "the file ends before its weights do";
    const char *fault = NULL;
    for (uint32_t c = 0; c < f->channels && !fault; c++)
        fault = check_channel(layer->weights + c * each, each, layer->bias[c], layer->mul[c],
                              layer->shift[c]);
    return fault;
}

/* --- the file ------------------------------------------------------------------------------------ */

static bool is_name(const char name[NET_NAME])
{
    static const char zeros[NET_NAME];
    const size_t length = strnlen(name, NET_NAME);
    return length > 0 && length < NET_NAME && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length &&
           memcmp(name + length, zeros, NET_NAME - length) == 0;
}

static const char *check_output(struct net_model *model, uint32_t i)
{
    const struct net_output *output = &model->outputs[i];
    if (!is_name(output->name))
        return "its name is not valid";
    for (uint32_t other = 0; other < i; other++)
        if (strcmp(model->outputs[other].name, output->name) == 0)
            return "another one has its name";
    if (output->tensor > model->header->layers)
        return "its tensor does not exist";
    if (net_tensor_values(&model->tensors[output->tensor]) > NET_VALUES_MAX)
        return "it has more than 65,536 values";
    if (output->mul <= 0 || output->shift > 62 || output->nothing)
        return "its scale is out of range";
    add_reader(&model->tensors[output->tensor], UINT32_MAX);
    return NULL;
}

/* Whether it is UTF-8 text without control characters, in whole lines; counts them and notes empty
 * ones. */
static bool is_text(uint32_t *lines, bool *has_empty, const char *text, uint32_t bytes)
{
    *lines = 0;
    *has_empty = false;
    for (uint32_t i = 0, length; i < bytes; i += length) {
        length = (uint32_t)utf8_sequence(text + i, bytes - i);
        if (length == 0 || ((uint8_t)text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f)
            return false;
        *has_empty |= text[i] == '\n' && (i == 0 || text[i - 1] == '\n');
        *lines += text[i] == '\n';
    }
    return bytes == 0 || text[bytes - 1] == '\n';
}

static const char *read_texts(struct reading *reading)
{
    const struct net_header *header = reading->model->header;
    struct net_classes *classes = &reading->model->classes;
    uint32_t lines;
    bool has_empty;
    if (header->about_bytes > TEXT_BYTES_MAX || header->names_bytes > TEXT_BYTES_MAX ||
        header->classes > CLASSES_MAX)
        return "its texts or classes are too large";
    const char *about = take(reading, header->about_bytes);
    classes->names = take(reading, header->names_bytes);
    if (!classes->names)
        return "it ends before its texts do";
    if (!is_text(&lines, &has_empty, about, header->about_bytes))
        return "its description is not valid";
    if (!is_text(&lines, &has_empty, classes->names, header->names_bytes) || has_empty ||
        lines != header->classes)
        return "the names of its classes are not one line each";
    classes->count = header->classes;
    classes->names_bytes = header->names_bytes;
    classes->output = header->class_output;
    if (header->classes ? header->class_output >= header->outputs : header->class_output != 0)
        return "its classes belong to no output";
    return NULL;
}

static const char *read_classes(struct reading *reading)
{
    const struct net_model *model = reading->model;
    struct net_classes *classes = &reading->model->classes;
    if (classes->count == 0)
        return NULL;
    const uint32_t tensor = model->outputs[classes->output].tensor;
    classes->columns = (uint32_t)net_tensor_values(&model->tensors[tensor]);
    classes->weights = take(reading, (uint64_t)classes->count * classes->columns);
    classes->scale = take(reading, classes->count * sizeof(float));
    classes->bias = take(reading, classes->count * sizeof(float));
    if (!classes->bias)
        return "it ends before the weights of its classes do";
    for (uint32_t i = 0; i < classes->count; i++)
        if (!isfinite(classes->scale[i]) || !isfinite(classes->bias[i]))
            return "a scale or a bias of its classes is not a number";
    return NULL;
}

/* Checks the layers, whose sizes tell the sizes of all arrays, then reads these; returns what is
 * wrong, or NULL. `where` names the part at fault, if any. */
static const char *read_all(struct reading *reading, char where[64])
{
    struct net_model *model = reading->model;
    const uint32_t layers = model->header->layers;
    const char *fault = NULL;
    uint64_t values = 0;
    for (uint32_t i = 0; i < 2 * layers && !fault; i++) {
        if (i == layers) {
            for (uint32_t t = 0; t <= layers; t++)
                if ((values += framed_values(&model->tensors[t])) > TENSORS_VALUES_MAX)
                    return too_large;
            for (uint32_t o = 0; o < model->header->outputs; o++)
                if ((fault = check_output(model, o))) {
                    snprintf(where, 64, "output %u: ", o);
                    return fault;
                }
            if ((fault = read_texts(reading)) || (fault = read_classes(reading)))
                return fault;
        }
        fault = i < layers ? check_layer(model, i) : read_arrays(reading, i - layers);
        const uint32_t kind = model->layers[i % layers].f.kind;
        if (fault)
            snprintf(where, 64, "layer %u (%s): ", i % layers,
                     kind < NET_KINDS ? kinds[kind].name : "?");
    }
    return fault || reading->at == reading->size ? fault : "bytes follow its last layer";
}

/* Checks the header and the digest, which it writes. */
static const char *check_header(char hex[65], const struct net_header *header, size_t size)
{
    const struct net_tensor picture = {
        .height = header->height, .width = header->width, .channels = 3};
    const uint8_t *bytes = (const uint8_t *)header;
    uint8_t digest[NET_DIGEST_BYTES];
    if (header->bytes != size)
        return "it is cut off, or bytes follow it";
    sha256_of(digest, bytes, size - NET_DIGEST_BYTES);
    if (memcmp(digest, bytes + size - NET_DIGEST_BYTES, NET_DIGEST_BYTES) != 0)
        return "it is damaged: its SHA-256 does not match";
    sha256_hex_of(hex, bytes, size);
    for (unsigned i = 0; i < sizeof header->nothing / sizeof *header->nothing; i++)
        if (header->nothing[i])
            return "a field that this version does not know is set";
    if (!is_between(header->layers, 1, NET_LAYERS_MAX) ||
        !is_between(header->outputs, 1, NET_OUTPUTS_MAX))
        return "it has no layers or outputs, or too many";
    if (header->fit > NET_CROP || !is_between(header->crop, 1, 1000) || header->zero > 255)
        return "its picture options are out of range";
    if (check_size(&picture))
        return "its pictures have no side, or too large ones";
    if (sizeof *header + header->outputs * sizeof(struct net_output) +
            header->layers * sizeof(struct net_fields) >
        size - NET_DIGEST_BYTES)
        return "it ends before its layers do";
    return NULL;
}

static enum status read_model(struct net_model *model, const char *subject, struct error *err)
{
    const struct net_header *header = model->header = (const void *)model->bytes;
    char where[64] = "";
    if (model->size < sizeof *header + NET_DIGEST_BYTES || model->size > FILE_BYTES_MAX ||
        memcmp(header->magic, NET_MAGIC, sizeof header->magic - 1) != 0)
        return error_set(err, STATUS_FAILED,
                         "%s: not a clpipe network: clpipe-network makes one from an ONNX file",
                         subject);
    if (memcmp(header->magic, NET_MAGIC, sizeof header->magic) != 0)
        return error_set(err, STATUS_FAILED, "%s: not a network of version 1", subject);
    const char *fault = check_header(model->digest, header, model->size);
    if (!fault) {
        model->outputs = (const void *)(header + 1);
        model->layers = held_array(&model->held, header->layers, sizeof *model->layers);
        model->tensors = held_array(&model->held, header->layers + 1, sizeof *model->tensors);
        if (held_check(&model->held, "a network", err) != STATUS_OK)
            return STATUS_FAILED;
        model->tensors[0] = (struct net_tensor){
            .height = header->height, .width = header->width, .channels = 3, .zero = header->zero};
        const struct net_fields *fields = (const void *)(model->outputs + header->outputs);
        for (uint32_t i = 0; i < header->layers; i++)
            model->layers[i].f = fields[i];
        struct reading reading = {
            model, model->size - NET_DIGEST_BYTES,
            (uint64_t)((const uint8_t *)(fields + header->layers) - model->bytes)};
        fault = read_all(&reading, where);
    }
    return fault ? error_set(err, STATUS_FAILED, "%s: not a network that can be used: %s%s",
                             subject, where, fault)
                 : STATUS_OK;
}

enum status net_model_read(struct net_model **out, uint8_t *bytes, size_t size, const char *subject,
                           struct error *err)
{
    struct net_model *model = *out = calloc(1, sizeof *model);
    if (!model) {
        free(bytes);
        return error_memory(err, sizeof *model, "a network");
    }
    model->bytes = bytes;
    model->size = size;
    const enum status status = read_model(model, subject, err);
    if (status != STATUS_OK)
        net_model_close(out);
    return status;
}

enum status net_model_open(struct net_model **out, const char *path, struct error *err)
{
    struct stat st;
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, STATUS_FAILED, errno, "open", "%s: the network cannot be read",
                           path);
    char *bytes = NULL;
    size_t size;
    enum status status = STATUS_FAILED;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_BYTES_MAX)
        error_set(err, STATUS_FAILED, "%s: not a clpipe network: it is not a file, or too large",
                  path);
    else
        status = read_to_end(&bytes, &size, fd, path, err);
    close(fd);
    if (status == STATUS_OK)
        return net_model_read(out, (uint8_t *)bytes, size, path, err);
    free(bytes);
    return status;
}

void net_model_close(struct net_model **model)
{
    if (!*model)
        return;
    held_free(&(*model)->held);
    free((*model)->bytes);
    free(*model);
    *model = NULL;
}

const struct net_output *net_model_output(const struct net_model *model, const char *name)
{
    const struct net_output *output = model->outputs;
    while (output < model->outputs + model->header->outputs && strcmp(output->name, name) != 0)
        output++;
    return output < model->outputs + model->header->outputs ? output : NULL;
}

struct net_scaling net_layer_scaling(const struct net_layer *layer, uint32_t channel)
{
    const int32_t s = layer->shift[channel], pre = s < 33 ? 33 - s : 0, shift = s + pre - 32;
    return (struct net_scaling){.mul = layer->mul[channel],
                                .add = (1 << (shift - 1)) + ((int32_t)layer->f.zero << shift),
                                .shift = shift,
                                .pre = pre};
}

size_t net_find_places(size_t *place, const size_t *room, const uint32_t *last, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t t = 0; t < count; t++) {
        size_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t i = 0; i < t; i++) {
                const size_t end = place[i] + room[i];
                if (last[i] >= t && place[i] < at + room[t] && at < end) {
                    at = end;
                    moved = true;
                }
            }
        }
        place[t] = at;
        bytes = at + room[t] > bytes ? at + room[t] : bytes;
    }
    return bytes;
}

void net_output_values(float *out, const struct net_model *model, const struct net_output *output,
                       const uint32_t *words)
{
    const struct net_tensor *about = &model->tensors[output->tensor];
    for (size_t i = 0; i < net_tensor_values(about); i++) {
        const double value = (double)(int32_t)words[i] - (about->is_sum ? 0 : about->zero);
        out[i] = (float)ldexp(value * output->mul, -(int)output->shift);
    }
}
