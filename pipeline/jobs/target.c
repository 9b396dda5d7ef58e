/* target.c: decides whether clusters are stored in their input or in a separate file, and whether
 * they exist already. */
#include "jobs/target.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "result/parameters.h"
#include "result/workdir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool same_path(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* Whether the rows of the clusters in `holder` have these paths, or none if `paths` is NULL. */
static enum status check_paths(struct result *holder, const struct path_list *paths,
                               struct error *err)
{
    bool same = holder->named == (paths != NULL);
    if (paths && same)
        same = result_images(holder) == paths->count;
    for (uint64_t i = 0; paths && same && i < paths->count; i++) {
        struct result_image image;
        size_t length;
        if (result_image_at(holder, i, &image, err))
            return STATUS_FAILED;
        const char *path = path_list_at(paths, i, &length);
        same = strlen(image.path_raw) == length && memcmp(image.path_raw, path, length) == 0;
    }
    if (same)
        return STATUS_OK;
    return error_set(
        err, STATUS_USAGE,
        "%s holds clusters of rows with %s, so nothing is added to it; name another file",
        PATH_TEXT(holder->path),
        !paths          ? "paths (a list of the same paths is needed)"
        : holder->named ? "other paths"
                        : "no paths");
}

enum status target_open(struct target *out, const struct matrix_input *input, const char *wanted,
                        const struct path_list *paths, struct error *err)
{
    struct stat st;
    *out = (struct target){0};
    if (!wanted && !input->result) {
        error_set(err, STATUS_USAGE, "the result for this INPUT requires a separate file");
        error_remedy(err, REMEDY_OWN_OUTPUT);
        return STATUS_USAGE;
    }
    if (!wanted || (input->result && same_path(wanted, input->path))) {
        out->output = out->base = input->path;
        return STATUS_OK;
    }
    out->output = wanted;
    const char *shown = PATH_TEXT(wanted);
    if (stat(wanted, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK; /* output_open reports the problem */
    if (result_open(&out->holder, wanted, err) != STATUS_OK)
        return error_remedy(err, REMEDY_OTHER_OUTPUT);
    if (!out->holder->named && (result_images(out->holder) > 0 || out->holder->feature_count > 0))
        return error_set(err, STATUS_USAGE,
                         "%s holds other images, so it is not overwritten; name another file",
                         shown);
    out->base = wanted;
    return check_paths(out->holder, paths, err);
}

struct result *target_holder(const struct target *target, const struct matrix_input *input)
{
    return target->holder ? target->holder : target->base ? input->result : NULL;
}

/* --- evidence that rows outside clpipe files are unchanged -------------------------------------- */

/* The sample is SHA-256 of the numbers of rows and columns (uint64) and the float32 values of 64 rows from
 * the first to the last, evenly spaced (all if there are fewer). It detects changes that times do not
 * show, such as copies that keep them. */
#define SAMPLE_ROWS 64
/* The coarsest resolution of file systems' times. */
#define SETTLED_NS 2000000000

static enum status sample(struct result_origin *out, const struct matrix_source *rows,
                          struct error *err)
{
    const uint64_t shape[2] = {rows->rows, rows->dimension};
    const uint64_t count = rows->rows < SAMPLE_ROWS ? rows->rows : SAMPLE_ROWS;
    const size_t bytes = rows->dimension * sizeof(float);
    enum status status = STATUS_OK;
    struct sha256 sha;
    uint8_t digest[32];
    float *row = malloc(bytes);
    if (!row)
        return error_memory(err, bytes, "a row");
    sha256_init(&sha);
    sha256_update(&sha, shape, sizeof shape);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t step = (rows->rows - 1) / SAMPLE_ROWS;
        const uint64_t at = rows->rows <= SAMPLE_ROWS ? i
                            : i + 1 == count          ? rows->rows - 1
                                                      : i * step;
        status = matrix_read(rows, at, 1, row, err);
        sha256_update(&sha, row, bytes);
    }
    free(row);
    sha256_final(&sha, digest);
    sha256_hex(out->sample, digest);
    return status;
}

enum status target_origin(struct result_origin *out, struct matrix_input *input, struct error *err)
{
    struct input_state now;
    const struct input_state *opened = &input->opened;
    *out = (struct result_origin){0};
    if (input->rows.identity || !input_state_of(&now, input->path) || now.bytes != opened->bytes ||
        now.mtime_ns != opened->mtime_ns || opened->at_ns - opened->mtime_ns < SETTLED_NS)
        return STATUS_OK;
    const enum status status = sample(out, &input->rows, err);
    if (status != STATUS_OK)
        return status;
    out->bytes = now.bytes;
    out->mtime_ns = now.mtime_ns;
    return STATUS_OK;
}

static bool same_origin(const struct result_origin *a, const struct result_origin *b)
{
    return a->bytes > 0 && a->bytes == b->bytes && a->mtime_ns == b->mtime_ns &&
           strcmp(a->sample, b->sample) == 0;
}

/* --- existing results --------------------------------------------------------------------- */

/* The identity of the rows, or that stored with the clusters if their file is unchanged. */
static enum status find_content(struct matrix_input *input, char content[65],
                                const struct result_clusters *old, bool verify, struct error *err)
{
    struct result_origin origin;
    if (!verify && old->origin.bytes > 0) {
        const enum status status = target_origin(&origin, input, err);
        if (status != STATUS_OK)
            return status;
        if (same_origin(&origin, &old->origin)) {
            memcpy(content, old->content, sizeof old->content);
            return STATUS_OK;
        }
    }
    return matrix_input_digest_as(input, old->content, content, err);
}

static enum status look_for_clusters(struct target *target, struct matrix_input *input,
                                     char content[65], const struct target_claim *claim,
                                     struct error *err)
{
    const struct result *holder = target_holder(target, input);
    const struct result_clusters *old = holder ? result_clusters_find(holder, claim->name) : NULL;
    char difference[640];
    bool other = true;
    const char *shown = PATH_TEXT(target->output);
    if (!old)
        return STATUS_OK;
    if (!parameters_difference(difference, sizeof difference, old->parameters, claim->parameters,
                               "the file")) {
        enum status status = find_content(input, content, old, claim->verify, err);
        if (status != STATUS_OK)
            return status;
        target->found = strcmp(content, old->content) == 0;
        if (!target->found)
            content[0] = 0;
        snprintf(difference, sizeof difference, "it was made from other rows");
        other = false;
    }
    target->replace = !target->found;
    if (target->found || claim->replace)
        return STATUS_OK;
    if (claim->replace_by_run && result_clusters_by_run(holder, old)) {
        if (other)
            log_message(LOG_NOTICE, "notice: /clusters/%s of %s is replaced (%s)", claim->name,
                        shown, difference);
        return STATUS_OK;
    }
    error_set(err, STATUS_USAGE, "%s already holds a different /clusters/%s (%s)", shown,
              claim->name, difference);
    error_remedy(err, claim->remedy);
    return STATUS_USAGE;
}

enum status target_take(struct target *target, struct matrix_input *input, char content[65],
                        const struct target_claim *claim, struct error *err)
{
    struct output *trial = NULL;
    content[0] = 0;
    enum status status = look_for_clusters(target, input, content, claim, err);
    if (status != STATUS_OK)
        return status;
    if (target->found) {
        workdir_tidy(target->output);
        return STATUS_OK;
    }
    /* Checks this now rather than an hour later. */
    status = output_open(&trial, target->output, err);
    output_close(&trial);
    if (status != STATUS_OK)
        return status;
    /* Otherwise a simultaneous ingest could lose the clusters, or the clustering its images. */
    status = workdir_open(&target->lock, target->output, err);
    if (status == STATUS_OK && input->result)
        status = result_check_current(input->result, err);
    return status;
}

void target_close(struct target *target)
{
    workdir_release(&target->lock);
    result_close(&target->holder);
}
