/* net_kind.c: the kind "net": outputs of an integer network (net/model.h) or of an ONNX file
 * (net_onnx.c). */
#include "base/hash.h"
#include "base/parse.h"
#include "decode/scale.h"
#include "features/kind.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CROP_WHOLE 1000u
#define PATH_SIZE  4096u
#define SUFFIX     ".net"

/* --- models ---------------------------------------------------------------------------------- */

/* Integer networks in use: each is read once, whatever its path, and stays until the process
 * ends. */
struct open_model {
    struct net_model *model;
    struct open_model *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_model *models;

/* $CLPIPE_MODELS, else $XDG_DATA_HOME/clpipe/models, else $HOME/.local/share/clpipe/models. */
static void models_directory(char *path, size_t size)
{
    const char *own = getenv("CLPIPE_MODELS"), *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    if (own && *own)
        snprintf(path, size, "%s", own);
    else if (data && *data == '/')
        snprintf(path, size, "%s/clpipe/models", data);
    else
        snprintf(path, size, "%s/.local/share/clpipe/models", home ? home : "");
}

static const struct net_model *find_open(const char *digest)
{
    for (const struct open_model *open = models; open; open = open->next)
        if (strcmp(open->model->digest, digest) == 0)
            return open->model;
    return NULL;
}

/* Reads a network, unless it is open. */
static enum status open_model(const struct net_model **out, const char *path, struct error *err)
{
    struct net_model *model;
    if (net_model_open(&model, path, err) != STATUS_OK)
        return STATUS_FAILED;
    *out = find_open(model->digest);
    struct open_model *open = *out ? NULL : malloc(sizeof *open);
    if (!open) {
        net_model_close(&model);
        return *out ? STATUS_OK : error_memory(err, sizeof *open, "a model");
    }
    *open = (struct open_model){model, models};
    models = open;
    *out = model;
    return STATUS_OK;
}

static bool ends_in(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

/* model=FILE: a name without a slash that is no file is looked up in the directory as NAME.net or
 * NAME.onnx. A model whose name ends in .onnx is not started. */
static enum status use_model(struct feature_net *net, const char *file, struct error *err)
{
    static const char *const suffixes[] = {SUFFIX, RUNTIME_SUFFIX};
    char path[PATH_SIZE], directory[PATH_SIZE - 256];
    snprintf(path, sizeof path, "%s", file);
    if (!strchr(file, '/') && access(file, F_OK) != 0) {
        models_directory(directory, sizeof directory);
        for (int i = 0; i < 2 && access(path, F_OK) != 0; i++)
            snprintf(path, sizeof path, "%s/%.240s%s", directory, file, suffixes[i]);
        if (access(path, F_OK) != 0)
            return error_set(err, STATUS_USAGE,
                             "there is no model %s: neither a file of that name nor %.*s" SUFFIX
                             "; 'clpipe-network lite0' makes one",
                             file, (int)(strlen(path) - strlen(RUNTIME_SUFFIX)), path);
    }
    if (ends_in(path, RUNTIME_SUFFIX)) {
        net->runtime = runtime_of(path);
        return net->runtime ? STATUS_OK : error_memory(err, PATH_SIZE, "a model");
    }
    pthread_mutex_lock(&lock);
    const enum status status = open_model(&net->model, path, err);
    pthread_mutex_unlock(&lock);
    if (status == STATUS_OK)
        strcpy(net->digest, net->model->digest);
    return status;
}

/* Does the file have that digest? */
static bool has_digest(const char *path, const char *wanted)
{
    struct sha256 state;
    uint8_t bytes[1 << 14], digest[32];
    char hex[65];
    FILE *file = fopen(path, "rb");
    sha256_init(&state);
    for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        sha256_update(&state, bytes, got);
    if (file)
        fclose(file);
    sha256_final(&state, digest);
    sha256_hex(hex, digest);
    return strcmp(hex, wanted) == 0;
}

/* Finds the file in the directory with that suffix and digest. */
static bool look_for(char path[PATH_SIZE], const char *suffix, const char *digest)
{
    char directory[PATH_SIZE - 256];
    models_directory(directory, sizeof directory);
    DIR *entries = opendir(directory);
    bool found = false;
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));) {
        snprintf(path, PATH_SIZE, "%s/%.255s", directory, entry->d_name);
        found = ends_in(path, suffix) && has_digest(path, digest);
    }
    if (entries)
        closedir(entries);
    return found;
}

