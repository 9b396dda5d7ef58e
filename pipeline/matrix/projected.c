/* projected.c: multiplies rows by components, in blocks so that both stay in a cache. */
#include "matrix/projected.h"
#include "base/minmax.h"
#include "matrix/product.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 32u  /* rows multiplied at a time, a multiple of PRODUCT_ROWS, */
#define DEPTH 128u /* and terms per pass */

const char *const metric_names[] = {"euclidean", "cosine", "hellinger"};

bool projection_space(enum projection_space *out, const char *name)
{
    for (unsigned i = 0; i < sizeof metric_names / sizeof *metric_names; i++)
        if (strcmp(name, metric_names[i]) == 0) {
            *out = (enum projection_space)i;
            return true;
        }
    return false;
}

void projection_clear(struct projection *projection)
{
    free(projection->mean);
    free(projection->components);
    *projection = (struct projection){0};
}

/* x' - mean. */
static void centre_row(double *out, const struct projection *projection, const float *row)
{
    const uint32_t columns = projection->columns;
    double lanes[16] = {0}, length = 1;
    if (projection->space == SPACE_COSINE) {
        for (uint32_t j = 0; j < columns; j++)
            lanes[j % 16] += (double)row[j] * (double)row[j];
        for (uint32_t half = 8; half > 0; half /= 2)
            for (uint32_t l = 0; l < half; l++)
                lanes[l] += lanes[l + half];
        length = sqrt(lanes[0]);
    }
    for (uint32_t j = 0; j < columns; j++) {
        const float place = projection->space == SPACE_HELLINGER ? (float)sqrt((double)row[j])
                            : projection->space == SPACE_COSINE  ? (float)((double)row[j] / length)
                                                                 : row[j];
        out[j] = (double)place - (double)projection->mean[j];
    }
}

/* Data shared by many rows. */
struct prepared {
    const struct projection *projection;
    product_function kernel;
    uint32_t panels;    /* of PRODUCT_COLUMNS components: */
    double *components; /* panels x columns x PRODUCT_COLUMNS; NULL: none */
};

static bool prepare(struct prepared *out, const struct projection *projection)
{
    const uint32_t columns = projection->columns, dimension = projection->dimension;
    *out = (struct prepared){.projection = projection, .kernel = product_choose()};
    if (!projection->components)
        return true;
    out->panels = (dimension + PRODUCT_COLUMNS - 1) / PRODUCT_COLUMNS;
    out->components =
        calloc((size_t)out->panels * columns * PRODUCT_COLUMNS, sizeof *out->components);
    if (!out->components)
        return false;
    for (uint32_t i = 0; i < dimension; i++)
        for (uint32_t j = 0; j < columns; j++)
            out->components[((size_t)(i / PRODUCT_COLUMNS) * columns + j) * PRODUCT_COLUMNS +
                            i % PRODUCT_COLUMNS] =
                (double)projection->components[(size_t)i * columns + j];
    return true;
}

/* Number of scratch values for a block of rows. */
static size_t block_room(const struct prepared *prepared)
{
    return (size_t)BLOCK * (prepared->projection->columns + prepared->panels * PRODUCT_COLUMNS);
}

/* y_i of a row: its product or, without components, its centred value. */
static inline double axis_value(const struct prepared *prepared, const double *room, uint32_t row,
                                uint32_t i)
{
    const size_t columns = prepared->projection->columns;
    if (prepared->panels == 0)
        return room[row * columns + i];
    return room[BLOCK * columns + ((size_t)(i / PRODUCT_COLUMNS) * BLOCK + row) * PRODUCT_COLUMNS +
                i % PRODUCT_COLUMNS];
}

/* Projects up to BLOCK rows. */
static void project_block(const struct prepared *prepared, double *room, float *out,
                          const float *rows, uint32_t count)
{
    const struct projection *projection = prepared->projection;
    const uint32_t columns = projection->columns, dimension = projection->dimension;
    double *product = room + (size_t)BLOCK * columns;
    for (uint32_t row = 0; row < count; row++)
        centre_row(room + (size_t)row * columns, projection, rows + (size_t)row * columns);
    const uint32_t whole = (count + PRODUCT_ROWS - 1) / PRODUCT_ROWS * PRODUCT_ROWS;
    memset(room + (size_t)count * columns, 0, (size_t)(whole - count) * columns * sizeof *room);
    memset(product, 0, (size_t)prepared->panels * BLOCK * PRODUCT_COLUMNS * sizeof *product);
    for (uint32_t first = 0; first < columns && prepared->panels > 0; first += DEPTH)
        for (uint32_t panel = 0; panel < prepared->panels; panel++)
            for (uint32_t row = 0; row < whole; row += PRODUCT_ROWS)
                prepared->kernel(product + ((size_t)panel * BLOCK + row) * PRODUCT_COLUMNS,
                                 room + (size_t)row * columns + first, columns, 1,
                                 prepared->components +
                                     ((size_t)panel * columns + first) * PRODUCT_COLUMNS,
                                 min_u32(DEPTH, columns - first));
    for (uint32_t row = 0; row < count; row++) {
        double square = 0;
        for (uint32_t i = 0; i < dimension; i++) {
            const double y = axis_value(prepared, room, row, i);
            square += y * y;
        }
        const double length = sqrt(square);
        for (uint32_t i = 0; i < dimension; i++)
            out[(size_t)row * dimension + i] =
                square == 0 ? 0 : (float)(axis_value(prepared, room, row, i) / length);
    }
}

