/* selections.c: adds a selection to a copy of a file, and reads what there is. */
#include "result/selections.h"
#include "base/path.h"
#include "result/change.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP        "selections"
#define BLOCK_ROWS   65536u

/* --- writing ----------------------------------------------------------------------------------- */

static enum status write_reasons(hid_t file, hid_t group, const char *axis,
                                 const struct selection_values *values, const char *path,
                                 struct error *err)
{
    char text[SELECTION_REASON];
    struct text_size size = {0};
    hid_t dataset = H5I_INVALID_HID;
    const uint64_t rows = values->about.rows;
    for (uint64_t i = 0; i < rows; i++) {
        values->reason(values->context, i, text);
        text_size_add(&size, strlen(text));
    }
    char *block = calloc(BLOCK_ROWS, SELECTION_REASON);
    enum status status =
        block ? h5_create_texts(&dataset, group, "reason", rows, &size, path, err)
              : error_memory(err, BLOCK_ROWS * SELECTION_REASON, "reasons of a selection");
    if (status == STATUS_OK)
        status = h5_attach_scale(file, dataset, 0, axis, path, err);
    const size_t width = status == STATUS_OK ? h5_text_width(dataset) : 1;
    for (uint64_t first = 0, count; first < rows && status == STATUS_OK; first += count) {
        count = rows - first < BLOCK_ROWS ? rows - first : BLOCK_ROWS;
        memset(block, 0, count * width);
        for (uint64_t i = 0; i < count; i++) {
            values->reason(values->context, first + i, text);
            memcpy(block + i * width, text, strlen(text));
        }
        status = h5_write_rows(dataset, VALUE_TEXT, first, count, block, path, err);
    }
    free(block);
    if (status == STATUS_OK)
        return h5_finish_dataset(&dataset, path, err);
    h5_close(&dataset);
    return status;
}

static enum status write_selection(void *context, hid_t file, const char *path, struct error *err)
{
    const struct selection_values *values = context;
    const struct selection_about *about = &values->about;
    char axis[AXIS_NAME_MAX], omitted[AXIS_NAME_MAX];
    hid_t all = H5I_INVALID_HID, group = H5I_INVALID_HID;
    const char *const axes[] = {axis, omitted};
    const hsize_t size[] = {about->rows, about->omitted};
    enum status status;
    axis_name(axis, "selection", about->name);
    axis_name(omitted, "omitted", about->name);
    if ((status = h5_make_group(&all, file, GROUP, path, err)) ||
        (status = h5_create_group(&group, all, about->name, path, err)) ||
        (status = h5_put_text(group, "method", about->method, path, err)) ||
        (status = h5_put_text(group, "content", about->content, path, err)) ||
        (status = h5_put_text(group, "parameters", about->parameters, path, err)) ||
        (status = h5_put_number(group, "seed", VALUE_I64, &about->seed, path, err)) ||
        (status = h5_put_values(file, group, "rows", VALUE_I64, 1, size, axes, values->row, path, err)) ||
        (status = write_reasons(file, group, axis, values, path, err)))
        goto out;
    if (about->omitted == 0)
        goto out;
    const void *const column[] = {values->omitted, values->kept, values->cosine};
    static const char *const names[] = {"omitted", "kept", "cosine"};
    for (int i = 0; i < 3 && status == STATUS_OK; i++)
        status = h5_put_values(file, group, names[i], i < 2 ? VALUE_I64 : VALUE_F32, 1, size + 1,
                               axes + 1, column[i], path, err);
out:
    h5_close(&group);
    h5_close(&all);
    return status;
}

enum status selections_write(struct result *result, const struct selection_values *values,
                             struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    const struct change change = {.output = result->path,
                                  .base = result,
                                  .replaces = name,
                                  .add = write_selection,
                                  .context = (void *)(uintptr_t)values};
    snprintf(name, sizeof name, "/" GROUP "/%s", values->about.name);
    return change_make(&change, err);
}

/* --- reading ----------------------------------------------------------------------------------- */

static enum status open_column(hid_t *dataset, uint64_t *rows, hid_t group, const char *selection,
                               const char *name, enum value_type type, const char *path,
                               struct error *err)
{
    char where[FEATURE_NAME_MAX + 32];
    hsize_t size;
    snprintf(where, sizeof where, "/" GROUP "/%s/%s", selection, name);
    enum status status = h5_open_dataset(dataset, group, name, type, 1, &size, where, path, err);
    if (status == STATUS_OK)
        *rows = size;
    return status;
}

