/* fuzz_hdf5.c: reads finished files and foreign HDF5 files completely.
 *
 * HDF5's own structures are not mutated, because the library crashes on damaged ones. The targets
 * test what clpipe does with the values of datasets and with heaps, which contain texts. */
#include "fuzz.h"

#include "matrix/hdf5_matrix.h"
#include "result/feature_matrix.h"
#include "result/h5.h"
#include "result/identity.h"
#include "result/result.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of values that are read from a dataset: contiguous data cannot exceed the file,
 * but unwritten chunks can. */
#define MOST_VALUES (1u << 12)

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

static void read_features(struct result *result, bool identity)
{
    struct error err = ERROR_INIT;
    char hex[65];
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = &result->features[i];
        fuzz_check(feature->rows == result_images(result));
        uint64_t rows = rows_that_fit(feature->rows, feature->dimension);
        float *values = malloc(MOST_VALUES * sizeof *values);
        fuzz_check(values);
        struct matrix_source matrix;
        struct result_feature about;
        if (feature_matrix_open(&matrix, &about, result, feature->name, &err) == STATUS_OK)
            matrix_read(&matrix, 0, rows, values, &err);
        matrix_close(&matrix);
        if (!feature->is_float)
            result_feature_read_counts(feature, 0, rows, (uint32_t *)(void *)values, &err);
        free(values);
        if (identity)
            result_feature_identity(result, feature, hex, &err);
    }
}

static void read_clusters(struct result *result)
{
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < result->clusters_count; i++) {
        const struct result_clusters *clusters = &result->clusters[i];
        uint64_t k = clusters->k, values = k * clusters->dimension;
        if (values > MOST_VALUES || k > MOST_VALUES || clusters->rows > MOST_VALUES)
            continue;
        float *centroids = malloc(values * sizeof *centroids + 1);
        int32_t *labels = malloc(clusters->rows * sizeof *labels + 1);
        float *distances = malloc(clusters->rows * sizeof *distances + 1);
        uint64_t *sizes = malloc(k * sizeof *sizes + 1);
        int64_t *nearest = malloc(3 * k * sizeof *nearest + 1);
        fuzz_check(centroids && labels && distances && sizes && nearest);
        void *const part[] = {centroids, labels, distances, sizes, nearest};
        for (int p = PART_CENTROIDS; p <= PART_NEAREST; p++)
            result_part_read(part[p], clusters, p, &err);
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
    struct store_run run;
    for (uint64_t i = 0; i < rows_that_fit(result_images(result), 64); i++) {
        if (result_image_at(result, i, &image, &err) == STATUS_OK)
            fuzz_check(strlen(image.path) + 1 > 0 && strlen(image.path_raw) + 1 > 0);
    }
    for (uint64_t i = 0; i < rows_that_fit(result_failures(result), 64); i++) {
        if (result_failure_at(result, i, &failure, &err) == STATUS_OK)
            fuzz_check(failure.reason < REASON_COUNT && strlen(failure.row->path) + 1 > 0 &&
                       strlen(failure.row->message) + 1 > 0);
    }
    for (uint64_t i = 0; i < rows_that_fit(result->run_count, 64); i++)
        result_run_at(result, i, &run, &err);
}

static void use_result(struct fuzz_choice *choice)
{
    struct result *result = NULL;
    struct error err = ERROR_INIT;
    if (result_open(&result, fuzz_file_name(), &err) != STATUS_OK) {
        fuzz_check(!result && err.status != STATUS_OK);
        return;
    }
    /* Each of these calls reads the whole file. */
    uint32_t whole = fuzz_choose(choice, 3);
    read_rows(result);
    read_features(result, whole == 0 || fuzz_thorough);
    read_clusters(result);
    uint64_t count;
    char hex[65];
    result_duplicates(result, &count, &err);
    if (whole == 1 || fuzz_thorough)
        result_identity(result, hex, &err);
    if (whole == 2 || fuzz_thorough)
        result_verify(result, ignore_line, NULL, &count, &err);
    result_close(&result);
}

