/* similarity.c: wires the search: input, devices, stored graph. */
#include "jobs/similarity.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "jobs/diffusing.h"
#include "jobs/original.h"
#include "matrix/projected.h"
#include "neighbours/affinity.h"
#include "neighbours/comparable.h"
#include "neighbours/diffusion.h"
#include "neighbours/expansion.h"
#include "result/graph.h"
#include "result/locate.h"
#include "result/workdir.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status similarity_open(struct similarity *out, const struct similarity_config *config,
                            struct error *err)
{
    char shown[256];
    *out = (struct similarity){.config = config};
    enum status status = matrix_input_open(&out->input, config->file, config->feature, NULL, err);
    if (status != STATUS_OK)
        return status;
    if (!out->input.result || result_images(out->input.result) == 0)
        return error_set(err, STATUS_FAILED,
                         "%s holds no images: similar takes a file that clpipe ingest has written",
                         path_for_message(shown, sizeof shown, config->file));
    out->metric = config->metric >= 0 ? (enum cluster_metric)config->metric
                                      : matrix_input_usual_metric(&out->input.about);
    if (config->metric < 0)
        status = matrix_input_rank(&out->input, config->machine.threads, config->machine.stop, err);
    return status;
}

void similarity_close(struct similarity *similarity)
{
    neighbours_clear(&similarity->found);
    free(similarity->scores);
    matrix_input_close(&similarity->input);
}

/* --- names ------------------------------------------------------------------------------------- */

struct name {
    const char *text; /* without leading "./" */
    const char *last; /* its last component */
    char *real;       /* where it leads; NULL: to no file */
    uint64_t matches;
    uint64_t replaced; /* a row of this name, plus one, whose file was another */
};

static enum status read_row(uint64_t *row, const struct similarity *similarity, const char *text,
                            struct error *err)
{
    const uint64_t images = result_images(similarity->input.result);
    char *end, shown[128];
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return error_set(err, STATUS_USAGE, "row:%s: a row is a number from 0",
                         path_for_message(shown, sizeof shown, text));
    if (number >= images)
        return error_set(err, STATUS_USAGE, "there is no row %llu: rows are 0 to %llu", number,
                         (unsigned long long)images - 1);
    *row = number;
    return STATUS_OK;
}

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether a name stands for an image. */
static enum status is_named(bool *named, struct locator *locator,
                            const struct similarity *similarity, const struct name *name,
                            const struct result_image *image, struct error *err)
{
    const struct result *result = similarity->input.result;
    const char *absolute;
    *named = false;
    if (strcmp(name->last, last_of(image->path_raw)) != 0)
        return STATUS_OK;
    *named = strcmp(name->text, image->path_raw) == 0;
    if (*named)
        return STATUS_OK;
    enum status status =
        locate_image(locator, &absolute, result, image->source, image->path_raw, err);
    if (status != STATUS_OK)
        return status;
    *named = strcmp(name->text, absolute) == 0;
    if (!*named && name->real) {
        char *real = realpath(absolute, NULL);
        *named = real && strcmp(real, name->real) == 0;
        free(real);
    }
    /* Behind the source as it was given, wherever that is now. */
    const char *source =
        image->source < result->source_count ? result->source_names[image->source] : "";
    size_t length = strlen(source);
    while (length > 0 && source[length - 1] == '/')
        length--;
    if (!*named && length > 0 && strncmp(name->text, source, length) == 0 &&
        name->text[length] == '/')
        *named = strcmp(name->text + length + 1, image->path_raw) == 0;
    return STATUS_OK;
}

