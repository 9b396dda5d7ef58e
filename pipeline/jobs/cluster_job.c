/* cluster_job.c: opens the rows, decides whether their clusters are stored in the input or in a separate
 * file and whether they exist already, and stores the outcome. */
#include "jobs/cluster_job.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "ranks/processes.h"
#include "result/clusters.h"
#include "result/parameters.h"
#include "result/workdir.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool cluster_job_is_first(const struct cluster_job *job)
{
    return processes_first(job->config->machine.processes);
}

static enum status read_paths(struct cluster_job *job, const char *list, struct error *err)
{
    const struct matrix_input *input = &job->input;
    if (asprintf(&job->source, "%s%s", strcmp(list, "-") == 0 ? "" : "@", list) < 0)
        return error_memory(err, strlen(list) + 2, "a file name");
    const enum status status =
        path_list_open_for(&job->paths, list, input->path, input->source.rows, input->result, err);
    job->names = (struct result_names){.source = job->source,
                                       .count = job->paths.count,
                                       .path = path_list_path,
                                       .context = &job->paths};
    return status;
}

/* --- where the clusters are stored ----------------------------------------------------------- */

static bool same_path(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* Whether the rows of the clusters in the requested file have the same paths, or none like the job's. */
static enum status check_paths(const struct cluster_job *job, struct error *err)
{
    struct result *holder = job->holder;
    const struct path_list *paths = job->about.names ? &job->paths : NULL;
    bool same = holder->named == (paths != NULL);
    if (paths && same)
        same = result_images(holder) == paths->count;
    for (uint64_t i = 0; paths && same && i < paths->count; i++) {
        struct result_image image;
        size_t length;
        if (result_image_at(holder, i, &image, err))
            return STATUS_FAILED;
        const char *path = path_list_at(paths, i, &length);
        same = strlen(image.path_raw) == length && memcmp(image.path_raw, path, length) == 0;
    }
    if (same)
        return STATUS_OK;
    return error_set(
        err, STATUS_USAGE,
        "%s holds clusters of rows with %s, so nothing is added to it; name another file",
        PATH_TEXT(holder->path),
        !paths          ? "paths (a list of the same paths is needed)"
        : holder->named ? "other paths"
                        : "no paths");
}

/* Decides which file to write: the clpipe file itself, or the one requested, which may contain earlier
 * clusters of rows with the same paths but nothing else. */
static enum status choose_output(struct cluster_job *job, struct error *err)
{
    const struct matrix_input *input = &job->input;
    const char *wanted = job->config->output;
    struct stat st;
    if (!wanted && !input->result) {
        error_set(err, STATUS_USAGE, "the result for this INPUT requires a separate file");
        error_remedy(err, REMEDY_OWN_OUTPUT);
        return STATUS_USAGE;
    }
    if (!wanted || (input->result && same_path(wanted, input->path))) {
        job->output = job->base = input->path;
        return STATUS_OK;
    }
    job->output = wanted;
    const char *shown = PATH_TEXT(wanted);
    if (stat(wanted, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK; /* output_open reports the problem */
    if (result_open(&job->holder, wanted, err) != STATUS_OK)
        return error_remedy(err, REMEDY_OTHER_OUTPUT);
    if (!job->holder->named && (result_images(job->holder) > 0 || job->holder->feature_count > 0))
        return error_set(err, STATUS_USAGE,
                         "%s holds other images, so it is not overwritten; name another file",
                         shown);
    job->base = wanted;
    return check_paths(job, err);
}

struct result *cluster_job_holder(const struct cluster_job *job)
{
    return job->holder ? job->holder : job->base ? job->input.result : NULL;
}

/* --- opening --------------------------------------------------------------------------------- */

enum status cluster_job_open(struct cluster_job *job, const char *usual, struct error *err)
{
    const struct cluster_job_config *config = job->config;
    const char *paths = config->paths;
    enum status status = matrix_input_open(&job->input, config->input, config->feature, usual, err);
    if (status == STATUS_OK && paths)
        status = read_paths(job, paths, err);
    if (status != STATUS_OK)
        return status;
    memcpy(job->about.clusters.feature, job->input.about.name, sizeof job->input.about.name);
    job->about.names = paths ? &job->names : NULL;
    return choose_output(job, err);
}

void cluster_job_close(struct cluster_job *job)
{
    workdir_release(&job->lock);
    result_close(&job->holder);
    path_list_close(&job->paths);
    free(job->source);
    matrix_close(&job->rows);
    matrix_input_close(&job->input);
    free(job->parameters);
}

enum status cluster_job_project(struct cluster_job *job, struct error *err)
{
    struct matrix_source plain = job->input.source;
    plain.close = NULL; /* the input closes it */
    if (job->projected)
        return projected_open(&job->rows, &plain, &job->projection, err);
    job->rows = plain;
    return STATUS_OK;
}

/* --- evidence that rows outside clpipe files are unchanged -------------------------------------- */

/* The sample is SHA-256 of the numbers of rows and columns (uint64) and the float32 values of 64 rows from
 * the first to the last, evenly spaced (all if there are fewer). It detects changes that times do not
 * show, such as copies that keep them. */
#define SAMPLE_ROWS 64
/* The coarsest resolution of file systems' times. */
#define SETTLED_NS 2000000000

static enum status sample(struct result_origin *out, const struct matrix_source *rows,
                          struct error *err)
{
    const uint64_t shape[2] = {rows->rows, rows->dimension};
    const uint64_t count = rows->rows < SAMPLE_ROWS ? rows->rows : SAMPLE_ROWS;
    const size_t bytes = rows->dimension * sizeof(float);
    enum status status = STATUS_OK;
    struct sha256 sha;
    float *row = malloc(bytes);
    if (!row)
        return error_memory(err, bytes, "a row");
    sha256_init(&sha);
    sha256_update(&sha, shape, sizeof shape);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t step = (rows->rows - 1) / SAMPLE_ROWS;
        const uint64_t at = rows->rows <= SAMPLE_ROWS ? i
                            : i + 1 == count          ? rows->rows - 1
                                                      : i * step;
        status = matrix_read(rows, at, 1, row, err);
        sha256_update(&sha, row, bytes);
    }
    free(row);
    sha256_hex(out->sample, &sha);
    return status;
}

/* The state of INPUT's file and the sample. bytes 0: not trustworthy: the rows are a clpipe file's, or the
 * file has changed since it was opened, or less than two seconds before. STATUS_FAILED: unreadable rows. */
static enum status find_origin(struct result_origin *out, const struct matrix_input *input,
                               struct error *err)
{
    struct input_state now;
    const struct input_state *opened = &input->opened;
    *out = (struct result_origin){0};
    if (input->rows.identity || !input_state_of(&now, input->path) || now.bytes != opened->bytes ||
        now.mtime_ns != opened->mtime_ns || opened->at_ns - opened->mtime_ns < SETTLED_NS)
        return STATUS_OK;
    const enum status status = sample(out, &input->rows, err);
    if (status != STATUS_OK)
        return status;
    out->bytes = now.bytes;
    out->mtime_ns = now.mtime_ns;
    return STATUS_OK;
}

static bool same_origin(const struct result_origin *a, const struct result_origin *b)
{
    return a->bytes > 0 && a->bytes == b->bytes && a->mtime_ns == b->mtime_ns &&
           strcmp(a->sample, b->sample) == 0;
}

/* --- existing clusters ----------------------------------------------------------------------- */

/* The identity of the rows, or that stored with the clusters if their file is unchanged. */
static enum status find_content(struct cluster_job *job, const struct result_clusters *old,
                                struct error *err)
{
    struct result_origin origin;
    if (!job->config->verify_input && old->origin.bytes > 0) {
        const enum status status = find_origin(&origin, &job->input, err);
        if (status != STATUS_OK)
            return status;
        if (same_origin(&origin, &old->origin)) {
            memcpy(job->content, old->content, sizeof old->content);
            return STATUS_OK;
        }
    }
    return matrix_input_digest_as(&job->input, old->content, job->content, err);
}

static enum status look_for_clusters(struct cluster_job *job, const char *parameters,
                                     enum remedy remedy, struct error *err)
{
    const struct result *holder = cluster_job_holder(job);
    const char *name = job->about.clusters.name;
    const struct result_clusters *old = holder ? result_clusters_find(holder, name) : NULL;
    char difference[640];
    bool other = true;
    const char *shown = PATH_TEXT(job->output);
    if (!old)
        return STATUS_OK;
    if (!parameters_difference(difference, sizeof difference, old->parameters, parameters,
                               "the file")) {
        enum status status = find_content(job, old, err);
        if (status != STATUS_OK)
            return status;
        job->found = strcmp(job->content, old->content) == 0;
        if (!job->found)
            job->content[0] = 0;
        snprintf(difference, sizeof difference, "it was made from other rows");
        other = false;
    }
    job->replaces = !job->found;
    if (job->found || job->config->replace)
        return STATUS_OK;
    if (job->about.by_run && result_clusters_by_run(holder, old)) {
        if (other)
            log_message(LOG_NOTICE, "notice: /clusters/%s of %s is replaced (%s)", name, shown,
                        difference);
        return STATUS_OK;
    }
    error_set(err, STATUS_USAGE, "%s already holds a different /clusters/%s (%s)", shown, name,
              difference);
    error_remedy(err, remedy);
    return STATUS_USAGE;
}

/* Looks for the clusters; if they do not exist, locks the output against other writers. */
static enum status take_output(struct cluster_job *job, const char *parameters, enum remedy remedy,
                               struct error *err)
{
    struct output *trial = NULL;
    enum status status = look_for_clusters(job, parameters, remedy, err);
    if (status != STATUS_OK)
        return status;
    if (job->found) {
        workdir_tidy(job->output);
        return STATUS_OK;
    }
    /* Checks this now rather than an hour later. */
    status = output_open(&trial, job->output, err);
    output_close(&trial);
    if (status != STATUS_OK)
        return status;
    /* Otherwise a simultaneous ingest could lose the clusters, or the clustering its images. */
    status = workdir_open(&job->lock, job->output, err);
    if (status == STATUS_OK && job->input.result)
        status = result_check_current(job->input.result, err);
    return status;
}

enum status cluster_job_claim(struct cluster_job *job, const char *parameters, enum remedy remedy,
                              struct error *err)
{
    struct processes *processes = job->config->machine.processes;
    char *text = NULL;
    enum status status = STATUS_OK;
    if (cluster_job_is_first(job))
        status = take_output(job, parameters, remedy, err);
    if (status != STATUS_OK || !processes)
        return status;
    if (asprintf(&text, "%llu %u %s", (unsigned long long)job->input.source.rows,
                 job->input.source.dimension, job->parameters) < 0)
        return error_memory(err, strlen(job->parameters) + 64, "ranks");
    status = processes_agree(processes, text, "rows in INPUT, or parameters", err);
    free(text);
    return status == STATUS_OK
               ? comm_broadcast(processes_comm(processes), &job->found, sizeof job->found, 0, err)
               : status;
}

/* --- what was computed ----------------------------------------------------------------------- */

/* Extends the outcome to all rows: those left out have no label. */
static enum status spread_rows(struct cluster_outcome *outcome, const struct cluster_job *job,
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

static void describe_level(struct result_clusters *out, const struct cluster_job *job, uint32_t i)
{
    const struct clustering_report *report = job->report;
    const struct cluster_outcome *outcome = &report->level[i].outcome;
    const char *space = job->projected ? metric_names[job->projection.space] : "";
    memcpy(out->name, report->level_name[i], sizeof out->name);
    memcpy(out->content, job->content, sizeof out->content);
    snprintf(out->space, sizeof out->space, "%s", space);
    if (i > 0)
        snprintf(out->init, sizeof out->init, "%s", job->init_above);
    if (i + 1 < report->level_count)
        memcpy(out->parent, report->level_name[i + 1], sizeof out->parent);
    out->level = report->level_count > 1 ? i + 1 : 0;
    out->parameters = job->parameters;
    out->rows = job->input.whole.rows;
    out->k = outcome->k;
    out->dimension = outcome->dimension;
    out->columns = job->projected ? job->projection.columns : 0;
    out->iterations = outcome->iterations;
    out->converged = outcome->converged;
    out->inertia = outcome->inertia;
    out->folders = i == 0 ? out->folders : 0;
}

static enum status store(struct cluster_job *job, struct error *err)
{
    const struct clustering_report *report = job->report;
    const uint32_t count = report->level_count;
    struct result_clustering clustering[CLUSTER_LEVELS];
    enum status status = STATUS_OK;
    if (!job->content[0])
        status = matrix_input_identity(&job->input, job->content, err);
    if (status == STATUS_OK)
        status = find_origin(&job->about.clusters.origin, &job->input, err);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct cluster_outcome *outcome = &report->level[i].outcome;
        struct result_clustering *to = &clustering[i];
        *to = job->about;
        describe_level(&to->clusters, job, i);
        to->value[PART_CENTROIDS] = outcome->centroids;
        to->value[PART_LABELS] = outcome->labels;
        to->value[PART_DISTANCES] = outcome->distances;
        to->value[PART_SIZES] = outcome->sizes;
        to->value[PART_NEAREST] = outcome->nearest;
        to->value[PART_HISTORY] = outcome->inertia_history;
        to->value[PART_MEAN] = job->projected ? job->projection.mean : NULL;
        to->value[PART_COMPONENTS] = job->projected ? job->projection.components : NULL;
        to->value[PART_PARENTS] = report->level[i].parents;
        if (i > 0)
            to->value[PART_WEIGHTS] = NULL;
        to->sweep = report->sweep.values ? &report->sweep : NULL;
    }
    return status ? status
                  : result_write_clusters(job->output, job->base, clustering, count, job->replaces,
                                          err);
}

/* Frees what only storing needs. */
static void drop_rows(struct clustering_report *report)
{
    for (uint32_t i = 0; i < report->level_count; i++) {
        struct cluster_outcome *of = &report->level[i].outcome;
        free(of->centroids);
        free(of->labels);
        free(of->distances);
        of->centroids = of->distances = NULL;
        of->labels = NULL;
    }
}

static enum status read_found(struct cluster_job *job, struct error *err)
{
    struct clustering_report *report = job->report;
    struct result *holder = cluster_job_holder(job);
    const struct result_clusters *clusters = result_clusters_find(holder, job->about.clusters.name);
    struct cluster_outcome *rows = &report->level[0].outcome;
    cluster_levels_clear(report->level, CLUSTER_LEVELS);
    report->level_count = 0;
    job->about.clusters.folders = clusters->folders;
    job->about.clusters.agreement = clusters->agreement;
    enum status status = result_sweep_read(&report->sweep, holder, clusters, err);
    for (const struct result_clusters *at = clusters;
         at && report->level_count < CLUSTER_LEVELS && status == STATUS_OK;
         at = *at->parent ? result_clusters_find(holder, at->parent) : NULL) {
        const unsigned i = report->level_count++;
        memcpy(report->level_name[i], at->name, sizeof at->name);
        report->level[i].outcome = (struct cluster_outcome){.k = at->k,
                                                            .dimension = at->dimension,
                                                            .iterations = at->iterations,
                                                            .converged = at->converged,
                                                            .inertia = at->inertia};
    }
    rows->sizes = malloc(clusters->k * sizeof *rows->sizes);
    rows->nearest = malloc(clusters->k * 3 * sizeof *rows->nearest);
    if (status == STATUS_OK && (!rows->sizes || !rows->nearest))
        status = error_memory(err, clusters->k * 4 * sizeof *rows->sizes, "cluster sizes");
    if (status == STATUS_OK)
        status = result_part_read(rows->sizes, clusters, PART_SIZES, err);
    if (status == STATUS_OK)
        status = result_part_read(rows->nearest, clusters, PART_NEAREST, err);
    for (uint32_t i = 0; i < clusters->k && status == STATUS_OK; i++)
        rows->rows += rows->sizes[i];
    return status;
}

/* --- all of it ------------------------------------------------------------------------------- */

static void *close_contexts(void *contexts)
{
    clustering_contexts_close(contexts);
    return NULL;
}

/* Stores the result while the contexts are closed: a driver takes as long. */
static enum status store_and_close(struct cluster_job *job, struct clustering_contexts *contexts,
                                   struct error *err)
{
    pthread_t closing;
    const bool aside = !pthread_create(&closing, NULL, close_contexts, contexts);
    const enum status status = store(job, err);
    if (aside)
        pthread_join(closing, NULL);
    return status;
}

/* A result is complete without words, so a failure is only a notice. */
static void find_words(struct clustering_report *report)
{
    struct error why = ERROR_INIT;
    const struct result_clusters *clusters =
        report->images ? result_clusters_find(report->images, report->clusters.name) : NULL;
    if (clusters && words_open(&report->words, report->images, clusters, &why) != STATUS_OK)
        log_message(LOG_NOTICE, "notice: the clusters have no words: %s", why.sentence);
}

enum status cluster_job_run(struct cluster_job *job, unsigned devices, struct row_tree **reading,
                            enum status (*make)(struct cluster_job *job,
                                                const struct cluster_devices *devices,
                                                struct error *err),
                            struct error *err)
{
    struct clustering_report *report = job->report;
    const bool first = cluster_job_is_first(job);
    struct clustering_contexts contexts;
    enum status status = STATUS_OK;
    report->found = job->found;
    report->in_input = job->output == job->input.path;
    report->output = strdup(job->output);
    if (!report->output)
        return error_memory(err, strlen(job->output) + 1, "a file name");
    if (report->found) {
        status = first ? read_found(job, err) : STATUS_OK;
    } else {
        status = clustering_contexts_open(&contexts, &job->config->machine, devices, err);
        snprintf(report->device, sizeof report->device, "%s", contexts.names);
        if (status == STATUS_OK)
            status = matrix_input_reading(reading, &job->input, err);
        if (status == STATUS_OK)
            status = make(job, &contexts.devices, err);
        for (uint32_t i = 0; i < report->level_count && status == STATUS_OK && first; i++)
            status = spread_rows(&report->level[i].outcome, job, err);
        if (status == STATUS_OK && first)
            status = store_and_close(job, &contexts, err);
        clustering_contexts_close(&contexts);
    }
    report->clusters = job->about.clusters;
    if (status != STATUS_OK || !first)
        return status;
    drop_rows(report);
    if (job->about.names || (job->words && job->input.result && report->in_input)) {
        status = result_open(&report->images, report->output, err);
        if (job->words)
            find_words(report);
    } else {
        report->images = job->input.result;
        job->input.result = NULL;
    }
    return status;
}

void clustering_report_clear(struct clustering_report *report)
{
    cluster_levels_clear(report->level, CLUSTER_LEVELS);
    free(report->output);
    words_close(&report->words);
    result_close(&report->images);
    cluster_sweep_clear(&report->sweep);
    *report = (struct clustering_report){0};
}
