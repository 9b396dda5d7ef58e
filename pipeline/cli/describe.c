/* describe.c: an ingest of a few pictures. */
#include "cli/describe.h"
#include "base/output_directory.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/ingest_step.h"
#include "cli/picture_file.h"
#include "cli/stored_options.h"
#include "result/feature_matrix.h"
#include "result/imported.h"
#include "result/parameters.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The ingest of the pictures; the texts of its options are owned. */
struct describing {
    struct options *options;
    char *spec[FEATURE_MAX];
    unsigned count;
    char sources[4160], output[4160];
};

/* A feature's specification as originally given, "NAME=KIND...", with the file's codebook for
 * it. */
static enum status add_feature(struct describing *d, const char *asked, const struct result *result,
                               struct error *err)
{
    const struct option *row = option_find(d->options->command, "feature", strlen("feature"));
    char name[FEATURE_NAME_MAX];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, "="), asked);
    const struct result_feature *feature = result_feature_find(result, name);
    const bool learned = feature && strstr(feature->spec, ",codebook=");
    if (asprintf(&d->spec[d->count], "%s%s%s", asked, learned ? ",codebook=" : "",
                 learned ? result->path : "") < 0)
        return error_memory(err, strlen(asked), "a specification");
    return option_set(d->options, row, d->spec[d->count++], err);
}

/* Uses the features and options of the file, and the devices, threads and memory of `options`. */
static enum status configure(struct describing *d, const struct parameters *parameters,
                             const struct result *result, const struct options *options,
                             struct error *err)
{
    char *const words[] = {"clpipe", "ingest", d->sources};
    const char *const *runtime = option_at(options, "onnxruntime"), *text;
    enum status status = options_parse(&d->options, &command_ingest, 3, words, err);
    for (unsigned i = 0; i < FEATURE_MAX && status == STATUS_OK &&
                         (text = parameters_entry(parameters, "features", i, NULL));
         i++)
        status = add_feature(d, text, result, err);
    if (status != STATUS_OK)
        return status;
    if (runtime && *runtime)
        options_take(d->options, "onnxruntime", *runtime);
    options_take(d->options, "memory", "256M"); /* unlike the default of an ingest */
    d->options->output = d->output;
    d->options->device = options->device;
    d->options->threads = options->threads;
    d->options->memory = options->memory;
    d->options->device_memory = options->device_memory;
    d->options->progress = PROGRESS_NEVER;
    return stored_take(d->options, parameters, true, err);
}

static enum status check_feature(const struct result *result, const char *name, struct error *err)
{
    char shown[256];
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = result_feature_at(result, i);
        if (result_feature_imported(feature) && feature_is_part(name, feature->name))
            return error_set(err, STATUS_USAGE,
                             "%s was imported, so it cannot be computed for a picture that is not "
                             "in %s: choose a picture that is, or another feature",
                             feature->name, path_for_message(shown, sizeof shown, result->path));
    }
    return STATUS_OK;
}

static enum status run_ingest(struct options *options, struct error *err)
{
    struct ingest_plan plan = {0};
    struct ingest_report report;
    struct call call = {.json = {.failed = true}};
    options->call = &call;
    enum status status = ingest_plan_open(&plan, options, err);
    if (status == STATUS_OK)
        status = compute_open(options, false, err);
    if (status == STATUS_OK) {
        progress_init(&call.progress, options);
        status = ingest_step(&report, &plan, NULL, NULL, err);
    }
    status = compute_close(&call.compute, status, err);
    ingest_plan_close(&plan);
    return status;
}

/* The index of the picture with that link name; `count`: clpipe's own picture. */
static unsigned picture_of(const char *path, unsigned count)
{
    uint64_t number;
    char digits[16];
    snprintf(digits, sizeof digits, "%.*s", (int)strcspn(path, "."), path);
    return parse_u64(&number, digits, 0, count) ? (unsigned)number : count;
}

