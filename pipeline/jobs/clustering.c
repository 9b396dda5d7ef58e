/* clustering.c: wires a clustering.
 *
 *   INPUT ──> matrix_input ──> cluster_run, or cluster_sweep_run for several k ──> file
 *                  │                 ▲            │                                  ▲
 *             identity of       contexts of       └──> agreement with folders ───────┤
 *             the rows          the devices                                          │
 *                  └──> claim: are the clusters there already? ──────────────────────┘
 *
 * Everything that can be checked without a device is checked before devices are opened. HDF5 is
 * called only by the calling thread and, during cluster_run, by the thread that reads rows. */
#include "jobs/clustering.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/held.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "features/pca.h"
#include "jobs/folders.h"
#include "kmeans/method.h"
#include "kmeans/sweep.h"
#include "matrix/npy.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include "result/schema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const init_names[] = {"kmeans++", "kmeans-parallel", "random"};

struct clustering {
    struct cluster_job job; /* must be first: `make` receives it */
    const struct clustering_config *config;
    struct cluster_config cluster; /* k: the largest */
    struct number_range k;
    struct cluster_levels_config levels;
    enum cluster_metric space; /* as requested; k-means of projected rows is euclidean */
    struct clustering_projection projection; /* that of the preset, or the one requested */
    float *initial, *weights;
    float *fitted_weights; /* if rows were left out: weights of the others */
    char init[48];
    char weights_digest[48];
    char *asked;      /* parameters with the file's values for options that are not given; NULL: the
                * file has none */
    char *state;      /* the file that keeps the state of an unfinished run */
    struct held held; /* initial, fitted_weights and state */
    struct checkpoint_config checkpoint;
    struct classes folders;
};

enum status clustering_check_name(const char *name, struct error *err)
{
    const enum status status = schema_check_name(name, "clustering", err);
    return status == STATUS_OK ? status : error_remedy(err, REMEDY_OTHER_NAME);
}

/* --- options --------------------------------------------------------------------------------- */

static bool is_sweep(const struct clustering *own)
{
    return own->k.last > own->k.first;
}

uint32_t clustering_usual_k(uint64_t rows)
{
    return rows >= 50 ? 10 : rows < 10 ? 2 : (uint32_t)(rows / 5);
}

uint32_t clustering_usual_restarts(uint64_t rows, uint32_t dimension, const struct number_range *k)
{
    const double values = (double)((k->last - k->first) / (k->step ? k->step : 1)) + 1;
    const double sum = values * ((double)k->first + (double)k->last) / 2;
    return (double)rows * dimension * sum <= 0x1p31 ? 10 : 1;
}

static void set_k(struct clustering *own, uint32_t k)
{
    own->cluster.k = k;
    own->k = (struct number_range){k, k, 1};
}

/* Lowers a default k for few images, and any k to the number of distinct rows. */
static enum status lower_k(struct clustering *own, struct error *err)
{
    uint32_t distinct = 0;
    const uint32_t wanted = own->cluster.k, usual = clustering_usual_k(own->job.input.source.rows);
    if (usual < wanted && own->config->usual_k)
        set_k(own, usual);
    enum status status = matrix_distinct(&distinct, &own->job.input.source, own->cluster.k,
                                         own->cluster.metric == METRIC_HELLINGER, err);
    if (status != STATUS_OK)
        return status;
    if (distinct > 0 && distinct < own->cluster.k) {
        log_message(LOG_NOTICE, "notice: k is %u instead of %u: there %s only %s", distinct, wanted,
                    distinct == 1 ? "is" : "are", NUMBER_OF(distinct, "different image"));
        set_k(own, distinct);
    } else if (own->cluster.k < wanted) {
        log_message(LOG_NOTICE, "notice: k is %u instead of %u for %s; -k chooses another",
                    own->cluster.k, wanted, NUMBER_OF(own->job.input.source.rows, "image"));
    }
    return STATUS_OK;
}