enum status similarity_locate(uint64_t *rows, struct error *failed, struct similarity *similarity,
                              const char *const *names, unsigned count, struct error *err)
{
    struct result *result = similarity->input.result;
    struct locator locator = {0};
    struct result_image image;
    enum status status = STATUS_OK;
    unsigned open = 0;
    char shown[256];
    struct name *all = calloc(count, sizeof *all);
    if (!all)
        return error_memory(err, count * sizeof *all, "names");
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        rows[i] = SIMILARITY_OUTSIDE;
        if (strncmp(names[i], "row:", 4) == 0) {
            read_row(&rows[i], similarity, names[i] + 4, &failed[i]);
            continue;
        }
        all[i].text = names[i];
        while (strncmp(all[i].text, "./", 2) == 0)
            all[i].text += 2 + strspn(all[i].text + 2, "/");
        all[i].last = last_of(all[i].text);
        all[i].real = realpath(names[i], NULL);
        open++;
    }
    for (uint64_t row = 0; row < result_images(result) && open > 0 && status == STATUS_OK; row++) {
        status = result_image_at(result, row, &image, err);
        for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
            bool named = false;
            if (all[i].text)
                status = is_named(&named, &locator, similarity, &all[i], &image, err);
            if (named && all[i].real &&
                original_check(all[i].real, &image, NULL) != ORIGINAL_THERE) {
                named = false;
                all[i].replaced = row + 1;
            }
            if (named && all[i].matches++ == 0)
                rows[i] = row;
            else if (named)
                error_set(&failed[i], STATUS_USAGE,
                          "'%s' is row %llu and row %llu: say which, as in row:%llu", names[i],
                          (unsigned long long)rows[i], (unsigned long long)row,
                          (unsigned long long)row);
        }
    }
    locator_clear(&locator);
    for (unsigned i = 0; i < count; i++) {
        if (all[i].replaced && !all[i].matches && status == STATUS_OK)
            log_message(
                LOG_NOTICE,
                "notice: %s is not the file that was read by this name: it is described as it "
                "is now; row:%llu is the image",
                path_for_message(shown, sizeof shown, names[i]),
                (unsigned long long)all[i].replaced - 1);
        free(all[i].real);
    }
    free(all);
    return status;
}

/* --- searching --------------------------------------------------------------------------------- */

static void configure(struct neighbours_config *out, const struct similarity *similarity)
{
    const struct clustering_machine *machine = &similarity->config->machine;
    *out = (struct neighbours_config){.metric = similarity->metric,
                                      .n = similarity->config->n,
                                      .threads = machine->threads,
                                      .memory = machine->memory,
                                      .device_memory = machine->device_memory,
                                      .stop = machine->stop,
                                      .phase = machine->progress.phase,
                                      .progress_context = machine->progress.context};
}

/* Takes over the first n of an order. */
static void take_diffused(void *context, uint32_t query, const struct diffused *order,
                          uint64_t count)
{
    struct similarity *similarity = context;
    const uint32_t n = similarity->found.n;
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = (size_t)query * n + i;
        const bool none = i >= count;
        similarity->found.rows[at] = none ? -1 : (int64_t)order[i].row;
        similarity->found.squared[at] = none ? (double)NAN : order[i].squared;
        similarity->scores[at] = none ? (double)NAN : order[i].score;
    }
}

static enum status diffuse(struct similarity *similarity, const struct diffusion_queries *queries,
                           struct error *err)
{
    const struct matrix_source *source = &similarity->input.source;
    struct neighbours *found = &similarity->found, nearest;
    struct neighbours_config config;
    configure(&config, similarity);
    const size_t places = (size_t)queries->count * config.n;
    neighbours_clear(found);
    free(similarity->scores);
    found->queries = queries->count;
    found->n = config.n;
    found->rows = malloc(places * sizeof *found->rows);
    found->squared = malloc(places * sizeof *found->squared);
    similarity->scores = malloc(places * sizeof *similarity->scores);
    if (!found->rows || !found->squared || !similarity->scores)
        return error_memory(err, places * 3 * sizeof *found->squared, "neighbours");
    enum status status =
        diffusing_nearest(&nearest, source, &similarity->input, AFFINITY_NEIGHBOURS, &config, err);
    if (status == STATUS_OK)
        status = diffusion_rank(source, &nearest, queries, &config, take_diffused, similarity, err);
    neighbours_clear(&nearest);
    return status;
}

