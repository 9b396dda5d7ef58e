/* labelling.c: wires the labelling of rows by given centroids. */
#include "base/hash.h"
#include "base/json.h"
#include "base/labelled.h"
#include "base/log.h"
#include "base/path.h"
#include "jobs/clustering.h"
#include "kmeans/cluster.h"
#include "result/choose.h"
#include "result/feature_matrix.h"
#include "result/parameters.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct labelling {
    struct cluster_job
        job; /* must be first: `make` receives it. Its levels have centroids and, except the first,
              * their parents as labels */
    struct result *from; /* the file of the centroids */
    const struct result_clusters *clusters;
    struct cluster_config cluster;
};

/* --- opening --------------------------------------------------------------------------------- */

/* Features with equal names may differ, as counts and shares do, so specifications are compared. Foreign rows are
 * compared only by length. Imported features have no specification: their names must be
 * the same. */
static enum status match_features(const struct labelling *own, struct error *err)
{
    char spec[sizeof((struct result_feature *)0)->spec];
    struct matrix_source theirs;
    struct result_feature about;
    const struct result_clusters *clusters = own->clusters;
    parameters_text(spec, sizeof spec, clusters->parameters, "spec");
    if (feature_matrix_open(&theirs, &about, own->from, clusters->feature, NULL) == STATUS_OK) {
        snprintf(spec, sizeof spec, "%s", about.spec);
        matrix_close(&theirs);
    }
    const char *from = PATH_TEXT_IN(200, own->from->path);
    const char *to = PATH_TEXT_IN(200, own->job.input.path);
    const uint32_t columns = clusters->columns ? clusters->columns : clusters->dimension;
    if (own->job.input.source.dimension != columns)
        return error_set(err, STATUS_FAILED,
                         "%s has %u values in %s, but the centroids in %s have %u: compute the "
                         "same feature for both",
                         own->job.input.about.name, own->job.input.source.dimension, to, from,
                         columns);
    if (spec[0] && own->job.input.about.spec[0] && strcmp(spec, own->job.input.about.spec) != 0)
        return error_set(err, STATUS_FAILED,
                         "the centroids in %s are of %s, but the rows in %s are of %s: compute the "
                         "same feature for both",
                         from, spec, to, own->job.input.about.spec);
    if (!strstr(spec, "imported"))
        return STATUS_OK;
    if (own->job.input.about.spec[0] && strcmp(clusters->feature, own->job.input.about.name) != 0)
        return error_set(
            err, STATUS_FAILED,
            "the centroids in %s are of the imported feature %s, but the rows in %s are "
            "of %s: import the vectors of the same model under the same name",
            from, clusters->feature, to, own->job.input.about.name);
    log_message(LOG_NOTICE,
                "notice: %s is imported: its name and its %u values are the same in %s and %s; "
                "whether the same model made them is unknown",
                clusters->feature, columns, from, to);
    return STATUS_OK;
}

static enum status write_parameters(struct labelling *own, struct error *err)
{
    const struct projection *projection = &own->job.projection;
    struct json json;
    struct sha256 state;
    char hex[65];
    const struct cluster_outcome *below = NULL;
    sha256_init(&state);
    for (uint32_t i = 0; i < own->job.report->level_count; i++) {
        const struct cluster_outcome *out = &own->job.report->level[i].outcome;
        if (below)
            sha256_update(&state, out->labels, below->k * sizeof *out->labels);
        sha256_update(&state, out->centroids,
                      (size_t)out->k * out->dimension * sizeof *out->centroids);
        if (!below && own->job.projected)
            sha256_update(&state, projection->mean, projection->columns * sizeof(float));
        if (!below && projection->components)
            sha256_update(&state, projection->components,
                          (size_t)projection->dimension * projection->columns * sizeof(float));
        below = out;
    }
    sha256_hex(hex, &state);
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_uint(&json, "k", own->clusters->k);
    json_string(&json, "feature", own->job.input.about.name);
    json_string(&json, "spec", own->job.input.about.spec);
    json_string(&json, "metric", own->clusters->metric);
    json_string(&json, "init", "assigned");
    json_string(&json, "clusters", hex);
    json_close_object(&json);
    own->job.parameters = json_take(&json);
    return own->job.parameters ? STATUS_OK : error_memory(err, 512, "the parameters");
}

