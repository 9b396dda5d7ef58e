/* row_inputs.c: columns of the log and of finished files. */
#include "result/row_inputs.h"
#include "base/path.h"
#include "base/process.h"
#include "base/text.h"
#include "matrix/h5_driver.h"
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS_LEFT 256 /* for the files that stay open and all else */

/* --- the log ----------------------------------------------------------------------------------- */

/* The column of a table with that number. */
static const struct column *column_of(unsigned number)
{
    return number >= ROW_FAILURE ? &failure_table.column[number - ROW_FAILURE]
                                 : &image_table.column[number];
}

struct move_column row_column(unsigned number, const struct feature_set *features,
                              const struct row_input *input)
{
    struct move_column out = {.number = number, .input = input, .row_bytes = sizeof(uint64_t)};
    if (number == ROW_THUMBNAIL) {
        out.kind = MOVE_BLOB;
    } else if (number >= ROW_FEATURE) {
        out.row_bytes = feature_row_bytes(&features->feature[number - ROW_FEATURE]);
    } else {
        out.kind = column_of(number)->type == VALUE_TEXT ? MOVE_TEXT : MOVE_FIXED;
        out.row_bytes = value_size(column_of(number)->type) * column_of(number)->width;
    }
    return out;
}

static bool is_column(unsigned number, const char *name)
{
    return number < ROW_THUMBNAIL && strcmp(column_of(number)->name, name) == 0;
}

bool row_is_referred(unsigned number)
{
    return number >= ROW_FEATURE || (number < ROW_FAILURE && !is_column(number, "source") &&
                                     column_of(number)->type != VALUE_TEXT);
}

/* Reads texts of the log to `to`, each in `width` bytes, or end to end if that is 0; `to` NULL: only their
 * lengths. */
static enum status read_texts(const struct log_input *input, unsigned number, uint64_t first,
                              uint64_t count, size_t width, uint8_t *to, uint64_t *lengths,
                              struct error *err)
{
    const enum records_column column = number == ROW_THUMBNAIL        ? LOG_IMAGE_THUMBNAIL
                                       : number < ROW_FAILURE         ? LOG_IMAGE_PATH
                                       : is_column(number, "message") ? LOG_FAILURE_MESSAGE
                                                                      : LOG_FAILURE_PATH;
    uint64_t *ends = malloc(count * sizeof *ends);
    uint16_t *sizes = number == ROW_THUMBNAIL ? malloc(count * sizeof *sizes) : NULL;
    uint8_t *bytes = NULL;
    size_t room = 0, text_room = 0;
    char *text = NULL;
    enum status status = ends && (sizes || number != ROW_THUMBNAIL)
                             ? records_read_texts(input->log, column, first, count, ends,
                                                  to || !sizes ? &bytes : NULL, &room, err)
                             : error_memory(err, count * sizeof *ends, "texts of the log");
    if (!status && sizes)
        status = records_read(input->log, LOG_IMAGES, offsetof(struct log_row, thumbnail_size),
                              sizeof *sizes, first, count, sizes, err);
    for (uint64_t i = 0, start = 0; i < count && !status; start = ends[i++]) {
        size_t length = (size_t)(ends[i] - start);
        const uint8_t *from = bytes ? bytes + start : (const uint8_t *)""; /* all are empty */
        if (sizes && sizes[i] != input->thumbnail_size)
            length = 0;
        if (!sizes && 4 * length + 1 > text_room) {
            free(text);
            text_room = 8 * length + 256;
            if (!(text = malloc(text_room))) {
                status = error_memory(err, text_room, "a text");
                break;
            }
        }
        if (column == LOG_FAILURE_MESSAGE) {
            memcpy(text, from, length);
            text[length] = 0;
            length = text_clean(text, false);
            from = (const uint8_t *)text;
        } else if (!sizes) {
            length = path_to_utf8(text, text_room, (const char *)from, length);
            from = (const uint8_t *)text;
        }
        if (lengths)
            lengths[i] = length;
        if (!to)
            continue;
        if (length > 0)
            memcpy(to, from, length);
        if (width > 0)
            memset(to + length, 0, width - length);
        to += width > 0 ? width : length;
    }
    free(text);
    free(bytes);
    free(sizes);
    free(ends);
    return status;
}

static enum status read_log(void *context, const struct move_column *column, bool lengths,
                            uint64_t first, uint64_t count, void *to, struct error *err)
{
    const struct log_input *input = context;
    if (column->kind != MOVE_FIXED)
        return read_texts(input, column->number, first, count,
                          column->kind == MOVE_TEXT ? column->row_bytes : 0, lengths ? NULL : to,
                          lengths ? to : NULL, err);
    const unsigned number = column->number;
    return number >= ROW_FEATURE
               ? records_read(input->log, LOG_FEATURE + number - ROW_FEATURE, 0, column->row_bytes,
                              first, count, to, err)
               : records_read(input->log, number >= ROW_FAILURE ? LOG_FAILURES : LOG_IMAGES,
                              column_of(number)->offset, column->row_bytes, first, count, to, err);
}

