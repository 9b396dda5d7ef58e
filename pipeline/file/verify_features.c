/* verify_features.c: the sums that the values of a feature must have.
 *
 * Every pixel of a cell is counted once in each of the cell's histograms (feature_histograms).
 * How many pixels a cell has is known for pictures that were decoded at full size. */
#include "file/verify_features.h"
#include "features/kind.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (4u << 20)
/* What rounding each value to float32 can add up to, and room. */
#define TOLERANCE 1e-6

struct problems {
    struct verify_rows range, sum;
};

/* The feature that a file's attributes describe; false if they contradict each other. */
static bool parse_feature(struct feature *feature, const struct result_feature *stored)
{
    struct feature_set set = {.count = 0};
    struct error error = ERROR_INIT;
    struct result_feature described;
    if (feature_set_add(&set, stored->spec, NORMALIZE_L1, &error) || set.count != 1)
        return false;
    *feature = set.feature[0];
    result_feature_describe(&described, feature, stored->decode_scale);
    bool same = described.dimension == stored->dimension;
    for (int t = 0; t < RESULT_FEATURE_TEXTS; t++)
        same = same && strcmp((const char *)&described + result_feature_text[t].offset,
                              (const char *)stored + result_feature_text[t].offset) == 0;
    return same;
}

/* Rows of `size` that belong to cell `cell` of `cells`. */
static uint64_t cell_extent(uint64_t size, uint64_t cell, uint64_t cells)
{
    return ((cell + 1) * size + cells - 1) / cells - (cell * size + cells - 1) / cells;
}

/* Checks one histogram of `bins` values of a cell with `pixels` pixels (UINT64_MAX: unknown). */
static void check_histogram(struct problems *problems, const struct feature *feature,
                            const void *values, uint32_t bins, uint64_t pixels, uint64_t row)
{
    if (feature->normalize == NORMALIZE_NONE) {
        const uint32_t *counts = values;
        uint64_t sum = 0;
        for (uint32_t i = 0; i < bins; i++)
            sum += counts[i];
        if (pixels != UINT64_MAX && sum != pixels)
            verify_row(&problems->sum, row);
        return;
    }
    const float *shares = values;
    double sum = 0;
    bool in_range = true;
    for (uint32_t i = 0; i < bins; i++) {
        double share = shares[i];
        in_range = in_range && share >= 0 && share <= 1;
        sum += feature->normalize == NORMALIZE_L1 ? share : share * share;
    }
    if (!in_range)
        verify_row(&problems->range, row);
    bool empty = sum == 0 && (pixels == 0 || pixels == UINT64_MAX);
    bool full = fabs(sum - 1) <= TOLERANCE && pixels != 0;
    if (in_range && !empty && !full)
        verify_row(&problems->sum, row);
}

static void check_row(struct problems *problems, const struct feature *feature,
                      const uint8_t *values, const struct image_row *image, bool full_size,
                      uint64_t row)
{
    const uint32_t histograms = feature_histograms(feature);
    const uint32_t bins = histograms ? feature->cell_bins / histograms : 0;
    uint64_t sums = problems->sum.count, ranges = problems->range.count;
    uint32_t border = feature_image_border(&feature->image);
    uint64_t height = image->height > border ? image->height - border : 0;
    uint64_t width = image->width > border ? image->width - border : 0;
    for (uint32_t r = 0; r < feature->grid_rows; r++) {
        for (uint32_t c = 0; c < feature->grid_columns; c++) {
            uint64_t pixels = full_size ? cell_extent(height, r, feature->grid_rows) *
                                              cell_extent(width, c, feature->grid_columns)
                                        : UINT64_MAX;
            for (uint32_t h = 0; h < histograms; h++, values += 4 * (size_t)bins)
                check_histogram(problems, feature, values, bins, pixels, row);
        }
    }
    /* A row counts once. */
    problems->sum.count = problems->sum.count > sums ? sums + 1 : sums;
    problems->range.count = problems->range.count > ranges ? ranges + 1 : ranges;
}

enum status verify_feature(struct verify *verify, const struct result_feature *stored,
                           struct error *err)
{
    char where[FEATURE_NAME_MAX + 16];
    struct feature feature;
    snprintf(where, sizeof where, "/features/%s", stored->name);
    if (!parse_feature(&feature, stored)) {
        verify_broken(verify, "%s: its attributes and its dimension contradict each other", where);
        return STATUS_OK;
    }
    struct result *result = verify->result;
    size_t row_bytes = 4 * (size_t)stored->dimension;
    uint64_t block = row_bytes < BLOCK_BYTES ? BLOCK_BYTES / row_bytes : 1;
    uint8_t *values = malloc(block * row_bytes);
    if (!values)
        return error_memory(err, block * row_bytes, "rows");
    struct problems problems = {.range = {.bad = verify->bad_images},
                                .sum = {.bad = verify->bad_images}};
    enum status status = STATUS_FAILED;
    for (uint64_t first = 0; first < stored->rows; first += block) {
        uint64_t count = stored->rows - first < block ? stored->rows - first : block;
        if (result_feature_read_raw(result, stored, first, count, values, err))
            goto out;
        for (uint64_t i = 0; i < count; i++) {
            const void *image;
            const char *path;
            if (rows_at(result->images, first + i, &image, &path, err))
                goto out;
            check_row(&problems, &feature, values + i * row_bytes, image, stored->decode_scale == 1,
                      first + i);
        }
    }
    status = STATUS_OK;
out:
    free(values);
    verify_report_rows(verify, &problems.range, where, "has values that are not from 0 to 1");
    verify_report_rows(verify, &problems.sum, where,
                       feature.normalize == NORMALIZE_NONE
                           ? "has counts that do not add up to the pixels of their cells"
                           : "has values that do not add up to 1 (0 in a cell without pixels)");
    return status;
}
