/* add_clusters.c: what may be replaced, and the clustering that goes into a copy of the file. */
#include "result/add_clusters.h"
#include "base/path.h"
#include "result/change.h"
#include "result/clusters.h"
#include "result/names.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Whether `output` may be written: *existing is it, if it is a clpipe file. */
static enum status check_output(struct result **existing, const char *output, const char *input,
                                const struct result_clustering *clustering, bool replace,
                                struct error *err)
{
    char shown[256];
    struct stat out, in;
    path_for_message(shown, sizeof shown, output);
    *existing = NULL;
    if (stat(output, &out))
        return STATUS_OK; /* change_open says what there is to say */
    if (input && stat(input, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return STATUS_OK;
    if (!S_ISREG(out.st_mode))
        return STATUS_OK;
    struct error why = ERROR_INIT;
    if (result_open(existing, output, &why))
        return error_set(err, STATUS_FAILED,
                         "%s exists and is not overwritten (%s): name another output", shown,
                         why.sentence);
    if (!input && (*existing)->has_images)
        return error_set(err, STATUS_USAGE, "%s holds features of other data: name another output",
                         shown);
    if (!replace && (input || result_clusters_find(*existing, clustering->name))) {
        error_set(err, STATUS_USAGE, "%s already exists", shown);
        error_remedy(err, REMEDY_REPLACE_OUTPUT);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Whether the clustering may be added to `base`, where an old one of that name is left out: of `root`, the
 * name of the finest level. */
static enum status check_base(struct result *base, const struct result_clustering *clustering,
                              const char *root, bool replace, struct error *err)
{
    char shown[256];
    const struct result_clusters *old = result_clusters_find(base, clustering->name), *finest = old;
    path_for_message(shown, sizeof shown, base->path);
    for (const struct result_clusters *below = old; below && below->level <= finest->level;) {
        finest = below;
        below = below->level > 1 ? result_clusters_below(base, below) : NULL;
    }
    if (old && strcmp(finest->name, root) != 0) {
        error_set(err, STATUS_USAGE, "/clusters/%s of %s is a level of /clusters/%s", old->name, shown,
                  finest->name);
        return error_remedy(err, REMEDY_OTHER_NAME);
    }
    if (old && !replace) {
        error_set(err, STATUS_USAGE, "%s already holds clusters '%s'", shown, clustering->name);
        error_remedy(err, REMEDY_REPLACE);
        return STATUS_USAGE;
    }
    if (base->images && clustering->rows != result_images(base))
        return error_set(err, STATUS_FAILED, "%s has %llu images, the clusters %llu rows", shown,
                         (unsigned long long)result_images(base),
                         (unsigned long long)clustering->rows);
    return STATUS_OK;
}

/* The names of the old levels, which are left out; returns how many. */
static unsigned old_levels(char name[RESULT_MOST_LEVELS][FEATURE_NAME_MAX + 16],
                           const char *pointer[RESULT_MOST_LEVELS], const struct result *base,
                           const char *root)
{
    unsigned count = 0;
    const struct result_clusters *old = base ? result_clusters_find(base, root) : NULL;
    while (old && count < RESULT_MOST_LEVELS) {
        snprintf(name[count], sizeof name[count], "/clusters/%s", old->name);
        pointer[count] = name[count];
        count++;
        old = *old->parent ? result_clusters_find(base, old->parent) : NULL;
    }
    return count;
}

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, unsigned count,
                                  bool replace, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *existing = NULL, *base = NULL;
    const struct result_clusters *old;
    struct change *change = NULL;
    char shown[256], name[RESULT_MOST_LEVELS][FEATURE_NAME_MAX + 16];
    const char *left_out[RESULT_MOST_LEVELS];
    /* Longer ones could not be read again. */
    (void)old;
    assert(strlen(clustering->feature) < sizeof old->feature &&
           strlen(clustering->metric) < sizeof old->metric &&
           strlen(clustering->init) < sizeof old->init);
    for (unsigned i = 0; i < count; i++)
        if (!schema_name_valid(clustering[i].name))
            return error_set(err, STATUS_USAGE,
                             "'%s' cannot be the name of a clustering: use 1 to %d letters, digits, "
                             "'_', '.' and '-'",
                             path_for_message(shown, sizeof shown, clustering[i].name),
                             FEATURE_NAME_MAX - 1);
    if ((status = check_output(&existing, output, input, clustering, replace, err)))
        goto out;
    /* A file of clusters alone takes further ones. */
    if (!input && existing)
        input = output;
    result_close(&existing);
    if (input && (status = result_open(&base, input, err)))
        goto out;
    for (unsigned i = 0; i < count && base; i++)
        if ((status = check_base(base, &clustering[i], clustering->name, replace, err)))
            goto out;
    const unsigned levels = old_levels(name, left_out, base, clustering->name);
    status = STATUS_FAILED;
    if (change_open(&change, output, base, left_out, levels, err) ||
        (!base && clustering->names &&
         names_write(change_file(change), clustering->names, output, err)))
        goto out;
    for (unsigned i = 0; i < count; i++)
        if (clusters_write(change_file(change), &clustering[i], output, err))
            goto out;
    if (clustering->by_run)
        change_note_run(change, clustering->name);
    else if (base && base->run_clusters && strcmp(base->run_clusters, clustering->name) == 0)
        change_note_run(change, NULL);
    status = change_commit(change, err);
out:
    change_close(&change);
    result_close(&existing);
    result_close(&base);
    return status;
}
