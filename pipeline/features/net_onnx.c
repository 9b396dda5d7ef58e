/* net_onnx.c: features of ONNX files: settings found in the file are used, missing ones must be in
 * the spec. */
#include "base/parse.h"
#include "decode/scale.h"
#include "features/kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* "224" or "WIDTHxHEIGHT". */
static bool parse_sides(struct runtime_job *job, const char *value)
{
    char width[16];
    const char *cross = strchr(value, 'x');
    uint64_t sides[2];
    snprintf(width, sizeof width, "%.*s", (int)strcspn(value, "x"), value);
    if (!parse_u64(&sides[0], width, 1, RUNTIME_SIDE_MAX) ||
        !parse_u64(&sides[1], cross ? cross + 1 : width, 1, RUNTIME_SIDE_MAX))
        return false;
    job->width = (uint32_t)sides[0];
    job->height = (uint32_t)sides[1];
    return true;
}

/* 1 or 2 if the value equals the first or second word, else 0. */
static int one_of(const char *value, const char *first, const char *second)
{
    return strcmp(value, first) == 0 ? 1 : strcmp(value, second) == 0 ? 2 : 0;
}

bool feature_parse_onnx(struct feature_net *net, const char *option, const char *value,
                        const char **wrong)
{
    struct runtime_job *job = &net->job;
    const char *numbers =
        "R/G/B or one number, of values from 0 to 1: divide those of bytes by 255";
    if (strcmp(option, "mean") == 0) {
        *wrong = parse_channels(job->mean, net->mean, value, 0, 1) ? NULL : numbers;
    } else if (strcmp(option, "std") == 0) {
        *wrong = parse_channels(job->std, net->std, value, 1e-6, 2) ? NULL : numbers;
    } else if (strcmp(option, "size") == 0) {
        *wrong = parse_sides(job, value) ? NULL : "WIDTHxHEIGHT or one side, 1 to 1024";
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

/* Chooses the output by name or as the only one, and checks that all required options are there. */
static enum status settle_choices(struct feature_net *net, const struct runtime_about *about,
                                  const char *spec, struct error *err)
{
    char names[300] = "", missing[640];
    const bool bytes = about->input.type == RUNTIME_UINT8;
    struct runtime_job *job = &net->job;
    if (!*net->output && about->outputs == 1)
        strcpy(net->output, about->output[0].name);
    uint32_t *i = &job->output;
    for (*i = 0; *i < about->outputs; ++*i) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", *i ? ", " : "",
                 *about->output[*i].name ? about->output[*i].name : "(no usable name)");
    }
    for (*i = 0; *i < about->outputs && strcmp(about->output[*i].name, net->output) != 0;)
        ++*i;
    if (*net->output && *i == about->outputs)
        return error_set(err, STATUS_USAGE, "feature '%s': the model has no output %s; it has %s",
                         spec, net->output, names);
    const bool fits = net->fit == FEATURE_FIT_SQUASH || (net->fit == FEATURE_FIT_CROP && net->crop);
    const bool tokens = *net->output && about->output[*i].rank == 3 && !job->pool;
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

/* Runs one picture through the model: determines the number of values and checks that the model
 * works. */
static enum status try_model(struct feature_net *net, struct error *err)
{
    const size_t pixels = (size_t)net->job.width * net->job.height;
    uint8_t *picture = calloc(pixels, 3);
    const uint8_t *const pictures[] = {picture};
    if (!picture)
        return error_memory(err, pixels * 3, "a picture");
    const enum status status =
        runtime_rows(net->runtime, &net->job, &net->values, pictures, NULL, 1, err);
    free(picture);
    return status == STATUS_OK ? STATUS_OK : STATUS_USAGE;
}

enum status feature_settle_onnx(struct feature *feature, const char *spec, struct error *err)
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
            "the feature %s was computed by %s, here is %s, whose rows may differ: name the "
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
    if (status == STATUS_OK)
        status = try_model(net, err);
    strcpy(net->digest, about->digest);
    strcpy(net->made_by, about->made_by);
    feature->image.scale =
        scale_to(net->job.width, net->job.height, net->fit == FEATURE_FIT_CROP ? net->crop : 0);
    return status;
}

void feature_write_onnx(char *text, size_t size, const struct feature_net *net)
{
    static const char *const layouts[] = {"", "nchw", "nhwc"}, *const pools[] = {"", "cls", "mean"};
    const struct runtime_job *job = &net->job;
    snprintf(text, size, ",size=%ux%u,layout=%s%s%s%s%s%s%s,runtime=%s", job->width, job->height,
             layouts[job->layout], *net->mean ? ",mean=" : "", net->mean, *net->std ? ",std=" : "",
             net->std, job->pool ? ",pool=" : "", pools[job->pool], net->made_by);
}
