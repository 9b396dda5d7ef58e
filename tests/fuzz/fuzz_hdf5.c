/* fuzz_hdf5.c: finished files, and foreign HDF5 files, read to their end. */
#include "fuzz.h"

#include "cli/hdf5_matrix.h"
#include "store/h5.h"
#include "store/result.h"

#include <stdlib.h>
#include <string.h>

/* Values that are read of a dataset: contiguous data cannot be larger than the file, but chunks
 * that nobody wrote can. */
#define MOST_VALUES (1u << 16)

static void ignore_line(const char *line, void *context)
{
    (void)context;
    fuzz_check(line[0]);
}

static uint64_t rows_that_fit(uint64_t rows, uint64_t columns)
{
    uint64_t most = columns ? MOST_VALUES / columns : 0;
    return rows < most ? rows : most;
}

static void read_features(struct result *result)
{
    struct error err = ERROR_INIT;
    char hex[65];
    for (unsigned i = 0; i < result_feature_count(result); i++) {
        const struct result_feature *feature = result_feature_at(result, i);
        fuzz_check(feature->rows == result_images(result));
        uint64_t rows = rows_that_fit(feature->rows, feature->dimension);
        float *values = malloc(MOST_VALUES * sizeof *values);
        fuzz_check(values);
        result_feature_read(result, feature, 0, rows, values, &err);
        if (!feature->is_float)
            result_feature_read_counts(result, feature, 0, rows, (uint32_t *)(void *)values, &err);
        free(values);
        result_feature_identity(result, feature, hex, &err);
    }
}

static void read_clusters(struct result *result)
{
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < result_clusters_count(result); i++) {
        const struct result_clusters *clusters = result_clusters_at(result, i);
        uint64_t k = clusters->k, values = k * clusters->dimension;
        if (values > MOST_VALUES || k > MOST_VALUES || clusters->rows > MOST_VALUES)
            continue;
        float *centroids = malloc(values * sizeof *centroids + 1);
        int32_t *labels = malloc(clusters->rows * sizeof *labels + 1);
        float *distances = malloc(clusters->rows * sizeof *distances + 1);
        uint64_t *sizes = malloc(k * sizeof *sizes + 1);
        int64_t *nearest = malloc(3 * k * sizeof *nearest + 1);
        fuzz_check(centroids && labels && distances && sizes && nearest);
        result_clusters_read(result, clusters, centroids, labels, distances, sizes, nearest, &err);
        free(centroids);
        free(labels);
        free(distances);
        free(sizes);
        free(nearest);
    }
}

static void read_rows(struct result *result)
{
    struct error err = ERROR_INIT;
    struct result_image image;
    struct result_failure failure;
    struct result_run run;
    for (uint64_t i = 0; i < rows_that_fit(result_images(result), 64); i++) {
        if (result_image_at(result, i, &image, &err) == STATUS_OK)
            fuzz_check(strlen(image.path) + 1 > 0 && strlen(image.path_raw) + 1 > 0);
    }
    for (uint64_t i = 0; i < rows_that_fit(result_failures(result), 64); i++) {
        if (result_failure_at(result, i, &failure, &err) == STATUS_OK)
            fuzz_check(failure.reason < REASON_COUNT && strlen(failure.path) + 1 > 0 &&
                       strlen(failure.message) + 1 > 0);
    }
    for (uint64_t i = 0; i < rows_that_fit(result_run_count(result), 64); i++)
        result_run_at(result, i, &run, &err);
}

static void use_result(void)
{
    struct result *result = NULL;
    struct error err = ERROR_INIT;
    if (result_open(&result, fuzz_file_name(), &err) != STATUS_OK) {
        fuzz_check(!result && err.status != STATUS_OK);
        return;
    }
    read_rows(result);
    read_features(result);
    read_clusters(result);
    uint64_t count;
    char hex[65];
    result_duplicates(result, &count, &err);
    result_identity(result, hex, &err);
    result_verify(result, ignore_line, NULL, &count, &err);
    result_close(&result);
}

static void use_matrix(void)
{
    struct hdf5_matrix *matrix = NULL;
    struct error err = ERROR_INIT;
    char example[256];
    hdf5_is_hdf5(fuzz_file_name());
    hdf5_is_foreign(fuzz_file_name(), example, sizeof example);
    if (hdf5_matrix_open(&matrix, fuzz_file_name(), "/m", &err) != STATUS_OK)
        return;
    uint64_t columns = hdf5_matrix_dimension(matrix);
    fuzz_check(columns > 0);
    uint64_t rows = rows_that_fit(hdf5_matrix_rows(matrix), columns);
    float *values = malloc(MOST_VALUES * sizeof *values);
    fuzz_check(values);
    if (rows > 0)
        hdf5_matrix_read(matrix, 0, rows, values, &err);
    free(values);
    hdf5_matrix_close(&matrix);
}

static void use(void (*read)(void), const uint8_t *data, size_t size)
{
    fuzz_file(data, size);
    read();
    /* Nothing of the library's is left open. */
    fuzz_check(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
}

void fuzz_result(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    use(use_result, data, size);
}

void fuzz_matrix(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    (void)target;
    use(use_matrix, data, size);
}
