/* joined.c: the columns of several matrices side by side. */
#include "matrix/joined.h"
#include "base/hash.h"
#include "base/minmax.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a part's rows read at a time, so that they are still cached when copied. */
#define BLOCK_BYTES (256u << 10)

struct joined {
    char *name;
    struct joined_part part[JOINED_MOST];
    unsigned parts;
    uint32_t dimension;
    bool is_unit;
    struct joined_unit unit;
};

static void joined_close(void *context)
{
    struct joined *joined = context;
    for (unsigned i = 0; i < joined->parts; i++)
        matrix_close(&joined->part[i].matrix);
    free(joined->name);
    free(joined);
}

static double place(const struct joined_unit *unit, unsigned part, float value)
{
    return unit->roots[part] ? sqrt((double)value) : (double)value;
}

void joined_unit_row(float *row, const struct joined_unit *unit)
{
    double length[JOINED_MOST], all = 0;
    const float *from = row;
    for (unsigned i = 0; i < unit->parts; i++) {
        double square = 0;
        for (uint32_t j = 0; j < unit->columns[i]; j++, from++)
            square += place(unit, i, *from) * place(unit, i, *from);
        length[i] = sqrt(square);
        all += square > 0 ? unit->weight[i] * unit->weight[i] : 0;
    }
    const double whole = sqrt(all);
    for (unsigned i = 0; i < unit->parts; i++)
        for (uint32_t j = 0; j < unit->columns[i]; j++, row++)
            *row = length[i] == 0
                       ? 0
                       : (float)(place(unit, i, *row) / length[i] * unit->weight[i] / whole);
}

/* buffer: for `count` rows of any part. */
static enum status read_block(const struct joined *joined, uint64_t first, uint64_t count,
                              float *rows, float *buffer, struct error *err)
{
    const size_t stride = joined->dimension;
    size_t offset = 0;
    for (unsigned i = 0; i < joined->parts; i++) {
        const struct joined_part *part = &joined->part[i];
        const size_t columns = part->matrix.dimension;
        enum status status = matrix_read(&part->matrix, first, count, buffer, err);
        if (status != STATUS_OK)
            return status;
        for (uint64_t row = 0; row < count; row++)
            for (size_t j = 0; j < columns; j++)
                rows[row * stride + offset + j] =
                    (float)((double)buffer[row * columns + j] * part->weight);
        offset += columns;
    }
    for (uint64_t row = 0; row < count && joined->is_unit; row++)
        joined_unit_row(rows + row * stride, &joined->unit);
    return STATUS_OK;
}

static enum status joined_read(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    const struct joined *joined = context;
    uint32_t widest = 1;
    for (unsigned i = 0; i < joined->parts; i++)
        widest = max_u32(widest, joined->part[i].matrix.dimension);
    const size_t row_bytes = widest * sizeof(float);
    const uint64_t step = max_u64(min_u64(BLOCK_BYTES / row_bytes, count), 1);
    enum status status = STATUS_OK;
    float *buffer = malloc((size_t)step * row_bytes);
    if (!buffer)
        return error_memory(err, (size_t)step * row_bytes, "joined features");
    for (uint64_t done = 0; done < count && status == STATUS_OK; done += step)
        status = read_block(joined, first + done, min_u64(step, count - done),
                            rows + done * joined->dimension, buffer, err);
    free(buffer);
    return status;
}

/* Otherwise rows lacking a part would be nearer than others; a preset's rule omits the part. */
static bool joined_blank(const void *context, const float *row)
{
    const struct joined *joined = context;
    bool blank = false;
    for (unsigned i = 0; i < joined->parts && !blank && !joined->is_unit; i++) {
        blank = matrix_is_blank(&joined->part[i].matrix, row);
        row += joined->part[i].matrix.dimension;
    }
    return joined->is_unit ? matrix_row_is_zero(row, joined->dimension) : blank;
}

static enum status joined_identity(void *context, char hex[65], struct error *err)
{
    struct joined *joined = context;
    struct sha256 state;
    uint8_t digest[32];
    sha256_init(&state);
    sha256_update(&state, joined->name, strlen(joined->name) + 1);
    for (unsigned i = 0; i < joined->parts; i++) {
        const struct matrix_source *part = &joined->part[i].matrix;
        enum status status = part->identity(part->context, hex, err);
        if (status != STATUS_OK)
            return status;
        sha256_update(&state, hex, 64);
    }
    /* It begins like the parts' identities: with the rule that computed them, if they name one. */
    const size_t rule = strcspn(hex, "-") < 64 ? strcspn(hex, "-") + 1 : 0;
    char whole[65];
    sha256_final(&state, digest);
    sha256_hex(whole, digest);
    memcpy(hex + rule, whole, 64 - rule);
    return STATUS_OK;
}

enum status joined_open(struct matrix_source *out, const char *name,
                        const struct joined_part *parts, unsigned count, struct error *err)
{
    uint64_t dimension = 0;
    bool concurrent = true;
    assert(count > 0 && count <= JOINED_MOST);
    *out = (struct matrix_source){0};
    for (unsigned i = 0; i < count; i++) {
        assert(parts[i].matrix.identity && parts[i].matrix.rows == parts[0].matrix.rows);
        dimension += parts[i].matrix.dimension;
        concurrent = concurrent && parts[i].matrix.concurrent;
    }
    struct joined *joined = calloc(1, sizeof *joined);
    char *copy = strdup(name);
    if (!joined || !copy || dimension > UINT32_MAX) {
        for (unsigned i = 0; i < count; i++) {
            struct matrix_source part = parts[i].matrix;
            matrix_close(&part);
        }
        free(joined);
        free(copy);
        if (dimension > UINT32_MAX)
            return error_set(err, STATUS_USAGE, "the joined features have too many values");
        return error_memory(err, sizeof *joined, "joined features");
    }
    joined->name = copy;
    joined->parts = count;
    joined->dimension = (uint32_t)dimension;
    memcpy(joined->part, parts, count * sizeof *parts);
    *out = (struct matrix_source){.rows = parts[0].matrix.rows,
                                  .dimension = joined->dimension,
                                  .read = joined_read,
                                  .blank = joined_blank,
                                  .concurrent = concurrent,
                                  .identity = joined_identity,
                                  .close = joined_close,
                                  .context = joined};
    return STATUS_OK;
}

enum status joined_open_unit(struct matrix_source *out, const char *name,
                             const struct joined_part *parts, const struct joined_unit *unit,
                             struct error *err)
{
    const enum status status = joined_open(out, name, parts, unit->parts, err);
    if (status != STATUS_OK)
        return status;
    struct joined *joined = out->context;
    joined->is_unit = true;
    joined->unit = *unit;
    return STATUS_OK;
}
