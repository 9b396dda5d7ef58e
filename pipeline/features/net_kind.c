/* net_kind.c: the kind "net": outputs of an integer network (net/model.h) or of an ONNX file
 * (net/runtime.h). */
#include "base/hash.h"
#include "base/parse.h"
#include "base/text.h"
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

#define OUTPUTS_TEXT 300
#define NO_OUTPUT    "feature '%s': the model has no output %s; it has %s"

/* --- models ---------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Integer networks in use: each is read once, whatever its path, and stays until the process ends. */
static struct net_model *models;

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

/* Under the lock. */
static const struct net_model *find_open(const char *digest)
{
    const struct net_model *model = models;
    while (model && strcmp(model->digest, digest) != 0)
        model = model->next;
    return model;
}

static bool ends_in(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

/* A model whose name ends in .onnx is not started. */
static enum status open_file(struct feature_net *net, const char *path, struct error *err)
{
    struct net_model *model;
    if (ends_in(path, RUNTIME_SUFFIX)) {
        net->runtime = runtime_of(path);
        return net->runtime ? STATUS_OK : error_memory(err, PATH_SIZE, "a model");
    }
    if (net_model_open(&model, path, err) != STATUS_OK)
        return STATUS_FAILED;
    pthread_mutex_lock(&lock);
    net->model = find_open(model->digest);
    if (net->model) {
        net_model_close(&model);
    } else {
        model->next = models;
        net->model = models = model;
    }
    pthread_mutex_unlock(&lock);
    strcpy(net->digest, net->model->digest);
    return STATUS_OK;
}

/* model=FILE: a name without a slash that is not a file is looked up in the directory as NAME.net
 * or NAME.onnx. */
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
    return open_file(net, path, err);
}

/* Does the file have that digest? */
static bool has_digest(const char *path, const char *wanted)
{
    struct sha256 state;
    uint8_t bytes[1 << 14];
    char hex[65];
    FILE *file = fopen(path, "rb");
    sha256_init(&state);
    for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        sha256_update(&state, bytes, got);
    if (file)
        fclose(file);
    sha256_hex(hex, &state);
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
    const bool is_onnx = net->made_by[0];
    pthread_mutex_lock(&lock);
    if (is_onnx)
        net->runtime = runtime_find(net->digest);
    else
        net->model = find_open(net->digest);
    pthread_mutex_unlock(&lock);
    if (!net->runtime && !net->model &&
        look_for(path, is_onnx ? RUNTIME_SUFFIX : SUFFIX, net->digest))
        open_file(net, path, NULL);
}

/* --- settings -------------------------------------------------------------------------------- */

/* The index of the network's output, or `count`, among names that lie `step` bytes apart; `names`: all
 * of them. */
static uint32_t find_output(char names[OUTPUTS_TEXT], const struct feature_net *net,
                            const char *first, size_t step, uint32_t count)
{
    uint32_t found = count;
    *names = '\0';
    for (uint32_t i = 0; i < count; i++, first += step) {
        text_add_name(names, OUTPUTS_TEXT, *first ? first : "(no usable name)");
        found = found == count && strcmp(first, net->output) == 0 ? i : found;
    }
    return found;
}

static enum status settle_output(struct feature *feature, const char *spec, struct error *err)
{
    const struct net_model *model = feature->net.model;
    char names[OUTPUTS_TEXT];
    if (!*feature->net.output)
        strcpy(feature->net.output, model->outputs[0].name);
    const uint32_t output = find_output(names, &feature->net, model->outputs[0].name,
                                        sizeof model->outputs[0], model->header->outputs);
    if (output == model->header->outputs)
        return error_set(err, STATUS_USAGE, NO_OUTPUT, spec, feature->net.output, names);
    const size_t values = net_tensor_values(&model->tensors[model->outputs[output].tensor]);
    if (feature->net.values > 0 && feature->net.values != values)
        return error_set(err, STATUS_USAGE, "feature '%s': the output %s has %zu values", spec,
                         feature->net.output, values);
    feature->net.values = (uint32_t)values;
    if (feature->net.fit == FEATURE_FIT_MODEL)
        feature->net.fit = model->header->fit == NET_CROP ? FEATURE_FIT_CROP : FEATURE_FIT_SQUASH;
    if (feature->net.fit == FEATURE_FIT_CROP && feature->net.crop == 0)
        feature->net.crop = model->header->fit == NET_CROP ? model->header->crop : 875;
    feature->image.scale = scale_to(model->header->width, model->header->height,
                                    feature->net.fit == FEATURE_FIT_CROP ? feature->net.crop : 0);
    return STATUS_OK;
}

/* --- settings of ONNX files: those found in the file are used, missing ones must be in the spec - */