static enum status read_about(struct selection_about *about, hid_t all, const char *name,
                              const char *path, struct error *err)
{
    hid_t group, dataset = H5I_INVALID_HID;
    *about = (struct selection_about){0};
    snprintf(about->name, sizeof about->name, "%s", name);
    enum status status = h5_open_group(&group, all, name, path, err);
    if (status != STATUS_OK)
        return status;
    if ((status = h5_get_short_text(about->method, sizeof about->method, group, "method", path, err)) ||
        (status = h5_get_short_text(about->content, sizeof about->content, group, "content", path, err)) ||
        (status = h5_get_text(&about->parameters, group, "parameters", true, path, err)) ||
        (status = open_column(&dataset, &about->rows, group, name, "rows", VALUE_I64, path, err)))
        goto out;
    h5_close(&dataset);
    h5_get_integer(group, "seed", &about->seed);
    if (h5_is_object(group, "omitted", H5O_TYPE_DATASET))
        status = open_column(&dataset, &about->omitted, group, name, "omitted", VALUE_I64, path, err);
out:
    h5_close(&dataset);
    h5_close(&group);
    return status;
}

enum status selections_list(struct selections *out, struct result *result, struct error *err)
{
    struct h5_names names;
    hid_t all;
    *out = (struct selections){0};
    enum status status = h5_list_own(&names, &all, result->file, GROUP, H5O_TYPE_GROUP, "method",
                                     result->path, err);
    if (status == STATUS_OK && !(out->about = calloc(names.count + 1u, sizeof *out->about)))
        status = error_memory(err, names.count * sizeof *out->about, "a list of selections");
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++)
        if (schema_name_valid(names.name[i]))
            status = read_about(&out->about[out->count++], all, names.name[i], result->path, err);
    h5_free_names(&names);
    h5_close(&all);
    return status;
}

void selections_clear(struct selections *selections)
{
    for (unsigned i = 0; i < selections->count; i++)
        free(selections->about[i].parameters);
    free(selections->about);
    *selections = (struct selections){0};
}

const struct selection_about *selections_find(const struct selections *selections, const char *name)
{
    for (unsigned i = 0; i < selections->count; i++)
        if (strcmp(selections->about[i].name, name) == 0)
            return &selections->about[i];
    return NULL;
}