static void use_matrix(struct fuzz_choice *choice)
{
    (void)choice;
    struct matrix_source matrix;
    struct error err = ERROR_INIT;
    char example[256];
    hdf5_is_foreign(fuzz_file_name(), example, sizeof example);
    if (hdf5_matrix_open(&matrix, fuzz_file_name(), "/m", false, &err) != STATUS_OK)
        return;
    uint64_t columns = matrix.dimension;
    fuzz_check(columns > 0);
    uint64_t rows = rows_that_fit(matrix.rows, columns);
    float *values = malloc(MOST_VALUES * sizeof *values);
    fuzz_check(values);
    if (rows > 0)
        matrix_read(&matrix, 0, rows, values, &err);
    free(values);
    matrix_close(&matrix);
}

static void use(void (*read)(struct fuzz_choice *choice), const uint8_t *data, size_t size)
{
    struct fuzz_choice choice = fuzz_choice(data, size);
    fuzz_file(data, size);
    read(&choice);
    /* No object of the library is left open. */
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

/* --- mutations -------------------------------------------------------------------------------- */

#define MOST_REGIONS 256

struct region {
    size_t at, size;
};

struct regions {
    struct region region[MOST_REGIONS];
    unsigned count;
    size_t file_size;
};

static void add_region(struct regions *regions, uint64_t at, uint64_t size)
{
    if (size > 0 && at < regions->file_size && size <= regions->file_size - at &&
        regions->count < MOST_REGIONS)
        regions->region[regions->count++] = (struct region){(size_t)at, (size_t)size};
}

/* Adds the chunks of the matrix, which HDF5 does not inflate. */
static void add_chunks(struct regions *regions, hid_t dataset)
{
    hsize_t count = 0, at[2], bytes;
    unsigned mask;
    haddr_t address;
    hid_t space = H5Dget_space(dataset);
    if (H5Dget_num_chunks(dataset, space, &count) < 0)
        count = 0;
    for (hsize_t i = 0; i < count; i++)
        if (H5Dget_chunk_info(dataset, space, i, at, &mask, &address, &bytes) >= 0)
            add_region(regions, address, bytes);
    H5Sclose(space);
}

static herr_t add_dataset(hid_t at, const char *name, const H5O_info_t *info, void *context)
{
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(at, name, H5P_DEFAULT);
    if (dataset < 0)
        return 0;
    haddr_t address = H5Dget_offset(dataset);
    if (address != HADDR_UNDEF)
        add_region(context, address, H5Dget_storage_size(dataset));
    else if (strcmp(name, "m") == 0)
        add_chunks(context, dataset);
    H5Dclose(dataset);
    return 0;
}

size_t fuzz_mutate_hdf5(uint8_t *data, size_t size, unsigned seed,
                        size_t (*change)(uint8_t *data, size_t size, size_t most))
{
    struct regions regions = {.file_size = size};
    fuzz_file(data, size);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(fuzz_file_name(), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        return size;
    H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, add_dataset, &regions);
    H5Fclose(file);
    for (size_t at = 0; at + 16 < size; at += 8) {
        uint64_t length;
        if (memcmp(data + at, "GCOL", 4) != 0)
            continue;
        /* The length field of the heap is kept. */
        memcpy(&length, data + at + 8, sizeof length);
        add_region(&regions, at + 16, length > 16 ? length - 16 : 0);
    }
    struct fuzz_choice choice = {seed};
    for (unsigned times = 1 + fuzz_choose(&choice, 3); times > 0 && regions.count > 0; times--) {
        struct region region = regions.region[fuzz_choose(&choice, regions.count)];
        /* Changes only a short range, so that single rows of large tables change. */
        size_t offset = fuzz_choose(&choice, (uint32_t)region.size), most = region.size - offset;
        most = most < 64 ? most : 64;
        change(data + region.at + offset, most, most);
    }
    return size;
}