/* Derives layout and size from the dimensions of the input. */
static void settle_sides(struct runtime_job *job, const int64_t dim[4])
{
    if (job->layout == RUNTIME_LAYOUT_UNKNOWN && (dim[1] == 3) != (dim[3] == 3))
        job->layout = dim[1] == 3 ? RUNTIME_NCHW : RUNTIME_NHWC;
    const int64_t *sides = dim + (job->layout == RUNTIME_NHWC ? 1 : 2);
    if (job->layout && !job->width && sides[0] > 0 && sides[1] > 0 &&
        sides[0] <= RUNTIME_SIDE_MAX && sides[1] <= RUNTIME_SIDE_MAX) {
        job->height = (uint32_t)sides[0];
        job->width = (uint32_t)sides[1];
    }
}

/* Chooses the output by name or as the only one, and checks that no required option is missing. */
static enum status settle_choices(struct feature_net *net, const struct runtime_about *about,
                                  const char *spec, struct error *err)
{
    char names[OUTPUTS_TEXT], missing[1024];
    const bool bytes = about->input.type == RUNTIME_UINT8;
    struct runtime_job *job = &net->job;
    if (!*net->output && about->outputs == 1)
        strcpy(net->output, about->output[0].name);
    job->output =
        find_output(names, net, about->output[0].name, sizeof about->output[0], about->outputs);
    if (*net->output && job->output == about->outputs)
        return error_set(err, STATUS_USAGE, NO_OUTPUT, spec, net->output, names);
    const bool fits = net->fit == FEATURE_FIT_SQUASH || (net->fit == FEATURE_FIT_CROP && net->crop);
    const bool tokens = *net->output && about->output[job->output].rank == 3 && !job->pool;
    snprintf(missing, sizeof missing, "%s%s%s%s%s%s%s%s%s",
             fits ? "" : ", fit=squash or crop=C (the part of the side that is kept)",
             bytes || *net->mean ? "" : ", mean=R/G/B", bytes || *net->std ? "" : ", std=R/G/B",
             job->layout ? "" : ", layout=nchw or nhwc", job->width ? "" : ", size=WIDTHxHEIGHT",
             *net->output ? "" : ", output=NAME of ", *net->output ? "" : names,
             tokens ? ", pool=cls or mean of tokens, or output= without, of " : "",
             tokens ? names : "");
    return *missing ? error_set(err, STATUS_USAGE,
                                "feature '%s': the ONNX file does not say %s: give it", spec,
                                missing + 2)
                    : STATUS_OK;
}

static enum status settle_onnx(struct feature *feature, const char *spec, struct error *err)
{
    struct feature_net *net = &feature->net;
    enum status status = runtime_start(net->runtime, net->cuda, err);
    if (status != STATUS_OK)
        return status;
    const struct runtime_about *about = runtime_about(net->runtime);
    const int type = about->input.type;
    if (net->made_by[0] && strcmp(net->made_by, about->made_by) != 0)
        return error_set(
            err, STATUS_USAGE,
            "the feature %s was computed by %s, but this is %s, whose rows may differ: name the "
            "library of that version with --onnxruntime, or start over with --fresh",
            feature->name, net->made_by, about->made_by);
    if (about->input.rank != 4 ||
        (type != RUNTIME_FLOAT && type != RUNTIME_UINT8 && type != RUNTIME_HALF))
        return error_set(err, STATUS_USAGE,
                         "feature '%s': the input of the network is not a batch of pictures of "
                         "float32, float16 or uint8",
                         spec);
    if (type == RUNTIME_UINT8 && (*net->mean || *net->std))
        return error_set(err, STATUS_USAGE,
                         "feature '%s': the network takes bytes, so no mean= or std=", spec);
    settle_sides(&net->job, about->input.dim);
    status = settle_choices(net, about, spec, err);
    /* Running a picture of zeros yields the number of values, and shows whether the model works. */
    if (status == STATUS_OK &&
        runtime_rows(net->runtime, &net->job, &net->values, NULL, NULL, 1, err) != STATUS_OK)
        status = STATUS_USAGE;
    strcpy(net->digest, about->digest);
    strcpy(net->made_by, about->made_by);
    feature->image.scale =
        scale_to(net->job.width, net->job.height, net->fit == FEATURE_FIT_CROP ? net->crop : 0);
    return status;
}

