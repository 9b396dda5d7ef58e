/* labelling.c: wires the labelling of rows by given centroids. */
#include "jobs/labelling.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/labelled.h"
#include "base/log.h"
#include "base/path.h"
#include "jobs/origin.h"
#include "jobs/target.h"
#include "matrix/projected.h"
#include "ranks/processes.h"
#include "result/add_clusters.h"
#include "result/choose.h"
#include "result/feature_matrix.h"
#include "result/parameters.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct labelling_config *config;
    struct result *from; /* the file of the centroids */
    const struct result_clusters *clusters;
    struct matrix_input to;
    struct matrix_source rows;    /* of `to`, projected as those of the centroids are, */
    struct projection projection; /* if they are */
    struct target target;
    struct path_list paths;    /* of the rows, where they were given, */
    struct result_names names; /* and as they are stored */
    char *source;
    enum cluster_metric metric;
    char *parameters, content[65];
    float *centroids, *distances;
    int32_t *labels;
    uint64_t *sizes;
    int64_t *nearest;
    double inertia;
    uint32_t level_count; /* 1: the clustering has none above */
    const struct result_clusters *of_level[CLUSTER_LEVELS];
    struct cluster_level level[CLUSTER_LEVELS]; /* of the first, only its parents and, for a while, labels */
};

/* Whether this process stores, locks and tells: the only one, or the first of several. */
static bool is_first(const struct job *job)
{
    return processes_first(job->config->machine.processes);
}

/* --- opening --------------------------------------------------------------------------------- */

/* Equal names do not make equal features: counts and shares have the same one. Foreign rows are
 * compared by their length alone. Imported ones say nothing of how they were made: their names must be
 * the same. */
static enum status match_features(const struct job *job, struct error *err)
{
    char from[200], to[200], spec[sizeof((struct result_feature *)0)->spec];
    struct matrix_source theirs;
    struct result_feature about;
    const struct result_clusters *clusters = job->clusters;
    parameters_text(spec, sizeof spec, clusters->parameters, "spec");
    if (feature_matrix_open(&theirs, &about, job->from, clusters->feature, NULL) == STATUS_OK) {
        snprintf(spec, sizeof spec, "%s", about.spec);
        matrix_close(&theirs);
    }
    path_for_message(from, sizeof from, result_path(job->from));
    path_for_message(to, sizeof to, job->to.path);
    const uint32_t columns = clusters->columns ? clusters->columns : clusters->dimension;
    if (job->to.source.dimension != columns)
        return error_set(err, STATUS_FAILED,
                         "%s has %u values in %s, but the centroids in %s are of %u: compute the "
                         "same feature for both",
                         job->to.about.name, job->to.source.dimension, to, from, columns);
    if (spec[0] && job->to.about.spec[0] && strcmp(spec, job->to.about.spec) != 0)
        return error_set(err, STATUS_FAILED,
                         "the centroids in %s are of %s, but the rows in %s are of %s: compute the "
                         "same feature for both",
                         from, spec, to, job->to.about.spec);
    if (!strstr(spec, "imported"))
        return STATUS_OK;
    if (job->to.about.spec[0] && strcmp(clusters->feature, job->to.about.name) != 0)
        return error_set(err, STATUS_FAILED,
                         "the centroids in %s are of the imported feature %s, but the rows in %s are "
                         "of %s: import the vectors of the same model under the same name",
                         from, clusters->feature, to, job->to.about.name);
    log_message(LOG_NOTICE,
                "notice: %s is imported: its name and its %u values are the same in %s and %s, "
                "whether the same model made them is not known",
                clusters->feature, columns, from, to);
    return STATUS_OK;
}

static enum status write_parameters(struct job *job, struct error *err)
{
    struct json json;
    struct sha256 state;
    uint8_t digest[32];
    char hex[65];
    size_t bytes = (size_t)job->clusters->k * job->clusters->dimension * sizeof *job->centroids;
    sha256_init(&state);
    sha256_update(&state, job->centroids, bytes);
    if (job->clusters->columns > 0)
        sha256_update(&state, job->projection.mean, job->projection.columns * sizeof(float));
    if (job->projection.components)
        sha256_update(&state, job->projection.components,
                      (size_t)job->projection.dimension * job->projection.columns * sizeof(float));
    for (uint32_t i = 1; i < job->level_count; i++) {
        const struct cluster_outcome *out = &job->level[i].outcome;
        sha256_update(&state, out->labels, job->of_level[i - 1]->k * sizeof *out->labels);
        sha256_update(&state, out->centroids, (size_t)out->k * out->dimension * sizeof *out->centroids);
    }
    sha256_final(&state, digest);
    sha256_hex(hex, digest);
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_uint(&json, "k", job->clusters->k);
    json_string(&json, "feature", job->to.about.name);
    json_string(&json, "spec", job->to.about.spec);
    json_string(&json, "metric", job->clusters->metric);
    json_string(&json, "init", "assigned");
    json_string(&json, "clusters", hex);
    json_close_object(&json);
    const char *text = json_finish(&json);
    job->parameters = text ? strdup(text) : NULL;
    json_clear(&json);
    return job->parameters ? STATUS_OK : error_memory(err, 512, "the parameters");
}