/* Finds the model of the feature's digest, open already or in the directory. */
static void find_model(struct feature_net *net)
{
    char path[PATH_SIZE];
    if (net->made_by[0]) {
        net->runtime = runtime_find(net->digest);
        if (!net->runtime && look_for(path, RUNTIME_SUFFIX, net->digest))
            net->runtime = runtime_of(path);
        return;
    }
    pthread_mutex_lock(&lock);
    net->model = find_open(net->digest);
    if (!net->model && look_for(path, SUFFIX, net->digest))
        open_model(&net->model, path, NULL);
    pthread_mutex_unlock(&lock);
}

/* --- settings -------------------------------------------------------------------------------- */

/* The outputs of a model, "embedding, scores". */
static void list_outputs(char *text, size_t size, const struct net_model *model)
{
    size_t used = 0;
    for (unsigned i = 0; i < model->output_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 model->outputs[i].name);
}

static enum status settle_output(struct feature *feature, const char *spec, struct error *err)
{
    const struct net_model *model = feature->net.model;
    const int output = net_model_output(model, *feature->net.output ? feature->net.output : NULL);
    if (output < 0) {
        char names[256];
        list_outputs(names, sizeof names, model);
        return error_set(err, STATUS_USAGE, "feature '%s': the model has no output %s; it has %s",
                         spec, feature->net.output, names);
    }
    snprintf(feature->net.output, sizeof feature->net.output, "%s", model->outputs[output].name);
    const size_t values = net_tensor_values(&model->tensors[model->outputs[output].tensor]);
    if (feature->net.values > 0 && feature->net.values != values)
        return error_set(err, STATUS_USAGE, "feature '%s': the output %s has %zu values", spec,
                         feature->net.output, values);
    feature->net.values = (uint32_t)values;
    if (feature->net.fit == FEATURE_FIT_MODEL)
        feature->net.fit = model->fit == NET_CROP ? FEATURE_FIT_CROP : FEATURE_FIT_SQUASH;
    if (feature->net.fit == FEATURE_FIT_CROP && feature->net.crop == 0)
        feature->net.crop = model->fit == NET_CROP ? model->crop : 875;
    feature->image.scale = scale_to(model->width, model->height,
                                    feature->net.fit == FEATURE_FIT_CROP ? feature->net.crop : 0);
    return STATUS_OK;
}

static enum status settle_model(struct feature *feature, const char *spec, struct error *err)
{
    const struct feature_net *net = &feature->net;
    if (net->runtime)
        return feature_settle_onnx(feature, spec, err);
    if (net->job.width || net->job.layout || net->job.pool || *net->mean || *net->std || net->cuda)
        return error_set(
            err, STATUS_USAGE,
            "feature '%s': size=, layout=, mean=, std=, pool= and provider= are of ONNX files",
            spec);
    return settle_output(feature, spec, err);
}

static enum status settle_net(struct feature *feature, const char *spec, struct error *err)
{
    const bool bound = feature->net.model || feature->net.runtime;
    if (!feature->net.digest[0] && !bound)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': net takes model=FILE; 'clpipe-network lite0' makes one",
                         spec);
    if (feature->grid_rows != 1 || feature->grid_columns != 1 || feature->levels > 0 ||
        feature->image.scale > 0)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': net takes no grid=, levels= or scale=", spec);
    if (feature->normalize == NORMALIZE_HELLINGER)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': normalize=hellinger must be unit or none", spec);
    feature->normalize =
        feature->normalize == NORMALIZE_NONE || feature->normalize == NORMALIZE_VALUES
            ? NORMALIZE_VALUES
            : NORMALIZE_UNIT;
    const enum status status = bound ? settle_model(feature, spec, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (!bound && (feature->net.values == 0 || !*feature->net.output ||
                   feature->net.fit == FEATURE_FIT_MODEL))
        return error_set(err, STATUS_USAGE,
                         "feature '%s': model=DIGEST takes output=, values= and fit=", spec);
    if (feature->normalize == NORMALIZE_VALUES && feature->store == STORE_UINT8)
        return error_set(err, STATUS_USAGE, "feature '%s': store=uint8 takes normalize=unit", spec);
    feature->bins[0] = feature->cell_bins = feature->net.values;
    return STATUS_OK;
}

