/* origin.c: the facts, and a sample of rows.
 *
 * The sample is SHA-256 of the numbers of rows and columns (uint64) and the float32 values of 64 rows from
 * the first to the last, evenly spaced (all where there are fewer): it tells apart what the times of
 * a file system cannot, such as copies that keep them. */
#include "jobs/origin.h"
#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

#define SAMPLE_ROWS 64
/* The coarsest times that file systems keep. */
#define SETTLED_NS 2000000000

static enum status sample(struct result_origin *out, const struct matrix_source *rows,
                          struct error *err)
{
    const uint64_t shape[2] = {rows->rows, rows->dimension};
    const uint64_t count = rows->rows < SAMPLE_ROWS ? rows->rows : SAMPLE_ROWS;
    const size_t bytes = rows->dimension * sizeof(float);
    enum status status = STATUS_OK;
    struct sha256 sha;
    uint8_t digest[32];
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
    sha256_final(&sha, digest);
    sha256_hex(out->sample, digest);
    return status;
}

enum status origin_of(struct result_origin *out, struct matrix_input *input, struct error *err)
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

bool origin_same(const struct result_origin *a, const struct result_origin *b)
{
    return a->bytes > 0 && a->bytes == b->bytes && a->mtime_ns == b->mtime_ns &&
           strcmp(a->sample, b->sample) == 0;
}
