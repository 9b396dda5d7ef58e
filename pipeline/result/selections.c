/* selections.c: adds a selection to a copy of a file, and reads selections. */
#include "result/selections.h"
#include "base/held.h"
#include "result/change.h"
#include "result/defined.h"
#include "result/parts.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "selections"

#define ATTRIBUTES 4
static const struct attribute attributes[ATTRIBUTES] = {
    {"method", VALUE_TEXT, offsetof(struct selection_about, method), 16, false, 0, 0},
    {"content", VALUE_TEXT, offsetof(struct selection_about, content), 65, false, 0, 0},
    {"parameters", VALUE_TEXT, offsetof(struct selection_about, parameters), 0, false, 0, 0},
    {"seed", VALUE_I64, offsetof(struct selection_about, seed), 0, true, 0, 0}};

static const struct {
    const char *name;
    enum value_type type;
} omitted_column[] = {{"omitted", VALUE_I64}, {"kept", VALUE_I64}, {"cosine", VALUE_F32}};

/* --- writing ----------------------------------------------------------------------------------- */

struct reasons {
    const struct selection_values *values;
    char text[SELECTION_REASON];
};

static const void *reason_of_row(void *context, uint64_t row, size_t *bytes)
{
    struct reasons *reasons = context;
    reasons->values->reason(reasons->values->context, row, reasons->text);
    *bytes = strlen(reasons->text);
    return reasons->text;
}