static enum status settle_model(struct feature *feature, const char *spec, struct error *err)
{
    const struct feature_net *net = &feature->net;
    if (net->runtime)
        return settle_onnx(feature, spec, err);
    if (net->job.width || net->job.layout || net->job.pool || *net->mean || *net->std || net->cuda)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': size=, layout=, mean=, std=, pool= and provider= are for "
                         "ONNX files only",
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

/* Parses "R/G/B", or one number for all three; commas are accepted too. `text` is the form with
 * slashes. */
static bool parse_channels(double out[3], char text[RUNTIME_NAME], const char *value, double least,
                           double most)
{
    char copy[RUNTIME_NAME], *rest = copy;
    unsigned count = 0;
    if (snprintf(text, RUNTIME_NAME, "%s", value) >= RUNTIME_NAME)
        return false;
    for (char *at = text; *at; at++)
        *at = *at == ',' ? '/' : *at;
    strcpy(copy, text);
    for (char *part; (part = strsep(&rest, "/")); count++)
        if (count == 3 || !parse_double(&out[count], part) || out[count] < least ||
            out[count] > most)
            return false;
    if (count == 1)
        out[1] = out[2] = out[0];
    return count != 2;
}

/* 1 or 2 if the value equals the first or second word, else 0. */
static int one_of(const char *value, const char *first, const char *second)
{
    return strcmp(value, first) == 0 ? 1 : strcmp(value, second) == 0 ? 2 : 0;
}

bool feature_parse_net(struct feature_net *net, const char *option, const char *value,
                       const char **wrong, enum status *status, const char *spec, struct error *err)
{
    static const char numbers[] =
        "R/G/B or one number, of values from 0 to 1: divide those of bytes by 255";
    struct runtime_job *job = &net->job;
    uint32_t sides[2];
    uint64_t number;
    double part;
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
        net->fit = (enum feature_fit)one_of(value, "squash", "crop");
        *wrong = net->fit ? NULL : "crop or squash";
    } else if (strcmp(option, "crop") == 0) {
        if (!parse_double(&part, value) || part < 0.5 || part > 1)
            *wrong = "from 0.5 to 1";
        net->fit = FEATURE_FIT_CROP;
        net->crop = *wrong ? 0 : (uint16_t)lround(part * CROP_WHOLE);
    } else if (strcmp(option, "values") == 0 && parse_u64(&number, value, 1, NET_VALUES_MAX)) {
        net->values = (uint32_t)number;
    } else if (strcmp(option, "mean") == 0) {
        *wrong = parse_channels(job->mean, net->mean, value, 0, 1) ? NULL : numbers;
    } else if (strcmp(option, "std") == 0) {
        *wrong = parse_channels(job->std, net->std, value, 1e-6, 2) ? NULL : numbers;
    } else if (strcmp(option, "size") == 0) {
        const unsigned count = feature_parse_numbers(sides, 2, value, 'x', RUNTIME_SIDE_MAX);
        *wrong = count ? NULL : "WIDTHxHEIGHT or one side, 1 to 1024";
        job->width = count ? sides[0] : 0;
        job->height = count ? sides[count - 1] : 0;
    } else if (strcmp(option, "layout") == 0) {
        job->layout = (enum runtime_layout)one_of(value, "nchw", "nhwc");
        *wrong = job->layout ? NULL : "nchw or nhwc";
    } else if (strcmp(option, "pool") == 0) {
        job->pool = (enum runtime_pool)one_of(value, "cls", "mean");
        *wrong = job->pool ? NULL : "cls or mean";
    } else if (strcmp(option, "provider") == 0) {
        net->cuda = strcmp(value, "cuda") == 0;
        *wrong = one_of(value, "cpu", "cuda") ? NULL : "cpu or cuda";
    } else if (strcmp(option, "runtime") == 0 && strlen(value) < sizeof net->made_by) {
        strcpy(net->made_by, value);
        net->cuda = strstr(value, "-cuda");
    } else {
        return false;
    }
    return true;
}

void feature_write_net(char *text, size_t size, const struct feature *feature)
{
    static const char *const layouts[] = {"", "nchw", "nhwc"}, *const pools[] = {"", "cls", "mean"};
    const struct feature_net *net = &feature->net;
    const struct runtime_job *job = &net->job;
    char crop[24] = "";
    if (net->crop == CROP_WHOLE)
        strcpy(crop, ",crop=1");
    else if (net->fit == FEATURE_FIT_CROP)
        snprintf(crop, sizeof crop, ",crop=0.%03u", net->crop);
    *text = '\0';
    if (feature->kind->network)
        snprintf(text, size, ",model=%s,output=%s,values=%u,fit=%s%s", net->digest, net->output,
                 net->values, net->fit == FEATURE_FIT_CROP ? "crop" : "squash", crop);
    const size_t used = strlen(text);
    if (net->made_by[0])
        snprintf(text + used, size - used, ",size=%ux%u,layout=%s%s%s%s%s%s%s,runtime=%s",
                 job->width, job->height, layouts[job->layout], *net->mean ? ",mean=" : "",
                 net->mean, *net->std ? ",std=" : "", net->std, job->pool ? ",pool=" : "",
                 pools[job->pool], net->made_by);
}

/* In float64, squares added up in order; values are rounded to float32 before and after
 * normalisation. */
static bool finish_net(void *values, const struct feature *feature, const uint32_t *words)
{
    const struct net_model *model = feature->net.model;
    float *out = values;
    double length = 0;
    if (model)
        net_output_values(out, model, net_model_output(model, feature->net.output), words);
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

const struct feature_kind feature_net = {
    .name = "net",
    .fixed = true,
    .network = true,
    .zeros = true,
    .settle = settle_net,
    .finish = finish_net,
};
