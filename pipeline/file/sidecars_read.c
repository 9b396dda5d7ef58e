/* sidecars_read.c: reading the columns of what lies beside the pictures. */
#include "file/result_internal.h"
#include "file/sidecars.h"
#include "file/vlen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sidecar_reader {
    struct result *result;
    hid_t dataset[SIDECAR_COLUMNS];
    bool number; /* cls is */
    char *text[SIDECAR_COLUMNS];
};

static enum status open_column(struct sidecar_reader *reader, unsigned i, struct error *err)
{
    struct result *result = reader->result;
    char name[32], where[40];
    hsize_t rows = 0;
    snprintf(name, sizeof name, "images/%s", sidecar_names[i]);
    snprintf(where, sizeof where, "/%s", name);
    const bool number = i == 1 && reader->number;
    if (h5_open_dataset(&reader->dataset[i], result->file, name, number ? VALUE_I64 : VALUE_TEXT, 1,
                        &rows, where, result->path, err))
        return STATUS_FAILED;
    return rows == result_images(result)
               ? STATUS_OK
               : h5_damaged(err, result->path, "%s does not have a value for each image", where);
}

static bool is_number(hid_t file)
{
    hid_t dataset = H5Dopen2(file, "images/cls", H5P_DEFAULT);
    hid_t type = dataset >= 0 ? H5Dget_type(dataset) : H5I_INVALID_HID;
    const bool number = type >= 0 && H5Tget_class(type) == H5T_INTEGER;
    h5_close(&type);
    h5_close(&dataset);
    return number;
}

bool sidecars_stored(const struct result *result)
{
    bool stored = result->has_images;
    for (unsigned i = 0; stored && i < SIDECAR_COLUMNS; i++) {
        char name[32];
        snprintf(name, sizeof name, "images/%s", sidecar_names[i]);
        stored = h5_is_object(result->file, name, H5O_TYPE_DATASET);
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
    *reader = (struct sidecar_reader){.result = result, .number = is_number(result->file)};
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++)
        reader->dataset[i] = H5I_INVALID_HID;
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++)
        if (open_column(reader, i, err)) {
            sidecar_reader_close(&reader);
            return STATUS_FAILED;
        }
    *out = reader;
    return STATUS_OK;
}

static enum status read_text(struct sidecar_reader *reader, unsigned i, uint64_t row,
                             struct error *err)
{
    struct result *result = reader->result;
    uint8_t descriptor[VLEN_DESCRIPTOR];
    const uint8_t *bytes = NULL;
    uint32_t length = 0;
    if (vlen_descriptors(result->vlen, reader->dataset[i], row, 1, descriptor, err) ||
        vlen_element(result->vlen, descriptor, 1, &bytes, &length, err))
        return STATUS_FAILED;
    free(reader->text[i]);
    reader->text[i] = strndup(bytes ? (const char *)bytes : "", length);
    return reader->text[i] ? STATUS_OK : error_memory(err, length, "a text");
}

enum status sidecar_reader_row(struct sidecar_reader *reader, uint64_t row,
                               const char *text[SIDECAR_COLUMNS], struct error *err)
{
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++) {
        int64_t value;
        if (i != 1 || !reader->number) {
            if (read_text(reader, i, row, err))
                return STATUS_FAILED;
        } else {
            if (h5_read_rows(reader->dataset[i], VALUE_I64, row, 1, &value, reader->result->path,
                             err))
                return STATUS_FAILED;
            free(reader->text[i]);
            reader->text[i] = NULL;
            if (value == SIDECAR_NO_CLS)
                reader->text[i] = strdup("");
            else if (asprintf(&reader->text[i], "%lld", (long long)value) < 0)
                reader->text[i] = NULL;
            if (!reader->text[i])
                return error_memory(err, 32, "a class");
        }
        text[i] = reader->text[i];
    }
    return STATUS_OK;
}

void sidecar_reader_close(struct sidecar_reader **reader)
{
    if (!reader || !*reader)
        return;
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++) {
        h5_close(&(*reader)->dataset[i]);
        free((*reader)->text[i]);
    }
    free(*reader);
    *reader = NULL;
}
