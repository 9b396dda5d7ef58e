/* verify_graph.c: numbers and order of neighbours. */
#include "base/path.h"
#include "result/feature_matrix.h"
#include "result/graph.h"
#include "result/verify_report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (4u << 20)

struct check {
    struct verify *verify;
    struct graph graph;
    char where[FEATURE_NAME_MAX + 16];
    int64_t *rows; /* of a block */
    float *squared;
};

/* The neighbours of one row: numbers that exist, no row twice in a row or its own, in order. */
static bool row_is_right(const struct check *check, uint64_t row, const int64_t *rows,
                         const float *squared)
{
    bool ended = false;
    for (uint32_t i = 0; i < check->graph.n; i++) {
        if (rows[i] == -1) {
            ended = true;
            if (!isnan(squared[i]))
                return false;
            continue;
        }
        if (ended || rows[i] < 0 || (uint64_t)rows[i] >= check->graph.rows ||
            (uint64_t)rows[i] == row || !(squared[i] >= 0))
            return false;
        if (i > 0 && (squared[i] < squared[i - 1] || rows[i] == rows[i - 1]))
            return false;
    }
    return true;
}

static enum status check_numbers(struct check *check, struct error *err)
{
    const uint32_t n = check->graph.n;
    const uint64_t step = BLOCK_BYTES / (12 * (uint64_t)n) + 1;
    struct verify_rows wrong = {.bad = check->verify->bad_images};
    check->rows = malloc(step * n * sizeof *check->rows);
    check->squared = malloc(step * n * sizeof *check->squared);
    if (!check->rows || !check->squared)
        return error_memory(err, step * n * 12, "neighbours");
    for (uint64_t first = 0; first < check->graph.rows; first += step) {
        const uint64_t left = check->graph.rows - first, count = left < step ? left : step;
        if (graph_read(&check->graph, first, count, check->rows, check->squared, err))
            return STATUS_FAILED;
        for (uint64_t i = 0; i < count; i++)
            if (!row_is_right(check, first + i, check->rows + i * n, check->squared + i * n))
                verify_row(&wrong, first + i);
    }
    verify_report_rows(check->verify, &wrong, check->where,
                       "has neighbours that do not exist or are not in order");
    return STATUS_OK;
}

static enum status check_graph(struct verify *verify, const char *feature, struct error *err)
{
    struct result *result = verify->result;
    struct check check = {.verify = verify};
    struct matrix_source matrix = {0};
    struct result_feature about;
    struct error why = ERROR_INIT;
    snprintf(check.where, sizeof check.where, "/neighbours/%s", feature);
    if (graph_open(&check.graph, result, feature, &why)) {
        verify_broken(verify, "%s", why.sentence);
        return STATUS_OK;
    }
    enum status status = check_numbers(&check, err);
    if (status == STATUS_OK && feature_matrix_open(&matrix, &about, result, feature, NULL))
        verify_broken(verify, "%s: its feature is not in the file", check.where);
    matrix_close(&matrix);
    graph_close(&check.graph);
    free(check.rows);
    free(check.squared);
    return status;
}

enum status verify_graphs(struct verify *verify, struct error *err)
{
    struct result *result = verify->result;
    struct h5_names names;
    hid_t group;
    enum status status = h5_list_own(&names, &group, result->file, "neighbours", H5O_TYPE_GROUP,
                                     "content", result->path, err);
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++)
        if (schema_name_valid(names.name[i]))
            status = check_graph(verify, names.name[i], err);
    h5_free_names(&names);
    h5_close(&group);
    return status;
}