static enum status read_values(float *values, struct error *failed, uint32_t dimension,
                               const char *const *pictures, unsigned count, const char *file,
                               const char *name, const char *preset, struct error *err)
{
    struct result *result = NULL;
    struct matrix_source matrix = {0};
    struct result_feature about;
    struct result_image image;
    struct result_failure failure;
    char shown[256];
    enum status status = result_open(&result, file, err);
    if (status == STATUS_OK)
        status = preset ? feature_matrix_open_preset(&matrix, &about, result, preset, err)
                        : feature_matrix_open(&matrix, &about, result, name, err);
    if (status == STATUS_OK && matrix.dimension != dimension)
        status = error_set(err, STATUS_FAILED, "%s has other dimensions here", name);
    for (unsigned i = 0; i < count; i++)
        error_set(&failed[i], STATUS_FAILED, "%s cannot be compared: it is no image",
                  path_for_message(shown, sizeof shown, pictures[i]));
    for (uint64_t i = 0; status == STATUS_OK && i < result_failures(result); i++) {
        status = result_failure_at(result, i, &failure, err);
        const unsigned picture = status == STATUS_OK ? picture_of(failure.path, count) : count;
        if (picture < count)
            error_set(&failed[picture], STATUS_FAILED, "%s cannot be compared: %s",
                      path_for_message(shown, sizeof shown, pictures[picture]), failure.message);
    }
    for (uint64_t row = 0; row < matrix.rows && status == STATUS_OK; row++) {
        status = result_image_at(result, row, &image, err);
        const unsigned picture = status == STATUS_OK ? picture_of(image.path, count) : count;
        if (picture == count)
            continue;
        failed[picture] = (struct error)ERROR_INIT;
        status = matrix_read(&matrix, row, 1, values + (size_t)picture * dimension, err);
    }
    matrix_close(&matrix);
    result_close(&result);
    return status;
}

/* The source: a directory of links to the pictures, so that no name is taken for a list, an archive or a
 * range. It also has a picture that can be decoded, since an ingest in which every file fails would report no
 * reasons. */
static enum status link_pictures(const char *directory, const char *const *pictures, unsigned count,
                                 struct error *err)
{
    enum { SIDE = 64 };
    struct picture_file own = {calloc(SIDE * SIDE, 3), SIDE, SIDE, 1};
    char link[4180], shown[256];
    enum status status =
        own.pixels ? STATUS_OK : error_memory(err, (size_t)SIDE * SIDE * 3, "a picture");
    if (status == STATUS_OK && mkdir(directory, 0700) != 0)
        status = error_errno(err, STATUS_FAILED, errno, "mkdir", "cannot make %s", directory);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        char *real = realpath(pictures[i], NULL);
        snprintf(link, sizeof link, "%s/%u.jpg", directory, i);
        if (!real)
            status = error_errno(err, STATUS_FAILED, errno, "realpath", "cannot read the image %s",
                                 path_for_message(shown, sizeof shown, pictures[i]));
        else if (symlink(real, link) != 0)
            status = error_errno(err, STATUS_FAILED, errno, "symlink", "cannot make %s", link);
        free(real);
    }
    snprintf(link, sizeof link, "%s/own.bmp", directory);
    if (status == STATUS_OK)
        status = picture_file_write_bmp(link, &own, err);
    picture_file_clear(&own);
    return status;
}

enum status describe_pictures(float *values, struct error *failed, uint32_t dimension,
                              const char *const *pictures, unsigned count,
                              const struct result *result, const char *name,
                              const struct options *options, struct error *err)
{
    struct describing describing = {.count = 0};
    struct parameters *parameters = NULL;
    char directory[4096];
    enum status status = check_feature(result, name, err);
    if (status != STATUS_OK)
        return status;
    status = parameters_open(&parameters, result->parameters, err);
    if (status != STATUS_OK)
        return status;
    snprintf(directory, sizeof directory, "%s/clpipe-similar-XXXXXX",
             process_temporary_directory());
    if (!mkdtemp(directory)) {
        parameters_close(&parameters);
        return error_errno(err, STATUS_FAILED, errno, "mkdtemp", "cannot make %s", directory);
    }
    snprintf(describing.sources, sizeof describing.sources, "%s/pictures", directory);
    snprintf(describing.output, sizeof describing.output, "%s/pictures.h5", directory);
    progress_stage(&options->call->progress, "describing pictures");
    status = link_pictures(describing.sources, pictures, count, err);
    if (status == STATUS_OK)
        status = configure(&describing, parameters, result, options, err);
    if (status == STATUS_OK)
        status = run_ingest(describing.options, err);
    if (status == STATUS_OK || status == STATUS_PARTIAL)
        status = read_values(values, failed, dimension, pictures, count, describing.output, name,
                             strcmp(name, RESULT_PRESET) == 0 ? result->preset : NULL, err);
    options_close(&describing.options);
    for (unsigned i = 0; i < describing.count; i++)
        free(describing.spec[i]);
    parameters_close(&parameters);
    output_directory_remove(directory);
    return status;
}