enum status feature_bind_model(struct feature *feature, struct error *err)
{
    char directory[4096];
    if (!feature->kind->network || feature->net.model || feature->net.runtime)
        return STATUS_OK;
    find_model(&feature->net);
    if (feature->net.model || feature->net.runtime)
        return settle_model(feature, feature->spec, err);
    models_directory(directory, sizeof directory);
    return error_set(
        err, STATUS_USAGE,
        "the feature %s needs its model, of SHA-256 %s: put the file (NAME%s) into %s, "
        "or name it: --feature %s=net:model=FILE%s",
        feature->name, feature->net.digest, feature->net.made_by[0] ? RUNTIME_SUFFIX : SUFFIX,
        directory, feature->name, feature->net.made_by[0] ? ",... with its options" : "");
}

bool feature_parse_net(struct feature *feature, const char *option, const char *value,
                       enum status *status, const char *spec, struct error *err)
{
    struct feature_net *net = &feature->net;
    const char *wrong = NULL;
    uint64_t number;
    double part;
    *status = STATUS_OK;
    if (strcmp(option, "model") == 0) {
        if (strlen(value) == sizeof net->digest - 1 &&
            value[strspn(value, "0123456789abcdef")] == '\0') {
            strcpy(net->digest, value);
            net->model = NULL;
            return true;
        }
        *status = use_model(net, value, err);
    } else if (strcmp(option, "output") == 0) {
        if (snprintf(net->output, sizeof net->output, "%s", value) >= (int)sizeof net->output)
            *status =
                error_set(err, STATUS_USAGE, "feature '%s': output=%s is too long", spec, value);
    } else if (strcmp(option, "fit") == 0) {
        net->fit = strcmp(value, "crop") == 0 ? FEATURE_FIT_CROP : FEATURE_FIT_SQUASH;
        if (net->fit == FEATURE_FIT_SQUASH && strcmp(value, "squash") != 0)
            wrong = "crop or squash";
    } else if (strcmp(option, "crop") == 0) {
        if (!parse_double(&part, value) || part < 0.5 || part > 1)
            wrong = "from 0.5 to 1";
        net->fit = FEATURE_FIT_CROP;
        net->crop = wrong ? 0 : (uint16_t)lround(part * CROP_WHOLE);
    } else if (strcmp(option, "values") == 0 && parse_u64(&number, value, 1, NET_VALUES_MAX)) {
        net->values = (uint32_t)number;
    } else if (!feature_parse_onnx(net, option, value, &wrong)) {
        return false;
    }
    if (wrong)
        *status = error_set(err, STATUS_USAGE, "feature '%s': %s=%s must be %s", spec, option,
                            value, wrong);
    return true;
}

void feature_write_net(char *text, size_t size, const struct feature *feature)
{
    const struct feature_net *net = &feature->net;
    char crop[24] = "";
    if (net->fit == FEATURE_FIT_CROP)
        snprintf(crop, sizeof crop, ",crop=0.%03u", net->crop);
    if (net->crop == CROP_WHOLE)
        strcpy(crop, ",crop=1");
    *text = '\0';
    if (feature->kind->network)
        snprintf(text, size, ",model=%s,output=%s,values=%u,fit=%s%s", net->digest, net->output,
                 net->values, net->fit == FEATURE_FIT_CROP ? "crop" : "squash", crop);
    if (net->made_by[0])
        feature_write_onnx(text + strlen(text), size - strlen(text), net);
}

/* In float64, squares added up in order; values are rounded to float32 before and after
 * normalisation. */
static bool finish_net(void *values, const struct feature *feature, const uint32_t *words)
{
    const struct net_model *model = feature->net.model;
    float *out = values;
    double length = 0;
    if (model)
        net_output_values(out, model, &model->outputs[net_model_output(model, feature->net.output)],
                          words);
    else /* float32 of an ONNX file */
        memcpy(out, words, feature->dimension * sizeof *out);
    for (uint32_t i = 0; i < feature->dimension; i++)
        length += (double)out[i] * out[i];
    length = sqrt(length);
    for (uint32_t i = 0;
         feature->normalize == NORMALIZE_UNIT && length > 0 && i < feature->dimension; i++)
        out[i] = (float)(out[i] / length);
    return true;
}

static const char *const no_examples[] = {NULL}; /* a model is required; the step has tests */

const struct feature_kind feature_net = {
    .name = "net",
    .fixed = true,
    .network = true,
    .zeros = true,
    .settle = settle_net,
    .finish = finish_net,
    .examples = no_examples,
};