/* rows, or values where they are not NULL. */
static enum status search_expanded(struct similarity *similarity, const uint64_t *rows,
                                   const float *values, uint32_t count, struct error *err)
{
    const struct matrix_source *source = &similarity->input.source;
    const uint32_t n = similarity->config->expand;
    const size_t bytes = (size_t)count * source->dimension * sizeof(float);
    struct neighbours nearest, own = {0};
    struct neighbours_config config, euclidean;
    struct expansion expanded = {0};
    float *queries = NULL;
    configure(&config, similarity);
    euclidean = config;
    euclidean.metric = METRIC_EUCLIDEAN;
    config.n = n;
    neighbours_clear(&similarity->found);
    enum status status = diffusing_nearest(&nearest, source, &similarity->input, n, &config, err);
    if (status == STATUS_OK)
        status = expansion_open(&expanded, source, &nearest, n, &config, err);
    if (status == STATUS_OK && values) {
        queries = malloc(bytes);
        status = queries ? neighbours_of_values(&own, source, values, count, &config, err)
                         : error_memory(err, bytes, "queries");
        if (status == STATUS_OK)
            status = expansion_of_values(queries, &expanded, values, count, &own, err);
        if (status == STATUS_OK)
            status = neighbours_of_values(&similarity->found, &expanded.source, queries, count,
                                          &euclidean, err);
    } else if (status == STATUS_OK) {
        status =
            neighbours_of_rows(&similarity->found, &expanded.source, rows, count, &euclidean, err);
    }
    free(queries);
    neighbours_clear(&own);
    expansion_close(&expanded);
    neighbours_clear(&nearest);
    return status;
}

/* Diffusion and expansion know the rows that can be compared, by their numbers among these. */
static enum status search_graph(struct similarity *similarity, const uint64_t *rows,
                                const float *values, uint32_t count, struct error *err)
{
    const struct comparable *comparable = &similarity->input.comparable;
    struct neighbours *found = &similarity->found;
    uint64_t *places = calloc(count, sizeof *places);
    enum status status = places ? STATUS_OK : error_memory(err, count * sizeof *places, "rows");
    if (status == STATUS_OK)
        status = matrix_input_compare(&similarity->input, similarity->metric, true, NULL, err);
    for (uint32_t i = 0; rows && i < count && status == STATUS_OK; i++) {
        places[i] = comparable->row ? comparable_find(comparable, rows[i]) : rows[i];
        if (places[i] == similarity->input.source.rows)
            status =
                error_set(err, STATUS_FAILED, "row %llu has no values of %s that can be compared",
                          (unsigned long long)rows[i], similarity->input.about.name);
    }
    const struct diffusion_queries queries = {rows ? places : NULL, values, count};
    if (status == STATUS_OK)
        status = similarity->config->diffuse
                     ? diffuse(similarity, &queries, err)
                     : search_expanded(similarity, queries.rows, values, count, err);
    for (size_t i = 0; comparable->row && status == STATUS_OK && i < (size_t)count * found->n; i++)
        if (found->rows[i] >= 0)
            found->rows[i] = (int64_t)comparable->row[found->rows[i]];
    free(places);
    return status;
}

/* `rows`, or else `values`. */
static enum status search(struct similarity *similarity, const uint64_t *rows, const float *values,
                          uint32_t count, struct error *err)
{
    const struct comparable *comparable = &similarity->input.comparable;
    const struct matrix_source *source = &similarity->input.source;
    struct neighbours *found = &similarity->found;
    struct neighbours_config config;
    struct error why = ERROR_INIT;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; values && i < count; i++)
        if (matrix_is_blank(&similarity->input.rows, values + (size_t)i * source->dimension))
            return error_set(err, STATUS_FAILED, "it has no values of %s that can be compared",
                             similarity->input.about.name);
    if (similarity->config->diffuse || similarity->config->expand)
        return search_graph(similarity, rows, values, count, err);
    configure(&config, similarity);
    neighbours_clear(found);
    if (!comparable->row) {
        status = rows ? neighbours_of_rows(found, source, rows, count, &config, &why)
                      : neighbours_of_values(found, source, values, count, &config, &why);
        if (status == STATUS_OK)
            return STATUS_OK;
        /* Rows that cannot be compared may be the reason. */
        if (status == STATUS_FAILED && matrix_input_compare(&similarity->input, similarity->metric,
                                                            true, config.stop, err) != STATUS_OK)
            return err->status;
        if (!comparable->row) {
            *err = why;
            return status;
        }
    }
    return rows ? comparable_of_rows(found, comparable, rows, count, &config, err)
                : comparable_of_values(found, comparable, values, count, &config, err);
}

