/* matrix_input.c: recognises INPUT by its content and opens it. */
#include "jobs/matrix_input.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/path.h"
#include "matrix/hdf5_matrix.h"
#include "matrix/npy.h"
#include "neighbours/ranked.h"
#include "result/feature_matrix.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SERIAL_DIGEST "murmur3-"

/* --- reading and digesting ------------------------------------------------------------------- */

/* Called when rows are first read, by several threads. */
static enum status open_digest(struct matrix_input *input, struct error *err)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&input->lock);
    if (!input->tree)
        status = row_tree_open(&input->tree, ROW_TREE_MURMUR3, input->rows.rows,
                               input->rows.dimension * sizeof(float), err);
    pthread_mutex_unlock(&input->lock);
    return status;
}

enum status matrix_input_reading(struct row_tree **tree, struct matrix_input *input,
                                 struct error *err)
{
    *tree = NULL;
    if (!input->digests)
        return STATUS_OK;
    const enum status status = open_digest(input, err);
    if (status == STATUS_OK)
        *tree = input->tree;
    return status;
}

static enum status digest_rows(struct matrix_input *input, uint64_t first, uint64_t count,
                               const float *rows, struct error *err)
{
    const enum status status = open_digest(input, err);
    if (status == STATUS_OK)
        row_tree_add(input->tree, first, count, rows);
    return status;
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    struct matrix_input *input = context;
    enum status status = matrix_read(&input->rows, first, count, rows, err);
    if (status == STATUS_OK && input->digests)
        status = digest_rows(input, first, count, rows, err);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++)
        if (matrix_is_blank(&input->rows, rows + i * input->rows.dimension))
            rows[i * input->rows.dimension] = NAN;
    return status;
}

enum status matrix_input_identity(struct matrix_input *input, char hex[65], struct error *err)
{
    if (input->rows.identity)
        return input->rows.identity(input->rows.context, hex, err);
    return matrix_input_digest(input, hex, err);
}

enum status matrix_input_digest(struct matrix_input *input, char hex[65], struct error *err)
{
    const struct matrix_source *source = &input->rows;
    const uint64_t step = row_tree_piece(source->dimension * sizeof(float)),
                   columns = source->dimension;
    uint64_t first, count;
    enum status status = STATUS_OK;
    input->digests = true;
    if (!input->tree)
        status = matrix_each(&input->whole, cpus_available(), NULL, NULL, NULL, err);
    if (status != STATUS_OK)
        return status;
    float *rows = malloc((size_t)(step * columns) * sizeof *rows);
    if (!rows)
        return error_memory(err, (size_t)(step * columns) * sizeof *rows, "rows");
    while (status == STATUS_OK && row_tree_missing(input->tree, &first, &count))
        status = read_rows(input, first, count, rows, err);
    free(rows);
    if (status == STATUS_OK)
        row_tree_digest(input->tree, hex);
    return status;
}

