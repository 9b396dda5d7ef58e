/* matrix_input.c: where the rows to cluster come from. */
#include "matrix/matrix_input.h"
#include "base/path.h"
#include "file/joined.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum container { CONTAINER_OTHER, CONTAINER_HDF5, CONTAINER_NPY };

/* What a file is by its first bytes. An HDF5 file may begin with a user block, so its name counts
 * as well; opening it tells. */
static enum container sniff(const char *path)
{
    unsigned char start[8] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        ssize_t size = read(fd, start, sizeof start);
        close(fd);
        if (size == 8 && memcmp(start, "\211HDF\r\n\032\n", 8) == 0)
            return CONTAINER_HDF5;
        if (size >= 6 && memcmp(start, "\223NUMPY", 6) == 0)
            return CONTAINER_NPY;
    }
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".npy") == 0)
        return CONTAINER_NPY;
    if (dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0))
        return CONTAINER_HDF5;
    return CONTAINER_OTHER;
}

enum status choose_feature(const struct result_feature **out, struct result *result,
                           const char *name, struct error *err)
{
    char shown[256], names[512] = "";
    size_t used = 0;
    unsigned count = result_feature_count(result);
    path_for_message(shown, sizeof shown, result_path(result));
    if (name && count > 0 && joined_is_meant(name))
        return joined_open(out, result, name, err);
    *out = name ? result_feature_find(result, name) : NULL;
    if (!name && count == 1)
        *out = result_feature_at(result, 0);
    if (*out)
        return STATUS_OK;
    for (unsigned i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 result_feature_at(result, i)->name);
    if (count == 0)
        return error_set(err, STATUS_FAILED, "%s holds no features", shown);
    if (name)
        return error_set(err, STATUS_USAGE, "%s holds no feature '%s': there is %s", shown, name,
                         names);
    return error_set(err, STATUS_USAGE, "%s holds several features: choose with --feature: %s",
                     shown, names);
}

enum status choose_clusters(const struct result_clusters **out, const struct result *result,
                            const char *name, struct error *err)
{
    char shown[256], names[512] = "";
    size_t used = 0;
    unsigned count = result_clusters_count(result);
    path_for_message(shown, sizeof shown, result_path(result));
    *out = name ? result_clusters_find(result, name) : NULL;
    if (!name && count == 1)
        *out = result_clusters_at(result, 0);
    if (*out)
        return STATUS_OK;
    for (unsigned i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 result_clusters_at(result, i)->name);
    if (count == 0)
        return error_set(err, STATUS_FAILED,
                         "%s holds no clusters: make them with clpipe cluster %s -k K", shown,
                         shown);
    if (name)
        return error_set(err, STATUS_USAGE, "%s holds no /clusters/%s: there is %s", shown, name,
                         names);
    return error_set(err, STATUS_USAGE, "%s holds several clusterings: choose with --name: %s",
                     shown, names);
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    struct matrix_input *input = context;
    enum status status =
        input->result ? result_feature_read(input->result, input->feature, first, count, rows, err)
        : input->npy  ? npy_read(input->npy, first, count, rows, err)
                      : hdf5_matrix_read(input->hdf5, first, count, rows, err);
    if (status == STATUS_OK && input->digests && first <= input->digested &&
        first + count > input->digested) {
        uint64_t skip = input->digested - first;
        size_t row = input->source.dimension * sizeof *rows;
        murmur3_update(&input->digest, rows + skip * input->source.dimension,
                       (size_t)(count - skip) * row);
        input->digested = first + count;
    }
    return status;
}

static void name_after(struct matrix_input *input, const char *text)
{
    const char *slash = strrchr(text, '/');
    const char *last = slash && slash[1] ? slash + 1 : text;
    /* Only what a dataset's name may hold; this is an attribute, for people. */
    snprintf(input->name, sizeof input->name, "%s", last);
    for (char *at = input->name; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 127)
            *at = '?';
}

