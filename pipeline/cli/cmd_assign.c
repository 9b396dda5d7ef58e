/* cmd_assign.c: clpipe assign: label rows by the centroids of a clustering. */
#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/cluster_step.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "file/choose.h"
#include "file/feature_matrix.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const metric_names[] = {"euclidean", "cosine", "hellinger"};

/* Everything that the two files have to do with each other. */
struct assignment {
    struct result *from;
    struct matrix_input to;
    const char *output, *base; /* as choose_output has them */
    struct result *holder;
    struct workdir *lock; /* of the output */
    const struct result_clusters *clusters;
    enum cluster_metric metric;
    char *parameters, content[65];
    bool replace, found;
    float *centroids, *distances;
    int32_t *labels;
    uint64_t *sizes;
    int64_t *nearest;
    double inertia;
};

/* What may hold labels of before, or NULL. */
static const struct result *holder_of(const struct assignment *all)
{
    return all->holder ? all->holder : all->base ? all->to.result : NULL;
}

/* Equal names do not make equal features: counts and shares of them have the same one. Of rows that
 * are no feature there is only their length to go by. */
static enum status match_features(const struct assignment *all, struct error *err)
{
    char from[200], to[200], spec[160];
    struct matrix_source theirs;
    struct result_feature about;
    parameters_text(spec, sizeof spec, all->clusters->parameters, "spec");
    if (feature_matrix_open(&theirs, &about, all->from, all->clusters->feature, NULL) ==
        STATUS_OK) {
        snprintf(spec, sizeof spec, "%s", about.spec);
        matrix_close(&theirs);
    }
    path_for_message(from, sizeof from, result_path(all->from));
    path_for_message(to, sizeof to, all->to.path);
    if (all->to.source.dimension != all->clusters->dimension)
        return error_set(err, STATUS_FAILED,
                         "%s has %u values in %s, the centroids in %s have %u: make the same "
                         "feature of both",
                         all->to.about.name, all->to.source.dimension, to, from,
                         all->clusters->dimension);
    if (spec[0] && all->to.about.spec[0] && strcmp(spec, all->to.about.spec) != 0)
        return error_set(err, STATUS_FAILED,
                         "the centroids in %s are of %s, the rows in %s are %s: make the same "
                         "feature of both",
                         from, spec, to, all->to.about.spec);
    return STATUS_OK;
}

static enum status read_metric(struct assignment *all, struct error *err)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(metric_names[i], all->clusters->metric) == 0) {
            all->metric = (enum cluster_metric)i;
            return STATUS_OK;
        }
    return error_set(err, STATUS_FAILED, "%s: /clusters/%s has the unknown metric '%s'",
                     result_path(all->from), all->clusters->name, all->clusters->metric);
}

static enum status write_parameters(struct assignment *all, struct error *err)
{
    struct json json;
    struct sha256 state;
    uint8_t digest[32];
    char hex[65];
    size_t bytes = (size_t)all->clusters->k * all->clusters->dimension * sizeof *all->centroids;
    sha256_init(&state);
    sha256_update(&state, all->centroids, bytes);
    sha256_final(&state, digest);
    sha256_hex(hex, digest);
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_uint(&json, "k", all->clusters->k);
    json_string(&json, "feature", all->to.about.name);
    json_string(&json, "spec", all->to.about.spec);
    json_string(&json, "metric", all->clusters->metric);
    json_string(&json, "init", "assigned");
    json_string(&json, "clusters", hex);
    json_close_object(&json);
    const char *text = json_finish(&json);
    all->parameters = text ? strdup(text) : NULL;
    json_clear(&json);
    return all->parameters ? STATUS_OK : error_memory(err, 512, "the parameters");
}

