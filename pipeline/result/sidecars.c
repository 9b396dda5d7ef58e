/* sidecars.c: provides the columns. Whether cls is a number is known only after the last row, so rows
 * are first kept in temporary files.
 *
 * Rows find their records by reading forward, since both are in the same order. A row may have no
 * record: its file could not be read. The first such row reads to the end and keeps hashes of all
 * records, so that the following rows need not. */
#include "result/sidecars.h"

#include "base/array.h"
#include "base/compare.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/path.h"
#include "base/source_name.h"
#include "base/unnamed_file.h"
#include "result/blobs.h"
#include "result/row_inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const sidecar_names[SIDECAR_COLUMNS] = {"key", "cls", "json", "txt"};
#define COLUMN_CLS 1

const struct sidecar_blob sidecar_blob[SIDECAR_BLOBS] = {{"images/json", "json_byte"},
                                                         {"images/txt", "txt_byte"}};

struct sidecars {
    FILE *walked; /* records of the walk */
    /* The texts of the rows, end to end, and the end of each. */
    struct spool {
        FILE *texts, *ends;
        uint64_t end;
    } spool[SIDECAR_COLUMNS];
    uint64_t count;  /* rows */
    bool reading;    /* `walked` is being read */
    bool text;       /* some cls is not an integer */
    bool same;       /* all rows equal those of `earlier` so far */
    bool noted;      /* a row had no record: */
    uint64_t *ahead; /* hashes of the records that followed it, sorted */
    size_t ahead_count;
    char *path;      /* of the record last read, */
    uint16_t source; /* and its source */
    char *record[SIDECAR_COLUMNS];
    struct sidecar_reader *earlier; /* NULL: there is none */
    struct row_list list;           /* of all rows of `input`, which reads the spool */
    struct row_input input;
};

static enum status io_failed(const char *what, struct error *err)
{
    return error_errno(err, STATUS_FAILED, errno ? errno : EIO, what,
                       "cannot %s a temporary file of texts beside images%s", what,
                       errno == ENOSPC ? " (free some space)" : "");
}

