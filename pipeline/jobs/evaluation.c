/* evaluation.c: wires rankings and agreements.
 *
 *   folders or FILE.csv ──> classes ─┬─> neighbours/ranking, for each feature and metric
 *                                    └─> kmeans/agreement, for each clustering
 */
#include "jobs/evaluation.h"
#include "base/held.h"
#include "base/path.h"
#include "features/pca.h"
#include "jobs/diffusing.h"
#include "jobs/matrix_input.h"
#include "kmeans/sweep.h"
#include "neighbours/affinity.h"
#include "neighbours/diffusion.h"
#include "neighbours/expansion.h"
#include "result/choose.h"
#include <stdio.h>
#include <string.h>

/* Opens the rows to rank and chooses the metric. The caller keeps `from` and closes it later. */
static enum status open_rows(struct matrix_source *out, enum cluster_metric *metric,
                             const struct matrix_source *from,
                             const struct evaluation_config *config, struct error *err)
{
    struct projection projection;
    const struct pca_config pca = {.space = (enum projection_space) * metric,
                                   .components = (uint32_t)config->projection.pca,
                                   .whiten = config->projection.whiten,
                                   .threads = config->machine.threads,
                                   .stop = config->machine.watch.stop};
    *out = *from;
    out->close = NULL;
    if (!config->projection.center && config->projection.pca == 0)
        return STATUS_OK;
    *metric = METRIC_EUCLIDEAN;
    const struct matrix_source rows = *out;
    *out = (struct matrix_source){0};
    const enum status status = pca_fit(&projection, &rows, &pca, err);
    return status == STATUS_OK ? projected_open(out, &rows, &projection, err) : status;
}

static enum status rank_rows(struct ranking *out, const struct matrix_source *rows,
                             struct matrix_input *input, const struct classes *classes,
                             const uint32_t *of_row, const struct neighbours_config *search,
                             const struct evaluation_config *config, struct error *err)
{
    const uint32_t n = config->diffuse ? AFFINITY_NEIGHBOURS : (uint32_t)config->expand;
    struct neighbours nearest;
    struct expansion expanded = {0};
    if (n == 0)
        return ranking_measure(out, rows, of_row, classes->count, search, err);
    enum status status = diffusing_nearest(&nearest, rows, input, n, search, err);
    if (status == STATUS_OK && config->diffuse) {
        status = diffusion_measure(out, rows, &nearest, of_row, classes->count, search, err);
    } else if (status == STATUS_OK) {
        struct neighbours_config euclidean = *search;
        euclidean.metric = METRIC_EUCLIDEAN;
        status = expansion_open(&expanded, rows, &nearest, n, search, err);
        if (status == STATUS_OK)
            status =
                ranking_measure(out, &expanded.source, of_row, classes->count, &euclidean, err);
        expansion_close(&expanded);
    }
    neighbours_clear(&nearest);
    return status;
}

static enum status rank_feature(struct evaluation *evaluation, const char *name,
                                const struct evaluation_config *config, struct error *err)
{
    struct matrix_input input;
    enum status status = matrix_input_open(&input, config->file, name, NULL, err);
    if (status != STATUS_OK)
        return status;
    const enum cluster_metric usual = matrix_input_usual_metric(&input.about);
    const struct clustering_machine *machine = &config->machine;
    const unsigned metrics = config->metric_count ? config->metric_count : 1;
    if (!config->metric_count && !config->projection.center && config->projection.pca == 0)
        status = matrix_input_rank(&input, machine, err);
    for (unsigned m = 0; m < metrics && status == STATUS_OK; m++) {
        struct evaluation_feature *one = &evaluation->features[evaluation->feature_count];
        enum cluster_metric metric = config->metric_count ? config->metrics[m] : usual;
        struct matrix_source rows;
        *one = (struct evaluation_feature){.metric = metric};
        snprintf(one->name, sizeof one->name, "%s", input.about.name);
        machine->progress.step(machine->watch.context, one->name);
        status = matrix_input_compare(&input, metric, true, machine, err);
        if (status == STATUS_OK)
            status = open_rows(&rows, &metric, &input.source, config, err);
        if (status != STATUS_OK)
            break;
        one->dimension = rows.dimension;
        const struct neighbours_config search = clustering_search(machine, metric, 1);
        SCOPED_HELD held = {0};
        uint32_t *of_row = held_array(&held, input.whole.rows, sizeof *of_row);
        status = held_check(&held, "classes", err);
        if (status == STATUS_OK) {
            memcpy(of_row, evaluation->classes.of_row, input.whole.rows * sizeof *of_row);
            if (input.comparable.row)
                comparable_pick(&input.comparable, of_row);
            status = rank_rows(&one->ranking, &rows, &input, &evaluation->classes, of_row, &search,
                               config, err);
        }
        matrix_close(&rows);
        evaluation->feature_count += status == STATUS_OK;
    }
    matrix_input_close(&input);
    return status;
}