static enum status look_for_result(struct assignment *all, const struct options *options,
                                   struct error *err)
{
    const struct result *holder = holder_of(all);
    const struct result_clusters *old =
        holder ? result_clusters_find(holder, all->clusters->name) : NULL;
    char difference[300], shown[256];
    if (!old)
        return STATUS_OK;
    all->replace = true;
    if (!parameters_differ(difference, sizeof difference, old->parameters, all->parameters)) {
        enum status status = matrix_input_identity(&all->to, all->content, err);
        if (status != STATUS_OK)
            return status;
        all->found = strcmp(old->content, all->content) == 0;
        snprintf(difference, sizeof difference, "it was made from other rows");
    }
    if (all->found || options->force)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s already holds /clusters/%s made otherwise (%s): add --force to replace it",
                     path_for_message(shown, sizeof shown, all->output), all->clusters->name,
                     difference);
}

static enum status allocate(struct assignment *all, struct error *err)
{
    uint64_t rows = all->to.source.rows, k = all->clusters->k;
    if (rows > SIZE_MAX / 16)
        return error_memory(err, SIZE_MAX, "labels");
    all->centroids = malloc((size_t)k * all->clusters->dimension * sizeof *all->centroids);
    all->labels = malloc((size_t)(rows ? rows : 1) * sizeof *all->labels);
    all->distances = malloc((size_t)(rows ? rows : 1) * sizeof *all->distances);
    all->sizes = calloc((size_t)k, sizeof *all->sizes);
    all->nearest = malloc((size_t)k * 3 * sizeof *all->nearest);
    if (!all->centroids || !all->labels || !all->distances || !all->sizes || !all->nearest)
        return error_memory(err, (size_t)(8 * rows + k * all->clusters->dimension * 4), "labels");
    return STATUS_OK;
}

static enum status open_files(struct assignment *all, const struct options *options,
                              struct error *err)
{
    enum status status = result_open(&all->from, options->operand[0], err);
    if (status == STATUS_OK)
        status = choose_clusters(&all->clusters, all->from, options->name, err);
    if (status == STATUS_OK)
        status = matrix_input_open(&all->to, options->operand[1], options->feature,
                                   all->clusters->feature, err);
    if (status == STATUS_OK && !all->to.result && !options->output)
        status = misuse(err, options->command,
                        "the labels of this INPUT need a file of their own: give -o R.h5");
    if (status == STATUS_OK)
        status = match_features(all, err);
    if (status == STATUS_OK)
        status = read_metric(all, err);
    if (status == STATUS_OK)
        status =
            choose_output(&all->output, &all->base, &all->holder, &all->to, options->output, err);
    if (status == STATUS_OK)
        status = allocate(all, err);
    if (status == STATUS_OK)
        status = result_clusters_read(all->from, all->clusters, all->centroids, NULL, NULL, NULL,
                                      NULL, err);
    if (status == STATUS_OK)
        status = write_parameters(all, err);
    if (status == STATUS_OK)
        status = look_for_result(all, options, err);
    /* An ingest of the same file would lose the labels, or they the images it adds. */
    if (status == STATUS_OK && !all->found)
        status = workdir_open(&all->lock, all->output, signals_stop(), err);
    if (status == STATUS_OK && all->found)
        workdir_tidy(all->output);
    if (status == STATUS_OK && all->lock && all->to.result)
        status = result_check_current(all->to.result, err);
    return status;
}

/* Sizes, inertia and the nearest rows, from labels and distances. */
static void count_labels(struct assignment *all)
{
    for (uint64_t i = 0; i < 3 * (uint64_t)all->clusters->k; i++)
        all->nearest[i] = -1;
    for (uint64_t row = 0; row < all->to.source.rows; row++) {
        int64_t *nearest = all->nearest + 3 * (int64_t)all->labels[row], at = (int64_t)row;
        all->sizes[all->labels[row]]++;
        all->inertia += (double)all->distances[row];
        for (int i = 0; i < 3; i++)
            if (nearest[i] < 0 || all->distances[at] < all->distances[nearest[i]]) {
                int64_t pushed = nearest[i];
                nearest[i] = at;
                if (pushed < 0)
                    break;
                at = pushed;
            }
    }
}