static void project_rows(const struct prepared *prepared, double *room, float *out,
                         const float *rows, uint64_t count)
{
    const struct projection *projection = prepared->projection;
    for (uint64_t row = 0; row < count; row += BLOCK)
        project_block(prepared, room, out + row * projection->dimension,
                      rows + row * projection->columns, (uint32_t)min_u64(BLOCK, count - row));
}

void projection_rows(const struct projection *projection, float *out, const float *rows,
                     uint64_t count)
{
    struct prepared prepared;
    double *room = NULL;
    const bool ready = prepare(&prepared, projection) &&
                       (room = malloc(block_room(&prepared) * sizeof *room)) != NULL;
    if (ready)
        project_rows(&prepared, room, out, rows, count);
    for (uint64_t i = 0; i < count * projection->dimension && !ready; i++)
        out[i] = NAN;
    free(room);
    free(prepared.components);
}

/* --- as a matrix --------------------------------------------------------------------------------- */

struct projected {
    struct matrix_source rows;
    struct projection projection;
    struct prepared prepared;
};

static enum status check_rows(const struct projected *projected, uint64_t first, uint64_t count,
                              const float *rows, struct error *err)
{
    const enum projection_space space = projected->projection.space;
    for (uint64_t i = 0; i < count && space != SPACE_EUCLIDEAN; i++) {
        const float *row = rows + i * projected->projection.columns;
        float largest = 0, least = 0;
        for (uint32_t j = 0; j < projected->projection.columns; j++) {
            largest = row[j] > largest ? row[j] : largest;
            least = row[j] < least ? row[j] : least;
        }
        if (space == SPACE_HELLINGER ? least >= 0 : least < 0 || largest > 0)
            continue;
        error_set(err, STATUS_FAILED,
                  space == SPACE_HELLINGER
                      ? "row %llu (counted from 0) is negative (invalid for the hellinger metric)"
                      : "row %llu (counted from 0) is all zeros, for which the cosine metric is "
                        "undefined",
                  (unsigned long long)(first + i));
        return error_remedy(err, REMEDY_OTHER_METRIC);
    }
    return STATUS_OK;
}

static void blank_to_nan(const struct matrix_source *source, float *rows, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (matrix_is_blank(source, rows + i * source->dimension))
            rows[i * source->dimension] = NAN;
}

static enum status projected_read(void *context, uint64_t first, uint64_t count, float *rows,
                                  struct error *err)
{
    const struct projected *projected = context;
    const size_t row_bytes = projected->rows.dimension * sizeof(float);
    const size_t room_bytes = block_room(&projected->prepared) * sizeof(double);
    /* Whole pieces, if they are digested as they are read. */
    const uint64_t step = min_u64(matrix_piece(&projected->rows), count);
    enum status status = STATUS_OK;
    float *from = malloc((size_t)step * row_bytes + 1);
    double *room = malloc(room_bytes);
    if (!from || !room)
        status = error_memory(err, (size_t)step * row_bytes + room_bytes, "projected rows");
    for (uint64_t done = 0; done < count && status == STATUS_OK; done += step) {
        const uint64_t now = min_u64(step, count - done);
        float *to = rows + done * projected->projection.dimension;
        status = matrix_read(&projected->rows, first + done, now, from, err);
        if (status == STATUS_OK)
            status = check_rows(projected, first + done, now, from, err);
        if (status != STATUS_OK)
            break;
        blank_to_nan(&projected->rows, from, now);
        project_rows(&projected->prepared, room, to, from, now);
    }
    free(from);
    free(room);
    return status;
}

static const struct projected *projected_of(const struct matrix_source *matrix)
{
    return matrix->read == projected_read ? matrix->context : NULL;
}

uint32_t projected_columns(const struct matrix_source *matrix)
{
    const struct projected *projected = projected_of(matrix);
    return projected ? projected->rows.dimension : matrix->dimension;
}

void projected_row(const struct matrix_source *matrix, float *row)
{
    const struct projected *projected = projected_of(matrix);
    blank_to_nan(projected ? &projected->rows : matrix, row, 1);
    if (projected)
        projection_rows(&projected->projection, row, row, 1);
}

static enum status projected_identity(void *context, char hex[65], struct error *err)
{
    struct projected *projected = context;
    return projected->rows.identity(projected->rows.context, hex, err);
}

static void projected_close(void *context)
{
    struct projected *projected = context;
    matrix_close(&projected->rows);
    projection_clear(&projected->projection);
    free(projected->prepared.components);
    free(projected);
}

enum status projected_open(struct matrix_source *out, const struct matrix_source *rows,
                           const struct projection *projection, struct error *err)
{
    assert(rows->dimension == projection->columns);
    struct projected *projected = calloc(1, sizeof *projected);
    struct matrix_source source = *rows;
    struct projection own = *projection;
    *out = (struct matrix_source){0};
    if (!projected) {
        matrix_close(&source);
        projection_clear(&own);
        return error_memory(err, sizeof *projected, "a projection");
    }
    projected->rows = source;
    projected->projection = own;
    if (!prepare(&projected->prepared, &projected->projection)) {
        projected_close(projected);
        return error_memory(err, (size_t)own.dimension * own.columns * sizeof(double),
                            "a projection");
    }
    *out = (struct matrix_source){.rows = rows->rows,
                                  .dimension = own.dimension,
                                  .read = projected_read,
                                  .concurrent = rows->concurrent,
                                  .piece = matrix_piece(rows),
                                  .identity = rows->identity ? projected_identity : NULL,
                                  .close = projected_close,
                                  .context = projected};
    return STATUS_OK;
}