/* Reads the levels, from that of the rows on. */
static enum status read_levels(struct labelling *own, struct error *err)
{
    const struct result_clusters *clusters = own->clusters, *above;
    struct clustering_report *report = own->job.report;
    enum status status = STATUS_OK;
    int32_t *parents = NULL;
    while (status == STATUS_OK) {
        struct cluster_outcome *out = &report->level[report->level_count].outcome;
        const size_t values = (size_t)clusters->k * clusters->dimension;
        snprintf(report->level_name[report->level_count++], FEATURE_NAME_MAX, "%s", clusters->name);
        *out = (struct cluster_outcome){.k = clusters->k,
                                        .dimension = clusters->dimension,
                                        .converged = true,
                                        .labels = parents,
                                        .centroids = malloc(values * sizeof *out->centroids),
                                        .sizes = calloc(clusters->k, sizeof *out->sizes),
                                        .nearest =
                                            malloc((size_t)clusters->k * 3 * sizeof *out->nearest)};
        if (!out->centroids || !out->sizes || !out->nearest)
            return error_memory(err, values * sizeof *out->centroids, "centroids");
        status = result_part_read(out->centroids, clusters, PART_CENTROIDS, err);
        if (status != STATUS_OK || own->clusters->level != 1 ||
            report->level_count == CLUSTER_LEVELS)
            break;
        status = result_parents_read(&parents, &above, own->from, clusters, err);
        clusters = above;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status open_labelling(struct labelling *own, const char *centroids, struct error *err)
{
    struct cluster_job *job = &own->job;
    const struct clustering_machine *machine = &job->config->machine;
    enum projection_space metric;
    enum status status = result_open(&own->from, centroids, err);
    if (status == STATUS_OK)
        status = choose_clusters(&own->clusters, own->from, job->config->name, err);
    if (status != STATUS_OK)
        return status;
    const struct result_clusters *clusters = own->clusters;
    status = cluster_job_open(job, clusters->feature, err);
    if (status == STATUS_OK)
        status = match_features(own, err);
    if (status != STATUS_OK)
        return status;
    if (!projection_space(&metric, clusters->metric))
        return error_set(err, STATUS_FAILED, "%s: /clusters/%s has the unknown metric '%s'",
                         own->from->path, clusters->name, clusters->metric);
    clustering_config_of(&own->cluster, machine);
    own->cluster.k = clusters->k;
    own->cluster.metric = (enum cluster_metric)metric;
    job->projected = clusters->columns > 0;
    struct result_clusters *about = &job->about.clusters;
    memcpy(about->name, clusters->name, sizeof about->name);
    memcpy(about->metric, clusters->metric, sizeof about->metric);
    job->init_above = "assigned";
    strcpy(about->init, job->init_above);
    about->seed = clusters->seed;
    const char *space = job->projected ? clusters->space : clusters->metric;
    const bool cosine = strcmp(space, metric_names[METRIC_COSINE]) == 0;
    status = matrix_input_compare(&job->input, cosine ? METRIC_COSINE : METRIC_EUCLIDEAN, false,
                                  machine, err);
    if (status == STATUS_OK)
        status = read_levels(own, err);
    if (status == STATUS_OK && job->projected &&
        (status = result_projection_read(&job->projection, own->from, clusters, err)) != STATUS_OK)
        projection_clear(&job->projection);
    if (status == STATUS_OK)
        status = cluster_job_project(job, err);
    if (status == STATUS_OK)
        status = write_parameters(own, err);
    return status == STATUS_OK ? cluster_job_claim(job, job->parameters, REMEDY_REPLACE_LABELS, err)
                               : status;
}

/* --- running --------------------------------------------------------------------------------- */

static enum status make(struct cluster_job *job, const struct cluster_devices *devices,
                        struct error *err)
{
    struct labelling *own = (struct labelling *)job;
    const struct clustering_machine *machine = &job->config->machine;
    struct clustering_report *report = job->report;
    struct cluster_outcome *out = &report->level[0].outcome;
    const bool first = cluster_job_is_first(job);
    const uint64_t rows = job->rows.rows;
    if (first) {
        out->rows = rows;
        out->labels = malloc((size_t)rows * sizeof *out->labels);
        out->distances = malloc((size_t)rows * sizeof *out->distances);
        if (!out->labels || !out->distances)
            return error_memory(err, (size_t)rows * 8, "labels");
    }
    machine->progress.step(machine->watch.context, "looking for the nearest centroid of each row");
    enum status status = cluster_assign(out->labels, out->distances, devices, &job->rows,
                                        out->centroids, out->k, &own->cluster, err);
    if (status != STATUS_OK || !first)
        return status;
    labelled_count(out->sizes, out->nearest, 3, out->labels, out->distances, rows, 0, out->k);
    out->inertia = labelled_inertia(out->labels, out->distances, NULL, rows);
    status =
        cluster_levels_spread(report->level, report->level_count, &job->rows, &own->cluster, err);
    machine->progress.step(machine->watch.context, "storing the labels");
    return status;
}

enum status labelling_run(struct clustering_report *report, const char *centroids,
                          const struct cluster_job_config *config, struct error *err)
{
    struct labelling own = {.job = {.config = config, .report = report}};
    *report = (struct clustering_report){0};
    enum status status = open_labelling(&own, centroids, err);
    if (status == STATUS_OK)
        status = cluster_job_run(&own.job, CLUSTERING_DEVICES, &own.cluster.reading, make, err);
    cluster_job_close(&own.job);
    result_close(&own.from);
    return status;
}