static FILE *temporary_file(const char *directory)
{
    const int fd = unnamed_file(directory);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

enum status sidecars_open(struct sidecars **out, const char *directory, struct error *err)
{
    struct sidecars *sidecars = calloc(1, sizeof *sidecars);
    if (!sidecars)
        return error_memory(err, sizeof *sidecars, "texts beside images");
    bool created = (sidecars->walked = temporary_file(directory)) != NULL;
    for (int i = 0; i < SIDECAR_COLUMNS && created; i++)
        created = (sidecars->spool[i].texts = temporary_file(directory)) != NULL &&
                  (sidecars->spool[i].ends = temporary_file(directory)) != NULL;
    if (!created) {
        const enum status status = io_failed("create", err);
        sidecars_close(&sidecars);
        return status;
    }
    *out = sidecars;
    return STATUS_OK;
}

void sidecars_close(struct sidecars **sidecars)
{
    if (!sidecars || !*sidecars)
        return;
    if ((*sidecars)->walked)
        fclose((*sidecars)->walked);
    sidecar_reader_close(&(*sidecars)->earlier);
    free((*sidecars)->path);
    free((*sidecars)->ahead);
    row_list_clear(&(*sidecars)->list);
    for (int i = 0; i < SIDECAR_COLUMNS; i++) {
        struct spool *spool = &(*sidecars)->spool[i];
        if (spool->texts)
            fclose(spool->texts);
        if (spool->ends)
            fclose(spool->ends);
        free((*sidecars)->record[i]);
    }
    free(*sidecars);
    *sidecars = NULL;
}

char *sidecars_key(const char *path, size_t length)
{
    const size_t from = archive_prefix(path), key = sample_key(path, length);
    return path_utf8(path + from, key > from ? key - from : 0);
}

/* --- records, texts each ended by NUL --------------------------------------------------------- */

static bool take_text(char **out, FILE *file)
{
    size_t capacity = 0;
    free(*out);
    *out = NULL;
    return getdelim(out, &capacity, 0, file) > 0;
}

enum status sidecars_add(struct sidecars *sidecars, uint16_t source, const char *path,
                         uint32_t path_length, const char *const text[SIDECAR_COLUMNS],
                         struct error *err)
{
    FILE *file = sidecars->walked;
    fwrite(&source, sizeof source, 1, file);
    fwrite(path, 1, path_length, file);
    fputc(0, file);
    for (int i = 0; i < SIDECAR_COLUMNS; i++) {
        fputs(text[i] ? text[i] : "", file);
        fputc(0, file);
    }
    return ferror(file) ? io_failed("write", err) : STATUS_OK;
}

/* The next record of the walk; false: there is none. */
static bool next_walked(struct sidecars *sidecars)
{
    FILE *file = sidecars->walked;
    bool taken = fread(&sidecars->source, sizeof sidecars->source, 1, file) == 1 &&
                 take_text(&sidecars->path, file);
    for (int i = 0; i < SIDECAR_COLUMNS && taken; i++)
        taken = take_text(&sidecars->record[i], file);
    return taken;
}

static bool is_integer(const char *text)
{
    char again[32];
    errno = 0;
    const long long value = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", value);
    return errno == 0 && value != SIDECAR_NO_CLS && strcmp(text, again) == 0;
}

enum status sidecars_row_of(struct sidecars *s, const char *const text[SIDECAR_COLUMNS],
                            struct error *err)
{
    const char *cls = text[COLUMN_CLS], *stored[SIDECAR_COLUMNS];
    enum status status = STATUS_OK;
    s->text |= cls && *cls && !is_integer(cls);
    for (unsigned i = 0; i < SIDECAR_COLUMNS && !status; i++) {
        struct spool *spool = &s->spool[i];
        const size_t length = text[i] ? strlen(text[i]) : 0;
        spool->end += length;
        if (fwrite(length > 0 ? text[i] : "", 1, length, spool->texts) < length ||
            fwrite(&spool->end, sizeof spool->end, 1, spool->ends) < 1)
            status = io_failed("write", err);
    }
    if (s->same && !status)
        status = sidecar_reader_row(s->earlier, s->count, stored, err);
    for (unsigned i = 0; i < SIDECAR_COLUMNS && s->same && !status; i++)
        s->same = strcmp(text[i] ? text[i] : "", stored[i]) == 0;
    s->count++;
    return status;
}

/* Remembers the record last read. */
static enum status note_ahead(struct sidecars *s, struct error *err)
{
    if (array_grow(&s->ahead, s->ahead_count, sizeof *s->ahead, "texts beside images", err))
        return STATUS_FAILED;
    s->ahead[s->ahead_count++] = hash_of_path(s->source, s->path, strlen(s->path));
    return STATUS_OK;
}

/* Reads forward to the record of a row; STATUS_END: it has none, and nothing was read. */
static enum status find_record(struct sidecars *s, uint16_t source, const char *path,
                               uint32_t path_length, struct error *err)
{
    const uint64_t hash = hash_of_path(source, path, path_length);
    if (s->noted && (s->ahead_count == 0 ||
                     !bsearch(&hash, s->ahead, s->ahead_count, sizeof hash, compare_u64)))
        return STATUS_END;
    const off_t before = ftello(s->walked);
    while (next_walked(s)) {
        if (s->source == source && strcmp(s->path, path) == 0) {
            s->ahead_count = s->noted ? s->ahead_count : 0;
            return STATUS_OK;
        }
        if (!s->noted && note_ahead(s, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    if (ferror(s->walked) || fseeko(s->walked, before, SEEK_SET) != 0)
        return io_failed("read", err);
    if (!s->noted && s->ahead_count > 0)
        qsort(s->ahead, s->ahead_count, sizeof *s->ahead, compare_u64);
    s->noted = true;
    return STATUS_END;
}

enum status sidecars_keep(struct sidecars *sidecars, struct result *earlier, bool compare,
                          struct error *err)
{
    const enum status status = sidecar_reader_open(&sidecars->earlier, earlier, err);
    sidecars->same = compare && sidecars->earlier;
    return status;
}

bool sidecars_same(const struct sidecars *sidecars)
{
    return sidecars->same;
}

enum status sidecars_row(struct sidecars *sidecars, uint16_t source, const char *path,
                         uint32_t path_length, uint64_t earlier_row, struct error *err)
{
    if (!sidecars->reading && fflush(sidecars->walked) != 0)
        return io_failed("write", err);
    if (!sidecars->reading)
        rewind(sidecars->walked);
    sidecars->reading = true;
    enum status status = find_record(sidecars, source, path, path_length, err);
    if (status != STATUS_END)
        return status == STATUS_OK
                   ? sidecars_row_of(sidecars, (const char *const *)sidecars->record, err)
                   : status;
    if (sidecars->earlier && earlier_row != SIDECAR_NO_ROW) {
        const char *kept[SIDECAR_COLUMNS];
        status = sidecar_reader_row(sidecars->earlier, earlier_row, kept, err);
        return status == STATUS_OK ? sidecars_row_of(sidecars, kept, err) : status;
    }
    char *key = sidecars_key(path, path_length);
    const char *const text[SIDECAR_COLUMNS] = {key};
    status = key ? sidecars_row_of(sidecars, text, err) : error_memory(err, path_length, "a key");
    free(key);
    return status;
}

/* --- columns ----------------------------------------------------------------------------------- */

static bool read_bytes(FILE *file, void *to, uint64_t size, uint64_t at)
{
    size_t got;
    errno = 0;
    return read_at(fileno(file), to, (size_t)size, at, &got, "", NULL) == STATUS_OK && got == size;
}

/* A text, or the number that a class is. */
static void store_text(uint8_t *to, const struct move_column *column, const char *text,
                       size_t length)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.*s", (int)min_u64(length, 31), text);
    const int64_t number = length > 0 ? strtoll(digits, NULL, 10) : SIDECAR_NO_CLS;
    const bool is_number = column->kind == MOVE_FIXED;
    memset(to, 0, column->row_bytes);
    memcpy(to, is_number ? (const void *)&number : text, is_number ? sizeof number : length);
}

static enum status read_rows(void *context, const struct move_column *column, bool lengths,
                             uint64_t first, uint64_t count, void *to, struct error *err)
{
    const struct sidecars *s = context;
    const struct spool *spool = &s->spool[column->number - ROW_SIDECAR];
    uint64_t before = 0, *ends = lengths ? to : malloc(count * sizeof *ends);
    if (!ends)
        return error_memory(err, count * sizeof *ends, "a column");
    bool read = (first == 0 ||
                 read_bytes(spool->ends, &before, sizeof before, (first - 1) * sizeof before)) &&
                read_bytes(spool->ends, ends, count * sizeof *ends, first * sizeof *ends);
    const uint64_t bytes = read && !lengths ? ends[count - 1] - before : 0;
    const bool separate = !lengths && column->kind != MOVE_BLOB;
    char *texts = separate ? malloc(bytes + 1) : to;
    enum status status = texts ? STATUS_OK : error_memory(err, bytes, "a column");
    if (!status && (!read || (bytes > 0 && !read_bytes(spool->texts, texts, bytes, before))))
        status = h5_row_failed(err);
    for (uint64_t i = count; lengths && !status && i-- > 0;)
        ends[i] -= i > 0 ? ends[i - 1] : before;
    for (uint64_t i = 0, start = before; separate && !status && i < count; start = ends[i++])
        store_text((uint8_t *)to + i * column->row_bytes, column, texts + (start - before),
                   (size_t)(ends[i] - start));
    if (separate)
        free(texts);
    if (!lengths)
        free(ends);
    return status;
}

enum status sidecars_columns(struct move_column *column, struct sidecars *s, struct error *err)
{
    s->input = (struct row_input){read_rows, s};
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++) {
        column[i] = (struct move_column){.kind = i >= SIDECAR_COLUMNS - SIDECAR_BLOBS ? MOVE_BLOB
                                                 : i == COLUMN_CLS && !s->text        ? MOVE_FIXED
                                                                                      : MOVE_TEXT,
                                         .number = ROW_SIDECAR + i,
                                         .row_bytes = sizeof(uint64_t),
                                         .list = &s->list,
                                         .input = &s->input};
        if (fflush(s->spool[i].texts) != 0 || fflush(s->spool[i].ends) != 0)
            return io_failed("write", err);
    }
    row_list_clear(&s->list);
    return row_list_add(&s->list, 0, 0, s->count, err);
}

bool sidecars_numbered(const struct sidecars *sidecars)
{
    return !sidecars->text;
}

/* --- reading ----------------------------------------------------------------------------------- */

struct sidecar_reader {
    struct rows *rows;
    struct blob_reader *blobs[SIDECAR_BLOBS];
    bool number; /* cls is */
    char cls[32];
};

static bool is_number(hid_t file)
{
    H5_SCOPED hid_t dataset = H5Dopen2(file, "images/cls", H5P_DEFAULT);
    H5_SCOPED hid_t type = dataset >= 0 ? H5Dget_type(dataset) : H5I_INVALID_HID;
    const bool number = type >= 0 && H5Tget_class(type) == H5T_INTEGER;
    return number;
}

bool sidecars_stored(const struct result *result)
{
    bool stored = result->has_images;
    for (unsigned i = 0; stored && i < SIDECAR_COLUMNS; i++) {
        char name[32];
        snprintf(name, sizeof name, "images/%s", sidecar_names[i]);
        stored =
            h5_is_object(result->file, name,
                         i < SIDECAR_COLUMNS - SIDECAR_BLOBS ? H5O_TYPE_DATASET : H5O_TYPE_GROUP);
    }
    return stored;
}

enum status sidecar_reader_open(struct sidecar_reader **out, struct result *result,
                                struct error *err)
{
    *out = NULL;
    if (!sidecars_stored(result))
        return STATUS_OK;
    struct sidecar_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_memory(err, sizeof *reader, "texts beside images");
    reader->number = is_number(result->file);
    enum status status =
        rows_open(&reader->rows, result->file,
                  reader->number ? &sidecar_number_table : &sidecar_text_table, err);
    if (!status && reader->rows->count != result_images(result))
        status = h5_damaged(err, result->path, "/images/key does not have a value for each image");
    for (unsigned i = 0; i < SIDECAR_BLOBS && !status; i++)
        status = blob_reader_open(&reader->blobs[i], result->file, sidecar_blob[i].group,
                                  result_images(result), SIDECAR_MOST_BYTES, err);
    if (status)
        sidecar_reader_close(&reader);
    *out = reader;
    return status;
}

enum status sidecar_reader_row(struct sidecar_reader *reader, uint64_t row,
                               const char *text[SIDECAR_COLUMNS], struct error *err)
{
    const struct sidecar_row *values;
    const void *found;
    const char *key;
    if (rows_at(reader->rows, row, &found, &key, err))
        return STATUS_FAILED;
    values = found;
    text[0] = values->key;
    text[1] = reader->number ? reader->cls : values->cls;
    snprintf(reader->cls, sizeof reader->cls, "%lld", (long long)values->number);
    if (reader->number && values->number == SIDECAR_NO_CLS)
        text[1] = "";
    for (unsigned i = 0; i < SIDECAR_BLOBS; i++) {
        const uint8_t *blob;
        uint64_t length;
        if (blob_reader_read(reader->blobs[i], row, &blob, &length, err))
            return STATUS_FAILED;
        text[SIDECAR_COLUMNS - SIDECAR_BLOBS + i] = blob ? (const char *)blob : "";
    }
    return STATUS_OK;
}

void sidecar_reader_close(struct sidecar_reader **reader)
{
    if (!reader || !*reader)
        return;
    rows_close(&(*reader)->rows);
    for (unsigned i = 0; i < SIDECAR_BLOBS; i++)
        blob_reader_close(&(*reader)->blobs[i]);
    free(*reader);
    *reader = NULL;
}
