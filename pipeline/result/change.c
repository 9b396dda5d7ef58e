/* change.c: copies of all objects, and what stands on them. */
#include "result/change.h"
#include "base/output.h"
#include "result/checksums.h"
#include "result/clusters.h"
#include "result/copies.h"
#include "result/foreign.h"
#include "result/parts.h"
#include "result/shown.h"
#include <stdlib.h>
#include <string.h>

struct change {
    struct output *output;
    struct result *base; /* NULL: there is none */
    hid_t file;
    const char *path; /* the final one, for messages */
    const char *const *leave_out;
    unsigned count;
    const char *from, *to;    /* of a clustering that is renamed; NULL */
    const char *run_clusters; /* as in /runs */
};

/* Checksums and runs come in the end. */
static bool comes_later(const char *name)
{
    return strcmp(name, "/checksums") == 0 || strcmp(name, "/runs") == 0;
}

static bool is_left_out(const void *context, const char *name)
{
    const struct change *change = context;
    for (unsigned i = 0; i < change->count; i++)
        if (strcmp(change->leave_out[i], name) == 0)
            return true;
    return false;
}

static bool is_not_copied_yet(const void *context, const char *name)
{
    return comes_later(name) || is_left_out(context, name);
}

enum status change_open(struct change **out, const char *output, struct result *base,
                        const char *const *leave_out, unsigned count, struct error *err)
{
    struct change *change = calloc(1, sizeof *change);
    *out = change;
    if (!change)
        return error_memory(err, sizeof *change, "a file");
    *change = (struct change){.base = base,
                              .file = H5I_INVALID_HID,
                              .path = output,
                              .leave_out = leave_out,
                              .count = count,
                              .run_clusters = base ? base->run_clusters : NULL};
    enum status status = output_open(&change->output, output, err);
    if (status)
        goto out;
    const char *temporary = output_temporary(change->output);
    status = base && result_parts(base) > 0 ? h5_create_virtual_file(&change->file, temporary, err)
                                            : h5_create_file(&change->file, temporary, err);
    if (!status && base) {
        const struct copies copies = {.from = base,
                                      .to = change->file,
                                      .path = output,
                                      .leave_out = is_not_copied_yet,
                                      .context = change};
        status = copies_make(&copies, "/", err);
        if (!status && result_parts(base) > 0 &&
            !(status = h5_flush_file(change->file, output, err)))
            status = parts_attach(change->file, temporary, err);
    } else if (!status && (schema_put_root(change->file, output, err) ||
                           h5_put_text(change->file, "parameters", "{}", output, err))) {
        status = STATUS_FAILED;
    }
out:
    if (status)
        change_close(out);
    return status;
}

hid_t change_file(const struct change *change)
{
    return change->file;
}

void change_rename(struct change *change, const char *from, const char *to)
{
    change->from = from;
    change->to = to;
}

void change_note_run(struct change *change, const char *name)
{
    change->run_clusters = name;
}

/* A group is there only while it has members. */
static enum status remove_empty(const struct change *change, struct error *err)
{
    static const char *const groups[] = {"clusters", "neighbours"};
    for (int i = 0; i < 2; i++) {
        H5G_info_t info;
        if (h5_is_object(change->file, groups[i], H5O_TYPE_GROUP) &&
            H5Gget_info_by_name(change->file, groups[i], &info, H5P_DEFAULT) >= 0 &&
            info.nlinks == 0 && H5Ldelete(change->file, groups[i], H5P_DEFAULT) < 0)
            return h5_fail(err, "H5Ldelete", "write", change->path);
    }
    return STATUS_OK;
}

static enum status copy_runs(const struct change *change, struct error *err)
{
    const struct copies copies = {.from = change->base, .to = change->file, .path = change->path};
    hid_t runs;
    if (!h5_is_object(change->base->file, "runs", H5O_TYPE_GROUP))
        return STATUS_OK;
    if (h5_create_group(&runs, change->file, "runs", change->path, err))
        return STATUS_FAILED;
    /* Unless it is noted here, that of before would be copied. */
    enum status status = h5_put_text(
        runs, RUN_CLUSTERS, change->run_clusters ? change->run_clusters : "", change->path, err);
    if (!status)
        status = copies_make(&copies, "/runs", err);
    if (!status && !change->run_clusters && H5Adelete(runs, RUN_CLUSTERS) < 0)
        status = h5_fail(err, "H5Adelete", "write", change->path);
    h5_close(&runs);
    return status;
}

static enum status complete(struct change *change, struct error *err)
{
    struct result *base = change->base;
    struct foreign_copied copied;
    const struct checksums_kept kept = {.file = base ? base->file : H5I_INVALID_HID,
                                        .path = base ? base->path : NULL,
                                        .leave_out = is_left_out,
                                        .context = change,
                                        .renamed_from = change->from,
                                        .renamed_to = change->to};
    if (base && (remove_empty(change, err) || foreign_copy(&copied, base->file, base->path,
                                                           change->file, change->path, "/", err)))
        return STATUS_FAILED;
    if (change->from && clusters_rename(change->file, change->from, change->to, change->path, err))
        return STATUS_FAILED;
    if (checksums_write(change->file, change->path, base ? &kept : NULL, NULL, 0, err))
        return STATUS_FAILED;
    if (base && copy_runs(change, err))
        return STATUS_FAILED;
    return shown_write(change->file, change->path, err);
}

enum status change_commit(struct change *change, struct error *err)
{
    if (complete(change, err))
        return STATUS_FAILED;
    parts_detach(change->file);
    if (h5_finish_file(&change->file, change->path, err))
        return STATUS_FAILED;
    return output_commit(change->output, err);
}

void change_close(struct change **change)
{
    struct change *c = *change;
    if (!c)
        return;
    *change = NULL;
    if (c->file > 0) {
        parts_detach(c->file);
        h5_discard_file(&c->file);
    }
    output_close(&c->output);
    free(c);
}