static enum status use_feature(struct matrix_input *input, const char *feature, struct error *err)
{
    enum status status = choose_feature(&input->feature, input->result, feature, err);
    if (status != STATUS_OK)
        return status;
    snprintf(input->name, sizeof input->name, "%s", input->feature->name);
    input->source.rows = input->feature->rows;
    input->source.dimension = input->feature->dimension;
    return STATUS_OK;
}

static enum status open_clpipe(struct matrix_input *input, const char *feature, struct error *err)
{
    char example[200], shown[256];
    if (hdf5_is_foreign(input->path, example, sizeof example)) {
        path_for_message(shown, sizeof shown, input->path);
        return error_set(err, STATUS_USAGE,
                         "%s is an HDF5 file but not one of clpipe's: name the dataset, as in "
                         "%s:%s",
                         shown, shown, example[0] ? example : "/dataset");
    }
    enum status status = result_open(&input->result, input->path, err);
    return status == STATUS_OK ? use_feature(input, feature, err) : status;
}

static enum status open_dataset(struct matrix_input *input, const char *dataset,
                                const char *feature, struct error *err)
{
    char example[200];
    if (strncmp(dataset, "/features/", 10) == 0 &&
        !hdf5_is_foreign(input->path, example, sizeof example) &&
        result_open(&input->result, input->path, NULL) == STATUS_OK) {
        if (feature && strcmp(feature, dataset + 10) != 0)
            return error_set(err, STATUS_USAGE, "INPUT names %s and --feature %s: give one",
                             dataset, feature);
        return use_feature(input, dataset + 10, err);
    }
    if (feature)
        return error_set(err, STATUS_USAGE,
                         "--feature chooses in a clpipe file; INPUT names a dataset already");
    enum status status = hdf5_matrix_open(&input->hdf5, input->path, dataset, err);
    if (status != STATUS_OK)
        return status;
    name_after(input, dataset);
    input->source.rows = hdf5_matrix_rows(input->hdf5);
    input->source.dimension = hdf5_matrix_dimension(input->hdf5);
    return STATUS_OK;
}

static enum status open_npy(struct matrix_input *input, const char *feature, struct error *err)
{
    if (feature)
        return error_set(err, STATUS_USAGE,
                         "--feature chooses in a clpipe file; a .npy holds one matrix");
    enum status status = npy_open(&input->npy, input->path, err);
    if (status != STATUS_OK)
        return status;
    name_after(input, input->path);
    input->source.rows = npy_rows(input->npy);
    input->source.dimension = npy_dimension(input->npy);
    return STATUS_OK;
}

/* Where FILE.h5:/dataset is to be split: the last ":/" before which stands a file; 0: nowhere. */
static size_t split_at(const char *text)
{
    size_t split = 0;
    for (const char *at = strstr(text, ":/"); at; at = strstr(at + 1, ":/")) {
        struct stat st;
        char *file = strndup(text, (size_t)(at - text));
        if (file && at > text && stat(file, &st) == 0 && S_ISREG(st.st_mode))
            split = (size_t)(at - text);
        free(file);
    }
    return split;
}

static enum status open_parts(struct matrix_input *input, const char *text, const char *feature,
                              const char *usual, struct error *err)
{
    struct stat st;
    char shown[256];
    path_for_message(shown, sizeof shown, text);
    bool found = stat(text, &st) == 0;
    int trouble = errno;
    size_t split = found ? 0 : split_at(text);
    if (!found && !split && trouble == ENOENT)
        return error_set(err, STATUS_USAGE, "there is no file %s", shown);
    if (!found && !split)
        return error_errno(err, STATUS_FAILED, trouble, "stat", "cannot read %s", shown);
    if (found && !S_ISREG(st.st_mode))
        return error_set(err, STATUS_FAILED,
                         S_ISDIR(st.st_mode)
                             ? "%s is a directory: make features of it first, with clpipe ingest"
                             : "%s is not a regular file",
                         shown);
    input->path = split ? strndup(text, split) : strdup(text);
    if (!input->path)
        return error_memory(err, strlen(text) + 1, "a file name");
    if (split)
        return open_dataset(input, text + split + 1, feature, err);
    switch (sniff(text)) {
    case CONTAINER_HDF5:
        return open_clpipe(input, feature ? feature : usual, err);
    case CONTAINER_NPY:
        return open_npy(input, feature, err);
    case CONTAINER_OTHER:
        break;
    }
    return error_set(err, STATUS_FAILED,
                     "%s is neither HDF5 nor .npy: INPUT is a clpipe file, FILE.h5:/dataset or "
                     "FILE.npy",
                     shown);
}