static enum status write_selection(void *context, hid_t file, struct error *err)
{
    const struct selection_values *values = context;
    const struct selection_about *about = &values->about;
    struct reasons reasons = {.values = values};
    char axis[AXIS_NAME_MAX], omitted[AXIS_NAME_MAX];
    H5_SCOPED hid_t all = H5I_INVALID_HID, group = H5I_INVALID_HID;
    const char *const axes[] = {axis, omitted};
    const hsize_t size[] = {about->rows, about->omitted};
    const void *const column[] = {values->omitted, values->kept, values->cosine};
    axis_name(axis, "selection", about->name);
    axis_name(omitted, "omitted", about->name);
    if (h5_make_group(&all, file, GROUP, err) || h5_create_group(&group, all, about->name, err) ||
        h5_put_attributes(group, attributes, ATTRIBUTES, about, err) ||
        h5_put_values(file, group, "rows", VALUE_I64, 1, size, axes, values->row, err) ||
        h5_put_column(file, group, "reason", about->rows, axis, reason_of_row, &reasons, err))
        return STATUS_FAILED;
    for (int i = 0; i < 3 && about->omitted > 0; i++)
        if (h5_put_values(file, group, omitted_column[i].name, omitted_column[i].type, 1, size + 1,
                          axes + 1, column[i], err))
            return STATUS_FAILED;
    return STATUS_OK;
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

static enum status open_column(hid_t *dataset, hsize_t *rows, const struct result *from,
                               const char *selection, const char *name, enum value_type type,
                               struct error *err)
{
    char where[FEATURE_NAME_MAX + 32];
    snprintf(where, sizeof where, "/" GROUP "/%s/%s", selection, name);
    return h5_open_dataset(dataset, from->file, where, type, 1, rows, err);
}

/* Reads a whole column, which must have that many rows. */
static enum status read_column(void *values, uint64_t rows, const struct result *from,
                               const char *selection, const char *name, enum value_type type,
                               struct error *err)
{
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    hsize_t found;
    if (open_column(&dataset, &found, from, selection, name, type, err))
        return STATUS_FAILED;
    return found == rows
               ? h5_read_rows(dataset, type, 0, rows, values, err)
               : h5_damaged(err, from->path, "/" GROUP "/%s has an impossible size", selection);
}

static enum status read_about(struct selection_about *about, const struct result *from, hid_t all,
                              const char *name, struct error *err)
{
    H5_SCOPED hid_t group = H5I_INVALID_HID, rows = H5I_INVALID_HID, omitted = H5I_INVALID_HID;
    hsize_t count[2] = {0, 0};
    *about = (struct selection_about){0};
    snprintf(about->name, sizeof about->name, "%s", name);
    if (h5_open_group(&group, all, name, err) ||
        h5_get_attributes(about, group, attributes, ATTRIBUTES, err) ||
        open_column(&rows, &count[0], from, name, "rows", VALUE_I64, err) ||
        (h5_is_object(group, "omitted", H5O_TYPE_DATASET) &&
         open_column(&omitted, &count[1], from, name, "omitted", VALUE_I64, err)))
        return STATUS_FAILED;
    about->rows = count[0];
    about->omitted = count[1];
    return STATUS_OK;
}

enum status selections_list(struct selections *out, struct result *result, struct error *err)
{
    H5_SCOPED_NAMES names = {0};
    H5_SCOPED hid_t all = H5I_INVALID_HID;
    *out = (struct selections){0};
    enum status status = defined_list(&names, &all, result->file, GROUP, err);
    if (status == STATUS_OK && !(out->about = calloc(names.count + 1u, sizeof *out->about)))
        status = error_memory(err, names.count * sizeof *out->about, "a list of selections");
    for (unsigned i = 0; i < names.count && status == STATUS_OK; i++)
        if (schema_name_valid(names.name[i]))
            status = read_about(&out->about[out->count++], result, all, names.name[i], err);
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

enum status selections_read(struct result *result, const struct selection_about *about,
                            int64_t *rows, char ***reasons, struct error *err)
{
    H5_SCOPED hid_t dataset = H5I_INVALID_HID;
    hsize_t count;
    if (read_column(rows, about->rows, result, about->name, "rows", VALUE_I64, err) ||
        open_column(&dataset, &count, result, about->name, "reason", VALUE_TEXT, err))
        return STATUS_FAILED;
    enum status status =
        count == about->rows
            ? STATUS_OK
            : h5_damaged(err, result->path, "/" GROUP "/%s has an impossible size", about->name);
    for (uint64_t i = 0; i < about->rows && status == STATUS_OK; i++)
        if (rows[i] < 0 || (uint64_t)rows[i] >= result_images(result))
            status = h5_damaged(err, result->path,
                                "/" GROUP "/%s/rows names a row that does not exist", about->name);
    return status == STATUS_OK && reasons
               ? h5_read_texts(reasons, dataset, about->rows, "a selection", err)
               : status;
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

static bool is_gone(const int64_t *now, const struct result *from, int64_t row)
{
    return row < 0 || (uint64_t)row >= result_images(from) || now[row] < 0;
}

static enum status move_selection(hid_t file, struct result *from,
                                  const struct selection_about *about, const int64_t *now,
                                  uint64_t *gone, struct error *err)
{
    SCOPED_HELD held = {0};
    struct moving m = {.rows = held_array(&held, about->rows, sizeof *m.rows),
                       .omitted = held_array(&held, about->omitted, sizeof *m.omitted),
                       .kept = held_array(&held, about->omitted, sizeof *m.kept),
                       .cosine = held_array(&held, about->omitted, sizeof *m.cosine)};
    struct selection_values values = {.about = *about, .reason = reason_as_stored, .context = &m};
    uint64_t rows = 0, omitted = 0;
    enum status status = held_check(&held, "a selection", err);
    if (status == STATUS_OK)
        status = selections_read(from, about, m.rows, &m.reasons, err);
    void *const column[] = {m.omitted, m.kept, m.cosine};
    for (int i = 0; i < 3 && status == STATUS_OK && about->omitted > 0; i++)
        status = read_column(column[i], about->omitted, from, about->name, omitted_column[i].name,
                             omitted_column[i].type, err);
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
        status = write_selection(&values, file, err);
    texts_free(m.reasons);
    return status;
}

enum status selections_carry(hid_t file, struct result *from, const int64_t *now, uint64_t *gone,
                             struct error *err)
{
    struct selections all;
    enum status status = selections_list(&all, from, err);
    *gone = 0;
    for (unsigned i = 0; i < all.count && status == STATUS_OK; i++)
        status = move_selection(file, from, &all.about[i], now, gone, err);
    selections_clear(&all);
    return status;
}

void selections_root(char root[65], struct result *result, const char *dataset)
{
    char name[2 * FEATURE_NAME_MAX + 32];
    snprintf(name, sizeof name, "checksums%s", dataset);
    parts_checksum(root, result->file, name, "root", NULL);
}