void log_input_init(struct row_input *out, struct log_input *input, const struct records *log,
                    unsigned thumbnail_size)
{
    *input = (struct log_input){log, thumbnail_size};
    *out = (struct row_input){read_log, input};
}

/* --- a finished file --------------------------------------------------------------------------- */

void row_column_name(char name[ROW_NAME_MAX], unsigned number, const struct feature_set *features)
{
    if (number >= ROW_FEATURE)
        snprintf(name, ROW_NAME_MAX, "/features/%s", features->feature[number - ROW_FEATURE].name);
    else if (number == ROW_THUMBNAIL)
        snprintf(name, ROW_NAME_MAX, "/" THUMBNAIL_GROUP "/end");
    else
        snprintf(name, ROW_NAME_MAX, "/%s/%s", number >= ROW_FAILURE ? "failures" : "images",
                 column_of(number)->name);
}

static enum status open_raw(struct raw **raw, hid_t *dataset, const struct file_input *input,
                            const char *name, struct error *err)
{
    if (H5Lexists(input->file, name, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    *dataset = H5Dopen2(input->file, name, H5P_DEFAULT);
    return *dataset > 0 ? h5_open_raw(raw, *dataset, err)
                        : h5_failed(err, "H5Dopen2", "read", input->file);
}

static void close_column(struct file_column *column)
{
    raw_close(&column->raw);
    raw_close(&column->data);
    h5_close(&column->dataset);
    h5_close(&column->data_dataset);
}

/* Opens a column; its raw is NULL if the file lacks it. NULL: it cannot be opened. */
static const struct file_column *find_column(struct file_input *input, unsigned number,
                                             struct error *err)
{
    struct file_column *column = &input->column[number];
    enum status status = STATUS_OK;
    pthread_mutex_lock(&input->lock);
    assert(column->known || input->fd < 0);
    if (!column->known && (number != ROW_THUMBNAIL || input->thumbnail_size > 0)) {
        char name[ROW_NAME_MAX];
        row_column_name(name, number, input->features);
        h5_driver_lock();
        status = open_raw(&column->raw, &column->dataset, input, name, err);
        if (!status && number == ROW_THUMBNAIL)
            status = open_raw(&column->data, &column->data_dataset, input,
                              "/" THUMBNAIL_GROUP "/data", err);
        if (!status && column->raw) {
            hid_t type = H5Dget_type(column->dataset);
            column->spaces =
                H5Tget_class(type) == H5T_STRING && H5Tget_strpad(type) == H5T_STR_SPACEPAD;
            h5_close(&type);
        }
        if (status)
            close_column(column);
        h5_driver_unlock();
    }
    column->known = !status;
    pthread_mutex_unlock(&input->lock);
    return status ? NULL : column;
}

static enum status contradicts(const struct file_input *input, unsigned number, uint64_t row,
                               struct error *err)
{
    char name[ROW_NAME_MAX];
    row_column_name(name, number, input->features);
    return h5_damaged(err, input->path, "%s: row %llu contradicts the others", name,
                      (unsigned long long)row);
}

/* Reads the end of the thumbnails before these rows, and of each row's. */
static enum status read_ends(const struct file_input *input, const struct file_column *column,
                             uint64_t first, uint64_t count, uint64_t *before, uint64_t *ends,
                             struct error *err)
{
    *before = 0;
    if ((first > 0 && raw_read(column->raw, first - 1, 1, before, err)) ||
        raw_read(column->raw, first, count, ends, err))
        return STATUS_FAILED;
    for (uint64_t i = 0, start = *before; i < count; start = ends[i++])
        if (ends[i] < start || !column->data || ends[i] > column->data->rows ||
            ends[i] - start > RECORDS_MOST_THUMBNAIL)
            return contradicts(input, ROW_THUMBNAIL, first + i, err);
    return STATUS_OK;
}

/* Reads thumbnails, or their lengths. */
static enum status read_thumbnails(const struct file_input *input, const struct file_column *column,
                                   bool lengths, uint64_t first, uint64_t count, void *to,
                                   struct error *err)
{
    uint64_t before, *ends = lengths ? to : malloc(count * sizeof *ends);
    enum status status = ends ? read_ends(input, column, first, count, &before, ends, err)
                              : error_memory(err, count * sizeof *ends, "thumbnails");
    if (!status && !lengths)
        status = raw_read(column->data, before, ends[count - 1] - before, to, err);
    for (uint64_t i = count; lengths && !status && i-- > 0;)
        ends[i] -= i > 0 ? ends[i - 1] : before;
    if (!lengths)
        free(ends);
    return status;
}

/* The length of a text without padding. */
static size_t text_length(const char *text, size_t width, bool spaces)
{
    size_t length = strnlen(text, width);
    while (spaces && length > 0 && text[length - 1] == ' ')
        length--;
    return length;
}

/* Reads texts to `to` in rows of `width` bytes, or their lengths. */
static enum status file_texts(const struct file_input *input, const struct file_column *column,
                              unsigned number, bool lengths, uint64_t first, uint64_t count,
                              size_t width, void *to, struct error *err)
{
    const size_t stored = (size_t)column->raw->row_bytes;
    char *rows = to;
    char *texts = malloc(count * stored);
    enum status status = texts ? raw_read(column->raw, first, count, texts, err)
                               : error_memory(err, count * stored, "texts");
    for (uint64_t i = 0; i < count && !status; i++) {
        const size_t length = text_length(texts + i * stored, stored, column->spaces);
        if (lengths) {
            ((uint64_t *)to)[i] = length;
        } else if (length > width) {
            status = contradicts(input, number, first + i, err);
        } else {
            memcpy(rows + i * width, texts + i * stored, length);
            memset(rows + i * width + length, 0, width - length);
        }
    }
    free(texts);
    return status;
}

static enum status renumber(const struct file_input *input, unsigned number, uint64_t first,
                            uint64_t count, uint16_t *sources, struct error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        const int now = sources[i] < input->sources ? input->source_now[sources[i]] : -1;
        if (now < 0)
            return contradicts(input, number, first + i, err);
        sources[i] = (uint16_t)now;
    }
    return STATUS_OK;
}

/* Reads rows of the column inode or ctime_ns, which have the same size. */
static void restate(const struct file_input *input, uint64_t first, uint64_t count, bool inode,
                    uint64_t *rows)
{
    size_t from = 0, to = input->stats;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (input->stat[middle].row < first)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < input->stats && input->stat[from].row < first + count; from++) {
        const struct row_stat *stat = &input->stat[from];
        rows[stat->row - first] = inode ? stat->inode : (uint64_t)stat->ctime_ns;
    }
}