enum status matrix_input_open(struct matrix_input *out, const char *input, const char *feature,
                              const char *usual, struct error *err)
{
    memset(out, 0, sizeof *out);
    out->source.read = read_rows;
    out->source.context = out;
    murmur3_init(&out->digest);
    enum status status = open_parts(out, input, feature, usual, err);
    out->digests = !out->result;
    char shown[256];
    if (status == STATUS_OK && (out->source.rows == 0 || out->source.dimension == 0))
        status = error_set(err, STATUS_FAILED, "%s has no %s: there is nothing to cluster",
                           path_for_message(shown, sizeof shown, input),
                           out->source.rows == 0 ? "rows" : "columns");
    if (status != STATUS_OK)
        matrix_input_close(out);
    return status;
}

/* Of a matrix of one column. */
static enum status read_vector(float **values, uint64_t *count, const struct matrix_input *input,
                               const char *text, struct error *err)
{
    char shown[256];
    const uint64_t rows = input->npy ? npy_rows(input->npy) : hdf5_matrix_rows(input->hdf5);
    const uint32_t columns =
        input->npy ? npy_dimension(input->npy) : hdf5_matrix_dimension(input->hdf5);
    if (columns != 1)
        return error_set(err, STATUS_FAILED, "%s has %u columns; wanted is one",
                         path_for_message(shown, sizeof shown, text), columns);
    *count = rows;
    *values = malloc((size_t)rows * sizeof **values + 1);
    if (!*values)
        return error_memory(err, (size_t)rows * sizeof **values, "a column of numbers");
    if (rows == 0)
        return STATUS_OK;
    return input->npy ? npy_read(input->npy, 0, rows, *values, err)
                      : hdf5_matrix_read(input->hdf5, 0, rows, *values, err);
}

enum status matrix_input_vector(float **values, uint64_t *count, const char *text,
                                struct error *err)
{
    struct matrix_input input = {0};
    struct stat st;
    char shown[256];
    const size_t split = stat(text, &st) == 0 ? 0 : split_at(text);
    *values = NULL;
    enum status status = STATUS_OK;
    if (split) {
        char *path = strndup(text, split);
        status = path ? hdf5_matrix_open_vector(&input.hdf5, path, text + split + 1, err)
                      : error_memory(err, split + 1, "a file name");
        free(path);
    } else if (stat(text, &st) != 0 && errno == ENOENT) {
        status = error_set(err, STATUS_USAGE, "there is no file %s",
                           path_for_message(shown, sizeof shown, text));
    } else {
        status = npy_open_vector(&input.npy, text, err);
    }
    if (status == STATUS_OK)
        status = read_vector(values, count, &input, text, err);
    matrix_input_close(&input);
    return status;
}

/* Rows that fit a buffer of a few megabytes, at least one. */
static uint64_t rows_at_once(const struct matrix_input *input)
{
    uint64_t rows = ((uint64_t)4 << 20) / (input->source.dimension * sizeof(float) + 1);
    if (rows > input->source.rows)
        rows = input->source.rows;
    return rows ? rows : 1;
}

enum status matrix_input_identity(struct matrix_input *input, char hex[65], struct error *err)
{
    if (input->result)
        return result_feature_identity(input->result, input->feature, hex, err);
    return matrix_input_digest(input, hex, err);
}

