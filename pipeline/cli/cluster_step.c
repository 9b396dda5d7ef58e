/* cluster_step.c: planning and running a clustering. */
#include "cli/cluster_step.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "cli/quote.h"
#include "cli/signals.h"
#include "cli/sweep_step.h"
#include "matrix/npy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const metric_names[] = {"euclidean", "cosine", "hellinger"};

enum status check_name(const struct options *options, const char *name, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-.";
    char shown[120];
    path_for_message(shown, sizeof shown, name);
    if (name[strspn(name, allowed)])
        return misuse(err, options->command, "--name takes letters, digits, _ - and ., not '%s'",
                      shown);
    if (strlen(name) >= FEATURE_NAME_MAX)
        return misuse(err, options->command, "--name has %d characters at most",
                      FEATURE_NAME_MAX - 1);
    if (strspn(name, ".") == strlen(name))
        return misuse(err, options->command, "--name cannot be '%s'", shown);
    return STATUS_OK;
}

/* --- parameters --------------------------------------------------------------------------------
 */

/* The raw value of a top-level key in compact canonical JSON; its length, or 0. */
static size_t field(const char **value, const char *json, const char *key)
{
    char pattern[80];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = strstr(json, pattern);
    if (!at)
        return 0;
    at += strlen(pattern);
    *value = at;
    size_t length = 0;
    bool quoted = false;
    for (; at[length] && (quoted || (at[length] != ',' && at[length] != '}')); length++) {
        if (quoted && at[length] == '\\' && at[length + 1])
            length++;
        else if (at[length] == '"')
            quoted = !quoted;
    }
    return length;
}

void parameters_text(char *text, size_t size, const char *json, const char *key)
{
    const char *value = "";
    size_t length = field(&value, json, key);
    bool quoted = length >= 2 && value[0] == '"';
    snprintf(text, size, "%.*s", quoted ? (int)length - 2 : 0, quoted ? value + 1 : "");
}

bool parameters_differ(char *text, size_t size, const char *there, const char *here)
{
    static const char *const keys[] = {"k",    "feature",    "spec",    "metric",
                                       "init", "seed",       "n_init",  "max_iter",
                                       "tol",  "mini_batch", "weights", "clusters"};
    if (strcmp(there, here) == 0)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *old = "", *new = "";
        size_t old_length = field(&old, there, keys[i]), new_length = field(&new, here, keys[i]);
        if (old_length != new_length || memcmp(old, new, old_length) != 0) {
            snprintf(text, size, "%s is %.*s there and %.*s here", keys[i],
                     old_length ? (int)old_length : 7, old_length ? old : "not set",
                     new_length ? (int)new_length : 7, new_length ? new : "not set");
            return true;
        }
    }
    snprintf(text, size, "it was made by another version of clpipe");
    return true;
}

static enum status write_parameters(struct cluster_plan *plan, struct error *err)
{
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    if (range_is_sweep(&plan->k)) {
        char range[80];
        json_string(&json, "k", range_text(range, sizeof range, &plan->k));
    } else {
        json_uint(&json, "k", plan->config.k);
    }
    json_string(&json, "feature", plan->input.about.name);
    json_string(&json, "spec", plan->input.about.spec);
    json_string(&json, "metric", plan->metric);
    json_string(&json, "init", plan->init);
    json_uint(&json, "seed", plan->config.seed);
    json_uint(&json, "n_init", plan->config.n_init);
    json_uint(&json, "max_iter", plan->config.max_iter);
    json_double(&json, "tol", plan->config.tol);
    json_uint(&json, "mini_batch", plan->config.mini_batch);
    if (plan->weights)
        json_string(&json, "weights", plan->weighed);
    json_close_object(&json);
    const char *text = json_finish(&json);
    plan->parameters = text ? strdup(text) : NULL;
    json_clear(&json);
    return plan->parameters ? STATUS_OK : error_memory(err, 256, "the parameters");
}

/* --- the plan ----------------------------------------------------------------------------------
 */

