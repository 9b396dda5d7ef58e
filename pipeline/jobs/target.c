/* target.c: whether clusters go into their input or into a file of their own, and whether they are
 * there already. */
#include "jobs/target.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "jobs/origin.h"
#include "result/identity.h"
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

/* Whether the rows of the clusters in `holder` have these paths, or none as `paths` is NULL. */
static enum status check_paths(struct result *holder, const struct path_list *paths,
                               struct error *err)
{
    char shown[256];
    bool same = result_is_named(holder) == (paths != NULL);
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
    return error_set(err, STATUS_USAGE,
                     "%s holds clusters of rows with %s, so it is not added to; name another file",
                     path_for_message(shown, sizeof shown, result_path(holder)),
                     !paths                    ? "paths (a list of the same would be needed)"
                     : result_is_named(holder) ? "other paths"
                                               : "no paths");
}

enum status target_open(struct target *out, const struct matrix_input *input, const char *wanted,
                        const struct path_list *paths, struct error *err)
{
    struct stat st;
    char shown[256];
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
    path_for_message(shown, sizeof shown, wanted);
    if (stat(wanted, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK; /* output_open tells what is wrong with it */
    if (result_open(&out->holder, wanted, err) != STATUS_OK)
        return error_remedy(err, REMEDY_OTHER_OUTPUT);
    if (!result_is_named(out->holder) &&
        (result_images(out->holder) > 0 || result_feature_count(out->holder) > 0))
        return error_set(err, STATUS_USAGE,
                         "%s holds other images, so it is not overwritten; name another file",
                         shown);
    out->base = wanted;
    return check_paths(out->holder, paths, err);
}

enum status clustering_read_paths(struct path_list *paths, struct result_names *names, char **source,
                                  const char *list, const struct matrix_input *input,
                                  struct error *err)
{
    const size_t size = strlen(list) + 2;
    *source = malloc(size);
    if (!*source)
        return error_memory(err, size, "a file name");
    snprintf(*source, size, "%s%s", strcmp(list, "-") == 0 ? "" : "@", list);
    *names = (struct result_names){.source = *source, .path = path_list_path, .context = paths};
    enum status status =
        path_list_open_for(paths, list, input->path, input->source.rows, input->result, err);
    names->count = paths->count;
    return status;
}

struct result *target_holder(const struct target *target, const struct matrix_input *input)
{
    return target->holder ? target->holder : target->base ? input->result : NULL;
}

/* The identity of the rows, or that of the clusters where the file of their rows vouches for it. */
static enum status find_content(struct matrix_input *input, char content[65],
                                const struct result_clusters *old, bool verify, struct error *err)
{
    struct result_origin origin;
    if (!verify && old->origin.bytes > 0) {
        const enum status status = origin_of(&origin, input, err);
        if (status != STATUS_OK)
            return status;
        if (origin_same(&origin, &old->origin)) {
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
    char difference[640], shown[256];
    bool other = true;
    path_for_message(shown, sizeof shown, target->output);
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
            log_message(LOG_NOTICE, "notice: /clusters/%s of %s is replaced (%s)", claim->name, shown,
                        difference);
        return STATUS_OK;
    }
    error_set(err, STATUS_USAGE, "%s already holds a different /clusters/%s (%s)", shown, claim->name,
              difference);
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
    /* Better now than after an hour. */
    status = output_open(&trial, target->output, err);
    output_close(&trial);
    if (status != STATUS_OK)
        return status;
    /* An ingest of the same file would lose the clusters, or they the images it adds. */
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