enum status matrix_input_digest(struct matrix_input *input, char hex[65], struct error *err)
{
    uint64_t step = rows_at_once(input), columns = input->source.dimension;
    float *rows = malloc((size_t)(step * columns) * sizeof *rows);
    enum status status = STATUS_OK;
    input->digests = true;
    if (!rows)
        status = error_memory(err, (size_t)(step * columns) * sizeof *rows, "rows");
    while (status == STATUS_OK && input->digested < input->source.rows) {
        uint64_t left = input->source.rows - input->digested;
        status = read_rows(input, input->digested, left < step ? left : step, rows, err);
    }
    free(rows);
    if (status != STATUS_OK)
        return status;
    uint64_t shape[2] = {input->source.rows, columns}, digest[2];
    struct murmur3 whole = input->digest;
    murmur3_update(&whole, shape, sizeof shape);
    murmur3_final(&whole, digest);
    snprintf(hex, 65, "murmur3-%016llx%016llx", (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
    return STATUS_OK;
}

/* True if `row` equals one of the `count` rows in `kept`. */
static bool is_among(const float *kept, uint32_t count, const float *row, size_t columns)
{
    for (uint32_t i = 0; i < count; i++)
        if (memcmp(kept + i * columns, row, columns * sizeof *row) == 0)
            return true;
    return false;
}

enum status matrix_input_distinct(struct matrix_input *input, uint32_t *distinct, uint32_t most,
                                  bool roots, struct error *err)
{
    size_t columns = input->source.dimension;
    uint64_t step = rows_at_once(input);
    float *rows = malloc((size_t)step * columns * sizeof *rows);
    float *kept = calloc(most, columns * sizeof *kept);
    enum status status = STATUS_OK;
    uint32_t count = 0;
    if (!rows || !kept)
        status = error_memory(err, ((size_t)step + most) * columns * sizeof *rows, "rows");
    for (uint64_t at = 0; status == STATUS_OK && at < input->source.rows && count < most;) {
        uint64_t left = input->source.rows - at, take = left < step ? left : step;
        status = read_rows(input, at, take, rows, err);
        for (uint64_t i = 0; status == STATUS_OK && i < take && count < most; i++) {
            float *row = rows + (size_t)i * columns;
            for (size_t j = 0; roots && j < columns; j++)
                row[j] = sqrtf(row[j]);
            if (!is_among(kept, count, row, columns))
                memcpy(kept + count++ * columns, row, columns * sizeof *row);
        }
        at += take;
    }
    free(rows);
    free(kept);
    *distinct = count;
    return status;
}

void matrix_input_close(struct matrix_input *input)
{
    result_close(&input->result);
    npy_close(&input->npy);
    hdf5_matrix_close(&input->hdf5);
    free(input->path);
    input->path = NULL;
}

static bool same_path(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

enum status choose_output(const char **output, const char **base, struct result **holder,
                          const struct matrix_input *input, const char *wanted, struct error *err)
{
    struct stat st;
    char shown[256];
    *holder = NULL;
    *base = NULL;
    if (!wanted || (input->result && same_path(wanted, input->path))) {
        *output = *base = input->path;
        return STATUS_OK;
    }
    *output = wanted;
    path_for_message(shown, sizeof shown, wanted);
    if (stat(wanted, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK; /* what is wrong with it, output_open says */
    enum status status = result_open(holder, wanted, err);
    if (status != STATUS_OK)
        return error_set(err, STATUS_FAILED,
                         "%s exists and is not a clpipe file, so it is not overwritten; name "
                         "another file",
                         shown);
    if (result_images(*holder) > 0 || result_feature_count(*holder) > 0)
        return error_set(err, STATUS_USAGE,
                         "%s holds images of its own, so it is not overwritten; name another file",
                         shown);
    *base = wanted;
    return STATUS_OK;
}
