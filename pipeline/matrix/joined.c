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
    struct matrix_source part[JOINED_MOST];
    struct join join;
    uint32_t dimension;
};

static void joined_close(void *context)
{
    struct joined *joined = context;
    for (unsigned i = 0; i < joined->join.parts; i++)
        matrix_close(&joined->part[i]);
    free(joined->name);
    free(joined);
}

static double place(const struct join *join, unsigned part, float value)
{
    return join->roots[part] ? sqrt((double)value) : (double)value;
}

void join_row(float *row, const struct join *join)
{
    double length[JOINED_MOST], all = 0;
    const float *from = row;
    for (unsigned i = 0; i < join->parts && join->unit; i++) {
        double square = 0;
        for (uint32_t j = 0; j < join->columns[i]; j++, from++)
            square += place(join, i, *from) * place(join, i, *from);
        length[i] = sqrt(square);
        all += square > 0 ? join->weight[i] * join->weight[i] : 0;
    }
    const double whole = sqrt(all);
    for (unsigned i = 0; i < join->parts; i++)
        for (uint32_t j = 0; j < join->columns[i]; j++, row++)
            *row = !join->unit ? (float)((double)*row * join->weight[i])
                   : length[i] == 0
                       ? 0
                       : (float)(place(join, i, *row) / length[i] * join->weight[i] / whole);
}

/* buffer: for `count` rows of any part. */
static enum status read_block(const struct joined *joined, uint64_t first, uint64_t count,
                              float *rows, float *buffer, struct error *err)
{
    const size_t stride = joined->dimension;
    size_t offset = 0;
    for (unsigned i = 0; i < joined->join.parts; i++) {
        const size_t columns = joined->join.columns[i];
        enum status status = matrix_read(&joined->part[i], first, count, buffer, err);
        if (status != STATUS_OK)
            return status;
        for (uint64_t row = 0; row < count; row++)
            memcpy(rows + row * stride + offset, buffer + row * columns, columns * sizeof *rows);
        offset += columns;
    }
    for (uint64_t row = 0; row < count; row++)
        join_row(rows + row * stride, &joined->join);
    return STATUS_OK;
}

static enum status joined_read(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    const struct joined *joined = context;
    uint32_t widest = 1;
    for (unsigned i = 0; i < joined->join.parts; i++)
        widest = max_u32(widest, joined->join.columns[i]);
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
    for (unsigned i = 0; i < joined->join.parts && !blank && !joined->join.unit; i++) {
        blank = matrix_is_blank(&joined->part[i], row);
        row += joined->join.columns[i];
    }
    return joined->join.unit ? matrix_row_is_zero(row, joined->dimension) : blank;
}

static enum status joined_identity(void *context, char hex[65], struct error *err)
{
    struct joined *joined = context;
    struct sha256 state;
    sha256_init(&state);
    sha256_update(&state, joined->name, strlen(joined->name) + 1);
    for (unsigned i = 0; i < joined->join.parts; i++) {
        const struct matrix_source *part = &joined->part[i];
        enum status status = part->identity(part->context, hex, err);
        if (status != STATUS_OK)
            return status;
        sha256_update(&state, hex, 64);
    }
    /* It begins like the parts' identities: with the rule that computed them, if they name one. */
    const size_t rule = strcspn(hex, "-") < 64 ? strcspn(hex, "-") + 1 : 0;
    char whole[65];
    sha256_hex(whole, &state);
    memcpy(hex + rule, whole, 64 - rule);
    return STATUS_OK;
}

enum status joined_open(struct matrix_source *out, const char *name,
                        const struct matrix_source *parts, const struct join *join,
                        struct error *err)
{
    uint64_t dimension = 0;
    bool concurrent = true;
    assert(join->parts > 0 && join->parts <= JOINED_MOST);
    *out = (struct matrix_source){0};
    for (unsigned i = 0; i < join->parts; i++) {
        assert(parts[i].identity && parts[i].rows == parts[0].rows);
        assert(parts[i].dimension == join->columns[i]);
        dimension += parts[i].dimension;
        concurrent = concurrent && parts[i].concurrent;
    }
    struct joined *joined = calloc(1, sizeof *joined);
    char *copy = strdup(name);
    if (!joined || !copy || dimension > UINT32_MAX) {
        for (unsigned i = 0; i < join->parts; i++) {
            struct matrix_source part = parts[i];
            matrix_close(&part);
        }
        free(joined);
        free(copy);
        if (dimension > UINT32_MAX)
            return error_set(err, STATUS_USAGE, "the joined features have too many values");
        return error_memory(err, sizeof *joined, "joined features");
    }
    joined->name = copy;
    joined->join = *join;
    joined->dimension = (uint32_t)dimension;
    memcpy(joined->part, parts, join->parts * sizeof *parts);
    *out = (struct matrix_source){.rows = parts[0].rows,
                                  .dimension = joined->dimension,
                                  .read = joined_read,
                                  .blank = joined_blank,
                                  .concurrent = concurrent,
                                  .identity = joined_identity,
                                  .close = joined_close,
                                  .context = joined};
    return STATUS_OK;
}
