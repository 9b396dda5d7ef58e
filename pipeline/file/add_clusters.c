/* add_clusters.c: what may be replaced, and the clustering that goes into a copy of the file. */
#include "file/add_clusters.h"
#include "base/path.h"
#include "file/amend.h"
#include "file/clusters.h"
#include "file/foreign.h"
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
        return STATUS_OK; /* amend_open says what there is to say */
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

/* Whether the clustering may be added to `base`, and the old one of that name be taken out. */
static enum status check_base(const struct result_clusters **old, struct result *base,
                              const struct result_clustering *clustering, bool replace,
                              struct error *err)
{
    char shown[256];
    path_for_message(shown, sizeof shown, base->path);
    *old = result_clusters_find(base, clustering->name);
    if (*old && !replace) {
        error_set(err, STATUS_USAGE, "%s already holds clusters '%s'", shown, clustering->name);
        error_remedy(err, REMEDY_REPLACE);
        return STATUS_USAGE;
    }
    if (base->images && clustering->rows != result_images(base))
        return error_set(err, STATUS_FAILED, "%s has %llu images, the clusters %llu rows", shown,
                         (unsigned long long)result_images(base),
                         (unsigned long long)clustering->rows);
    return clusters_check_scales(base, clustering->feature, *old, err);
}

/* What others have added to the clustering that was replaced stays. */
static enum status keep_foreign(hid_t file, struct result *base, const char *name,
                                const char *output, struct error *err)
{
    struct foreign_copied copied;
    char group[FEATURE_NAME_MAX + 16];
    snprintf(group, sizeof group, "/clusters/%s", name);
    return foreign_copy(&copied, base->file, base->path, file, output, group, err);
}

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, bool replace,
                                  struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *existing = NULL, *base = NULL;
    const struct result_clusters *old = NULL;
    struct amend *amend = NULL;
    char shown[256];
    /* Longer ones could not be read again. */
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
                  (status = check_base(&old, base, clustering, replace, err))))
        goto out;
    status = STATUS_FAILED;
    if (amend_open(&amend, output, input, err) ||
        (!input && clustering->names &&
         names_write(amend_file(amend), clustering->names, output, err)) ||
        (old && clusters_remove(amend_file(amend), base, old, output, err)) ||
        clusters_write(amend_file(amend), clustering, output, err) ||
        (old && keep_foreign(amend_file(amend), base, old->name, output, err)))
        goto out;
    const bool noted = base && base->run_clusters &&
                       strcmp(base->run_clusters, clustering->name) == 0;
    if (noted != clustering->by_run &&
        clusters_note_run(amend_file(amend), clustering->by_run ? clustering->name : NULL, output,
                          err))
        goto out;
    status = amend_commit(amend, err);
out:
    amend_close(&amend);
    result_close(&existing);
    result_close(&base);
    return status;
}