/* The digest of clusterings made before row_tree.h existed. */
enum status matrix_input_digest_as(struct matrix_input *input, const char *content, char hex[65],
                                   struct error *err)
{
    const struct matrix_source *source = &input->rows;
    const uint64_t step = matrix_rows_at_once(source), columns = source->dimension;
    if (input->rows.identity || strncmp(content, SERIAL_DIGEST, strlen(SERIAL_DIGEST)) != 0)
        return matrix_input_identity(input, hex, err);
    float *rows = malloc((size_t)(step * columns) * sizeof *rows);
    if (!rows)
        return error_memory(err, (size_t)(step * columns) * sizeof *rows, "rows");
    struct murmur3 whole;
    enum status status = STATUS_OK;
    murmur3_init(&whole);
    for (uint64_t at = 0; at < source->rows && status == STATUS_OK; at += step) {
        const uint64_t left = source->rows - at, take = left < step ? left : step;
        status = matrix_read(&input->rows, at, take, rows, err);
        if (status == STATUS_OK)
            murmur3_update(&whole, rows, (size_t)(take * columns) * sizeof *rows);
    }
    free(rows);
    if (status != STATUS_OK)
        return status;
    uint64_t shape[2] = {source->rows, columns}, digest[2];
    murmur3_update(&whole, shape, sizeof shape);
    murmur3_final(&whole, digest);
    snprintf(hex, 65, SERIAL_DIGEST "%016llx%016llx", (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
    return STATUS_OK;
}

/* --- kinds of input -------------------------------------------------------------------------- */

/* The last component of a path, reduced to characters valid in the name of a dataset, since it
 * becomes an attribute. */
static void name_after(struct matrix_input *input, const char *text)
{
    const char *slash = strrchr(text, '/');
    const char *last = slash && slash[1] ? slash + 1 : text;
    snprintf(input->about.name, sizeof input->about.name, "%s", last);
    for (char *at = input->about.name; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 127)
            *at = '?';
}

static enum status open_clpipe(struct matrix_input *input, const char *feature, const char *usual,
                               struct error *err)
{
    char example[200];
    if (hdf5_is_foreign(input->path, example, sizeof example)) {
        const char *shown = PATH_TEXT(input->path);
        return error_set(err, STATUS_USAGE,
                         "%s is an HDF5 file, but not a clpipe file: name the dataset, as in "
                         "%s:%s",
                         shown, shown, example[0] ? example : "/dataset");
    }
    enum status status = result_open(&input->result, input->path, err);
    if (status != STATUS_OK)
        return status;
    return feature_matrix_open(&input->rows, &input->about, input->result,
                               feature ? feature : usual, err);
}

static enum status refuse_feature(struct error *err, const char *why)
{
    error_set(err, STATUS_USAGE, "%s; a feature can be chosen only in a clpipe file", why);
    error_remedy(err, REMEDY_LEAVE_OUT_FEATURE);
    return STATUS_USAGE;
}

static enum status open_dataset(struct matrix_input *input, const char *dataset,
                                const char *feature, struct error *err)
{
    char example[200];
    if (strncmp(dataset, "/features/", 10) == 0 &&
        !hdf5_is_foreign(input->path, example, sizeof example) &&
        result_open(&input->result, input->path, NULL) == STATUS_OK) {
        if (feature && strcmp(feature, dataset + 10) != 0)
            return refuse_feature(err, "INPUT already names another feature");
        return feature_matrix_open(&input->rows, &input->about, input->result, dataset + 10, err);
    }
    if (feature)
        return refuse_feature(err, "INPUT already names a dataset");
    name_after(input, dataset);
    return hdf5_matrix_open(&input->rows, input->path, dataset, false, err);
}

static enum status open_npy(struct matrix_input *input, const char *feature, struct error *err)
{
    if (feature)
        return refuse_feature(err, "a .npy file holds one matrix");
    name_after(input, input->path);
    return npy_open(&input->rows, input->path, false, err);
}

enum container { HDF5, NPY, NEITHER };

/* By its first bytes, or else by its extension: an HDF5 file may begin with a user block, and a damaged
 * one is reported when it is opened. */
static enum container recognise(const char *path)
{
    char start[8] = {0};
    const char *dot = strrchr(path, '.');
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t size = fd >= 0 ? read(fd, start, sizeof start) : 0;
    if (fd >= 0)
        close(fd);
    if (size == 8 && memcmp(start, "\211HDF\r\n\032\n", 8) == 0)
        return HDF5;
    if (size >= 6 && memcmp(start, "\223NUMPY", 6) == 0)
        return NPY;
    if (dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0))
        return HDF5;
    return dot && strcmp(dot, ".npy") == 0 ? NPY : NEITHER;
}

/* Where to split FILE.h5:/dataset: the last ":/" after the name of an existing file; 0: nowhere. */
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

bool input_state_of(struct input_state *out, const char *path)
{
    struct stat st;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct input_state){.at_ns = clock_file_time(&now)};
    if (stat(path, &st) != 0)
        return false;
    out->bytes = (uint64_t)st.st_size;
    out->mtime_ns = clock_file_time(&st.st_mtim);
    return true;
}

/* --- opening --------------------------------------------------------------------------------- */

static enum status open_parts(struct matrix_input *input, const char *text, const char *feature,
                              const char *usual, struct error *err)
{
    struct stat st;
    const char *shown = PATH_TEXT(text);
    bool found = stat(text, &st) == 0;
    int trouble = errno;
    size_t split = found ? 0 : split_at(text);
    if (!found && !split && (trouble == ENOENT || trouble == ENOTDIR))
        return error_set(err, STATUS_USAGE, "there is no file %s", shown);
    if (!found && !split)
        return error_errno(err, STATUS_FAILED, trouble, "stat", "cannot read %s", shown);
    if (found && !S_ISREG(st.st_mode))
        return error_set(err, STATUS_FAILED,
                         S_ISDIR(st.st_mode)
                             ? "%s is a directory: compute its features first, with clpipe ingest"
                             : "%s is not a regular file",
                         shown);
    input->path = split ? strndup(text, split) : strdup(text);
    if (!input->path)
        return error_memory(err, strlen(text) + 1, "a file name");
    input_state_of(&input->opened, input->path);
    if (split)
        return open_dataset(input, text + split + 1, feature, err);
    switch (recognise(text)) {
    case HDF5:
        return open_clpipe(input, feature, usual, err);
    case NPY:
        return open_npy(input, feature, err);
    default:
        return error_set(err, STATUS_FAILED,
                         "%s is neither HDF5 nor .npy: INPUT must be a clpipe file, "
                         "FILE.h5:/dataset or FILE.npy",
                         shown);
    }
}

