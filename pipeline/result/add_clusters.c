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

struct adding {
    const struct result *base; /* NULL: there is none */
    const struct result_clustering *clustering;
    unsigned count;
};

/* The old levels. */
static bool is_replaced(const void *context, const char *name)
{
    const struct adding *adding = context;
    const struct result_clusters *old = result_clusters_find(adding->base, adding->clustering->name);
    for (unsigned i = 0; old && i < RESULT_MOST_LEVELS; i++) {
        if (strncmp(name, "/clusters/", 10) == 0 && strcmp(name + 10, old->name) == 0)
            return true;
        old = *old->parent ? result_clusters_find(adding->base, old->parent) : NULL;
    }
    return false;
}

static enum status add_all(void *context, hid_t file, const char *path, struct error *err)
{
    const struct adding *adding = context;
    const struct result_names *names = adding->clustering->names;
    enum status status = !adding->base && names ? names_write(file, names, path, err) : STATUS_OK;
    for (unsigned i = 0; i < adding->count && status == STATUS_OK; i++)
        status = clusters_write(file, &adding->clustering[i], path, err);
    return status;
}

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, unsigned count,
                                  bool replace, struct error *err)
{
    struct result *existing = NULL, *base = NULL;
    struct adding adding = {.clustering = clustering, .count = count};
    struct change change = {.output = output,
                            .parameters = "{}",
                            .leave_out = is_replaced,
                            .add = add_all,
                            .context = &adding,
                            .notes_run = clustering->by_run,
                            .run_clusters = clustering->by_run ? clustering->name : NULL};
    char shown[256];
    /* Longer ones could not be read again. */
    assert(strlen(clustering->feature) < sizeof((struct result_clusters *)0)->feature &&
           strlen(clustering->metric) < sizeof((struct result_clusters *)0)->metric &&
           strlen(clustering->init) < sizeof((struct result_clusters *)0)->init);
    for (unsigned i = 0; i < count; i++)
        if (!schema_name_valid(clustering[i].name))
            return error_set(err, STATUS_USAGE,
                             "'%s' cannot be the name of a clustering: use 1 to %d letters, digits, "
                             "'_', '.' and '-'",
                             path_for_message(shown, sizeof shown, clustering[i].name),
                             FEATURE_NAME_MAX - 1);
    enum status status = check_output(&existing, output, input, clustering, replace, err);
    /* A file of clusters alone takes further ones. */
    if (!input && existing)
        input = output;
    result_close(&existing);
    if (!status && input)
        status = result_open(&base, input, err);
    for (unsigned i = 0; i < count && base && !status; i++)
        status = check_base(base, &clustering[i], clustering->name, replace, err);
    change.base = base;
    adding.base = base;
    if (base && base->run_clusters && strcmp(base->run_clusters, clustering->name) == 0)
        change.notes_run = true;
    if (!status)
        status = change_make(&change, err);
    result_close(&base);
    return status;
}
