/* ranked.c: finds the components, and projects rows on them. */
#include "neighbours/ranked.h"
#include "base/minmax.h"
#include "neighbours/comparable.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ranked {
    struct matrix_source rows;
    struct projection projection;
};

static enum status read_ranked(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err);

static const struct ranked *ranked_of(const struct matrix_source *source)
{
    return source->read == read_ranked ? source->context : NULL;
}

uint32_t ranked_columns(const struct matrix_source *source)
{
    const struct ranked *ranked = ranked_of(source);
    return ranked ? ranked->rows.dimension : source->dimension;
}

static void blank_to_nan(const struct matrix_source *source, float *rows, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (matrix_is_blank(source, rows + i * source->dimension))
            rows[i * source->dimension] = NAN;
}

void ranked_values(const struct matrix_source *source, float *out, const float *rows,
                   uint64_t count)
{
    const struct ranked *ranked = ranked_of(source);
    const struct matrix_source *from = ranked ? &ranked->rows : source;
    float *own = malloc((size_t)from->dimension * sizeof *own);
    for (uint64_t i = 0; i < count; i++) {
        const float *row = rows + i * from->dimension;
        float *to = out + i * source->dimension;
        if (ranked && own) {
            memcpy(own, row, from->dimension * sizeof *own);
            blank_to_nan(from, own, 1);
            projection_rows(&ranked->projection, to, own, 1);
        } else if (ranked) {
            to[0] = NAN;
        } else {
            memmove(to, row, source->dimension * sizeof *to);
            blank_to_nan(source, to, 1);
        }
    }
    free(own);
}

static enum status read_ranked(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    const struct ranked *ranked = context;
    const uint64_t step = matrix_rows_at_once(&ranked->rows);
    const size_t bytes = (size_t)(min_u64(step, count) * ranked->rows.dimension) * sizeof(float);
    float *from = malloc(bytes + 1);
    enum status status = from ? STATUS_OK : error_memory(err, bytes, "rows");
    for (uint64_t done = 0, now; done < count && status == STATUS_OK; done += now) {
        now = min_u64(step, count - done);
        status = matrix_read(&ranked->rows, first + done, now, from, err);
        if (status != STATUS_OK)
            break;
        blank_to_nan(&ranked->rows, from, now);
        projection_rows(&ranked->projection, rows + done * ranked->projection.dimension, from, now);
    }
    free(from);
    return status;
}

static enum status identify_ranked(void *context, char hex[65], struct error *err)
{
    const struct ranked *ranked = context;
    return ranked->rows.identity(ranked->rows.context, hex, err);
}

static void close_ranked(void *context)
{
    struct ranked *ranked = context;
    matrix_close(&ranked->rows);
    projection_clear(&ranked->projection);
    free(ranked);
}

/* Takes the components of a clustering of the same rows that the preset projected. */
static bool find_stored(struct projection *out, struct result *result,
                        const struct matrix_source *rows, const struct preset_join *join)
{
    char content[65];
    struct parameters *parameters = NULL;
    for (unsigned i = 0; i < result->clusters_count && !out->components; i++) {
        const struct result_clusters *clusters = &result->clusters[i];
        double whiten = 0;
        if (strcmp(clusters->feature, RESULT_PRESET) != 0 || clusters->columns != rows->dimension ||
            !clusters->components || strcmp(clusters->space, "euclidean") != 0 ||
            rows->identity(rows->context, content, NULL) != STATUS_OK ||
            strcmp(content, clusters->content) != 0 ||
            parameters_open(&parameters, clusters->parameters, NULL) != STATUS_OK)
            continue;
        parameters_real(parameters, "whiten", &whiten);
        if (parameters_number(parameters, "pca", 0) == join->pca && whiten == join->whiten &&
            result_projection_read(out, result, clusters, NULL) != STATUS_OK)
            projection_clear(out);
        parameters_close(&parameters);
    }
    return out->components;
}

/* Keeps the first ones, scaled to length 1: no whitening. */
static void take_first(struct projection *projection, uint32_t count)
{
    projection->dimension = min_u32(count, projection->dimension);
    for (uint32_t i = 0; i < projection->dimension; i++) {
        float *component = projection->components + (size_t)i * projection->columns;
        double squares = 0;
        for (uint32_t j = 0; j < projection->columns; j++)
            squares += (double)component[j] * component[j];
        for (uint32_t j = 0; j < projection->columns && squares > 0; j++)
            component[j] = (float)(component[j] / sqrt(squares));
    }
}

enum status ranked_open(struct matrix_source *out, const struct matrix_source *rows,
                        struct result *result, const struct result_feature *about, unsigned threads,
                        struct stop *stop, struct error *err)
{
    struct preset_join join;
    struct projection projection = {.columns = 0};
    *out = *rows;
    if (strcmp(about->name, RESULT_PRESET) != 0 || strcmp(about->kind, "joined") != 0 ||
        preset_join_read(&join, result->preset, NULL) != STATUS_OK || join.rank_pca == 0)
        return STATUS_OK;
    const struct pca_config pca = {.space = SPACE_EUCLIDEAN,
                                   .components = min_u32(join.pca, PCA_COMPONENTS_MAX),
                                   .whiten = join.whiten,
                                   .optional = true,
                                   .threads = threads,
                                   .stop = stop};
    const enum status status = find_stored(&projection, result, rows, &join)
                                   ? STATUS_OK
                                   : comparable_fit(&projection, rows, &pca, err);
    struct ranked *ranked =
        status == STATUS_OK && projection.components ? malloc(sizeof *ranked) : NULL;
    if (!ranked) {
        const bool short_of_memory = status == STATUS_OK && projection.components;
        projection_clear(&projection);
        if (status == STATUS_OK && !short_of_memory)
            return STATUS_OK;
        matrix_close(out);
        return short_of_memory ? error_memory(err, sizeof *ranked, "a projection") : status;
    }
    take_first(&projection, join.rank_pca);
    *ranked = (struct ranked){*rows, projection};
    *out = (struct matrix_source){.rows = rows->rows,
                                  .dimension = projection.dimension,
                                  .read = read_ranked,
                                  .concurrent = rows->concurrent,
                                  .piece = matrix_piece(rows),
                                  .identity = rows->identity ? identify_ranked : NULL,
                                  .close = close_ranked,
                                  .context = ranked};
    return STATUS_OK;
}