enum status similarity_of_rows(struct similarity *similarity, const uint64_t *rows, uint32_t count,
                               struct error *err)
{
    return search(similarity, rows, NULL, count, err);
}

enum status similarity_of_values(struct similarity *similarity, const float *values, uint32_t count,
                                 struct error *err)
{
    return search(similarity, NULL, values, count, err);
}

static enum status search_all(struct similarity *similarity, struct error *err)
{
    const struct clustering_machine *machine = &similarity->config->machine;
    const struct comparable *comparable = &similarity->input.comparable;
    struct clustering_contexts contexts = {.count = 0};
    struct neighbours_config config;
    configure(&config, similarity);
    enum status status =
        matrix_input_compare(&similarity->input, similarity->metric, true, config.stop, err);
    if (status == STATUS_OK)
        status = clustering_contexts_open(&contexts, machine, 1, err);
    if (status != STATUS_OK)
        return status;
    config.devices = (struct cluster_devices){contexts.context, contexts.count};
    snprintf(similarity->device, sizeof similarity->device, "%s", contexts.names);
    neighbours_clear(&similarity->found);
    status = comparable->row
                 ? comparable_of_all(&similarity->found, comparable, &config, err)
                 : neighbours_of_all(&similarity->found, &similarity->input.source, &config, err);
    clustering_contexts_close(&contexts);
    return status;
}

/* Whether the file has them already: of these rows, in this metric, as many. */
static enum status look_for_stored(struct similarity *similarity, char content[65],
                                   struct error *err)
{
    const struct similarity_config *config = similarity->config;
    struct graph graph;
    enum status status = STATUS_OK;
    if (graph_open(&graph, similarity->input.result, similarity->input.about.name, NULL) !=
        STATUS_OK)
        return STATUS_OK;
    if (graph.n == config->n && strcmp(graph.metric, metric_names[similarity->metric]) == 0) {
        status = matrix_input_identity(&similarity->input, content, err);
        similarity->stored = status == STATUS_OK && strcmp(graph.content, content) == 0;
    }
    similarity->found.queries = graph.rows;
    similarity->found.n = graph.n;
    graph_close(&graph);
    return status;
}

enum status similarity_store(struct similarity *similarity, struct error *err)
{
    const struct similarity_config *config = similarity->config;
    struct result *result = similarity->input.result;
    const char *feature = similarity->input.about.name;
    struct workdir *lock = NULL;
    char content[65] = "";
    enum status status = look_for_stored(similarity, content, err);
    if (similarity->stored)
        workdir_tidy(config->file);
    if (status != STATUS_OK || similarity->stored)
        return status;
    status = graph_check(result, feature, config->replace, err);
    if (status == STATUS_OK)
        status = workdir_open(&lock, config->file, err);
    if (status == STATUS_OK)
        status = result_check_current(result, err);
    if (status == STATUS_OK)
        status = search_all(similarity, err);
    if (status == STATUS_OK)
        status = matrix_input_identity(&similarity->input, content, err);
    if (status == STATUS_OK) {
        const struct graph_values values = {.feature = feature,
                                            .metric = metric_names[similarity->metric],
                                            .content = content,
                                            .rows = similarity->found.queries,
                                            .n = similarity->found.n,
                                            .neighbours = similarity->found.rows,
                                            .squared = similarity->found.squared};
        config->machine.progress.step(config->machine.progress.context, "writing neighbours");
        status = graph_write(result, &values, err);
    }
    workdir_release(&lock);
    return status;
}