/* "PREFIX-HEX" of some values. */
static void digest_text(char *text, size_t size, const char *prefix, const float *values,
                        size_t count)
{
    uint64_t digest[2];
    murmur3_of(digest, values, count * sizeof *values);
    snprintf(text, size, "%s-%016llx%016llx", prefix, (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
}

static enum status read_initial(struct clustering *own, const char *path, struct error *err)
{
    const uint32_t k = own->cluster.k, dimension = own->job.input.source.dimension;
    struct matrix_source npy = {0};
    struct stat st;
    const char *shown = PATH_TEXT(path);
    if (stat(path, &st) != 0) {
        error_set(err, STATUS_USAGE, "cannot read the initial centroids: there is no file %s",
                  shown);
        error_remedy(err, REMEDY_FIRST_CENTROIDS);
        return STATUS_USAGE;
    }
    enum status status = npy_open(&npy, path, false, err);
    if (status != STATUS_OK)
        return status;
    if (npy.rows != k || npy.dimension != dimension) {
        status =
            error_set(err, STATUS_USAGE, "%s holds %llu centroids of %u values; expected %u of %u",
                      shown, (unsigned long long)npy.rows, npy.dimension, k, dimension);
        goto out;
    }
    const size_t values = (size_t)k * dimension;
    own->initial = held_array(&own->held, values, sizeof *own->initial);
    status = held_check(&own->held, "the initial centroids", err);
    if (status == STATUS_OK)
        status = matrix_read(&npy, 0, k, own->initial, err);
    if (status != STATUS_OK)
        goto out;
    digest_text(own->init, sizeof own->init, "given", own->initial, values);
    own->cluster.init = INIT_GIVEN;
    own->cluster.initial = own->initial;
out:
    matrix_close(&npy);
    return status;
}

static enum status choose_init(struct clustering *own, struct error *err)
{
    const char *init = own->config->init;
    for (int i = 0; i < INIT_GIVEN; i++)
        if (strcmp(init, init_names[i]) == 0) {
            own->cluster.init = (enum cluster_init)i;
            snprintf(own->init, sizeof own->init, "%s", init);
            return STATUS_OK;
        }
    if (is_sweep(own))
        return error_set(err, STATUS_USAGE, "a file of initial centroids requires a single k");
    if (own->config->n_init > 1 && own->config->mini_batch == 0 && own->config->levels.count == 0)
        return error_set(
            err, STATUS_USAGE,
            "every run from a file of initial centroids is the same: leave out --n-init");
    if (own->job.projected)
        return error_set(err, STATUS_USAGE,
                         "initial centroids from a file cannot be projected: cluster without "
                         "projection (--pca 0)");
    return read_initial(own, init, err);
}

static enum status read_weights(struct clustering *own, struct error *err)
{
    const char *path = own->config->weights;
    const uint64_t rows = own->job.input.whole.rows;
    uint64_t count;
    enum status status = matrix_input_vector(&own->weights, &count, path, err);
    if (status != STATUS_OK)
        return status;
    if (count != rows)
        return error_set(err, STATUS_USAGE, "%s holds %llu weights, but there are %llu rows",
                         PATH_TEXT(path), (unsigned long long)count, (unsigned long long)rows);
    digest_text(own->weights_digest, sizeof own->weights_digest, "murmur3", own->weights,
                (size_t)count);
    own->cluster.weights = own->weights;
    return STATUS_OK;
}

/* Writes the parameters of levels, splits and resampling. */
static void write_levels(struct json *json, const struct cluster_levels_config *levels)
{
    char text[CLUSTER_LEVELS * 12] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < levels->count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%u", i ? "," : "", levels->k[i]);
    if (levels->split > 0)
        snprintf(text, sizeof text, "%ux%u", levels->k[1], levels->split);
    if (levels->count > 1)
        json_string(json, levels->split > 0 ? "split" : "levels", text);
    snprintf(text, sizeof text, "%u:%u", levels->nearest, levels->rounds);
    if (levels->rounds > 0)
        json_string(json, "resample", text);
}

static const char *usual_method(uint64_t mini_batch)
{
    return mini_batch ? "mini-batch" : "lloyd";
}

static enum status write_parameters(struct clustering *own, struct error *err)
{
    const struct cluster_config *cluster = &own->cluster;
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    if (is_sweep(own)) {
        char range[80];
        json_string(&json, "k", format_range(range, sizeof range, &own->k));
    } else {
        json_uint(&json, "k", cluster->k);
    }
    json_string(&json, "feature", own->job.input.about.name);
    json_string(&json, "spec", own->job.input.about.spec);
    json_string(&json, "metric", metric_names[own->space]);
    if (own->job.projected) {
        json_bool(&json, "center", true);
        json_uint(&json, "pca", own->projection.pca);
        json_double(&json, "whiten", own->projection.whiten);
    }
    json_string(&json, "init", own->init);
    json_uint(&json, "seed", cluster->seed);
    json_uint(&json, "n_init", cluster->n_init);
    json_uint(&json, "max_iter", cluster->max_iter);
    json_double(&json, "tol", cluster->tol);
    json_uint(&json, "mini_batch", cluster->mini_batch);
    if (strcmp(cluster->method, usual_method(cluster->mini_batch)) != 0)
        json_string(&json, "method", cluster->method);
    if (own->weights)
        json_string(&json, "weights", own->weights_digest);
    write_levels(&json, &own->levels);
    json_close_object(&json);
    own->job.parameters = json_take(&json);
    return own->job.parameters ? STATUS_OK : error_memory(err, 256, "the parameters");
}

/* If restarts or tolerance are not given, a stored clustering that differs only in these is the
 * same. */
static enum status take_stored(struct clustering *own, struct error *err)
{
    struct result *holder = cluster_job_holder(&own->job);
    const struct result_clusters *old =
        holder ? result_clusters_find(holder, own->config->job.name) : NULL;
    struct parameters *stored = NULL;
    const struct cluster_config usual = own->cluster;
    char *parameters = own->job.parameters;
    if (!old || parameters_open(&stored, old->parameters, NULL) != STATUS_OK)
        return STATUS_OK;
    if (own->config->n_init == 0)
        own->cluster.n_init = parameters_number(stored, "n_init", usual.n_init);
    if (own->config->tol < 0)
        parameters_real(stored, "tol", &own->cluster.tol);
    parameters_close(&stored);
    enum status status = write_parameters(own, err);
    if (status == STATUS_OK && strcmp(own->job.parameters, old->parameters) == 0) {
        free(parameters);
        return STATUS_OK;
    }
    own->asked = own->job.parameters;
    own->job.parameters = parameters;
    own->cluster = usual;
    return status;
}

/* Without options, the rows of a preset are projected as the preset specifies. */
static enum status choose_projection(struct clustering *own, struct error *err)
{
    const struct clustering_config *config = own->config;
    struct preset_join join;
    own->projection = config->projection;
    if (!config->as_preset || !own->job.input.result ||
        strcmp(own->job.input.about.name, RESULT_PRESET) != 0 ||
        strcmp(own->job.input.about.kind, "joined") != 0)
        return STATUS_OK;
    const enum status status = preset_join_read(&join, own->job.input.result->preset, err);
    own->projection.pca = join.pca < PCA_COMPONENTS_MAX ? join.pca : PCA_COMPONENTS_MAX;
    own->projection.whiten = join.whiten;
    return status;
}

static enum status read_options(struct clustering *own, struct error *err)
{
    const struct clustering_config *config = own->config;
    clustering_config_of(&own->cluster, &config->job.machine);
    own->k = config->k;
    own->cluster.k = (uint32_t)config->k.last;
    own->cluster.seed = config->seed;
    own->cluster.n_init = (uint32_t)config->n_init;
    own->cluster.max_iter = (uint32_t)config->max_iter;
    own->cluster.tol = config->tol >= 0 ? config->tol : config->mini_batch ? 0 : CLUSTERING_TOL;
    own->cluster.mini_batch = (uint32_t)config->mini_batch;
    own->cluster.method = config->method ? config->method : usual_method(config->mini_batch);
    own->cluster.metric = config->metric >= 0 ? (enum cluster_metric)config->metric
                                              : matrix_input_usual_metric(&own->job.input.about);
    own->space = own->cluster.metric;
    enum status status = choose_projection(own, err);
    own->job.projected = own->projection.center || own->projection.pca > 0;
    if (status == STATUS_OK && config->lower_k)
        status = lower_k(own, err);
    if (status != STATUS_OK)
        return status;
    own->levels = config->levels;
    if (own->levels.count == 0)
        own->levels = (struct cluster_levels_config){.count = 1, .k = {own->cluster.k}};
    status = choose_init(own, err);
    if (status != STATUS_OK)
        return status;
    if (own->job.projected)
        own->cluster.metric = METRIC_EUCLIDEAN;
    const uint32_t columns = own->job.input.source.dimension;
    if (own->cluster.n_init == 0)
        own->cluster.n_init =
            own->cluster.init == INIT_GIVEN || config->mini_batch || !config->restarts
                ? 1
                : clustering_usual_restarts(own->job.input.source.rows,
                                            own->projection.pca > 0 && own->projection.pca < columns
                                                ? (uint32_t)own->projection.pca
                                                : columns,
                                            &own->k);
    status = config->weights ? read_weights(own, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    status = write_parameters(own, err);
    return status == STATUS_OK ? take_stored(own, err) : status;
}

/* --- the state of an unfinished run ---------------------------------------------------------- */

static enum status digest_rows(void *context, char hex[65], struct error *err)
{
    return matrix_input_digest(context, hex, err);
}

/* The checkpoint lies beside the output, one file per name. */
static enum status plan_checkpoint(struct clustering *own, struct error *err)
{
    const struct clustering_config *config = own->config;
    const size_t size = strlen(own->job.output) + strlen(config->job.name) + 16;
    own->state = held_array(&own->held, size, 1);
    if (held_check(&own->held, "a file name", err) != STATUS_OK)
        return STATUS_FAILED;
    snprintf(own->state, size, "%s.%s.checkpoint", own->job.output, config->job.name);
    if (config->checkpoint_seconds == 0)
        return STATUS_OK;
    own->job.input.digests = true;
    own->checkpoint = (struct checkpoint_config){.path = own->state,
                                                 .seconds = config->checkpoint_seconds,
                                                 .parameters = own->job.parameters,
                                                 .rows = digest_rows,
                                                 .context = &own->job.input};
    own->cluster.checkpoint = &own->checkpoint;
    return STATUS_OK;
}

/* --- opening --------------------------------------------------------------------------------- */

static enum status open_clustering(struct clustering *own, struct error *err)
{
    const struct clustering_config *config = own->config;
    const char *name = config->job.name;
    enum status status = clustering_check_name(name, err);
    if (status != STATUS_OK)
        return status;
    if (config->levels.count > 1 && strlen(name) > FEATURE_NAME_MAX - 4)
        return error_set(err, STATUS_USAGE,
                         "the name of a clustering with levels has at most %d characters",
                         FEATURE_NAME_MAX - 4);
    status = cluster_job_open(&own->job, NULL, err);
    if (status == STATUS_OK)
        status = read_options(own, err);
    if (status == STATUS_OK)
        status = plan_checkpoint(own, err);
    if (status != STATUS_OK)
        return status;
    struct result_clusters *about = &own->job.about.clusters;
    snprintf(about->name, sizeof about->name, "%s", name);
    snprintf(about->init, sizeof about->init, "%s", own->init);
    snprintf(about->metric, sizeof about->metric, "%s", metric_names[own->cluster.metric]);
    about->seed = (int64_t)own->cluster.seed;
    own->job.about.by_run = config->by_run;
    own->job.about.value[PART_WEIGHTS] = own->weights;
    own->job.init_above = own->cluster.init == INIT_GIVEN ? init_names[INIT_KMEANSPP] : own->init;
    /* /clusters/NAME is the level of rows, NAME-2 the next one. */
    for (uint32_t i = 0; i < own->levels.count; i++)
        snprintf(own->job.report->level_name[i], FEATURE_NAME_MAX, i ? "%.*s-%u" : "%.*s",
                 i ? FEATURE_NAME_MAX - 4 : FEATURE_NAME_MAX - 1, name, i + 1);
    return cluster_job_claim(&own->job, own->asked ? own->asked : own->job.parameters,
                             REMEDY_REPLACE, err);
}

/* --- running --------------------------------------------------------------------------------- */

static enum status run_sweep(struct cluster_outcome *best, struct cluster_sweep *out,
                             const struct clustering *own, const struct cluster_devices *devices,
                             struct error *err)
{
    const struct cluster_sweep_config values = {.first = (uint32_t)own->k.first,
                                                .last = (uint32_t)own->k.last,
                                                .step = (uint32_t)own->k.step,
                                                .classes = own->folders.of_row,
                                                .class_count = own->folders.count,
                                                .progress =
                                                    own->config->job.machine.progress.value};
    return cluster_sweep_run(best, out, devices, &own->job.rows, &own->cluster, &values, err);
}

/* Opens the rows to cluster. */
static enum status project_rows(struct clustering *own, struct error *err)
{
    const struct clustering_config *config = own->config;
    const struct pca_config pca = {.space = (enum projection_space)own->space,
                                   .components = (uint32_t)own->projection.pca,
                                   .whiten = own->projection.whiten,
                                   .optional = config->usual_pca,
                                   .threads = config->job.machine.threads,
                                   .stop = config->job.machine.watch.stop};
    if (!own->job.projected)
        return cluster_job_project(&own->job, err);
    config->job.machine.progress.step(config->job.machine.watch.context,
                                      "computing principal components");
    const enum status status = pca_fit(&own->job.projection, &own->job.input.source, &pca, err);
    if (status == STATUS_OK && own->projection.pca > 0 && !own->job.projection.components &&
        cluster_job_is_first(&own->job))
        log_message(LOG_NOTICE,
                    "notice: all rows are equal: they have no principal components, and are "
                    "clustered without");
    return status == STATUS_OK ? cluster_job_project(&own->job, err) : status;
}

/* Runs k-means for one k or for all, and compares the clusters with the folders. */
static enum status run_kmeans(struct clustering *own, const struct cluster_devices *devices,
                              struct error *err)
{
    struct clustering_report *report = own->job.report;
    const struct classes *folders = &own->folders;
    struct cluster_level *level = report->level;
    struct cluster_outcome *outcome = &level->outcome;
    enum status status = STATUS_OK;
    if (!cluster_job_is_first(&own->job) && !is_sweep(own))
        ; /* nothing is compared here */
    else if (own->job.input.result)
        status = folders_read(&own->folders, own->job.input.result, NULL, err);
    else if (own->config->job.paths)
        status = folders_read(&own->folders, NULL, &own->job.paths, err);
    if (status != STATUS_OK)
        return status;
    if (own->job.input.comparable.row && folders->of_row)
        comparable_pick(&own->job.input.comparable, folders->of_row);
    if (is_sweep(own))
        status = run_sweep(outcome, &report->sweep, own, devices, err);
    else
        status =
            cluster_levels_run(level, devices, &own->job.rows, &own->cluster, &own->levels, err);
    if (status != STATUS_OK || !folders->of_row || !cluster_job_is_first(&own->job))
        return status;
    own->job.about.clusters.folders = folders->count;
    return cluster_agree(&own->job.about.clusters.agreement, outcome->labels, outcome->k,
                         folders->of_row, folders->count, outcome->rows, err);
}

/* Leaves out rows that cannot be compared. */
static enum status leave_out_rows(struct clustering *own, struct error *err)
{
    /* Negative values under hellinger are an error, not a lack of values. */
    const enum cluster_metric metric =
        own->space == METRIC_COSINE ? METRIC_COSINE : METRIC_EUCLIDEAN;
    const uint64_t rows = own->job.input.whole.rows;
    enum status status =
        matrix_input_compare(&own->job.input, metric, false, &own->config->job.machine, err);
    if (status != STATUS_OK || !own->job.input.comparable.row || !own->weights)
        return status;
    own->fitted_weights = held_array(&own->held, rows, sizeof *own->fitted_weights);
    if (held_check(&own->held, "weights", err) != STATUS_OK)
        return STATUS_FAILED;
    memcpy(own->fitted_weights, own->weights, rows * sizeof *own->weights);
    comparable_pick(&own->job.input.comparable, own->fitted_weights);
    own->cluster.weights = own->fitted_weights;
    return STATUS_OK;
}

static enum status make(struct cluster_job *job, const struct cluster_devices *devices,
                        struct error *err)
{
    struct clustering *own = (struct clustering *)job;
    const struct clustering_machine *machine = &job->config->machine;
    enum status status = leave_out_rows(own, err);
    if (status == STATUS_OK)
        status = project_rows(own, err);
    if (status != STATUS_OK)
        return status;
    machine->progress.step(machine->watch.context, "k-means: reading rows");
    status = run_kmeans(own, devices, err);
    job->report->level_count = own->levels.count;
    if (status == STATUS_OK && cluster_job_is_first(job))
        machine->progress.step(machine->watch.context, "k-means: storing the result");
    return status;
}

enum status clustering_run(struct clustering_report *report, const struct clustering_config *config,
                           struct error *err)
{
    const int64_t start = clock_now();
    struct clustering own = {.job = {.config = &config->job, .report = report, .words = true},
                             .config = config};
    *report = (struct clustering_report){.mini_batch = (uint32_t)config->mini_batch};
    enum status status = open_clustering(&own, err);
    report->n_init = own.cluster.n_init;
    if (status == STATUS_OK)
        status = cluster_job_run(
            &own.job,
            method_of(&own.cluster)->one_device && own.levels.split == 0 ? 1 : CLUSTERING_DEVICES,
            &own.cluster.reading, make, err);
    if (status == STATUS_OK && cluster_job_is_first(&own.job)) {
        output_remove(own.state);
        report->seconds = clock_seconds_since(start);
    }
    cluster_job_close(&own.job);
    classes_clear(&own.folders);
    free(own.weights);
    free(own.asked);
    held_free(&own.held);
    return status;
}
