/* sidecars.c: writes the columns. Whether cls is a number is known only after the last row, so rows
 * are first kept in temporary files, one for each column.
 *
 * Rows find their records by reading forward, since both are in the same order. A row may have no
 * record: its file could not be read. The first such row reads to the end and keeps hashes of all
 * records, so that the following rows need not. */
#include "result/sidecars.h"

#include "base/array.h"
#include "base/compare.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/source_name.h"
#include "base/unnamed_file.h"
#include "result/blobs.h"
#include "result/result_internal.h"

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
    FILE *walked;                           /* records of the walk */
    FILE *rows[SIDECAR_COLUMNS];            /* the texts of the rows, each ended by NUL */
    uint64_t count;                         /* rows */
    bool reading;                           /* `walked` is being read */
    bool text;                              /* some cls is not an integer */
    struct text_size size[SIDECAR_COLUMNS]; /* of the rows */
    bool noted;                             /* a row had no record: */
    uint64_t *ahead;                        /* hashes of the records that followed it, sorted */
    size_t ahead_count;
    char *path;      /* of the record last read, */
    uint16_t source; /* and its source */
    char *record[SIDECAR_COLUMNS];
    struct sidecar_reader *earlier; /* NULL: there is none */
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
        created = (sidecars->rows[i] = temporary_file(directory)) != NULL;
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
    for (int i = 0; i < SIDECAR_COLUMNS; i++) {
        if ((*sidecars)->rows[i])
            fclose((*sidecars)->rows[i]);
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

/* --- texts, each ended by NUL ---------------------------------------------------------------- */

/* An empty text for NULL. */
static void put_text(FILE *file, const char *text)
{
    if (text)
        fputs(text, file);
    fputc(0, file);
}

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
    for (int i = 0; i < SIDECAR_COLUMNS; i++)
        put_text(file, text[i]);
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

enum status sidecars_row_of(struct sidecars *sidecars, const char *const text[SIDECAR_COLUMNS],
                            struct error *err)
{
    const char *cls = text[COLUMN_CLS];
    sidecars->text |= cls && *cls && !is_integer(cls);
    bool failed = false;
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++) {
        put_text(sidecars->rows[i], text[i]);
        text_size_add(&sidecars->size[i], text[i] ? strlen(text[i]) : 0);
        failed = failed || ferror(sidecars->rows[i]);
    }
    sidecars->count++;
    return failed ? io_failed("write", err) : STATUS_OK;
}

/* Remembers the record last read. */
static enum status note_ahead(struct sidecars *s, struct error *err)
{
    uint64_t *grown = array_with_room(s->ahead, s->ahead_count, sizeof *grown);
    if (!grown)
        return error_memory(err, array_bytes(s->ahead_count, sizeof *grown), "texts beside images");
    s->ahead = grown;
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

enum status sidecars_keep(struct sidecars *sidecars, struct result *earlier, struct error *err)
{
    return sidecar_reader_open(&sidecars->earlier, earlier, err);
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

struct spooled {
    struct sidecars *sidecars;
    unsigned number;
    int64_t value; /* for a cls that is a number */
};

/* The first row begins from the start. */
static const void *text_of_row(void *context, uint64_t row, size_t *bytes)
{
    const struct spooled *column = context;
    FILE *file = column->sidecars->rows[column->number];
    char **text = &column->sidecars->record[column->number];
    if (row == 0 && fseeko(file, 0, SEEK_SET) != 0)
        return NULL;
    errno = 0;
    if (!take_text(text, file))
        return NULL;
    *bytes = strlen(*text);
    return *text;
}

static const void *number_of_row(void *context, uint64_t row, size_t *bytes)
{
    struct spooled *column = context;
    const char *text = text_of_row(context, row, bytes);
    if (!text)
        return NULL;
    column->value = *text ? strtoll(text, NULL, 10) : SIDECAR_NO_CLS;
    *bytes = sizeof column->value;
    return &column->value;
}

enum status sidecars_same(bool *same, struct sidecars *s, struct error *err)
{
    enum status status = STATUS_OK;
    *same = s->earlier != NULL;
    for (uint64_t row = 0; *same && row < s->count && !status; row++) {
        const char *stored[SIDECAR_COLUMNS];
        status = sidecar_reader_row(s->earlier, row, stored, err);
        for (unsigned i = 0; i < SIDECAR_COLUMNS && *same && !status; i++) {
            struct spooled column = {s, i, 0};
            size_t length;
            const char *text = text_of_row(&column, row, &length);
            status = text ? STATUS_OK : h5_row_failed(err);
            *same = text && strcmp(text, stored[i]) == 0;
        }
    }
    return status;
}

enum status sidecars_write(struct sidecars *s, hid_t file, struct error *err)
{
    H5_SCOPED hid_t images = H5I_INVALID_HID;
    enum status status = h5_open_group(&images, file, image_table.group, err);
    for (unsigned i = 0; i < SIDECAR_COLUMNS && !status; i++) {
        const unsigned texts = SIDECAR_COLUMNS - SIDECAR_BLOBS;
        const bool number = i == COLUMN_CLS && !s->text;
        struct spooled column = {s, i, 0};
        status =
            i >= texts
                ? blobs_write(file, sidecar_blob[i - texts].group, sidecar_blob[i - texts].axis,
                              s->count, s->size[i].bytes, text_of_row, &column, err)
                : h5_put_column(file, images, sidecar_names[i], number ? VALUE_I64 : VALUE_TEXT,
                                s->count, &s->size[i], image_table.axis,
                                number ? number_of_row : text_of_row, &column, err);
    }
    return status;
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