static enum status assign(struct assignment *all, const struct compute *compute,
                          struct progress *progress, const struct options *options,
                          char device[256], struct error *err)
{
    struct compute_contexts contexts;
    struct cluster_config config;
    cluster_config_default(&config);
    config.k = all->clusters->k;
    config.metric = all->metric;
    config.memory = options->memory;
    config.device_memory = options->device_memory;
    config.threads = compute->threads;
    config.stop = signals_stop();
    enum status status = compute_contexts_open(&contexts, compute, COMPUTE_DEVICES, err);
    if (status == STATUS_OK) {
        const struct cluster_devices devices = {contexts.context, contexts.count};
        snprintf(device, 256, "%s", contexts.names);
        config.phase = progress_phase;
        config.progress_context = progress;
        progress_step(progress, "looking for the nearest centroid of each row");
        status = cluster_assign(all->labels, all->distances, &devices, &all->to.source,
                                all->centroids, all->clusters->k, &config, err);
    }
    if (status == STATUS_OK && !all->content[0])
        status = matrix_input_identity(&all->to, all->content, err);
    if (status == STATUS_OK) {
        count_labels(all);
        struct result_clustering clustering = {
            .name = all->clusters->name,
            .feature = all->to.about.name,
            .init = "assigned",
            .metric = all->clusters->metric,
            .parameters = all->parameters,
            .content = all->content,
            .k = all->clusters->k,
            .dimension = all->clusters->dimension,
            .rows = all->to.source.rows,
            .seed = all->clusters->seed,
            .converged = true,
            .inertia = all->inertia,
            .centroids = all->centroids,
            .labels = all->labels,
            .distances = all->distances,
            .sizes = all->sizes,
            .nearest = all->nearest,
        };
        status = result_write_clusters(all->output, all->base, &clustering, all->replace, err);
    }
    compute_contexts_close(&contexts);
    return status;
}

/* Labels that are there already are read, for the summary. */
static enum status read_found(struct assignment *all, struct error *err)
{
    const struct result_clusters *old = result_clusters_find(holder_of(all), all->clusters->name);
    all->inertia = old->inertia;
    return result_clusters_read(all->holder ? all->holder : all->to.result, old, NULL, NULL, NULL,
                                all->sizes, all->nearest, err);
}

static enum status tell(const struct assignment *all, const struct options *options,
                        const char *device, struct error *err)
{
    struct cluster_result result = {
        .k = all->clusters->k,
        .dimension = all->clusters->dimension,
        .rows = all->to.source.rows,
        .converged = true,
        .found = all->found,
        .inertia = all->inertia,
        .seconds = (double)(clock_now() - clock_process_start()) * 1e-9,
        .sizes = all->sizes,
        .nearest = all->nearest,
        .output = all->output,
    };
    struct json json;
    snprintf(result.device, sizeof result.device, "%s", device);
    snprintf(result.name, sizeof result.name, "%s", all->clusters->name);
    snprintf(result.feature, sizeof result.feature, "%s", all->to.about.name);
    snprintf(result.metric, sizeof result.metric, "%s", all->clusters->metric);
    summary_clusters(&result, all->to.result, all->output == all->to.path);
    json_init(&json, false);
    report_cluster(&json, NULL, &result);
    return report_write(options, &json, err);
}

enum status command_assign(const struct options *options, struct error *err)
{
    struct assignment all = {0};
    struct compute compute = {0};
    struct progress progress;
    char device[256] = "";
    signals_install(0);
    progress_init(&progress, options);
    enum status status = open_files(&all, options, err);
    if (status == STATUS_OK && all.found) {
        status = read_found(&all, err);
    } else if (status == STATUS_OK) {
        status = compute_open(&compute, options, true, err);
        if (status == STATUS_OK)
            status = assign(&all, &compute, &progress, options, device, err);
    }
    progress_end(&progress);
    if (status == STATUS_OK)
        status = tell(&all, options, device, err);
    status = compute_close(&compute, status, err);
    workdir_release(&all.lock);
    result_close(&all.from);
    result_close(&all.holder);
    matrix_input_close(&all.to);
    free(all.parameters);
    free(all.centroids);
    free(all.labels);
    free(all.distances);
    free(all.sizes);
    free(all.nearest);
    return status;
}
