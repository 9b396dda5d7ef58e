/* npy.c: NumPy's array file, formats 1.0 to 3.0, read as float32 and written as a header.
 *
 * The header is a Python dictionary in text form. It is untrusted: a small grammar accepts exactly
 * what NumPy writes, and every size is checked against that of the file before anything is
 * allocated. */
#include "matrix/npy.h"
#include "base/output.h"
#include "base/path.h"
#include "matrix/raw.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAX   (1u << 20)
#define COLUMN_BYTES (1u << 20)

struct npy {
    char path[512]; /* for messages */
    char *name;
    int fd;
    struct raw values; /* fortran: a row is a column */
    uint64_t rows;
    uint32_t dimension;
    bool fortran;  /* column by column */
    bool vector;   /* one axis is accepted */
    float *column; /* fortran: COLUMN_BYTES */
};

/* Little-endian on any host. */
static uint64_t load(const unsigned char *in, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return value;
}

/* --- the header ------------------------------------------------------------------------------ */

static void skip_space(const char **at)
{
    while (**at && isspace((unsigned char)**at))
        ++*at;
}

static bool take(const char **at, char c)
{
    skip_space(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool take_word(const char **at, const char *word)
{
    skip_space(at);
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0 || isalnum((unsigned char)(*at)[length]))
        return false;
    *at += length;
    return true;
}

/* A quoted string without escapes, shorter than `size`. */
static bool take_string(const char **at, char *out, size_t size)
{
    skip_space(at);
    char quote = **at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *start = *at + 1, *end = strchr(start, quote);
    if (!end || (size_t)(end - start) >= size || memchr(start, '\\', (size_t)(end - start)))
        return false;
    memcpy(out, start, (size_t)(end - start));
    out[end - start] = 0;
    *at = end + 1;
    return true;
}

static bool take_number(const char **at, uint64_t *out)
{
    skip_space(at);
    if (!isdigit((unsigned char)**at))
        return false;
    uint64_t value = 0;
    for (; isdigit((unsigned char)**at); ++*at)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**at - '0'), &value))
            return false;
    if (**at == 'L') /* Python 2 */
        ++*at;
    *out = value;
    return true;
}

struct header {
    uint64_t start; /* of the values */
    char descr[32];
    bool structured, fortran;
    unsigned axes;
    uint64_t shape[2];
};

static bool take_shape(const char **at, struct header *header)
{
    if (!take(at, '('))
        return false;
    while (!take(at, ')')) {
        uint64_t value;
        if (!take_number(at, &value))
            return false;
        if (header->axes < 2)
            header->shape[header->axes] = value;
        header->axes++;
        if (!take(at, ',')) {
            skip_space(at);
            if (**at != ')')
                return false;
        }
    }
    return true;
}