enum status matrix_input_open(struct matrix_input *out, const char *input, const char *feature,
                              const char *usual, struct error *err)
{
    *out = (struct matrix_input){.source = {.read = read_rows, .context = out}};
    pthread_mutex_init(&out->lock, NULL);
    enum status status = open_parts(out, input, feature, usual, err);
    if (status != STATUS_OK)
        goto out;
    out->source.rows = out->rows.rows;
    out->source.dimension = out->rows.dimension;
    out->source.concurrent = out->rows.concurrent;
    out->whole = out->source;
    out->digests = !out->rows.identity;
    if (out->rows.rows == 0 || out->rows.dimension == 0)
        status = error_set(err, STATUS_FAILED, "%s has no %s", PATH_TEXT(input),
                           out->rows.rows == 0 ? "rows" : "columns");
out:
    if (status != STATUS_OK)
        matrix_input_close(out);
    return status;
}

enum status matrix_input_vector(float **values, uint64_t *count, const char *text,
                                struct error *err)
{
    struct matrix_source column = {0};
    struct stat st;
    enum status status = STATUS_FAILED;
    *values = NULL;
    const bool found = stat(text, &st) == 0;
    const bool absent = !found && errno == ENOENT;
    const size_t split = found ? 0 : split_at(text);
    if (split) {
        char *path = strndup(text, split);
        status = path ? hdf5_matrix_open(&column, path, text + split + 1, true, err)
                      : error_memory(err, split + 1, "a file name");
        free(path);
    } else if (absent) {
        status = error_set(err, STATUS_USAGE, "there is no file %s", PATH_TEXT(text));
    } else {
        status = npy_open(&column, text, true, err);
    }
    if (status != STATUS_OK)
        return status;
    *count = column.rows * column.dimension;
    status = matrix_column(values, &column, text, err);
    matrix_close(&column);
    return status;
}

/* Fails if rows are left out because they have no values, like those of images without a row in an
 * imported feature. */
static enum status refuse_missing(const struct matrix_input *input, struct error *err)
{
    const uint32_t dimension = input->rows.dimension;
    struct result_image image;
    uint64_t count = 0, first = 0;
    float *row = malloc(dimension * sizeof *row);
    enum status status = row ? STATUS_OK : error_memory(err, dimension * sizeof *row, "a row");
    for (uint64_t i = input->whole.rows; i-- > 0 && status == STATUS_OK;) {
        if (comparable_find(&input->comparable, i) < input->comparable.source.rows)
            continue;
        bool missing = false;
        status = matrix_read(&input->rows, i, 1, row, err);
        for (uint32_t j = 0; j < dimension && status == STATUS_OK; j++)
            missing |= isnan(row[j]) != 0;
        count += missing;
        first = missing ? i : first;
    }
    free(row);
    if (status != STATUS_OK || count == 0 ||
        (status = result_image_at(input->result, first, &image, err)) != STATUS_OK)
        return status;
    return error_set(err, STATUS_FAILED,
                     "%s %s no values (NaN) in %s; the first is %s: import rows for all images",
                     NUMBER_OF(count, "image"), count == 1 ? "has" : "have", input->about.name,
                     PATH_TEXT_IN(160, image.path_raw));
}

enum status matrix_input_compare(struct matrix_input *input, enum cluster_metric metric,
                                 bool missing, const struct clustering_machine *machine,
                                 struct error *err)
{
    struct comparable *comparable = &input->comparable;
    comparable_close(comparable);
    input->source = input->whole;
    if (!input->result)
        return STATUS_OK;
    const enum status status = comparable_open(comparable, &input->whole, metric, machine->threads,
                                               machine->watch.stop, err);
    if (status != STATUS_OK || comparable->source.rows == input->whole.rows) {
        comparable_close(comparable);
        return status;
    }
    if (!missing && refuse_missing(input, err) != STATUS_OK)
        return STATUS_FAILED;
    if (comparable->source.rows == 0)
        return error_set(err, STATUS_FAILED, "no image has values of %s that can be compared",
                         input->about.name);
    input->source = comparable->source;
    comparable_tell(comparable, input->about.name);
    return STATUS_OK;
}

enum status matrix_input_rank(struct matrix_input *input, const struct clustering_machine *machine,
                              struct error *err)
{
    const struct matrix_source rows = input->rows;
    const enum status status = ranked_open(&input->rows, &rows, input->result, &input->about,
                                           machine->threads, machine->watch.stop, err);
    input->source.dimension = input->whole.dimension = input->rows.dimension;
    input->source.piece = input->whole.piece = input->rows.piece;
    return status;
}

enum cluster_metric matrix_input_usual_metric(const struct result_feature *about)
{
    return strcmp(about->normalize, "l1") == 0 ? METRIC_HELLINGER : METRIC_EUCLIDEAN;
}

void matrix_input_close(struct matrix_input *input)
{
    if (!input->source.read)
        return; /* it was never opened */
    matrix_close(&input->rows);
    comparable_close(&input->comparable);
    result_close(&input->result);
    row_tree_close(&input->tree);
    pthread_mutex_destroy(&input->lock);
    free(input->path);
    input->path = NULL;
    input->source.read = NULL;
}