enum status selections_read(struct result *result, const struct selection_about *about, int64_t *rows,
                            char **reasons, struct error *err)
{
    char name[FEATURE_NAME_MAX + 16];
    hid_t group, dataset[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
    uint64_t count[2];
    snprintf(name, sizeof name, GROUP "/%s", about->name);
    enum status status = h5_open_group(&group, result->file, name, result->path, err);
    if (status != STATUS_OK)
        return status;
    if ((status = open_column(&dataset[0], &count[0], group, about->name, "rows", VALUE_I64,
                              result->path, err)) ||
        (status = open_column(&dataset[1], &count[1], group, about->name, "reason", VALUE_TEXT,
                              result->path, err)))
        goto out;
    if (count[0] != about->rows || count[1] != count[0]) {
        status = h5_damaged(err, result->path, "/%s has an impossible size", name);
        goto out;
    }
    status = h5_read_rows(dataset[0], VALUE_I64, 0, about->rows, rows, result->path, err);
    for (uint64_t i = 0; i < about->rows && status == STATUS_OK; i++) {
        if (rows[i] < 0 || (uint64_t)rows[i] >= result_images(result))
            status = h5_damaged(err, result->path, "/%s/rows names a row that is no image", name);
        else if (reasons)
            status = h5_read_text(&reasons[i], dataset[1], i, result->path, err);
    }
out:
    h5_close(&dataset[0]);
    h5_close(&dataset[1]);
    h5_close(&group);
    return status;
}

/* --- rows that have moved ---------------------------------------------------------------------- */

struct moving {
    int64_t *rows, *omitted, *kept;
    float *cosine;
    char **reasons;
};

static void reason_as_stored(const void *context, uint64_t i, char text[SELECTION_REASON])
{
    const struct moving *moving = context;
    snprintf(text, SELECTION_REASON, "%s", moving->reasons[i]);
}

static enum status read_omitted(struct moving *m, struct result *from, const struct selection_about *about,
                                struct error *err)
{
    static const char *const names[] = {"omitted", "kept", "cosine"};
    void *const column[] = {m->omitted, m->kept, m->cosine};
    char name[FEATURE_NAME_MAX + 16];
    hid_t group, dataset;
    uint64_t count = 0;
    snprintf(name, sizeof name, GROUP "/%s", about->name);
    enum status status = h5_open_group(&group, from->file, name, from->path, err);
    for (int i = 0; i < 3 && status == STATUS_OK && about->omitted > 0; i++) {
        const enum value_type type = i < 2 ? VALUE_I64 : VALUE_F32;
        status = open_column(&dataset, &count, group, about->name, names[i], type, from->path, err);
        if (status == STATUS_OK && count != about->omitted)
            status = h5_damaged(err, from->path, "/%s has an impossible size", name);
        if (status == STATUS_OK)
            status = h5_read_rows(dataset, type, 0, count, column[i], from->path, err);
        h5_close(&dataset);
    }
    h5_close(&group);
    return status;
}

static bool is_gone(const int64_t *now, const struct result *from, int64_t row)
{
    return row < 0 || (uint64_t)row >= result_images(from) || now[row] < 0;
}

static enum status move_selection(hid_t file, const char *path, struct result *from,
                                  const struct selection_about *about, const int64_t *now,
                                  uint64_t *gone, struct error *err)
{
    struct moving m = {.rows = malloc(about->rows * sizeof *m.rows + 1),
                       .omitted = malloc(about->omitted * sizeof *m.omitted + 1),
                       .kept = malloc(about->omitted * sizeof *m.kept + 1),
                       .cosine = malloc(about->omitted * sizeof *m.cosine + 1),
                       .reasons = calloc(about->rows + 1, sizeof *m.reasons)};
    struct selection_values values = {.about = *about, .reason = reason_as_stored, .context = &m};
    uint64_t rows = 0, omitted = 0;
    enum status status = m.rows && m.omitted && m.kept && m.cosine && m.reasons
                             ? selections_read(from, about, m.rows, m.reasons, err)
                             : error_memory(err, about->rows * 16 + about->omitted * 20, "a selection");
    if (status == STATUS_OK)
        status = read_omitted(&m, from, about, err);
    for (uint64_t i = 0; i < about->rows && status == STATUS_OK; i++) {
        if (is_gone(now, from, m.rows[i]))
            continue;
        char *reason = m.reasons[i];
        m.reasons[i] = m.reasons[rows];
        m.reasons[rows] = reason;
        m.rows[rows++] = now[m.rows[i]];
    }
    for (uint64_t i = 0; i < about->omitted && status == STATUS_OK; i++) {
        if (is_gone(now, from, m.omitted[i]) || is_gone(now, from, m.kept[i]))
            continue;
        m.omitted[omitted] = now[m.omitted[i]];
        m.kept[omitted] = now[m.kept[i]];
        m.cosine[omitted++] = m.cosine[i];
    }
    *gone += about->rows - rows;
    values.about.rows = rows;
    values.about.omitted = omitted;
    values.row = m.rows;
    values.omitted = m.omitted;
    values.kept = m.kept;
    values.cosine = m.cosine;
    if (status == STATUS_OK)
        status = write_selection(&values, file, path, err);
    for (uint64_t i = 0; m.reasons && i < about->rows; i++)
        free(m.reasons[i]);
    free(m.rows);
    free(m.omitted);
    free(m.kept);
    free(m.cosine);
    free(m.reasons);
    return status;
}

enum status selections_carry(hid_t file, const char *path, struct result *from, const int64_t *now,
                             uint64_t *gone, struct error *err)
{
    struct selections all;
    enum status status = selections_list(&all, from, err);
    *gone = 0;
    for (unsigned i = 0; i < all.count && status == STATUS_OK; i++)
        status = move_selection(file, path, from, &all.about[i], now, gone, err);
    selections_clear(&all);
    return status;
}

void selections_root(char root[65], struct result *result, const char *dataset)
{
    char name[2 * FEATURE_NAME_MAX + 32];
    char *text = NULL;
    *root = '\0';
    snprintf(name, sizeof name, "checksums%s", dataset);
    if (!h5_is_object(result->file, "checksums", H5O_TYPE_GROUP) ||
        !h5_is_object(result->file, name, H5O_TYPE_DATASET))
        return;
    hid_t checksums = H5Dopen2(result->file, name, H5P_DEFAULT);
    if (h5_get_text(&text, checksums, "root", false, result->path, NULL) == STATUS_OK && text)
        snprintf(root, 65, "%s", text);
    free(text);
    h5_close(&checksums);
}