static bool parse_header(struct header *header, const char *text)
{
    const char *at = text;
    unsigned seen = 0;
    if (!take(&at, '{'))
        return false;
    while (!take(&at, '}')) {
        char key[32];
        if (!take_string(&at, key, sizeof key) || !take(&at, ':'))
            return false;
        if (strcmp(key, "descr") == 0 && !(seen & 1)) {
            seen |= 1;
            skip_space(&at);
            if (*at == '[' || *at == '(') {
                header->structured = true;
                return true; /* refused for its type: the rest does not matter */
            }
            if (!take_string(&at, header->descr, sizeof header->descr))
                return false;
        } else if (strcmp(key, "fortran_order") == 0 && !(seen & 2)) {
            seen |= 2;
            header->fortran = take_word(&at, "True");
            if (!header->fortran && !take_word(&at, "False"))
                return false;
        } else if (strcmp(key, "shape") == 0 && !(seen & 4)) {
            seen |= 4;
            if (!take_shape(&at, header))
                return false;
        } else {
            return false;
        }
        if (!take(&at, ',')) {
            skip_space(&at);
            if (*at != '}')
                return false;
        }
    }
    skip_space(&at);
    return *at == 0 && seen == 7;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Checks and takes over the header; `size` is that of the file. */
static enum status adopt(struct npy *npy, struct header *header, uint64_t size, struct error *err)
{
    if (npy->vector && header->axes == 1) {
        header->axes = 2;
        header->shape[1] = 1;
    }
    if (header->structured)
        return error_set(err, STATUS_FAILED,
                         "%s holds records with named fields; save one plain two-dimensional array",
                         npy->path);
    const char *descr = header->descr;
    char *end = NULL;
    unsigned long item =
        strlen(descr) >= 3 && isdigit((unsigned char)descr[2]) ? strtoul(descr + 2, &end, 10) : 0;
    const struct value_format format = {descr[1], (unsigned char)item, descr[0] == '>' && item > 1};
    if (!item || *end || item > UINT8_MAX || !values_known(format) || !strchr("<>|=", descr[0]))
        return error_set(err, STATUS_FAILED,
                         "%s holds values of type '%s'; save them as float16, float32, float64 or "
                         "integers: numpy.save(name, array.astype('<f4'))",
                         npy->path, descr);
    if (header->axes != 2)
        return error_set(err, STATUS_FAILED,
                         "%s has %u dimension%s; expected 2, with a row for each vector", npy->path,
                         header->axes, header->axes == 1 ? "" : "s");
    uint64_t values, bytes;
    if (header->shape[1] > UINT32_MAX ||
        __builtin_mul_overflow(header->shape[0], header->shape[1], &values) ||
        __builtin_mul_overflow(values, (uint64_t)item, &bytes) || bytes > INT64_MAX - header->start)
        return error_set(err, STATUS_FAILED, "%s claims an impossible shape of %llu x %llu",
                         npy->path, (unsigned long long)header->shape[0],
                         (unsigned long long)header->shape[1]);
    if (bytes > size - header->start)
        return error_set(err, STATUS_FAILED,
                         "%s is truncated: its header promises %llu x %llu values (%llu bytes), "
                         "but it has %llu bytes",
                         npy->path, (unsigned long long)header->shape[0],
                         (unsigned long long)header->shape[1], (unsigned long long)bytes,
                         (unsigned long long)(size - header->start));
    npy->rows = header->shape[0];
    npy->dimension = (uint32_t)header->shape[1];
    npy->fortran = header->fortran;
    raw_of_file(&npy->values, npy->fd, header->start, npy->fortran ? values : npy->rows,
                npy->fortran ? 1 : npy->dimension, format, npy->name);
    return STATUS_OK;
}

static enum status read_header(struct npy *npy, struct error *err)
{
    enum status status = STATUS_FAILED;
    char *text = NULL;
    struct stat st;
    if (fstat(npy->fd, &st) != 0)
        return error_errno(err, STATUS_FAILED, errno, "fstat", "cannot read %s", npy->path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, STATUS_FAILED, "%s is not a regular file", npy->path);
    uint64_t size = (uint64_t)st.st_size;
    unsigned char start[12] = {0};
    size_t got;
    if (read_at(npy->fd, start, sizeof start, 0, &got, npy->name, err) != STATUS_OK)
        return STATUS_FAILED;
    if (size < 10 || memcmp(start, "\223NUMPY", 6) != 0)
        return error_set(err, STATUS_FAILED, "%s is not a .npy file", npy->path);
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return error_set(err, STATUS_FAILED, "%s has .npy format %u.%u; supported are 1.0 to 3.0",
                         npy->path, start[6], start[7]);
    uint64_t prefix = start[6] == 1 ? 10 : 12;
    uint64_t length = load(start + 8, start[6] == 1 ? 2 : 4);
    if (size < prefix || length > size - prefix || length > HEADER_MAX)
        return error_set(err, STATUS_FAILED, "the header of %s is damaged (%llu bytes long)",
                         npy->path, (unsigned long long)length);
    text = malloc((size_t)length + 1);
    if (!text)
        return error_memory(err, (size_t)length + 1, "a .npy header");
    if (read_at(npy->fd, text, (size_t)length, prefix, &got, npy->name, err) != STATUS_OK)
        goto out;
    text[got] = 0;
    struct header header = {.start = prefix + length};
    if (memchr(text, 0, (size_t)length) || !parse_header(&header, text)) {
        error_set(err, STATUS_FAILED, "the header of %s is damaged", npy->path);
        goto out;
    }
    status = adopt(npy, &header, size, err);
out:
    free(text);
    return status;
}

/* Rows of a column-major matrix: one read per column. */
static enum status read_columns(struct npy *npy, uint64_t first, uint64_t count, float *rows,
                                struct error *err)
{
    const uint64_t most = COLUMN_BYTES / sizeof(float);
    const uint32_t dimension = npy->dimension;
    for (uint64_t begin = 0; begin < count; begin += most) {
        const uint64_t part = count - begin < most ? count - begin : most;
        float *to = rows + begin * dimension;
        for (uint32_t j = 0; j < dimension; j++) {
            enum status status =
                raw_read_float(&npy->values, j * npy->rows + first + begin, part, npy->column, err);
            if (status != STATUS_OK)
                return status;
            for (uint64_t i = 0; i < part; i++)
                to[i * dimension + j] = npy->column[i];
        }
    }
    return STATUS_OK;
}

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    struct npy *npy = context;
    return npy->fortran ? read_columns(npy, first, count, rows, err)
                        : raw_read_float(&npy->values, first, count, rows, err);
}