static enum status allocate(struct job *job, struct error *err)
{
    uint64_t rows = job->to.whole.rows, k = job->clusters->k;
    if (rows > SIZE_MAX / 16)
        return error_memory(err, SIZE_MAX, "labels");
    const bool first = is_first(job);
    job->centroids = malloc((size_t)k * job->clusters->dimension * sizeof *job->centroids);
    job->labels = first ? malloc((size_t)rows * sizeof *job->labels) : NULL;
    job->distances = first ? malloc((size_t)rows * sizeof *job->distances) : NULL;
    job->sizes = calloc((size_t)k, sizeof *job->sizes);
    job->nearest = malloc((size_t)k * 3 * sizeof *job->nearest);
    if (!job->centroids || (first && (!job->labels || !job->distances)) || !job->sizes ||
        !job->nearest)
        return error_memory(err, (size_t)(8 * rows + k * job->clusters->dimension * 4), "labels");
    return STATUS_OK;
}

/* The levels above that of rows, as cluster_levels_spread takes them. */
static enum status read_levels(struct job *job, struct error *err)
{
    enum status status = STATUS_OK;
    job->of_level[0] = job->clusters;
    job->level_count = 1;
    if (job->clusters->level != 1)
        return STATUS_OK;
    while (status == STATUS_OK && job->level_count < CLUSTER_LEVELS) {
        const struct result_clusters *above;
        struct cluster_outcome *out = &job->level[job->level_count].outcome;
        status = result_parents_read(&out->labels, &above, job->from, job->of_level[job->level_count - 1],
                                     err);
        if (status != STATUS_OK)
            break;
        const size_t values = (size_t)above->k * above->dimension;
        out->k = above->k;
        out->dimension = above->dimension;
        out->centroids = malloc(values * sizeof *out->centroids);
        out->sizes = calloc(above->k, sizeof *out->sizes);
        out->nearest = malloc((size_t)above->k * 3 * sizeof *out->nearest);
        if (!out->centroids || !out->sizes || !out->nearest)
            return error_memory(err, values * sizeof *out->centroids, "centroids");
        job->of_level[job->level_count++] = above;
        status = result_clusters_read(job->from, above, out->centroids, NULL, NULL, NULL, NULL, err);
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status project_rows(struct job *job, struct error *err)
{
    struct matrix_source plain = job->to.source;
    plain.close = NULL; /* the input closes it */
    if (job->clusters->columns > 0 &&
        result_projection_read(&job->projection, job->from, job->clusters, err) != STATUS_OK)
        return err->status;
    return result_clusters_project(&job->rows, &plain, job->from, job->clusters, err);
}

static enum status job_open(struct job *job, const struct labelling_config *config,
                            struct error *err)
{
    job->config = config;
    enum status status = result_open(&job->from, config->centroids, err);
    if (status != STATUS_OK)
        return status;
    status = choose_clusters(&job->clusters, job->from, config->name, err);
    if (status != STATUS_OK)
        return status;
    status =
        matrix_input_open(&job->to, config->input, config->feature, job->clusters->feature, err);
    if (status != STATUS_OK)
        return status;
    if (config->paths)
        status = clustering_read_paths(&job->paths, &job->names, &job->source, config->paths,
                                       &job->to, err);
    if (status != STATUS_OK)
        return status;
    status = target_open(&job->target, &job->to, config->output, config->paths ? &job->paths : NULL,
                         err);
    if (status != STATUS_OK)
        return status;
    status = match_features(job, err);
    if (status != STATUS_OK)
        return status;
    enum projection_space metric;
    if (!projection_space(&metric, job->clusters->metric))
        return error_set(err, STATUS_FAILED, "%s: /clusters/%s has the unknown metric '%s'",
                         result_path(job->from), job->clusters->name, job->clusters->metric);
    job->metric = (enum cluster_metric)metric;
    const char *space = job->clusters->columns > 0 ? job->clusters->space : job->clusters->metric;
    const bool cosine = strcmp(space, metric_names[METRIC_COSINE]) == 0;
    status = matrix_input_compare(&job->to, cosine ? METRIC_COSINE : METRIC_EUCLIDEAN, false,
                                  config->machine.stop, err);
    if (status == STATUS_OK)
        status = allocate(job, err);
    if (status != STATUS_OK)
        return status;
    status =
        result_clusters_read(job->from, job->clusters, job->centroids, NULL, NULL, NULL, NULL, err);
    if (status != STATUS_OK)
        return status;
    status = read_levels(job, err);
    if (status == STATUS_OK)
        status = project_rows(job, err);
    if (status == STATUS_OK)
        status = write_parameters(job, err);
    if (status != STATUS_OK)
        return status;
    const struct target_claim claim = {.name = job->clusters->name,
                                       .parameters = job->parameters,
                                       .replace = config->replace,
                                       .verify = config->verify_input,
                                       .remedy = REMEDY_REPLACE_LABELS,
                                       .stop = config->machine.stop};
    if (is_first(job))
        status = target_take(&job->target, &job->to, job->content, &claim, err);
    if (status == STATUS_OK)
        status = clustering_same_everywhere(&config->machine, &job->to.source, job->parameters, err);
    return status == STATUS_OK ? clustering_follow_first(&config->machine, &job->target.found,
                                                         sizeof job->target.found, err)
                               : status;
}

/* --- running --------------------------------------------------------------------------------- */

static enum status store(const struct job *job, const struct result_origin *origin,
                         struct error *err)
{
    struct result_clustering clustering[CLUSTER_LEVELS];
    clustering[0] = (struct result_clustering){
        .origin = *origin,
        .name = job->clusters->name,
        .feature = job->to.about.name,
        .init = "assigned",
        .metric = job->clusters->metric,
        .parameters = job->parameters,
        .content = job->content,
        .k = job->clusters->k,
        .dimension = job->clusters->dimension,
        .rows = job->to.whole.rows,
        .seed = job->clusters->seed,
        .converged = true,
        .inertia = job->inertia,
        .centroids = job->centroids,
        .labels = job->labels,
        .distances = job->distances,
        .sizes = job->sizes,
        .nearest = job->nearest,
        .projection = job->clusters->columns > 0 ? &job->projection : NULL,
        .names = job->config->paths ? &job->names : NULL,
    };
    for (uint32_t i = 0; i < job->level_count; i++) {
        const struct cluster_outcome *outcome = &job->level[i].outcome;
        struct result_clustering *out = &clustering[i];
        if (i > 0) {
            *out = clustering[0];
            out->name = job->of_level[i]->name;
            out->k = outcome->k;
            out->inertia = outcome->inertia;
            out->centroids = outcome->centroids;
            out->labels = outcome->labels;
            out->distances = outcome->distances;
            out->sizes = outcome->sizes;
            out->nearest = outcome->nearest;
        }
        out->parents = job->level[i].parents;
        out->parent = i + 1 < job->level_count ? job->of_level[i + 1]->name : NULL;
        out->level = job->level_count > 1 ? i + 1 : 0;
    }
    return result_write_clusters(job->target.output, job->target.base, clustering, job->level_count,
                                 job->target.replace, err);
}

/* The levels above, once those that can be compared have their labels. */
static enum status label_levels(struct job *job, const struct cluster_config *config, struct error *err)
{
    const uint64_t rows = job->to.whole.rows;
    job->level[0].outcome.labels = job->labels;
    enum status status = cluster_levels_spread(job->level, job->level_count, &job->rows, config, err);
    job->level[0].outcome.labels = NULL;
    for (uint32_t i = 1; i < job->level_count && job->to.comparable.row && status == STATUS_OK; i++) {
        struct cluster_outcome *out = &job->level[i].outcome;
        int32_t *labels = realloc(out->labels, (size_t)rows * sizeof *labels);
        out->labels = labels ? labels : out->labels;
        float *distances = realloc(out->distances, (size_t)rows * sizeof *distances);
        out->distances = distances ? distances : out->distances;
        if (!labels || !distances)
            return error_memory(err, (size_t)rows * 8, "labels");
        comparable_spread(&job->to.comparable, labels, distances);
        labelled_count(out->sizes, out->nearest, 3, labels, distances, rows, out->k);
        out->inertia = labelled_inertia(labels, distances, NULL, rows);
    }
    return status;
}

static enum status compute(struct clustering_report *report, struct job *job, struct error *err)
{
    const struct clustering_machine *machine = &job->config->machine;
    struct clustering_contexts contexts = {.count = 0};
    struct result_origin origin;
    struct cluster_config config;
    clustering_config_of(&config, machine);
    config.k = job->clusters->k;
    config.metric = job->metric;
    enum status status = clustering_contexts_open(&contexts, machine, CLUSTERING_DEVICES, err);
    if (status == STATUS_OK)
        status = matrix_input_reading(&config.reading, &job->to, err);
    if (status != STATUS_OK)
        goto out;
    const struct cluster_devices devices = {contexts.context, contexts.count};
    snprintf(report->device, sizeof report->device, "%s", contexts.names);
    machine->progress.step(machine->progress.context,
                           "looking for the nearest centroid of each row");
    status = cluster_assign(job->labels, job->distances, &devices, &job->rows, job->centroids,
                            config.k, &config, err);
    if (status == STATUS_OK && is_first(job))
        status = label_levels(job, &config, err);
    if (status != STATUS_OK || !is_first(job))
        goto out;
    if (job->to.comparable.row)
        comparable_spread(&job->to.comparable, job->labels, job->distances);
    if (!job->content[0])
        status = matrix_input_identity(&job->to, job->content, err);
    if (status == STATUS_OK)
        status = origin_of(&origin, &job->to, err);
    if (status != STATUS_OK)
        goto out;
    labelled_count(job->sizes, job->nearest, 3, job->labels, job->distances, job->to.whole.rows,
                   config.k);
    job->inertia = labelled_inertia(job->labels, job->distances, NULL, job->to.whole.rows);
    status = store(job, &origin, err);
out:
    clustering_contexts_close(&contexts);
    return status;
}

enum status labelling_run(struct clustering_report *report, const struct labelling_config *config,
                          struct error *err)
{
    const int64_t start = clock_now();
    struct job job = {.content = ""};
    *report = (struct clustering_report){.converged = true};
    enum status status = job_open(&job, config, err);
    if (status != STATUS_OK)
        goto out;
    report->found = job.target.found;
    report->in_input = job.target.output == job.to.path;
    report->k = job.clusters->k;
    report->dimension = job.clusters->dimension;
    report->rows = job.to.source.rows;
    snprintf(report->name, sizeof report->name, "%s", job.clusters->name);
    snprintf(report->feature, sizeof report->feature, "%s", job.to.about.name);
    snprintf(report->metric, sizeof report->metric, "%s", job.clusters->metric);
    report->output = strdup(job.target.output);
    if (!report->output) {
        status = error_memory(err, strlen(job.target.output) + 1, "a file name");
        goto out;
    }
    if (!report->found) {
        status = compute(report, &job, err);
    } else if (is_first(&job)) {
        struct result *holder = target_holder(&job.target, &job.to);
        const struct result_clusters *old = result_clusters_find(holder, job.clusters->name);
        job.inertia = old->inertia;
        status = result_clusters_read(holder, old, NULL, NULL, NULL, job.sizes, job.nearest, err);
    }
    if (status != STATUS_OK || !is_first(&job))
        goto out;
    report->inertia = job.inertia;
    for (uint32_t i = 0; i < job.level_count; i++) {
        struct clustering_level *of = &report->level[report->level_count++];
        const struct result_clusters *stored =
            report->found ? result_clusters_find(target_holder(&job.target, &job.to), job.of_level[i]->name)
                          : NULL;
        *of = (struct clustering_level){.k = job.of_level[i]->k, .converged = true};
        snprintf(of->name, sizeof of->name, "%s", job.of_level[i]->name);
        of->inertia = stored ? stored->inertia : i > 0 ? job.level[i].outcome.inertia : job.inertia;
    }
    report->sizes = job.sizes;
    report->nearest = job.nearest;
    report->images = job.to.result;
    if (config->paths)
        status = result_open(&report->images, report->output, err);
    if (status != STATUS_OK)
        goto out;
    job.sizes = NULL;
    job.nearest = NULL;
    job.to.result = NULL;
    report->seconds = (double)(clock_now() - start) * 1e-9;
out:
    target_close(&job.target);
    path_list_close(&job.paths);
    free(job.source);
    matrix_close(&job.rows);
    projection_clear(&job.projection);
    matrix_input_close(&job.to);
    result_close(&job.from);
    cluster_levels_clear(job.level, CLUSTER_LEVELS);
    free(job.parameters);
    free(job.centroids);
    free(job.labels);
    free(job.distances);
    free(job.sizes);
    free(job.nearest);
    return status;
}
