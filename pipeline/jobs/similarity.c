/* similarity.c: wires the search: input, devices, stored graph. */
#include "jobs/similarity.h"
#include "base/log.h"
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
    *out = (struct similarity){.config = config};
    enum status status = matrix_input_open(&out->input, config->file, config->feature, NULL, err);
    if (status != STATUS_OK)
        return status;
    if (!out->input.result || result_images(out->input.result) == 0)
        return error_set(err, STATUS_FAILED,
                         "%s holds no images: similar takes a file that clpipe ingest has written",
                         PATH_TEXT(config->file));
    out->metric = config->metric >= 0 ? (enum cluster_metric)config->metric
                                      : matrix_input_usual_metric(&out->input.about);
    if (config->metric < 0)
        status = matrix_input_rank(&out->input, &config->machine, err);
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
    char *real;       /* the file it leads to; NULL: none */
    uint64_t matches;
    uint64_t replaced; /* a row of this name, plus one, which was read from another file */
};

static enum status read_row(uint64_t *row, const struct similarity *similarity, const char *text,
                            struct error *err)
{
    const uint64_t images = result_images(similarity->input.result);
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return error_set(err, STATUS_USAGE, "row:%s: a row is a number from 0",
                         PATH_TEXT_IN(128, text));
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
    /* Below the source as given, even if that no longer exists. */
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
                          "'%s' is row %llu and row %llu: choose one, as in row:%llu", names[i],
                          (unsigned long long)rows[i], (unsigned long long)row,
                          (unsigned long long)row);
        }
    }
    locator_clear(&locator);
    for (unsigned i = 0; i < count; i++) {
        if (all[i].replaced && !all[i].matches && status == STATUS_OK)
            log_message(LOG_NOTICE,
                        "notice: %s is not the file that was read under this name: it is described "
                        "as it is now; row:%llu is the image",
                        PATH_TEXT(names[i]), (unsigned long long)all[i].replaced - 1);
        free(all[i].real);
    }
    free(all);
    return status;
}

/* --- searching --------------------------------------------------------------------------------- */

static struct neighbours_config configure(const struct similarity *similarity)
{
    return clustering_search(&similarity->config->machine, similarity->metric,
                             (uint32_t)similarity->config->n);
}

/* Stores the first n of an order. */
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

