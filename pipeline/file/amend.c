/* amend.c: copies the bytes of a file the cheapest way that the file system has. */
#include "file/amend.h"
#include "file/checksums.h"
#include "base/output.h"
#include "base/path.h"
#include "file/parts.h"
#include "file/schema.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)

struct amend {
    struct output *output;
    hid_t file;
    char *path; /* the final one, for messages */
};

/* Copies bytes [start, end), inside the kernel where that can. */
static enum status copy_extent(int to, const char *to_path, int from, const char *shown, off_t start,
                               off_t end, char *buffer, struct error *err)
{
    off_t at = start, out = start;
    while (at < end && copy_file_range(from, &at, to, &out, (size_t)(end - at), 0) > 0)
        ;
    /* Some kernels say that they copied nothing where they cannot; `at` is where the rest begins. */
    if (at < end && lseek(to, at, SEEK_SET) < 0)
        return error_errno(err, STATUS_FAILED, errno, "lseek", "cannot write %s", to_path);
    while (at < end) {
        const size_t most = end - at < (off_t)COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
        const ssize_t n = pread(from, buffer, most, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, STATUS_FAILED, errno, "read", "cannot read %s", shown);
        if (n == 0)
            return error_set(err, STATUS_FAILED, "%s was truncated while it was copied", shown);
        if (write_all(to, buffer, (size_t)n, to_path, err))
            return STATUS_FAILED;
        at += n;
    }
    return STATUS_OK;
}

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
    struct stat st;
    if (ioctl(to, FICLONE, from) == 0) {
        status = STATUS_OK;
        goto out;
    }
    buffer = malloc(COPY_BYTES);
    if (!buffer) {
        error_memory(err, COPY_BYTES, "a copy");
        goto out;
    }
    if (fstat(from, &st)) {
        error_errno(err, STATUS_FAILED, errno, "fstat", "cannot read %s", shown);
        goto out;
    }
    /* Holes are where objects were removed; they stay holes. */
    for (off_t start = 0, end; start < st.st_size; start = end) {
        end = lseek(from, start, SEEK_DATA);
        if (end < 0 && errno == ENXIO) /* a hole up to the end */
            break;
        start = end < 0 ? start : end;
        end = lseek(from, start, SEEK_HOLE);
        end = end <= start ? st.st_size : end;
        if (copy_extent(to, to_path, from, shown, start, end, buffer, err))
            goto out;
    }
    if (ftruncate(to, st.st_size)) {
        error_errno(err, STATUS_FAILED, errno, "ftruncate", "cannot write %s",
                    path_for_message(shown, sizeof shown, to_path));
        goto out;
    }
    status = STATUS_OK;
out:
    free(buffer);
    close(from);
    return status;
}

enum status amend_open(struct amend **out, const char *output, const char *base, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct amend *amend = calloc(1, sizeof *amend);
    *out = NULL;
    if (!amend || !(amend->path = strdup(output))) {
        error_memory(err, strlen(output) + sizeof *amend, "a copy of a file");
        goto out;
    }
    amend->file = H5I_INVALID_HID;
    if (output_open(&amend->output, output, err))
        goto out;
    const char *temporary = output_temporary(amend->output);
    if (base) {
        if (copy_bytes(output_descriptor(amend->output), output, base, err) ||
            h5_open_file(&amend->file, temporary, true, err) ||
            parts_attach(amend->file, temporary, err))
            goto out;
    } else if (h5_create_file(&amend->file, temporary, err) ||
               schema_put_root(amend->file, output, err) ||
               h5_put_text(amend->file, "parameters", "{}", output, err)) {
        goto out;
    }
    *out = amend;
    amend = NULL;
    status = STATUS_OK;
out:
    amend_close(&amend);
    return status;
}

hid_t amend_file(const struct amend *amend)
{
    return amend->file;
}

enum status amend_commit(struct amend *amend, struct error *err)
{
    if (checksums_write(amend->file, amend->path, err))
        return STATUS_FAILED;
    parts_detach(amend->file);
    if (h5_finish_file(&amend->file, amend->path, err))
        return STATUS_FAILED;
    return output_commit(amend->output, err);
}

void amend_close(struct amend **amend)
{
    if (!amend || !*amend)
        return;
    struct amend *a = *amend;
    *amend = NULL;
    if (a->file > 0) {
        parts_detach(a->file);
        h5_discard_file(&a->file);
    }
    output_close(&a->output);
    free(a->path);
    free(a);
}
