/* add_clusters.c: what may be replaced, and the clustering that goes into a copy of the file. */
#include "file/add_clusters.h"
#include "base/path.h"
#include "file/change.h"
#include "file/clusters.h"
#include "file/names.h"
#include <assert.h>
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

/* Whether the clustering may be added to `base`, where an old one of that name is left out. */
static enum status check_base(struct result *base, const struct result_clustering *clustering,
                              bool replace, struct error *err)
{
    char shown[256];
    path_for_message(shown, sizeof shown, base->path);
    if (result_clusters_find(base, clustering->name) && !replace) {
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

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, bool replace,
                                  struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *existing = NULL, *base = NULL;
    const struct result_clusters *old;
    struct change *change = NULL;
    char shown[256];
    /* Longer ones could not be read again. */
    (void)old;
    assert(strlen(clustering->feature) < sizeof old->feature &&
           strlen(clustering->metric) < sizeof old->metric &&
           strlen(clustering->init) < sizeof old->init);
    if (!schema_name_valid(clustering->name))
        return error_set(err, STATUS_USAGE,
                         "'%s' cannot be the name of a clustering: use 1 to %d letters, digits, "
                         "'_', '.' and '-'",
                         path_for_message(shown, sizeof shown, clustering->name),
                         FEATURE_NAME_MAX - 1);
    if ((status = check_output(&existing, output, input, clustering, replace, err)))
        goto out;
    /* A file of clusters alone takes further ones. */
    if (!input && existing)
        input = output;
    result_close(&existing);
    if (input && ((status = result_open(&base, input, err)) ||
                  (status = check_base(base, clustering, replace, err))))
        goto out;
    char name[FEATURE_NAME_MAX + 16];
    const char *const left_out = name;
    snprintf(name, sizeof name, "/clusters/%s", clustering->name);
    status = STATUS_FAILED;
    if (change_open(&change, output, base, &left_out, 1, err) ||
        (!base && clustering->names &&
         names_write(change_file(change), clustering->names, output, err)) ||
        clusters_write(change_file(change), clustering, output, err))
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