static enum status rank_features(struct evaluation *evaluation,
                                 const struct evaluation_config *config, struct error *err)
{
    const unsigned own = evaluation->result->feature_count;
    const unsigned all = own + (evaluation->result->preset != NULL);
    const unsigned count = config->features.count ? config->features.count : all;
    const unsigned metrics = config->metric_count ? config->metric_count : 1;
    evaluation->features =
        held_array(&evaluation->held, (uint64_t)count * metrics, sizeof *evaluation->features);
    enum status status = held_check(&evaluation->held, "features", err);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        if (config->features.count || i == own || own == 1 ||
            !result_feature_describes(&evaluation->result->features[i]))
            status = rank_feature(evaluation,
                                  config->features.count ? config->features.text[i]
                                  : i == own             ? RESULT_PRESET
                                                         : evaluation->result->features[i].name,
                                  config, err);
    return status;
}

/* Rows without a class or a label are left out. */
static enum status compare_clusters(struct evaluation *evaluation,
                                    const struct result_clusters *clusters, struct error *err)
{
    const struct classes *classes = &evaluation->classes;
    struct evaluation_clusters *one = &evaluation->clusters[evaluation->clusters_count];
    const uint64_t images = result_images(evaluation->result);
    SCOPED_HELD held = {0};
    int32_t *labels = held_array(&held, images, sizeof *labels);
    uint32_t *of_row = held_array(&held, images, sizeof *of_row);
    enum status status = held_check(&held, "labels", err);
    *one = (struct evaluation_clusters){.clusters = clusters};
    if (status == STATUS_OK)
        status = result_part_read(labels, clusters, PART_LABELS, err);
    for (uint64_t row = 0; row < images && status == STATUS_OK; row++)
        if (classes->of_row[row] != CLASSES_NONE && labels[row] >= 0) {
            labels[one->rows] = labels[row];
            of_row[one->rows++] = classes->of_row[row];
        }
    if (status == STATUS_OK && one->rows == 0)
        status = error_set(err, STATUS_FAILED, "no image has both a class and a label in %s",
                           clusters->name);
    if (status == STATUS_OK)
        status = cluster_agree(&one->agreement, labels, clusters->k, of_row, classes->count,
                               one->rows, err);
    evaluation->clusters_count += status == STATUS_OK;
    return status;
}

static enum status compare_all_clusters(struct evaluation *evaluation,
                                        const struct evaluation_config *config, struct error *err)
{
    const unsigned all = evaluation->result->clusters_count;
    const unsigned count = config->names.count ? config->names.count : all;
    evaluation->clusters = held_array(&evaluation->held, count, sizeof *evaluation->clusters);
    enum status status = held_check(&evaluation->held, "clusterings", err);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        const struct result_clusters *clusters = &evaluation->result->clusters[i];
        if (config->names.count)
            status = choose_clusters(&clusters, evaluation->result, config->names.text[i], err);
        if (status == STATUS_OK)
            status = compare_clusters(evaluation, clusters, err);
    }
    return status;
}

enum status evaluation_run(struct evaluation *out, const struct evaluation_config *config,
                           struct error *err)
{
    *out = (struct evaluation){0};
    enum status status = result_open(&out->result, config->file, err);
    if (status == STATUS_OK && (result_images(out->result) == 0 || out->result->named))
        status =
            error_set(err, STATUS_FAILED,
                      "%s holds no images: evaluate takes a file that clpipe ingest has written",
                      PATH_TEXT(config->file));
    if (status == STATUS_OK)
        status = !config->classes ? classes_of_folders(&out->classes, out->result, err)
                 : strcmp(config->classes, CLASSES_OF_CLS) == 0
                     ? classes_of_cls(&out->classes, out->result, err)
                     : classes_of_table(&out->classes, out->result, config->classes, err);
    /* Cheap checks come first, so that wrong names are reported at once. */
    if (status == STATUS_OK)
        status = compare_all_clusters(out, config, err);
    if (status == STATUS_OK)
        status = rank_features(out, config, err);
    return status;
}

void evaluation_clear(struct evaluation *evaluation)
{
    classes_clear(&evaluation->classes);
    held_free(&evaluation->held);
    result_close(&evaluation->result);
    *evaluation = (struct evaluation){0};
}
