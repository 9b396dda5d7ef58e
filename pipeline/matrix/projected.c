/* projected.c: products of rows with components, a few components at a time so that a row's values are
 * loaded once for them. */
#include "matrix/projected.h"
#include "base/minmax.h"
#include "matrix/row_tree.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Partial sums of a product; components at a time. */
#define LANES 8
#define GROUP 4

static const char *const space_names[] = {"euclidean", "cosine", "hellinger"};

bool projection_space(enum projection_space *out, const char *name)
{
    for (unsigned i = 0; i < sizeof space_names / sizeof *space_names; i++)
        if (strcmp(name, space_names[i]) == 0) {
            *out = (enum projection_space)i;
            return true;
        }
    return false;
}

const char *projection_space_name(enum projection_space space)
{
    return space_names[space];
}

void projection_clear(struct projection *projection)
{
    free(projection->mean);
    free(projection->components);
    *projection = (struct projection){0};
}

/* x' - mean, with zeros behind it up to a multiple of LANES. */
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
                            : projection->space == SPACE_COSINE ? (float)((double)row[j] / length)
                                                                : row[j];
        out[j] = (double)place - (double)projection->mean[j];
    }
    for (uint32_t j = columns; j % LANES != 0; j++)
        out[j] = 0;
}

/* GROUP products; padded: a multiple of LANES. */
static inline __attribute__((always_inline)) void
multiply_body(double *out, const double *components, const double *row, uint32_t padded)
{
    double sum[GROUP][LANES] = {{0}};
    for (uint32_t j = 0; j < padded; j += LANES)
        for (unsigned i = 0; i < GROUP; i++)
            for (unsigned l = 0; l < LANES; l++)
                sum[i][l] += components[(size_t)i * padded + j + l] * row[j + l];
    for (unsigned i = 0; i < GROUP; i++) {
        out[i] = 0;
        for (unsigned l = 0; l < LANES; l++)
            out[i] += sum[i][l];
    }
}

typedef void (*multiply_function)(double *out, const double *components, const double *row,
                                  uint32_t padded);

static void multiply_plain(double *out, const double *components, const double *row, uint32_t padded)
{
    multiply_body(out, components, row, padded);
}

#if defined(__x86_64__)

#include <immintrin.h>

/* The same sums: a multiplication and an addition each, which the compiler may not contract. */
__attribute__((target("avx2"))) static void multiply_avx2(double *out, const double *components,
                                                          const double *row, uint32_t padded)
{
    const double *c0 = components, *c1 = c0 + padded, *c2 = c1 + padded, *c3 = c2 + padded;
    __m256d s0 = _mm256_setzero_pd(), t0 = s0, s1 = s0, t1 = s0, s2 = s0, t2 = s0, s3 = s0, t3 = s0;
    for (uint32_t j = 0; j < padded; j += LANES) {
        const __m256d low = _mm256_loadu_pd(row + j), high = _mm256_loadu_pd(row + j + 4);
#define ADD(i)                                                                                     \
    s##i = _mm256_add_pd(s##i, _mm256_mul_pd(_mm256_loadu_pd(c##i + j), low));                     \
    t##i = _mm256_add_pd(t##i, _mm256_mul_pd(_mm256_loadu_pd(c##i + j + 4), high));
        ADD(0) ADD(1) ADD(2) ADD(3)
#undef ADD
    }
    const __m256d sums[GROUP][2] = {{s0, t0}, {s1, t1}, {s2, t2}, {s3, t3}};
    for (unsigned i = 0; i < GROUP; i++) {
        double lanes[LANES];
        memcpy(lanes, sums[i], sizeof lanes);
        out[i] = 0;
        for (unsigned l = 0; l < LANES; l++)
            out[i] += lanes[l];
    }
}

static multiply_function choose_multiply(void)
{
    return __builtin_cpu_supports("avx2") ? multiply_avx2 : multiply_plain;
}

#else

static multiply_function choose_multiply(void)
{
    return multiply_plain;
}

#endif

/* What many rows share; components in float64, padded to whole groups and lanes; NULL: there are none. */
struct prepared {
    const struct projection *projection;
    multiply_function multiply;
    uint32_t padded, groups;
    double *components;
};