static enum status read_file(void *context, const struct move_column *moved, bool lengths,
                             uint64_t first, uint64_t count, void *rows, struct error *err)
{
    struct file_input *input = context;
    const unsigned number = moved->number;
    const struct file_column *column = find_column(input, number, err);
    if (!column)
        return STATUS_FAILED;
    if (!column->raw) {
        memset(rows, 0,
               count * (lengths                    ? sizeof(uint64_t)
                        : moved->kind == MOVE_BLOB ? 0
                                                   : moved->row_bytes));
        return STATUS_OK;
    }
    if (moved->kind == MOVE_BLOB)
        return read_thumbnails(input, column, lengths, first, count, rows, err);
    if (moved->kind == MOVE_TEXT || column->spaces)
        return file_texts(input, column, number, lengths, first, count, moved->row_bytes, rows,
                          err);
    if (column->raw->row_bytes != moved->row_bytes)
        return contradicts(input, number, first, err);
    const enum status status = raw_read(column->raw, first, count, rows, err);
    const bool inode = is_column(number, "inode");
    if (!status && input->stats > 0 && number < ROW_FAILURE &&
        (inode || is_column(number, "ctime_ns")))
        restate(input, first, count, inode, rows);
    return !status && input->source_now && is_column(number, "source")
               ? renumber(input, number, first, count, rows, err)
               : status;
}

void file_input_init(struct row_input *out, struct file_input *input, hid_t file, unsigned sources,
                     const struct feature_set *features, const int *source_now,
                     unsigned thumbnail_size)
{
    *input = (struct file_input){.file = file,
                                 .fd = -1,
                                 .path = h5_path(file),
                                 .features = features,
                                 .sources = sources,
                                 .thumbnail_size = thumbnail_size,
                                 .source_now = source_now};
    pthread_mutex_init(&input->lock, NULL);
    *out = (struct row_input){read_file, input};
}

void result_input_init(struct row_input *out, struct file_input *input, const struct result *result,
                       const struct feature_set *features, const int *source_now,
                       unsigned thumbnail_size)
{
    file_input_init(out, input, result->file, result->source_count, features, source_now,
                    thumbnail_size == result->thumbnail_size ? thumbnail_size : 0);
}

bool file_input_detach(struct file_input *input, const bool needed[ROW_COLUMNS], const char *path)
{
    int fd = -1;
    for (unsigned i = 0; i < ROW_COLUMNS; i++) {
        const struct file_column *column = needed[i] ? find_column(input, i, NULL) : NULL;
        if (needed[i] && !column)
            return false;
        for (unsigned d = 0; d < 2 && column; d++) {
            const struct raw *raw = d ? column->data : column->raw;
            if (raw && raw->layout == RAW_CONTIGUOUS)
                fd = raw->fd;
            else if (raw && raw->rows > 0)
                return false;
        }
    }
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (!process_keeps_descriptor(fd, DESCRIPTORS_LEFT))
        return false;
    h5_driver_lock();
    for (unsigned i = 0; i < ROW_COLUMNS; i++) {
        struct file_column *column = &input->column[i];
        if (column->raw)
            raw_detach(column->raw, fd, path);
        if (column->data)
            raw_detach(column->data, fd, path);
        h5_close(&column->dataset);
        h5_close(&column->data_dataset);
    }
    h5_close(&input->file);
    h5_driver_unlock();
    input->fd = fd;
    input->path = path;
    return true;
}

void file_input_clear(struct file_input *input)
{
    for (unsigned i = 0; i < ROW_COLUMNS; i++)
        close_column(&input->column[i]);
    if (input->fd >= 0)
        close(input->fd);
    pthread_mutex_destroy(&input->lock);
}
