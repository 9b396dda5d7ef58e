/* workdir.c: a directory with a lock.
 *
 * The lock is flock()'s, so the kernel takes it away from a process that dies; what the file says
 * is only for messages. The one race is with a process that finishes and removes the directory
 * between our open() and our flock(): then the lock we hold is on a file that has no name any more,
 * and we begin again. */
#include "store/workdir.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX     ".partial"
#define MOST_TRIES 100

struct workdir {
    char *path;
    int directory, lock;
};

static enum status fail(struct error *err, const char *call, const char *path, int errno_value)
{
    char shown[256];
    path_for_message(shown, sizeof shown, path);
    if (errno_value == ENOTDIR || errno_value == EEXIST)
        return error_set(err, STATUS_FAILED,
                         "cannot keep unfinished work in %s: it is no directory; move it away",
                         shown);
    if (errno_value == ENOENT)
        return error_set(err, STATUS_FAILED,
                         "cannot create %s: its directory does not exist; create it or name "
                         "another output",
                         shown);
    return error_errno(err, STATUS_FAILED, errno_value, call, "cannot create %s", shown);
}

/* Who holds the lock: "process 123 on HOST", or less where the file does not say. */
static void read_holder(char *holder, size_t size, int lock)
{
    char text[128] = "", host[65] = "";
    long pid = 0;
    ssize_t n = pread(lock, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    int found = sscanf(text, "%ld %64s", &pid, host);
    if (found == 2)
        snprintf(holder, size, "process %ld on %s", pid, host);
    else
        snprintf(holder, size, "another process");
}

static enum status take_lock(struct workdir *workdir, const char *output, bool *again,
                             struct error *err)
{
    char shown[256], holder[128];
    *again = false;
    workdir->directory = open(workdir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (workdir->directory < 0 && errno == ENOENT) {
        *again = true;
        return STATUS_OK;
    }
    if (workdir->directory < 0)
        return fail(err, "open", workdir->path, errno);
    workdir->lock =
        openat(workdir->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (workdir->lock < 0 && errno == ENOENT) {
        *again = true;
        return STATUS_OK;
    }
    if (workdir->lock < 0)
        return fail(err, "openat", workdir->path, errno);
    if (flock(workdir->lock, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK) {
            read_holder(holder, sizeof holder, workdir->lock);
            error_set(err, STATUS_FAILED,
                      "%s is being written by %s: wait for it, or name another output",
                      path_for_message(shown, sizeof shown, output), holder);
            err->native = EWOULDBLOCK;
            return STATUS_FAILED;
        }
        log_message(LOG_NOTICE,
                    "%s is on a file system without locks: nothing keeps a second run away from it",
                    path_for_message(shown, sizeof shown, workdir->path));
    }
    struct stat mine, named;
    if (fstat(workdir->lock, &mine) || fstatat(workdir->directory, "lock", &named, 0) ||
        mine.st_ino != named.st_ino || mine.st_dev != named.st_dev)
        *again = true;
    return STATUS_OK;
}

static void write_holder(const struct workdir *workdir)
{
    char host[65] = "", text[128];
    gethostname(host, sizeof host - 1);
    int n = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), *host ? host : "?");
    /* Only for messages: a full disk is noticed elsewhere. */
    if (ftruncate(workdir->lock, 0) || pwrite(workdir->lock, text, (size_t)n, 0) < 0)
        return;
}

/* Removes the files without a name that a kill caught before they had lost it. */
static void remove_scratch(const struct workdir *workdir)
{
    static const char spool[] = ".clpipe-walk-";
    int fd = openat(workdir->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    unlinkat(workdir->directory, "order", 0);
    unlinkat(workdir->directory, "index", 0);
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strncmp(entry->d_name, spool, sizeof spool - 1) == 0)
            unlinkat(workdir->directory, entry->d_name, 0);
    closedir(directory);
}

static void release(struct workdir *workdir)
{
    if (workdir->lock >= 0)
        close(workdir->lock);
    if (workdir->directory >= 0)
        close(workdir->directory);
    workdir->lock = workdir->directory = -1;
}

enum status workdir_name(char **name, const char *output, struct error *err)
{
    char *resolved;
    *name = NULL;
    enum status status = output_resolve(&resolved, output, err);
    if (status)
        return status;
    *name = malloc(strlen(resolved) + sizeof SUFFIX);
    if (*name)
        sprintf(*name, "%s%s", resolved, SUFFIX);
    else
        status = error_memory(err, strlen(resolved) + sizeof SUFFIX, "a name");
    free(resolved);
    return status;
}

enum status workdir_open(struct workdir **out, const char *output, struct error *err)
{
    *out = NULL;
    struct workdir *workdir = calloc(1, sizeof *workdir);
    if (!workdir)
        return error_memory(err, sizeof *workdir, "a work directory");
    workdir->directory = workdir->lock = -1;
    enum status status = workdir_name(&workdir->path, output, err);
    bool again = !status;
    for (int tries = 0; !status && again; tries++) {
        release(workdir);
        if (mkdir(workdir->path, 0777) && errno != EEXIST)
            status = fail(err, "mkdir", workdir->path, errno);
        else if (tries == MOST_TRIES)
            status = fail(err, "open", workdir->path, EBUSY);
        else
            status = take_lock(workdir, output, &again, err);
    }
    if (!status) {
        write_holder(workdir);
        remove_scratch(workdir);
    } else {
        release(workdir);
        free(workdir->path);
        free(workdir);
        workdir = NULL;
    }
    *out = workdir;
    return status;
}

const char *workdir_path(const struct workdir *workdir)
{
    return workdir->path;
}

int workdir_descriptor(const struct workdir *workdir)
{
    return workdir->directory;
}

enum status workdir_sync(const struct workdir *workdir, struct error *err)
{
    if (fsync(workdir->directory) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EBADF)
        return STATUS_OK;
    return fail(err, "fsync", workdir->path, errno);
}

void workdir_close(struct workdir **workdir, bool keep)
{
    if (!workdir || !*workdir)
        return;
    struct workdir *w = *workdir;
    *workdir = NULL;
    if (!keep) {
        unlinkat(w->directory, "records", 0);
        /* Last: while it has its name nobody else can begin here. */
        unlinkat(w->directory, "lock", 0);
        rmdir(w->path);
    }
    release(w);
    free(w->path);
    free(w);
}

void workdir_release(struct workdir **workdir)
{
    struct stat st;
    if (workdir && *workdir)
        workdir_close(workdir,
                      fstatat((*workdir)->directory, "records", &st, 0) == 0 && st.st_size > 0);
}

void workdir_tidy(const char *output)
{
    struct error err = ERROR_INIT;
    struct workdir *workdir;
    struct stat st;
    char *path;
    if (workdir_name(&path, output, NULL))
        return;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
        workdir_open(&workdir, output, &err) == STATUS_OK)
        workdir_release(&workdir);
    free(path);
}
