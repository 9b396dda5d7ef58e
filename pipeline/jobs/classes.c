/* classes.c: folders as classes, and tables of classes. */
#include "jobs/classes.h"
#include "base/array.h"
#include "base/output.h"
#include "base/path.h"
#include "jobs/path_match.h"
#include "result/sidecars.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status classes_of_folders(struct classes *out, struct result *result, struct error *err)
{
    const enum status status = folders_read(out, result, NULL, err);
    if (status != STATUS_OK || out->of_row)
        return status;
    error_set(err, STATUS_FAILED,
              "the folders of %s are not classes: there must be at least two, with fewer folders "
              "than images",
              PATH_TEXT(result->path));
    return error_remedy(err, REMEDY_GIVE_CLASSES);
}

/* --- tables -------------------------------------------------------------------------------------- */

struct table {
    const char *name;
    char *bytes; /* of the file, followed by a NUL; fields are assembled in place */
    size_t size, at;
    uint64_t line;
    unsigned path, class; /* columns */
    char *paths;          /* each followed by a NUL */
    size_t paths_size;
    char **classes; /* of the paths, into `bytes` */
    uint64_t count;
};

static enum status refuse(const struct table *table, const char *why, struct error *err)
{
    return error_set(err, STATUS_FAILED, "%s is not a table of classes: line %llu %s",
                     PATH_TEXT(table->name), (unsigned long long)table->line, why);
}

static enum status read_bytes(struct table *table, struct error *err)
{
    struct stat st;
    const char *shown = PATH_TEXT(table->name);
    const int fd = open(table->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno == ENOENT ? STATUS_USAGE : STATUS_FAILED, errno, "open",
                           "cannot read the table of classes %s", shown);
    enum status status = STATUS_OK;
    if (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode))
        status = error_set(err, STATUS_USAGE, "%s is not a table of classes", shown);
    if (status == STATUS_OK)
        status = read_to_end(&table->bytes, &table->size, fd, table->name, err);
    close(fd);
    if (status == STATUS_OK && memchr(table->bytes, 0, table->size))
        status = error_set(err, STATUS_FAILED,
                           "%s is not a table of classes: it contains a NUL byte", shown);
    return status;
}

/* The next field of a line, a text in `bytes`; *last: the line ends with it. Without quotes and
 * separator, a field is shorter, so its NUL fits. */
static enum status next_field(char **field, bool *last, struct table *table, struct error *err)
{
    char *at = table->bytes + table->at, *to = at;
    *field = at;
    if (*at == '"') {
        for (at++; *at && !(*at == '"' && at[1] != '"'); at++) {
            at += *at == '"';
            table->line += *at == '\n';
            *to++ = *at;
        }
        if (*at++ != '"')
            return refuse(table, "has a quoted field that does not end", err);
    } else {
        for (; *at && *at != ',' && *at != '\n' && *at != '\r'; at++)
            *to++ = *at;
    }
    at += at[0] == '\r' && (at[1] == '\n' || !at[1]);
    if (*at && *at != ',' && *at != '\n')
        return refuse(table, "has text after a quoted field, or a carriage return in a field", err);
    *last = *at != ',';
    table->at = (size_t)(at - table->bytes) + (*at != 0);
    *to = 0;
    return STATUS_OK;
}

static enum status add(struct table *table, const char *path, char *class, struct error *err)
{
    if (array_grow(&table->classes, table->count, sizeof *table->classes, "a table of classes",
                   err))
        return STATUS_FAILED;
    const size_t length = strlen(path) + 1;
    memcpy(table->paths + table->paths_size, path, length);
    table->paths_size += length;
    table->classes[table->count++] = class;
    return STATUS_OK;
}

/* One line. The first line may name the columns. */
static enum status read_line(struct table *table, bool first, struct error *err)
{
    char *path = NULL, *class = NULL;
    unsigned path_column = 0, class_column = 0, named = 0, column = 0;
    table->line++;
    for (bool last = false; !last; column++) {
        char *field;
        const enum status status = next_field(&field, &last, table, err);
        if (status != STATUS_OK)
            return status;
        if (column == table->path)
            path = field;
        if (column == table->class)
            class = field;
        if (strcmp(field, "path") == 0) {
            path_column = column;
            named |= 1;
        }
        if (strcmp(field, "class") == 0) {
            class_column = column;
            named |= 2;
        }
    }
    if (first && named == 3) {
        table->path = path_column;
        table->class = class_column;
        return STATUS_OK;
    }
    if (column == 1 && path && !*path) /* an empty line */
        return STATUS_OK;
    if (!path || !class || !*path)
        return refuse(table, "has no path and class", err);
    return add(table, path, class, err);
}

