/* add_clusters.c: a finished file is never modified: its bytes are shared with or copied to a new one
 * by the file system, where the clustering is added before the new file takes its name. */
#include "file/add_clusters.h"
#include "base/output.h"
#include "base/path.h"
#include "file/clusters.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)

/* Copies all bytes of `input` to the empty file `to`: by sharing its extents where the file system
 * can, by copying inside the kernel where that can, else through memory. */
static enum status copy_bytes(int to, const char *to_path, const char *input, struct error *err)
{
    char shown[256];
    path_for_message(shown, sizeof shown, input);
    int from = open(input, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_errno(err, STATUS_FAILED, errno, "open", "cannot read %s", shown);
    enum status status = STATUS_FAILED;
    char *buffer = NULL;
    ssize_t n;
    if (ioctl(to, FICLONE, from) == 0) {
        status = STATUS_OK;
        goto out;
    }
    while ((n = copy_file_range(from, NULL, to, NULL, 1u << 30, 0)) > 0)
        ;
    /* Some kernels say that they copied nothing where they cannot; both positions are then where
     * the rest begins. */
    buffer = malloc(COPY_BYTES);
    if (!buffer) {
        error_memory(err, COPY_BYTES, "a copy");
        goto out;
    }
    while ((n = read(from, buffer, COPY_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            error_errno(err, STATUS_FAILED, errno, "read", "cannot read %s", shown);
            goto out;
        }
        if (write_all(to, buffer, (size_t)n, to_path, err))
            goto out;
    }
    status = STATUS_OK;
out:
    free(buffer);
    close(from);
    return status;
}

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
        return STATUS_OK; /* output_open says what there is to say */
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
    if (base->has_images && clustering->rows != result_images(base))
        return error_set(err, STATUS_FAILED, "%s has %llu images, the clusters %llu rows", shown,
                         (unsigned long long)result_images(base),
                         (unsigned long long)clustering->rows);
    return clusters_check_scales(base, clustering->feature, *old, err);
}

enum status result_write_clusters(const char *output, const char *input,
                                  const struct result_clustering *clustering, bool replace,
                                  struct error *err)
{
    enum status status = STATUS_FAILED;
    struct result *existing = NULL, *base = NULL;
    const struct result_clusters *old = NULL;
    struct output *out = NULL;
    hid_t file = H5I_INVALID_HID;
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
    if (output_open(&out, output, err))
        goto out;
    if (base) {
        if (copy_bytes(output_descriptor(out), output, input, err) ||
            h5_open_file(&file, output_temporary(out), true, err))
            goto out;
    } else if (h5_create_file(&file, output_temporary(out), err) ||
               schema_put_root(file, output, err) ||
               h5_put_text(file, "parameters", "{}", output, err)) {
        goto out;
    }
    if ((old && clusters_remove(file, base, old, output, err)) ||
        clusters_write(file, clustering, output, err) || h5_finish_file(&file, output, err))
        goto out;
    status = output_commit(out, err);
out:
    if (file > 0)
        h5_discard_file(&file);
    output_close(&out);
    result_close(&existing);
    result_close(&base);
    return status;
}
