/* clustering.c: wires a clustering.
 *
 *   INPUT ──> matrix_input ──> cluster_run, or cluster_sweep_run for several k ──> file
 *                  │                 ▲            │                                  ▲
 *             identity of       contexts of       └──> agreement with folders ───────┤
 *             the rows          the devices                                          │
 *                  └──> target: are the clusters there already? ─────────────────────┘
 *
 * Everything that can be checked without a device is checked before one is looked for. All calls of
 * HDF5 come from the calling thread, or from the thread that reads rows for cluster_run meanwhile.
 */
#include "jobs/clustering.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "features/pca.h"
#include "jobs/folders.h"
#include "jobs/origin.h"
#include "jobs/target.h"
#include "kmeans/sweep.h"
#include "matrix/npy.h"
#include "matrix/projected.h"
#include "ranks/processes.h"
#include "result/add_clusters.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const init_names[] = {"kmeans++", "kmeans-parallel", "random"};

struct job {
    const struct clustering_config *config;
    struct matrix_input input;
    struct target target;
    struct path_list paths;    /* of the rows, where they were given, */
    struct result_names names; /* and as they are stored */
    char *source;
    struct cluster_config cluster; /* k: the largest */
    struct number_range k;
    struct cluster_levels_config levels;
    enum cluster_metric space; /* that is asked for; where rows are projected, k-means is euclidean */
    bool center;
    uint32_t pca;
    double whiten;
    struct matrix_source rows;    /* projected, where they are: */
    struct projection projection; /* its arrays are those of `rows` */
    float *initial, *weights;
    float *fitted_weights; /* where rows were left out: of the others */
    char init[48], metric[16];
    char weights_digest[48];
    char *parameters; /* canonical JSON */
    char *asked;      /* the same, but for what nobody asked as the file has it; NULL: it has nothing */
    char content[65]; /* identity of the rows; "" until known */
    char *state;      /* the file that keeps the state of an unfinished run */
    struct checkpoint_config checkpoint;
    struct folders folders;
};

enum status clustering_check_name(const char *name, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-.";
    char shown[120];
    enum status status = STATUS_OK;
    path_for_message(shown, sizeof shown, name);
    if (name[strspn(name, allowed)])
        status =
            error_set(err, STATUS_USAGE,
                      "'%s' is not a valid name: use letters, digits, '_', '-' and '.'", shown);
    else if (strlen(name) >= FEATURE_NAME_MAX)
        status = error_set(err, STATUS_USAGE, "a name has at most %d characters; '%s' has %zu",
                           FEATURE_NAME_MAX - 1, shown, strlen(name));
    else if (strspn(name, ".") == strlen(name))
        status = error_set(err, STATUS_USAGE, "'%s' is not a valid name", shown);
    if (status != STATUS_OK)
        error_remedy(err, REMEDY_OTHER_NAME);
    return status;
}

/* --- options --------------------------------------------------------------------------------- */

static bool is_projected(const struct job *job)
{
    return job->center || job->pca > 0;
}

/* /clusters/NAME is the level of rows, NAME-2 the next one. */
static void clustering_level_name(char out[FEATURE_NAME_MAX], const char *name, uint32_t level)
{
    snprintf(out, FEATURE_NAME_MAX, level ? "%.*s-%u" : "%.*s", FEATURE_NAME_MAX - 4, name, level + 1);
}