static enum status diffuse(struct similarity *similarity, const struct queries *queries,
                           struct error *err)
{
    const struct matrix_source *source = &similarity->input.source;
    struct neighbours *found = &similarity->found, nearest;
    const struct neighbours_config config = configure(similarity);
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

static enum status search_expanded(struct similarity *similarity, const struct queries *queries,
                                   struct error *err)
{
    const struct matrix_source *source = &similarity->input.source;
    const uint32_t n = (uint32_t)similarity->config->expand;
    const size_t bytes = (size_t)queries->count * source->dimension * sizeof(float);
    struct neighbours nearest, own = {0};
    struct neighbours_config config = configure(similarity), euclidean = config;
    struct expansion expanded = {0};
    struct queries wanted = *queries;
    struct matrix_source values;
    float *means = NULL;
    struct matrix_memory memory;
    euclidean.metric = METRIC_EUCLIDEAN;
    config.n = n;
    neighbours_clear(&similarity->found);
    enum status status = diffusing_nearest(&nearest, source, &similarity->input, n, &config, err);
    if (status == STATUS_OK)
        status = expansion_open(&expanded, source, &nearest, n, &config, err);
    if (status == STATUS_OK && !queries->rows) {
        means = malloc(bytes);
        status = means ? neighbours_find(&own, source, queries, &config, err)
                       : error_memory(err, bytes, "queries");
        if (status == STATUS_OK)
            status = expansion_of_values(means, &expanded, queries, &own, err);
        memory = (struct matrix_memory){.values = means, .dimension = source->dimension};
        matrix_memory_source(&values, &memory, queries->count);
        wanted = (struct queries){.values = &values, .count = queries->count};
    }
    if (status == STATUS_OK)
        status = neighbours_find(&similarity->found, &expanded.source, &wanted, &euclidean, err);
    free(means);
    neighbours_clear(&own);
    expansion_close(&expanded);
    neighbours_clear(&nearest);
    return status;
}

/* Diffusion and expansion number only the comparable rows. */
static enum status search_graph(struct similarity *similarity, const struct queries *queries,
                                struct error *err)
{
    const struct comparable *comparable = &similarity->input.comparable;
    struct neighbours *found = &similarity->found;
    struct queries wanted = *queries;
    const uint64_t *rows = queries->rows;
    uint64_t *places = calloc(queries->count, sizeof *places);
    enum status status =
        places ? STATUS_OK : error_memory(err, queries->count * sizeof *places, "rows");
    if (status == STATUS_OK)
        status = matrix_input_compare(&similarity->input, similarity->metric, true,
                                      &similarity->config->machine, err);
    for (uint32_t i = 0; rows && i < queries->count && status == STATUS_OK; i++) {
        places[i] = comparable->row ? comparable_find(comparable, rows[i]) : rows[i];
        if (places[i] == similarity->input.source.rows)
            status =
                error_set(err, STATUS_FAILED, "row %llu has no values of %s that can be compared",
                          (unsigned long long)rows[i], similarity->input.about.name);
    }
    wanted.rows = rows ? places : NULL;
    if (status == STATUS_OK)
        status = similarity->config->diffuse ? diffuse(similarity, &wanted, err)
                                             : search_expanded(similarity, &wanted, err);
    for (size_t i = 0;
         comparable->row && status == STATUS_OK && i < (size_t)queries->count * found->n; i++)
        if (found->rows[i] >= 0)
            found->rows[i] = (int64_t)comparable->row[found->rows[i]];
    free(places);
    return status;
}

enum status similarity_find(struct similarity *similarity, const struct queries *queries,
                            struct error *err)
{
    const struct comparable *comparable = &similarity->input.comparable;
    struct neighbours *found = &similarity->found;
    const struct neighbours_config config = configure(similarity);
    struct error why = ERROR_INIT;
    if (similarity->config->diffuse || similarity->config->expand)
        return search_graph(similarity, queries, err);
    neighbours_clear(found);
    if (!comparable->row) {
        const enum status status =
            neighbours_find(found, &similarity->input.source, queries, &config, &why);
        if (status == STATUS_OK)
            return STATUS_OK;
        /* Rows that cannot be compared may be the reason. */
        if (status == STATUS_FAILED &&
            matrix_input_compare(&similarity->input, similarity->metric, true,
                                 &similarity->config->machine, err) != STATUS_OK)
            return err->status;
        if (!comparable->row) {
            *err = why;
            return status;
        }
    }
    return comparable_find_neighbours(found, comparable, queries, &config, err);
}

static enum status search_all(struct similarity *similarity, struct error *err)
{
    const struct clustering_machine *machine = &similarity->config->machine;
    const struct comparable *comparable = &similarity->input.comparable;
    struct clustering_contexts contexts;
    struct neighbours_config config = configure(similarity);
    enum status status =
        matrix_input_compare(&similarity->input, similarity->metric, true, machine, err);
    if (status == STATUS_OK)
        status = clustering_contexts_open(&contexts, machine, 1, err);
    if (status != STATUS_OK)
        return status;
    config.devices = contexts.devices;
    snprintf(similarity->device, sizeof similarity->device, "%s", contexts.names);
    neighbours_clear(&similarity->found);
    status =
        comparable->row
            ? comparable_find_neighbours(&similarity->found, comparable, NULL, &config, err)
            : neighbours_find(&similarity->found, &similarity->input.source, NULL, &config, err);
    clustering_contexts_close(&contexts);
    return status;
}

/* Whether the file already has that many neighbours of these rows in this metric. */
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
        config->machine.progress.step(config->machine.watch.context, "writing neighbours");
        status = graph_write(result, &values, err);
    }
    workdir_release(&lock);
    return status;
}