static bool prepare(struct prepared *out, const struct projection *projection)
{
    const uint32_t columns = projection->columns, dimension = projection->dimension;
    *out = (struct prepared){.projection = projection,
                             .multiply = choose_multiply(),
                             .padded = (columns + LANES - 1) / LANES * LANES,
                             .groups = (dimension + GROUP - 1) / GROUP};
    if (!projection->components)
        return true;
    out->components =
        calloc((size_t)out->groups * GROUP * out->padded, sizeof *out->components);
    if (!out->components)
        return false;
    for (uint32_t i = 0; i < dimension; i++)
        for (uint32_t j = 0; j < columns; j++)
            out->components[(size_t)i * out->padded + j] =
                (double)projection->components[(size_t)i * columns + j];
    return true;
}

/* Values of the room that one row needs. */
static size_t row_room(const struct prepared *prepared)
{
    return prepared->padded + (size_t)prepared->groups * GROUP;
}

static void project_row(const struct prepared *prepared, double *room, float *out, const float *row)
{
    const struct projection *projection = prepared->projection;
    const uint32_t dimension = projection->dimension;
    double *product = room + prepared->padded, square = 0;
    const double *y = prepared->components ? product : room;
    centre_row(room, projection, row);
    for (uint32_t g = 0; g < prepared->groups && prepared->components; g++)
        prepared->multiply(product + (size_t)g * GROUP,
                           prepared->components + (size_t)g * GROUP * prepared->padded, room,
                           prepared->padded);
    for (uint32_t i = 0; i < dimension; i++)
        square += y[i] * y[i];
    const double length = sqrt(square);
    for (uint32_t i = 0; i < dimension; i++)
        out[i] = square == 0 ? 0 : (float)(y[i] / length);
}

void projection_rows(const struct projection *projection, float *out, const float *rows,
                     uint64_t count)
{
    struct prepared prepared;
    double *room = NULL;
    const bool ready = prepare(&prepared, projection) &&
                       (room = malloc(row_room(&prepared) * sizeof *room)) != NULL;
    for (uint64_t row = 0; row < count; row++) {
        float *to = out + row * projection->dimension;
        if (ready)
            project_row(&prepared, room, to, rows + row * projection->columns);
        for (uint32_t i = 0; i < projection->dimension && !ready; i++)
            to[i] = NAN;
    }
    free(room);
    free(prepared.components);
}

/* --- as a matrix --------------------------------------------------------------------------------- */

struct projected {
    struct matrix_source rows;
    struct projection projection;
    struct prepared prepared;
};

static enum status check_row(const struct projected *projected, const float *row, uint64_t number,
                             struct error *err)
{
    float largest = 0, least = 0;
    for (uint32_t j = 0; j < projected->projection.columns; j++) {
        largest = row[j] > largest ? row[j] : largest;
        least = row[j] < least ? row[j] : least;
    }
    if (projected->projection.space == SPACE_HELLINGER && least < 0)
        error_set(err, STATUS_FAILED,
                  "row %llu (counted from 0) is negative (invalid for the hellinger metric)",
                  (unsigned long long)number);
    else if (projected->projection.space == SPACE_COSINE && least == 0 && largest == 0)
        error_set(err, STATUS_FAILED,
                  "row %llu (counted from 0) is all zeros, for which the cosine metric is undefined",
                  (unsigned long long)number);
    else
        return STATUS_OK;
    return error_remedy(err, REMEDY_OTHER_METRIC);
}

static enum status project_rows(const struct projected *projected, uint64_t first, uint64_t count,
                                float *out, const float *rows, double *room, struct error *err)
{
    const struct projection *projection = &projected->projection;
    for (uint64_t i = 0; i < count; i++) {
        const float *row = rows + i * projection->columns;
        const enum status status = check_row(projected, row, first + i, err);
        if (status != STATUS_OK)
            return status;
        project_row(&projected->prepared, room, out + i * projection->dimension, row);
    }
    return STATUS_OK;
}

static enum status projected_read(void *context, uint64_t first, uint64_t count, float *rows,
                                  struct error *err)
{
    const struct projected *projected = context;
    const size_t row_bytes = projected->rows.dimension * sizeof(float);
    const size_t room_bytes = row_room(&projected->prepared) * sizeof(double);
    /* Whole pieces, where they are digested as they are read. */
    const uint64_t step = min_u64(row_tree_piece(projected->rows.dimension * sizeof(float)), count);
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
            status = project_rows(projected, first + done, now, to, from, room, err);
    }
    free(from);
    free(room);
    return status;
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
                                  .identity = rows->identity ? projected_identity : NULL,
                                  .close = projected_close,
                                  .context = projected};
    return STATUS_OK;
}