static bool is_sweep(const struct job *job)
{
    return job->k.last > job->k.first;
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

static void set_k(struct job *job, uint32_t k)
{
    job->cluster.k = k;
    job->k = (struct number_range){k, k, 1};
}

/* Lowers k for few images, unless the file has it, and to the number of different rows. */
static enum status lower_k(struct job *job, struct error *err)
{
    uint32_t distinct = 0;
    char images[40];
    const uint32_t wanted = job->cluster.k, usual = clustering_usual_k(job->input.source.rows);
    if (usual < wanted && job->config->usual_k)
        set_k(job, usual);
    enum status status = matrix_distinct(&distinct, &job->input.source, job->cluster.k,
                                         job->cluster.metric == METRIC_HELLINGER, err);
    if (status != STATUS_OK)
        return status;
    if (distinct > 0 && distinct < job->cluster.k) {
        log_message(LOG_NOTICE, "notice: k is %u instead of %u: there %s only %s", distinct, wanted,
                    distinct == 1 ? "is" : "are",
                    format_number_of(images, sizeof images, distinct, "different image"));
        set_k(job, distinct);
    } else if (job->cluster.k < wanted) {
        log_message(LOG_NOTICE, "notice: k is %u instead of %u for %s; -k chooses another",
                    job->cluster.k, wanted,
                    format_number_of(images, sizeof images, job->input.source.rows, "image"));
    }
    return STATUS_OK;
}

/* "PREFIX-HEX" of some values. */
static void digest_text(char *text, size_t size, const char *prefix, const float *values,
                        size_t count)
{
    struct murmur3 state;
    uint64_t digest[2];
    murmur3_init(&state);
    murmur3_update(&state, values, count * sizeof *values);
    murmur3_final(&state, digest);
    snprintf(text, size, "%s-%016llx%016llx", prefix, (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
}

static enum status read_initial(struct job *job, const char *path, struct error *err)
{
    const uint32_t k = job->cluster.k, dimension = job->input.source.dimension;
    struct matrix_source npy = {0};
    struct stat st;
    char shown[256];
    path_for_message(shown, sizeof shown, path);
    if (stat(path, &st) != 0) {
        error_set(err, STATUS_USAGE, "cannot read the initial centroids: there is no file %s",
                  shown);
        error_remedy(err, REMEDY_FIRST_CENTROIDS);
        return STATUS_USAGE;
    }
    enum status status = npy_open(&npy, path, err);
    if (status != STATUS_OK)
        return status;
    if (npy.rows != k || npy.dimension != dimension) {
        status =
            error_set(err, STATUS_USAGE, "%s holds %llu centroids of %u values; expected %u of %u",
                      shown, (unsigned long long)npy.rows, npy.dimension, k, dimension);
        goto out;
    }
    const size_t values = (size_t)k * dimension;
    job->initial = malloc(values * sizeof *job->initial);
    status = job->initial ? matrix_read(&npy, 0, k, job->initial, err)
                          : error_memory(err, values * sizeof *job->initial, "the first centroids");
    if (status != STATUS_OK)
        goto out;
    digest_text(job->init, sizeof job->init, "given", job->initial, values);
    job->cluster.init = INIT_GIVEN;
    job->cluster.initial = job->initial;
out:
    matrix_close(&npy);
    return status;
}

static enum status choose_init(struct job *job, struct error *err)
{
    const char *init = job->config->init;
    for (int i = 0; i < INIT_GIVEN; i++)
        if (strcmp(init, init_names[i]) == 0) {
            job->cluster.init = (enum cluster_init)i;
            snprintf(job->init, sizeof job->init, "%s", init);
            return STATUS_OK;
        }
    if (is_sweep(job))
        return error_set(err, STATUS_USAGE, "a file of initial centroids requires a single k");
    if (is_projected(job))
        return error_set(err, STATUS_USAGE, "initial centroids from a file cannot be projected");
    return read_initial(job, init, err);
}

static enum status read_weights(struct job *job, struct error *err)
{
    const char *path = job->config->weights;
    const uint64_t rows = job->input.whole.rows;
    char shown[256];
    uint64_t count;
    enum status status = matrix_input_vector(&job->weights, &count, path, err);
    if (status != STATUS_OK)
        return status;
    if (count != rows)
        return error_set(err, STATUS_USAGE, "%s holds %llu weights, but there are %llu rows",
                         path_for_message(shown, sizeof shown, path), (unsigned long long)count,
                         (unsigned long long)rows);
    digest_text(job->weights_digest, sizeof job->weights_digest, "murmur3", job->weights,
                (size_t)count);
    job->cluster.weights = job->weights;
    return STATUS_OK;
}

/* What makes more of a clustering than k-means of the rows. */
static void write_levels(struct json *json, const struct cluster_levels_config *levels)
{
    char text[CLUSTER_LEVELS * 12] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < levels->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", i ? "," : "", levels->k[i]);
    if (levels->split > 0)
        snprintf(text, sizeof text, "%ux%u", levels->k[1], levels->split);
    if (levels->count > 1)
        json_string(json, levels->split > 0 ? "split" : "levels", text);
    snprintf(text, sizeof text, "%u:%u", levels->nearest, levels->rounds);
    if (levels->rounds > 0)
        json_string(json, "resample", text);
}

static enum status write_parameters(struct job *job, struct error *err)
{
    const struct cluster_config *cluster = &job->cluster;
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    if (is_sweep(job)) {
        char range[80];
        json_string(&json, "k", format_range(range, sizeof range, &job->k));
    } else {
        json_uint(&json, "k", cluster->k);
    }
    json_string(&json, "feature", job->input.about.name);
    json_string(&json, "spec", job->input.about.spec);
    json_string(&json, "metric", metric_names[job->space]);
    if (is_projected(job)) {
        json_bool(&json, "center", true);
        json_uint(&json, "pca", job->pca);
        json_double(&json, "whiten", job->whiten);
    }
    json_string(&json, "init", job->init);
    json_uint(&json, "seed", cluster->seed);
    json_uint(&json, "n_init", cluster->n_init);
    json_uint(&json, "max_iter", cluster->max_iter);
    json_double(&json, "tol", cluster->tol);
    json_uint(&json, "mini_batch", cluster->mini_batch);
    if (job->weights)
        json_string(&json, "weights", job->weights_digest);
    write_levels(&json, &job->levels);
    json_close_object(&json);
    const char *text = json_finish(&json);
    job->parameters = text ? strdup(text) : NULL;
    json_clear(&json);
    return job->parameters ? STATUS_OK : error_memory(err, 256, "the parameters");
}

/* Where nobody asks for a number of restarts or a tolerance, a clustering that was made with others, but
 * else with the same parameters, is the same. */
static enum status take_stored(struct job *job, struct error *err)
{
    struct result *holder = target_holder(&job->target, &job->input);
    const struct result_clusters *old =
        holder ? result_clusters_find(holder, job->config->name) : NULL;
    struct parameters *stored = NULL;
    const struct cluster_config usual = job->cluster;
    char *parameters = job->parameters;
    if (!old || parameters_open(&stored, old->parameters, NULL) != STATUS_OK)
        return STATUS_OK;
    if (job->config->n_init == 0)
        job->cluster.n_init = parameters_number(stored, "n_init", usual.n_init);
    if (job->config->tol < 0)
        parameters_real(stored, "tol", &job->cluster.tol);
    parameters_close(&stored);
    enum status status = write_parameters(job, err);
    if (status == STATUS_OK && strcmp(job->parameters, old->parameters) == 0) {
        free(parameters);
        return STATUS_OK;
    }
    job->asked = job->parameters;
    job->parameters = parameters;
    job->cluster = usual;
    return status;
}

/* A clustering of the preset's rows that says nothing of projections takes the preset's. */
static enum status choose_projection(struct job *job, struct error *err)
{
    const struct clustering_config *config = job->config;
    struct preset_join join;
    job->center = config->center;
    job->pca = config->pca;
    job->whiten = config->whiten;
    if (!config->as_preset || !job->input.result ||
        strcmp(job->input.about.name, RESULT_PRESET) != 0 ||
        strcmp(job->input.about.kind, "joined") != 0)
        return STATUS_OK;
    const enum status status = preset_join_read(&join, result_preset(job->input.result), err);
    job->pca = join.pca < PCA_COMPONENTS_MAX ? join.pca : PCA_COMPONENTS_MAX;
    job->whiten = join.whiten;
    return status;
}

static enum status read_options(struct job *job, struct error *err)
{
    const struct clustering_config *config = job->config;
    clustering_config_of(&job->cluster, &config->machine);
    job->k = config->k;
    job->cluster.k = (uint32_t)config->k.last;
    job->cluster.seed = config->seed;
    job->cluster.n_init = config->n_init;
    job->cluster.max_iter = config->max_iter;
    job->cluster.tol = config->tol >= 0 ? config->tol : config->mini_batch ? 0 : CLUSTERING_TOL;
    job->cluster.mini_batch = config->mini_batch;
    job->cluster.method = config->mini_batch ? "mini-batch" : "lloyd";
    job->cluster.metric = config->metric >= 0 ? (enum cluster_metric)config->metric
                                              : matrix_input_usual_metric(&job->input.about);
    job->space = job->cluster.metric;
    enum status status = choose_projection(job, err);
    if (status == STATUS_OK && config->lower_k)
        status = lower_k(job, err);
    if (status != STATUS_OK)
        return status;
    job->levels = config->levels;
    if (job->levels.count == 0)
        job->levels = (struct cluster_levels_config){.count = 1, .k = {job->cluster.k}};
    status = choose_init(job, err);
    if (status != STATUS_OK)
        return status;
    if (is_projected(job))
        job->cluster.metric = METRIC_EUCLIDEAN;
    snprintf(job->metric, sizeof job->metric, "%s", metric_names[job->cluster.metric]);
    const uint32_t columns = job->input.source.dimension;
    if (job->cluster.n_init == 0)
        job->cluster.n_init =
            job->cluster.init == INIT_GIVEN || config->mini_batch || !config->restarts
                ? 1
                : clustering_usual_restarts(
                      job->input.source.rows,
                      job->pca > 0 && job->pca < columns ? job->pca : columns, &job->k);
    status = config->weights ? read_weights(job, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    status = write_parameters(job, err);
    return status == STATUS_OK ? take_stored(job, err) : status;
}

/* --- the state of an unfinished run ---------------------------------------------------------- */

static enum status digest_rows(void *context, char hex[65], struct error *err)
{
    return matrix_input_digest(context, hex, err);
}

/* It lies beside the output, one file for each name. */
static enum status plan_checkpoint(struct job *job, struct error *err)
{
    const struct clustering_config *config = job->config;
    const size_t size = strlen(job->target.output) + strlen(config->name) + 16;
    job->state = malloc(size);
    if (!job->state)
        return error_memory(err, size, "a file name");
    snprintf(job->state, size, "%s.%s.checkpoint", job->target.output, config->name);
    if (config->checkpoint_seconds == 0)
        return STATUS_OK;
    job->input.digests = true;
    job->checkpoint = (struct checkpoint_config){.path = job->state,
                                                 .seconds = config->checkpoint_seconds,
                                                 .parameters = job->parameters,
                                                 .rows = digest_rows,
                                                 .context = &job->input};
    job->cluster.checkpoint = &job->checkpoint;
    return STATUS_OK;
}

/* --- several processes ----------------------------------------------------------------------- */

/* Whether this process stores, locks and tells: the only one, or the first of several. */
static bool is_first(const struct job *job)
{
    return processes_first(job->config->machine.processes);
}

/* All processes compute where the first one has not found the result. */
static enum status follow_first(struct job *job, struct error *err)
{
    const struct clustering_machine *machine = &job->config->machine;
    if (clustering_same_everywhere(machine, &job->input.source, job->parameters, err) != STATUS_OK)
        return err->status;
    return clustering_follow_first(machine, &job->target.found, sizeof job->target.found, err);
}

/* --- opening --------------------------------------------------------------------------------- */

static enum status job_open(struct job *job, const struct clustering_config *config,
                            struct error *err)
{
    job->config = config;
    enum status status = clustering_check_name(config->name, err);
    if (status != STATUS_OK)
        return status;
    if (config->levels.count > 1 && strlen(config->name) > FEATURE_NAME_MAX - 4)
        return error_set(err, STATUS_USAGE, "the name of a clustering with levels has at most %d characters",
                         FEATURE_NAME_MAX - 4);
    status = matrix_input_open(&job->input, config->input, config->feature, NULL, err);
    if (status != STATUS_OK)
        return status;
    if (config->paths)
        status = clustering_read_paths(&job->paths, &job->names, &job->source, config->paths,
                                       &job->input, err);
    if (status != STATUS_OK)
        return status;
    status = target_open(&job->target, &job->input, config->output, config->paths ? &job->paths : NULL,
                         err);
    if (status != STATUS_OK)
        return status;
    status = read_options(job, err);
    if (status != STATUS_OK)
        return status;
    status = plan_checkpoint(job, err);
    if (status != STATUS_OK)
        return status;
    const struct target_claim claim = {.name = config->name,
                                       .parameters = job->asked ? job->asked : job->parameters,
                                       .replace = config->replace,
                                       .replace_by_run = config->by_run,
                                       .verify = config->verify_input,
                                       .remedy = REMEDY_REPLACE,
                                       .stop = config->machine.stop};
    if (is_first(job))
        status = target_take(&job->target, &job->input, job->content, &claim, err);
    return status == STATUS_OK ? follow_first(job, err) : status;
}

/* --- running --------------------------------------------------------------------------------- */

/* The sweep as the file has it. */
static enum status keep_sweep(struct result_sweep *out, const struct cluster_sweep *sweep,
                              const struct folders *folders, struct error *err)
{
    *out = (struct result_sweep){
        .count = sweep->count, .sample = sweep->sample, .has_folders = folders->of_row != NULL};
    snprintf(out->measure, sizeof out->measure, "%s",
             sweep->simplified ? "simplified_silhouette" : "silhouette");
    snprintf(out->reason, sizeof out->reason, "%s", sweep->reason);
    out->values = calloc(sweep->count, sizeof *out->values);
    if (!out->values)
        return error_memory(err, sweep->count * sizeof *out->values, "the values of k");
    for (uint32_t i = 0; i < sweep->count; i++) {
        const struct cluster_sweep_value *value = &sweep->values[i];
        out->values[i] = (struct result_sweep_value){
            .k = value->k,
            .iterations = value->iterations,
            .converged = value->converged,
            .inertia = value->inertia,
            .silhouette = value->measures.silhouette,
            .simplified_silhouette = value->measures.simplified_silhouette,
            .davies_bouldin = value->measures.davies_bouldin,
            .calinski_harabasz = value->measures.calinski_harabasz,
            .agreement = {folders->count, value->agreement.purity, value->agreement.nmi,
                          value->agreement.ari},
        };
    }
    return STATUS_OK;
}

static enum status run_sweep(struct cluster_outcome *best, struct result_sweep *out,
                             const struct job *job, const struct cluster_devices *devices,
                             struct error *err)
{
    const struct cluster_sweep_config values = {.first = (uint32_t)job->k.first,
                                                .last = (uint32_t)job->k.last,
                                                .step = (uint32_t)job->k.step,
                                                .classes = job->folders.of_row,
                                                .class_count = job->folders.count,
                                                .progress = job->config->machine.progress.value};
    struct cluster_sweep sweep;
    enum status status =
        cluster_sweep_run(best, &sweep, devices, &job->rows, &job->cluster, &values, err);
    if (status == STATUS_OK && is_first(job))
        status = keep_sweep(out, &sweep, &job->folders, err);
    cluster_sweep_clear(&sweep);
    return status;
}

/* The rows that are clustered. What belongs to them is the job's as long as they are open. */
static enum status project_rows(struct job *job, struct error *err)
{
    const struct clustering_config *config = job->config;
    const struct pca_config pca = {.space = (enum projection_space)job->space,
                                   .components = job->pca,
                                   .whiten = job->whiten,
                                   .optional = config->usual_pca,
                                   .threads = config->machine.threads,
                                   .stop = config->machine.stop};
    job->rows = job->input.source;
    job->rows.close = NULL; /* the input closes it */
    if (!is_projected(job))
        return STATUS_OK;
    config->machine.progress.step(config->machine.progress.context,
                                  "computing principal components");
    const enum status status = pca_fit(&job->projection, &job->rows, &pca, err);
    if (status == STATUS_OK && job->pca > 0 && !job->projection.components && is_first(job))
        log_message(LOG_NOTICE, "notice: all rows are alike: they have no principal components, and are "
                                "clustered without");
    const struct matrix_source plain = job->rows;
    job->rows = (struct matrix_source){0};
    return status == STATUS_OK ? projected_open(&job->rows, &plain, &job->projection, err) : status;
}

/* Runs for the one k or for all of them, and compares the clusters with the folders. */
static enum status run_kmeans(struct cluster_level *level, struct clustering_report *report,
                              struct job *job, const struct cluster_devices *devices,
                              struct error *err)
{
    const struct folders *folders = &job->folders;
    struct cluster_outcome *outcome = &level->outcome;
    enum status status = STATUS_OK;
    if (!is_first(job) && !is_sweep(job))
        ; /* nothing is compared here */
    else if (job->input.result)
        status = folders_read(&job->folders, job->input.result, err);
    else if (job->config->paths)
        status = folders_of_paths(&job->folders, &job->paths, err);
    if (status != STATUS_OK)
        return status;
    if (job->input.comparable.row && folders->of_row)
        comparable_pick(&job->input.comparable, folders->of_row);
    if (is_sweep(job))
        status = run_sweep(outcome, &report->sweep, job, devices, err);
    else
        status = cluster_levels_run(level, devices, &job->rows, &job->cluster, &job->levels, err);
    if (status != STATUS_OK || !folders->of_row || !is_first(job))
        return status;
    struct cluster_agreement agreement;
    status = cluster_agree(&agreement, outcome->labels, outcome->k, folders->of_row, folders->count,
                           outcome->rows, err);
    report->has_agreement = status == STATUS_OK;
    report->agreement =
        (struct result_agreement){folders->count, agreement.purity, agreement.nmi, agreement.ari};
    return status;
}

static enum status store(const struct job *job, const struct cluster_level *level,
                         const struct clustering_report *report, const struct result_origin *origin,
                         struct error *err)
{
    const uint32_t count = job->levels.count;
    struct result_clustering clustering[CLUSTER_LEVELS];
    for (uint32_t i = 0; i < count; i++) {
        const struct cluster_outcome *outcome = &level[i].outcome;
        clustering[i] = (struct result_clustering){
            .origin = *origin,
            .name = report->level[i].name,
            .feature = job->input.about.name,
            .init = i > 0 && job->cluster.init == INIT_GIVEN ? init_names[INIT_KMEANSPP] : job->init,
            .metric = job->metric,
            .parameters = job->parameters,
            .content = job->content,
            .k = outcome->k,
            .dimension = outcome->dimension,
            .iterations = outcome->iterations,
            .rows = job->input.whole.rows,
            .seed = (int64_t)job->cluster.seed,
            .converged = outcome->converged,
            .weighted = job->weights && i == 0,
            .by_run = job->config->by_run,
            .inertia = outcome->inertia,
            .centroids = outcome->centroids,
            .labels = outcome->labels,
            .distances = outcome->distances,
            .sizes = outcome->sizes,
            .nearest = outcome->nearest,
            .inertia_history = outcome->inertia_history,
            .weights = i == 0 ? job->weights : NULL,
            .projection = is_projected(job) ? &job->projection : NULL,
            .agreement = report->has_agreement && i == 0 ? &report->agreement : NULL,
            .sweep = report->sweep.values ? &report->sweep : NULL,
            .names = job->config->paths ? &job->names : NULL,
            .parents = level[i].parents,
            .parent = i + 1 < count ? report->level[i + 1].name : NULL,
            .level = count > 1 ? i + 1 : 0,
        };
    }
    return result_write_clusters(job->target.output, job->target.base, clustering, count,
                                 job->target.replace, err);
}

/* Only rows that can be compared are clustered. */
static enum status leave_out_rows(struct job *job, struct error *err)
{
    /* Negative values under hellinger are an error, not a lack of values. */
    const enum cluster_metric metric =
        job->space == METRIC_COSINE ? METRIC_COSINE : METRIC_EUCLIDEAN;
    const size_t bytes = (size_t)job->input.whole.rows * sizeof *job->weights;
    enum status status =
        matrix_input_compare(&job->input, metric, false, job->config->machine.stop, err);
    if (status != STATUS_OK || !job->input.comparable.row || !job->weights)
        return status;
    job->fitted_weights = malloc(bytes);
    if (!job->fitted_weights)
        return error_memory(err, bytes, "weights");
    memcpy(job->fitted_weights, job->weights, bytes);
    comparable_pick(&job->input.comparable, job->fitted_weights);
    job->cluster.weights = job->fitted_weights;
    return STATUS_OK;
}

/* The outcome for all rows: those that were left out have no label. */
static enum status spread_rows(struct cluster_outcome *outcome, const struct job *job,
                               struct error *err)
{
    const struct comparable *comparable = &job->input.comparable;
    const size_t bytes = (size_t)job->input.whole.rows * sizeof *outcome->labels;
    if (!comparable->row)
        return STATUS_OK;
    int32_t *labels = realloc(outcome->labels, bytes);
    outcome->labels = labels ? labels : outcome->labels;
    float *distances = labels ? realloc(outcome->distances, bytes) : NULL;
    if (!distances)
        return error_memory(err, bytes, "labels");
    outcome->distances = distances;
    comparable_spread(comparable, labels, distances);
    for (size_t i = 0; i < 3 * (size_t)outcome->k; i++)
        if (outcome->nearest[i] >= 0)
            outcome->nearest[i] = (int64_t)comparable->row[outcome->nearest[i]];
    return STATUS_OK;
}

static enum status compute(struct clustering_report *report, struct job *job, struct error *err)
{
    const struct clustering_machine *machine = &job->config->machine;
    struct clustering_contexts contexts = {.count = 0};
    struct cluster_level level[CLUSTER_LEVELS] = {{.parents = NULL}};
    struct cluster_outcome *first = &level->outcome;
    struct result_origin origin;
    enum status status = clustering_contexts_open(
        &contexts, machine, job->cluster.mini_batch ? 1 : CLUSTERING_DEVICES, err);
    if (status != STATUS_OK)
        goto out;
    const struct cluster_devices devices = {contexts.context, contexts.count};
    snprintf(report->device, sizeof report->device, "%s", contexts.names);
    status = matrix_input_reading(&job->cluster.reading, &job->input, err);
    if (status != STATUS_OK)
        goto out;
    status = leave_out_rows(job, err);
    if (status == STATUS_OK)
        status = project_rows(job, err);
    if (status != STATUS_OK)
        goto out;
    machine->progress.step(machine->progress.context, "k-means: reading rows");
    status = run_kmeans(level, report, job, &devices, err);
    for (uint32_t i = 0; i < job->levels.count && status == STATUS_OK && is_first(job); i++)
        status = spread_rows(&level[i].outcome, job, err);
    if (status != STATUS_OK || !is_first(job))
        goto out;
    machine->progress.step(machine->progress.context, "k-means: storing the result");
    if (!job->content[0])
        status = matrix_input_identity(&job->input, job->content, err);
    if (status == STATUS_OK)
        status = origin_of(&origin, &job->input, err);
    if (status != STATUS_OK)
        goto out;
    for (uint32_t i = 0; i < job->levels.count; i++) {
        const struct cluster_outcome *outcome = &level[i].outcome;
        struct clustering_level *of = &report->level[i];
        clustering_level_name(of->name, job->config->name, i);
        of->k = outcome->k;
        of->iterations = outcome->iterations;
        of->converged = outcome->converged;
        of->inertia = outcome->inertia;
    }
    report->level_count = job->levels.count;
    status = store(job, level, report, &origin, err);
    if (status != STATUS_OK)
        goto out;
    report->k = first->k;
    report->dimension = first->dimension;
    report->iterations = first->iterations;
    report->iterations_resumed = first->iterations_resumed;
    report->rows = first->rows;
    report->converged = first->converged;
    report->inertia = first->inertia;
    report->pruned = first->pruned;
    report->seconds_read = first->seconds_read;
    report->seconds_build = first->seconds_build;
    report->seconds_init = first->seconds_init;
    report->seconds_iterate = first->seconds_iterate;
    report->sizes = first->sizes;
    report->nearest = first->nearest;
    first->sizes = NULL;
    first->nearest = NULL;
out:
    cluster_levels_clear(level, CLUSTER_LEVELS);
    clustering_contexts_close(&contexts);
    return status;
}

/* --- what is there already ------------------------------------------------------------------- */

static enum status read_found(struct clustering_report *report, struct job *job, struct error *err)
{
    struct result *holder = target_holder(&job->target, &job->input);
    const struct result_clusters *clusters = result_clusters_find(holder, job->config->name);
    report->k = clusters->k;
    report->dimension = clusters->dimension;
    report->iterations = clusters->iterations;
    report->converged = clusters->converged;
    report->inertia = clusters->inertia;
    report->has_agreement = clusters->has_agreement;
    report->agreement = clusters->agreement;
    report->sizes = malloc(clusters->k * sizeof *report->sizes);
    report->nearest = malloc(clusters->k * 3 * sizeof *report->nearest);
    if (!report->sizes || !report->nearest)
        return error_memory(err, clusters->k * 4 * sizeof *report->sizes, "cluster sizes");
    enum status status = result_sweep_read(&report->sweep, holder, clusters, err);
    if (status != STATUS_OK)
        return status;
    status = result_clusters_read(holder, clusters, NULL, NULL, NULL, report->sizes, report->nearest,
                                  err);
    for (uint32_t i = 0; i < clusters->k && status == STATUS_OK; i++)
        report->rows += report->sizes[i];
    for (; clusters && report->level_count < CLUSTER_LEVELS;
         clusters = *clusters->parent ? result_clusters_find(holder, clusters->parent) : NULL) {
        struct clustering_level *of = &report->level[report->level_count++];
        *of = (struct clustering_level){"", clusters->k, clusters->iterations, clusters->converged,
                                        clusters->inertia};
        memcpy(of->name, clusters->name, sizeof of->name);
    }
    return status;
}

/* A result is whole without words: what keeps them away is a notice. */
static void find_words(struct clustering_report *report)
{
    struct error why = ERROR_INIT;
    const struct result_clusters *clusters =
        report->images ? result_clusters_find(report->images, report->name) : NULL;
    if (clusters && words_open(&report->words, report->images, clusters, &why) != STATUS_OK)
        log_message(LOG_NOTICE, "notice: the clusters have no words: %s", why.sentence);
}

enum status clustering_run(struct clustering_report *report, const struct clustering_config *config,
                           struct error *err)
{
    const int64_t start = clock_now();
    struct job job = {.content = ""};
    *report = (struct clustering_report){.mini_batch = config->mini_batch};
    enum status status = job_open(&job, config, err);
    if (status != STATUS_OK)
        goto out;
    report->found = job.target.found;
    report->in_input = job.target.output == job.input.path;
    report->n_init = job.cluster.n_init;
    snprintf(report->name, sizeof report->name, "%s", config->name);
    snprintf(report->feature, sizeof report->feature, "%s", job.input.about.name);
    snprintf(report->metric, sizeof report->metric, "%s", job.metric);
    report->output = strdup(job.target.output);
    if (!report->output) {
        status = error_memory(err, strlen(job.target.output) + 1, "a file name");
        goto out;
    }
    if (!report->found)
        status = compute(report, &job, err);
    else if (is_first(&job))
        status = read_found(report, &job, err);
    if (status != STATUS_OK || !is_first(&job))
        goto out;
    output_remove(job.state);
    if (config->paths || (job.input.result && report->in_input)) {
        status = result_open(&report->images, report->output, err);
        find_words(report);
    } else {
        report->images = job.input.result;
        job.input.result = NULL;
    }
    if (status != STATUS_OK)
        goto out;
    report->seconds = (double)(clock_now() - start) * 1e-9;
out:
    target_close(&job.target);
    path_list_close(&job.paths);
    free(job.source);
    matrix_close(&job.rows);
    matrix_input_close(&job.input);
    folders_clear(&job.folders);
    free(job.initial);
    free(job.weights);
    free(job.fitted_weights);
    free(job.parameters);
    free(job.asked);
    free(job.state);
    return status;
}

void clustering_report_clear(struct clustering_report *report)
{
    free(report->sizes);
    free(report->nearest);
    free(report->output);
    words_close(&report->words);
    result_close(&report->images);
    result_sweep_clear(&report->sweep);
    *report = (struct clustering_report){0};
}
