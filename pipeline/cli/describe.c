/* describe.c: an ingest of a few pictures. */
#include "cli/describe.h"
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
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Arguments of an ingest; texts are owned. */
struct arguments {
    char **text;
    int count, room;
    bool no_memory;
};

static void add(struct arguments *a, const char *text)
{
    if (a->count + 1 >= a->room) {
        char **more = realloc(a->text, (size_t)(a->room * 2 + 16) * sizeof *more);
        a->no_memory |= !more;
        if (!more)
            return;
        a->text = more;
        a->room = a->room * 2 + 16;
    }
    a->text[a->count] = strdup(text);
    a->no_memory |= !a->text[a->count];
    a->count += a->text[a->count] != NULL;
    a->text[a->count] = NULL;
}

static void add_number(struct arguments *a, const char *option, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    add(a, option);
    add(a, text);
}

static void clear(struct arguments *a)
{
    for (int i = 0; i < a->count; i++)
        free(a->text[i]);
    free(a->text);
}

/* A feature as it was asked for, "NAME=KIND...", with the codebook that the file has for it. */
static void add_feature(struct arguments *a, const char *asked, const struct result *result)
{
    char name[FEATURE_NAME_MAX], *spec = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, "="), asked);
    const struct result_feature *feature = result_feature_find(result, name);
    const bool learned = feature && strstr(feature->spec, ",codebook=");
    if (asprintf(&spec, "%s%s%s", asked, learned ? ",codebook=" : "",
                 learned ? result_path(result) : "") < 0)
        spec = NULL;
    a->no_memory |= !spec;
    add(a, "--feature");
    add(a, spec ? spec : "");
    free(spec);
}

static void add_machine(struct arguments *a, const struct options *options)
{
    const char *const *runtime = option_at(options, "onnxruntime");
    if (options->device) {
        add(a, "--device");
        add(a, options->device);
    }
    if (runtime && *runtime) {
        add(a, "--onnxruntime");
        add(a, *runtime);
    }
    if (options->threads)
        add_number(a, "--threads", options->threads);
    add_number(a, "--memory", options->memory);
    if (options->device_memory)
        add_number(a, "--device-memory", options->device_memory);
    add(a, "--progress");
    add(a, "never");
}

static enum status check_feature(const struct result *result, const char *name, struct error *err)
{
    char shown[256];
    for (unsigned i = 0; i < result_feature_count(result); i++) {
        const struct result_feature *feature = result_feature_at(result, i);
        if (result_feature_imported(feature) && feature_is_part(name, feature->name))
            return error_set(err, STATUS_USAGE,
                             "%s was imported, so it cannot be computed for a picture that is not "
                             "in %s: choose a picture that is, or another feature",
                             feature->name,
                             path_for_message(shown, sizeof shown, result_path(result)));
    }
    return STATUS_OK;
}

static enum status run_ingest(const struct arguments *a, const struct parameters *parameters,
                              struct error *err)
{
    struct options *options;
    struct ingest_plan plan = {0};
    struct ingest_report report;
    struct call call = {.json = {.failed = true}};
    enum status status = options_parse(&options, &command_ingest, a->count, a->text, err);
    if (status == STATUS_OK) {
        options->call = &call;
        status = stored_take(options, parameters, true, err);
    }
    if (status == STATUS_OK)
        status = ingest_plan_open(&plan, options, err);
    if (status == STATUS_OK)
        status = compute_open(options, false, err);
    if (status == STATUS_OK) {
        progress_init(&call.progress, options);
        status = ingest_step(&report, &plan, NULL, NULL, err);
    }
    status = compute_close(&call.compute, status, err);
    ingest_plan_close(&plan);
    options_close(&options);
    return status;
}

/* Pictures of `count` sources; the one behind them is clpipe's own. */
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
        if (status == STATUS_OK && failure.source < count)
            error_set(&failed[failure.source], STATUS_FAILED, "%s cannot be compared: %s",
                      path_for_message(shown, sizeof shown, pictures[failure.source]),
                      failure.message);
    }
    for (uint64_t row = 0; row < matrix.rows && status == STATUS_OK; row++) {
        status = result_image_at(result, row, &image, err);
        if (status != STATUS_OK || image.source >= count)
            break;
        failed[image.source] = (struct error)ERROR_INIT;
        status = matrix_read(&matrix, row, 1, values + (size_t)image.source * dimension, err);
    }
    matrix_close(&matrix);
    result_close(&result);
    return status;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

/* The sources: links to the pictures, so that no name means a list, an archive or a range; and a picture
 * that can be decoded, without which an ingest of failures alone would not tell them. */
static enum status add_sources(struct arguments *a, const char *directory,
                               const char *const *pictures, unsigned count, struct error *err)
{
    enum { SIDE = 64 };
    struct picture_file own = {calloc(SIDE * SIDE, 3), SIDE, SIDE, 1};
    char link[4160], shown[256];
    enum status status =
        own.pixels ? STATUS_OK : error_memory(err, (size_t)SIDE * SIDE * 3, "a picture");
    for (unsigned i = 0; i < count; i++) {
        char *real = realpath(pictures[i], NULL);
        snprintf(link, sizeof link, "%s/%u.jpg", directory, i);
        if (status == STATUS_OK && !real)
            status = error_errno(err, STATUS_FAILED, errno, "realpath", "cannot read the image %s",
                                 path_for_message(shown, sizeof shown, pictures[i]));
        if (status == STATUS_OK && symlink(real, link) != 0)
            status = error_errno(err, STATUS_FAILED, errno, "symlink", "cannot make %s", link);
        add(a, link);
        free(real);
    }
    snprintf(link, sizeof link, "%s/own.bmp", directory);
    add(a, link);
    if (status == STATUS_OK)
        status = picture_file_write_bmp(link, &own, err);
    picture_file_clear(&own);
    return status == STATUS_OK && a->no_memory ? error_memory(err, 4096, "an ingest") : status;
}

enum status describe_pictures(float *values, struct error *failed, uint32_t dimension,
                              const char *const *pictures, unsigned count,
                              const struct result *result, const char *name,
                              const struct options *options, struct error *err)
{
    struct arguments a = {0};
    struct parameters *parameters = NULL;
    char directory[4096], file[4112];
    const char *text;
    enum status status = check_feature(result, name, err);
    if (status != STATUS_OK)
        return status;
    status = parameters_open(&parameters, result_parameters(result), err);
    if (status != STATUS_OK)
        return status;
    snprintf(directory, sizeof directory, "%s/clpipe-similar-XXXXXX",
             process_temporary_directory());
    if (!mkdtemp(directory)) {
        parameters_close(&parameters);
        return error_errno(err, STATUS_FAILED, errno, "mkdtemp", "cannot make %s", directory);
    }
    snprintf(file, sizeof file, "%s/pictures.h5", directory);
    add(&a, "clpipe");
    add(&a, "ingest");
    add(&a, "-o");
    add(&a, file);
    for (unsigned i = 0; (text = parameters_entry(parameters, "features", i, NULL)); i++)
        add_feature(&a, text, result);
    add_machine(&a, options);
    add(&a, "--");
    progress_stage(&options->call->progress, "describing pictures");
    status = add_sources(&a, directory, pictures, count, err);
    if (status == STATUS_OK)
        status = run_ingest(&a, parameters, err);
    if (status == STATUS_OK || status == STATUS_PARTIAL)
        status = read_values(values, failed, dimension, pictures, count, file, name,
                             strcmp(name, RESULT_PRESET) == 0 ? result_preset(result) : NULL, err);
    clear(&a);
    parameters_close(&parameters);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}