static enum status read_table(struct table *table, struct error *err)
{
    enum status status = read_bytes(table, err);
    if (status != STATUS_OK)
        return status;
    static const char mark[] = "\xef\xbb\xbf";
    table->at = strncmp(table->bytes, mark, 3) == 0 ? 3 : 0;
    table->paths = malloc(table->size + 2);
    if (!table->paths)
        return error_memory(err, table->size, "a table of classes");
    for (bool first = true; status == STATUS_OK && table->at < table->size; first = false)
        status = read_line(table, first, err);
    table->line += table->line == 0;
    if (status == STATUS_OK && table->count == 0)
        status = refuse(table, "has no path and class", err);
    return status;
}

/* --- numbers of classes -------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(**(char **const *)a, **(char **const *)b);
}

/* Numbers the classes of rows, NULL or "" for none, in the order of their names. */
static enum status number_classes(struct classes *out, char **class, uint64_t rows,
                                  struct error *err)
{
    char ***order = malloc((rows + 1) * sizeof *order);
    out->of_row = malloc((rows + 1) * sizeof *out->of_row);
    if (!order || !out->of_row) {
        free(order);
        return error_memory(err, rows * sizeof *order, "the classes of images");
    }
    for (uint64_t row = 0; row < rows; row++) {
        out->of_row[row] = CLASSES_NONE;
        if (class[row] && *class[row])
            order[out->rows++] = &class[row];
    }
    qsort(order, out->rows, sizeof *order, compare_texts);
    for (uint64_t i = 0; i < out->rows; i++) {
        out->count += i == 0 || strcmp(*order[i], *order[i - 1]) != 0;
        out->of_row[order[i] - class] = out->count - 1;
    }
    free(order);
    return STATUS_OK;
}

enum status classes_of_table(struct classes *out, struct result *result, const char *file,
                             struct error *err)
{
    struct table table = {.name = file, .path = 0, .class = 1};
    struct path_list list = {0};
    struct path_match match = {0};
    const uint64_t images = result_images(result);
    char **class = NULL;
    *out = (struct classes){0};
    enum status status = read_table(&table, err);
    if (status != STATUS_OK)
        goto out;
    status = path_list_of_memory(&list, file, table.paths, table.paths_size, err);
    table.paths = NULL;
    if (status == STATUS_OK)
        status = path_match_make(&match, &list, result, err);
    if (status == STATUS_OK && !(class = calloc(images + 1, sizeof *class)))
        status = error_memory(err, images * sizeof *class, "the classes of images");
    if (status != STATUS_OK)
        goto out;
    path_match_tell_unused(&match, &list);
    for (uint64_t row = 0; row < images; row++)
        if (match.row[row] != PATH_LIST_NONE)
            class[row] = table.classes[match.row[row]];
    status = number_classes(out, class, images, err);
    if (status == STATUS_OK && out->count < 2)
        status = error_set(err, STATUS_FAILED, "%s gives %s, but there must be at least two",
                           PATH_TEXT(file),
                           out->count == 1 ? "all images the same class" : "no image a class");
out:
    path_match_clear(&match);
    path_list_close(&list);
    free(class);
    free(table.paths);
    free(table.classes);
    free(table.bytes);
    if (status != STATUS_OK)
        classes_clear(out);
    return status;
}

enum status classes_of_cls(struct classes *out, struct result *result, struct error *err)
{
    const uint64_t images = result_images(result);
    struct sidecar_reader *reader = NULL;
    const char *text[SIDECAR_COLUMNS];
    *out = (struct classes){0};
    const char *shown = PATH_TEXT(result->path);
    enum status status = sidecar_reader_open(&reader, result, err);
    if (status == STATUS_OK && !reader)
        return error_set(err, STATUS_FAILED,
                         "%s has no classes from sidecar files: ingest with --sidecar stores them",
                         shown);
    char **class = calloc(images + 1, sizeof *class);
    if (status == STATUS_OK && !class)
        status = error_memory(err, images * sizeof *class, "the classes of images");
    for (uint64_t row = 0; row < images && status == STATUS_OK; row++) {
        status = sidecar_reader_row(reader, row, text, err);
        if (status == STATUS_OK && !(class[row] = strdup(text[1 + SIDECAR_CLS])))
            status = error_memory(err, images, "the classes of images");
    }
    if (status == STATUS_OK)
        status = number_classes(out, class, images, err);
    if (status == STATUS_OK && out->count < 2)
        status = error_set(err, STATUS_FAILED, "%s has fewer than two classes from sidecar files",
                           shown);
    sidecar_reader_close(&reader);
    for (uint64_t row = 0; class && row < images; row++)
        free(class[row]);
    free(class);
    if (status != STATUS_OK)
        classes_clear(out);
    return status;
}