static void npy_close(void *context)
{
    struct npy *npy = context;
    if (npy->fd >= 0)
        close(npy->fd);
    free(npy->column);
    free(npy->name);
    free(npy);
}

enum status npy_open(struct matrix_source *out, const char *path, bool vector, struct error *err)
{
    enum status status = STATUS_FAILED;
    *out = (struct matrix_source){0};
    struct npy *npy = calloc(1, sizeof *npy);
    if (!npy)
        return error_memory(err, sizeof *npy, "a .npy file");
    npy->vector = vector;
    path_for_message(npy->path, sizeof npy->path, path);
    npy->fd = -1;
    if (!(npy->name = strdup(path))) {
        error_memory(err, strlen(path) + 1, "a file name");
        goto out;
    }
    npy->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (npy->fd < 0) {
        error_errno(err, STATUS_FAILED, errno, "open", "cannot open %s", npy->path);
        goto out;
    }
    if (read_header(npy, err) != STATUS_OK)
        goto out;
    if (npy->fortran && !(npy->column = malloc(COLUMN_BYTES))) {
        error_memory(err, COLUMN_BYTES, "reading a .npy file");
        goto out;
    }
    *out = (struct matrix_source){.rows = npy->rows,
                                  .dimension = npy->dimension,
                                  .read = read_rows,
                                  .concurrent = !npy->fortran,
                                  .close = npy_close,
                                  .context = npy};
    matrix_set_type(out, npy->values.format.kind, npy->values.format.bytes);
    status = STATUS_OK;
out:
    if (status != STATUS_OK)
        npy_close(npy);
    return status;
}

/* --- writing --------------------------------------------------------------------------------- */

void npy_header(char text[NPY_HEADER], size_t *out, const char *dtype, uint64_t rows,
                uint64_t columns)
{
    /* Magic, version and length take 10 bytes; space-padded to a multiple of 64, ending in
     * newline. */
    char shape[64];
    if (columns > 0)
        snprintf(shape, sizeof shape, "%llu, %llu", (unsigned long long)rows,
                 (unsigned long long)columns);
    else
        snprintf(shape, sizeof shape, "%llu,", (unsigned long long)rows);
    int length = snprintf(text + 10, NPY_HEADER - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, shape);
    size_t used = 10 + (size_t)length, total = (used + 1 + 63) / 64 * 64;
    memcpy(text, "\223NUMPY\1\0", 8);
    text[8] = (char)((total - 10) & 255);
    text[9] = (char)((total - 10) >> 8);
    memset(text + used, ' ', total - used);
    text[total - 1] = '\n';
    *out = total;
}

enum status npy_write_header(int fd, const char *dtype, uint64_t rows, uint64_t columns,
                             const char *path, struct error *err)
{
    char text[NPY_HEADER];
    size_t length;
    npy_header(text, &length, dtype, rows, columns);
    return write_all(fd, text, length, path, err);
}
