/* sidecars_read.c: reads the columns of sidecar texts. */
#include "result/result_internal.h"
#include "result/sidecars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (!status && rows_count(reader->rows) != result_images(result))
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