static void choose_metric(struct cluster_plan *plan, const struct options *options)
{
    if (options->metric >= 0)
        plan->config.metric = (enum cluster_metric)options->metric;
    else if (strcmp(plan->input.about.normalize, "l1") == 0)
        plan->config.metric = METRIC_HELLINGER;
    else
        plan->config.metric = METRIC_EUCLIDEAN;
    snprintf(plan->metric, sizeof plan->metric, "%s", metric_names[plan->config.metric]);
}

static enum status read_initial(struct cluster_plan *plan, const char *path, struct error *err)
{
    struct matrix_source npy;
    char shown[256];
    path_for_message(shown, sizeof shown, path);
    struct stat st;
    if (stat(path, &st) != 0)
        return error_set(err, STATUS_USAGE,
                         "--init is kmeans++, kmeans-parallel, random or a .npy file, and there is "
                         "no file %s",
                         shown);
    enum status status = npy_open(&npy, path, err);
    if (status != STATUS_OK)
        return status;
    uint64_t rows = npy.rows, columns = npy.dimension;
    if (rows != plan->config.k || columns != plan->input.source.dimension) {
        matrix_close(&npy);
        return error_set(err, STATUS_USAGE,
                         "--init %s holds %llu centroids of %llu values; wanted are %u of %u",
                         shown, (unsigned long long)rows, (unsigned long long)columns,
                         plan->config.k, plan->input.source.dimension);
    }
    size_t bytes = (size_t)(rows * columns) * sizeof *plan->initial;
    plan->initial = malloc(bytes);
    status = plan->initial ? matrix_read(&npy, 0, rows, plan->initial, err)
                           : error_memory(err, bytes, "the first centroids");
    matrix_close(&npy);
    if (status != STATUS_OK)
        return status;
    struct murmur3 state;
    uint64_t digest[2];
    murmur3_init(&state);
    murmur3_update(&state, plan->initial, bytes);
    murmur3_final(&state, digest);
    snprintf(plan->init, sizeof plan->init, "given-%016llx%016llx", (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
    plan->config.init = INIT_GIVEN;
    plan->config.initial = plan->initial;
    return STATUS_OK;
}

static enum status read_weights(struct cluster_plan *plan, const struct options *options,
                                struct error *err)
{
    char shown[256];
    uint64_t count, digest[2];
    enum status status = matrix_input_vector(&plan->weights, &count, options->weights, err);
    if (status != STATUS_OK)
        return status;
    if (count != plan->input.source.rows)
        return error_set(err, STATUS_USAGE,
                         "--weights %s holds %llu numbers, and there are %llu rows",
                         path_for_message(shown, sizeof shown, options->weights),
                         (unsigned long long)count, (unsigned long long)plan->input.source.rows);
    struct murmur3 state;
    murmur3_init(&state);
    murmur3_update(&state, plan->weights, (size_t)count * sizeof *plan->weights);
    murmur3_final(&state, digest);
    snprintf(plan->weighed, sizeof plan->weighed, "murmur3-%016llx%016llx",
             (unsigned long long)digest[0], (unsigned long long)digest[1]);
    plan->config.weights = plan->weights;
    return STATUS_OK;
}

static enum status choose_init(struct cluster_plan *plan, const struct options *options,
                               struct error *err)
{
    static const char *const names[] = {"kmeans++", "kmeans-parallel", "random"};
    for (int i = 0; i < 3; i++)
        if (strcmp(options->init, names[i]) == 0) {
            plan->config.init = (enum cluster_init)i;
            snprintf(plan->init, sizeof plan->init, "%s", names[i]);
            return STATUS_OK;
        }
    if (range_is_sweep(&plan->k))
        return misuse(err, options->command,
                      "--init FILE.npy gives the centroids of one k, and -k asks for several");
    return read_initial(plan, options->init, err);
}

/* Lowers a k that nobody asked for to the number of different rows. */
static enum status fit_default_k(struct cluster_plan *plan, struct error *err)
{
    uint32_t distinct = 0;
    enum status status = matrix_distinct(&distinct, &plan->input.source, plan->config.k,
                                         plan->config.metric == METRIC_HELLINGER, err);
    if (status == STATUS_OK && distinct > 0 && distinct < plan->config.k) {
        log_message(LOG_NOTICE, "k is %u instead of %u: there are only %u different images",
                    distinct, plan->config.k, distinct);
        plan->config.k = distinct;
        plan->k = (struct number_range){distinct, distinct, 1};
    }
    return status;
}

/* Looks whether the result is there already, or its name taken. */
static enum status look_for_result(struct cluster_plan *plan, const struct result *holder,
                                   const struct options *options, struct error *err)
{
    const struct result_clusters *old = holder ? result_clusters_find(holder, plan->name) : NULL;
    char difference[300], shown[256];
    if (!old)
        return STATUS_OK;
    plan->replace = true;
    if (!parameters_differ(difference, sizeof difference, old->parameters, plan->parameters)) {
        enum status status = matrix_input_identity(&plan->input, plan->content, err);
        if (status != STATUS_OK)
            return status;
        if (strcmp(plan->content, old->content) == 0) {
            plan->found = true;
            return STATUS_OK;
        }
        snprintf(difference, sizeof difference, "it was made from other rows");
    }
    if (options->force)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s already holds /clusters/%s made otherwise (%s): add --force to replace "
                     "it, or give another --name",
                     path_for_message(shown, sizeof shown, plan->output), plan->name, difference);
}

static enum status digest_rows(void *context, char hex[65], struct error *err)
{
    return matrix_input_digest(context, hex, err);
}

/* Where an unfinished run keeps its state: beside the output, one file for each name. */
static enum status plan_checkpoint(struct cluster_plan *plan, double seconds, struct error *err)
{
    const size_t size = strlen(plan->output) + strlen(plan->name) + 16;
    plan->state = malloc(size);
    if (!plan->state)
        return error_memory(err, size, "a file name");
    snprintf(plan->state, size, "%s.%s.checkpoint", plan->output, plan->name);
    if (seconds == 0)
        return STATUS_OK;
    plan->input.digests = true;
    plan->checkpoint = (struct checkpoint_config){.path = plan->state,
                                                  .seconds = seconds,
                                                  .parameters = plan->parameters,
                                                  .rows = digest_rows,
                                                  .context = &plan->input};
    plan->config.checkpoint = &plan->checkpoint;
    return STATUS_OK;
}

static enum status plan_parts(struct cluster_plan *plan, const struct options *options,
                              bool default_k, struct error *err)
{
    cluster_config_default(&plan->config);
    plan->k = options->k;
    plan->config.k = (uint32_t)options->k.last;
    plan->config.seed = options->seed;
    plan->config.n_init = (uint32_t)options->n_init;
    plan->config.max_iter = (uint32_t)options->max_iter;
    plan->config.tol = options->tol;
    plan->config.mini_batch = (uint32_t)options->mini_batch;
    plan->config.method = options->mini_batch ? "mini-batch" : "lloyd";
    plan->config.memory = options->memory;
    plan->config.device_memory = options->device_memory;
    plan->config.stop = signals_stop();
    plan->name = options->name;
    choose_metric(plan, options);
    enum status status = default_k ? fit_default_k(plan, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = choose_init(plan, options, err);
    if (status == STATUS_OK && options->weights)
        status = read_weights(plan, options, err);
    if (status == STATUS_OK)
        status = write_parameters(plan, err);
    return status;
}

enum status cluster_plan_open(struct cluster_plan *out, const char *input, const char *feature,
                              const struct options *options, bool default_k, struct error *err)
{
    memset(out, 0, sizeof *out);
    /* `run` has its output as INPUT. */
    bool running = strcmp(options->command->name, "run") == 0;
    struct result *holder = NULL;
    struct output *trial = NULL;
    enum status status = check_name(options, options->name, err);
    if (status == STATUS_OK)
        status = matrix_input_open(&out->input, input, feature, NULL, err);
    if (status == STATUS_OK && !out->input.result && !options->output)
        status = misuse(err, options->command,
                        "the result for this INPUT needs a file of its own: give -o R.h5");
    if (status == STATUS_OK)
        status = plan_parts(out, options, default_k, err);
    if (status == STATUS_OK)
        status = choose_output(&out->output, &out->base, &holder, &out->input,
                               running ? NULL : options->output, err);
    if (status == STATUS_OK)
        status = plan_checkpoint(out, options->checkpoint, err);
    /* A new file of its own holds none. */
    if (status == STATUS_OK && out->base)
        status = look_for_result(out, holder ? holder : out->input.result, options, err);
    /* Better now than after an hour. */
    if (status == STATUS_OK && !out->found)
        status = output_open(&trial, out->output, err);
    output_close(&trial);
    /* An ingest of the same file would lose the clusters, or they the images it adds. */
    if (status == STATUS_OK && !out->found)
        status = workdir_open(&out->lock, out->output, signals_stop(), err);
    if (status == STATUS_OK && out->found) {
        workdir_tidy(out->output);
        output_remove(out->state);
    }
    if (status == STATUS_OK && out->lock && out->input.result)
        status = result_check_current(out->input.result, err);
    result_close(&holder);
    if (status != STATUS_OK)
        cluster_plan_close(out);
    return status;
}

void cluster_plan_close(struct cluster_plan *plan)
{
    workdir_release(&plan->lock);
    matrix_input_close(&plan->input);
    free(plan->initial);
    free(plan->weights);
    free(plan->parameters);
    free(plan->state);
    memset(plan, 0, sizeof *plan);
}

/* --- the step ----------------------------------------------------------------------------------
 */

static enum status keep_sizes(struct cluster_result *out, const uint64_t *sizes,
                              const int64_t *nearest, struct error *err)
{
    out->sizes = malloc(out->k * sizeof *out->sizes);
    out->nearest = malloc(out->k * 3 * sizeof *out->nearest);
    if (!out->sizes || !out->nearest)
        return error_memory(err, out->k * 4 * sizeof *out->sizes, "cluster sizes");
    if (sizes)
        memcpy(out->sizes, sizes, out->k * sizeof *out->sizes);
    if (nearest)
        memcpy(out->nearest, nearest, out->k * 3 * sizeof *out->nearest);
    return STATUS_OK;
}

static enum status read_found(struct cluster_result *out, struct cluster_plan *plan,
                              struct error *err)
{
    struct result *holder = NULL;
    enum status status = result_open(&holder, plan->output, err);
    if (status != STATUS_OK)
        return status;
    const struct result_clusters *clusters = result_clusters_find(holder, plan->name);
    if (!clusters) {
        char shown[256];
        status = error_set(err, STATUS_FAILED, "%s changed while it was read",
                           path_for_message(shown, sizeof shown, plan->output));
    } else {
        out->k = clusters->k;
        out->dimension = clusters->dimension;
        out->iterations = clusters->iterations;
        out->rows = clusters->rows;
        out->converged = clusters->converged;
        out->inertia = clusters->inertia;
        out->has_agreement = clusters->has_agreement;
        out->agreement = clusters->agreement;
        status = keep_sizes(out, NULL, NULL, err);
        if (status == STATUS_OK)
            status = result_sweep_read(&out->sweep, holder, clusters, err);
        if (status == STATUS_OK)
            status = result_clusters_read(holder, clusters, NULL, NULL, NULL, out->sizes,
                                          out->nearest, err);
    }
    result_close(&holder);
    return status;
}

static enum status store_outcome(const struct cluster_plan *plan,
                                 const struct cluster_outcome *outcome,
                                 const struct cluster_result *result, struct error *err)
{
    struct result_clustering clustering = {
        .name = plan->name,
        .feature = plan->input.about.name,
        .init = plan->init,
        .metric = plan->metric,
        .parameters = plan->parameters,
        .content = plan->content,
        .k = outcome->k,
        .dimension = outcome->dimension,
        .iterations = outcome->iterations,
        .rows = outcome->rows,
        .seed = (int64_t)plan->config.seed,
        .converged = outcome->converged,
        .weighted = plan->weights != NULL,
        .inertia = outcome->inertia,
        .centroids = outcome->centroids,
        .labels = outcome->labels,
        .distances = outcome->distances,
        .sizes = outcome->sizes,
        .nearest = outcome->nearest,
        .inertia_history = outcome->inertia_history,
        .weights = plan->weights,
        .agreement = result->has_agreement ? &result->agreement : NULL,
        .sweep = result->sweep.values ? &result->sweep : NULL,
    };
    return result_write_clusters(plan->output, plan->base, &clustering, plan->replace, err);
}

/* Runs for the one k or for all of them; the result gets what was found about them. */
static enum status run_clustering(struct cluster_outcome *outcome, struct cluster_result *out,
                                  struct cluster_plan *plan, const struct cluster_devices *devices,
                                  struct error *err)
{
    const struct matrix_source *source = &plan->input.source;
    struct folders folders = {0};
    struct cluster_agreement agreement;
    enum status status = STATUS_OK;
    if (plan->input.result)
        status = folders_read(&folders, plan->input.result, err);
    if (status == STATUS_OK && range_is_sweep(&plan->k)) {
        status = sweep_run(outcome, &out->sweep, devices, source, &plan->config, &plan->k, &folders,
                           err);
    } else if (status == STATUS_OK) {
        status = cluster_run(outcome, devices, source, &plan->config, err);
    }
    out->has_agreement = status == STATUS_OK && folders.of_row;
    if (out->has_agreement) {
        status = cluster_agree(&agreement, outcome->labels, outcome->k, folders.of_row,
                               folders.count, outcome->rows, err);
        out->agreement = (struct result_agreement){folders.count, agreement.purity, agreement.nmi,
                                                   agreement.ari};
    }
    folders_clear(&folders);
    return status;
}

static enum status compute_clusters(struct cluster_result *out, struct cluster_plan *plan,
                                    const struct compute *compute, struct progress *progress,
                                    struct error *err)
{
    struct compute_contexts contexts;
    struct cluster_outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    const unsigned most = plan->config.mini_batch ? 1 : COMPUTE_DEVICES;
    enum status status = compute_contexts_open(&contexts, compute, most, err);
    if (status == STATUS_OK) {
        const struct cluster_devices devices = {contexts.context, contexts.count};
        snprintf(out->device, sizeof out->device, "%s", contexts.names);
        plan->config.threads = compute->threads;
        plan->config.progress = progress_cluster;
        plan->config.phase = progress_phase;
        plan->config.progress_context = progress;
        progress_step(progress, "k-means: reading rows");
        status = run_clustering(&outcome, out, plan, &devices, err);
    }
    if (status == STATUS_OK && !plan->content[0]) {
        progress_step(progress, "k-means: storing the result");
        status = matrix_input_identity(&plan->input, plan->content, err);
    }
    if (status == STATUS_OK)
        status = store_outcome(plan, &outcome, out, err);
    if (status == STATUS_OK) {
        output_remove(plan->state);
        out->iterations_resumed = outcome.iterations_resumed;
        out->k = outcome.k;
        out->dimension = outcome.dimension;
        out->iterations = outcome.iterations;
        out->rows = outcome.rows;
        out->converged = outcome.converged;
        out->inertia = outcome.inertia;
        out->pruned = outcome.pruned;
        out->seconds_read = outcome.seconds_read;
        out->seconds_build = outcome.seconds_build;
        out->seconds_init = outcome.seconds_init;
        out->seconds_iterate = outcome.seconds_iterate;
        status = keep_sizes(out, outcome.sizes, outcome.nearest, err);
    }
    cluster_outcome_clear(&outcome);
    compute_contexts_close(&contexts);
    return status;
}

enum status cluster_step(struct cluster_result *out, struct cluster_plan *plan,
                         const struct compute *compute, struct progress *progress,
                         struct error *err)
{
    int64_t start = clock_now();
    memset(out, 0, sizeof *out);
    out->found = plan->found;
    out->mini_batch = plan->config.mini_batch;
    out->output = plan->output;
    snprintf(out->name, sizeof out->name, "%s", plan->name);
    snprintf(out->feature, sizeof out->feature, "%s", plan->input.about.name);
    snprintf(out->metric, sizeof out->metric, "%s", plan->metric);
    enum status status = plan->found ? read_found(out, plan, err)
                                     : compute_clusters(out, plan, compute, progress, err);
    progress_end(progress);
    out->seconds = (double)(clock_now() - start) * 1e-9;
    return status;
}

void cluster_result_clear(struct cluster_result *result)
{
    free(result->sizes);
    free(result->nearest);
    result_sweep_clear(&result->sweep);
    memset(result, 0, sizeof *result);
}
