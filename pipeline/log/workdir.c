/* workdir.c: a directory with a lock.
 *
 * The lock is flock()'s, so the kernel takes it away from a process that dies; what the file says
 * is for messages and for other machines (holder.h). The one race is with a process that finishes
 * and removes the directory, or takes it over, between our open() and our flock(): then the lock we hold
 * is on a file that has no name any more, and we begin again.
 *
 * Who takes over removes the lock file and makes another. If the former holder was not dead but paused,
 * it sees that its file has no name any more, and what it writes there disturbs nobody. */
#include "log/workdir.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "log/holder.h"
#include "log/learned.h"
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
#define LOCK       "lock"
#define MOST_TRIES 100

struct workdir {
    char *path;
    int directory, lock;
    struct holder *holder;
    struct output *claim;
};

static enum status fail(struct error *err, const char *call, const char *path, int errno_value)
{
    char shown[256];
    path_for_message(shown, sizeof shown, path);
    if (errno_value == ENOTDIR || errno_value == EEXIST)
        return error_set(err, STATUS_FAILED,
                         "cannot keep unfinished work in %s: it is not a directory; move it away",
                         shown);
    if (errno_value == ENOENT)
        return error_set(err, STATUS_FAILED,
                         "cannot create %s: its directory does not exist; create it or name "
                         "another output",
                         shown);
    return error_errno(err, STATUS_FAILED, errno_value, call, "cannot create %s", shown);
}

static enum status refuse(const struct workdir *workdir, const char *output, struct error *err)
{
    char shown[256], holder[128];
    holder_name(holder, sizeof holder, workdir->lock);
    error_set(err, STATUS_FAILED, "%s is being written by %s",
              path_for_message(shown, sizeof shown, output), holder);
    err->native = EWOULDBLOCK;
    return error_remedy(err, REMEDY_OTHER_WRITER);
}

/* STATUS_END: another process has just removed the directory, or its lock file has been removed. */
static enum status workdir_lock(struct workdir *workdir, const char *output, struct stop *stop,
                                struct error *err)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    workdir->directory = open(workdir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (workdir->directory < 0)
        return errno == ENOENT ? STATUS_END : fail(err, "open", workdir->path, errno);
    workdir->lock = openat(workdir->directory, LOCK, flags | O_EXCL, 0666);
    const bool created = workdir->lock >= 0;
    if (!created && errno == EEXIST)
        workdir->lock = openat(workdir->directory, LOCK, flags, 0666);
    if (workdir->lock < 0)
        return errno == ENOENT ? STATUS_END : fail(err, "openat", workdir->path, errno);
    /* Where the file system has no locks, what the file says must do. */
    const bool locked = flock(workdir->lock, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK)
        return refuse(workdir, output, err);
    struct stat mine, named;
    if (fstat(workdir->lock, &mine) || fstatat(workdir->directory, LOCK, &named, 0) ||
        mine.st_ino != named.st_ino || mine.st_dev != named.st_dev)
        return STATUS_END;
    bool works = false;
    if (created)
        return STATUS_OK;
    enum status status = holder_watch(&works, workdir->directory, LOCK, locked, output, stop, err);
    if (works)
        return refuse(workdir, output, err);
    /* Where it cannot be removed, its line tells whose it is. */
    return status || unlinkat(workdir->directory, LOCK, 0) ? status : STATUS_END;
}

/* Removes the files without a name that a kill caught before they had lost it, and what was not
 * complete. */
static void remove_scratch(const struct workdir *workdir)
{
    static const char scratch[] = ".clpipe-";
    int fd = openat(workdir->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    unlinkat(workdir->directory, "order", 0);
    unlinkat(workdir->directory, "index", 0);
    unlinkat(workdir->directory, LEARNED_NEW, 0);
    unlinkat(workdir->directory, WORKDIR_STATUS_NEW, 0);
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strncmp(entry->d_name, scratch, sizeof scratch - 1) == 0)
            unlinkat(workdir->directory, entry->d_name, 0);
    closedir(directory);
}

static void workdir_unlock(struct workdir *workdir)
{
    output_close(&workdir->claim);
    holder_end(&workdir->holder);
    if (workdir->lock >= 0)
        close(workdir->lock);
    if (workdir->directory >= 0)
        close(workdir->directory);
    workdir->lock = workdir->directory = -1;
}

static enum status check_claim(const void *workdir, struct error *err)
{
    return workdir_check(workdir, err);
}

enum status workdir_name(char **name, const char *output, struct error *err)
{
    char *resolved;
    *name = NULL;
    if (output_resolve(&resolved, output, err))
        return STATUS_FAILED;
    if (asprintf(name, "%s%s", resolved, SUFFIX) < 0) {
        *name = NULL;
        error_memory(err, strlen(resolved) + sizeof SUFFIX, "a name");
    }
    free(resolved);
    return *name ? STATUS_OK : STATUS_FAILED;
}

enum status workdir_open(struct workdir **out, const char *output, struct stop *stop,
                         struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    struct workdir *workdir = calloc(1, sizeof *workdir);
    if (!workdir)
        return error_memory(err, sizeof *workdir, "a work directory");
    workdir->directory = workdir->lock = -1;
    if (workdir_name(&workdir->path, output, err))
        goto out;
    for (int tries = 0; tries == 0 || (status == STATUS_END && tries < MOST_TRIES); tries++) {
        workdir_unlock(workdir);
        if (mkdir(workdir->path, 0777) && errno != EEXIST) {
            status = fail(err, "mkdir", workdir->path, errno);
            goto out;
        }
        status = workdir_lock(workdir, output, stop, err);
    }
    if (status == STATUS_END)
        status = fail(err, "open", workdir->path, EBUSY);
    if (status)
        goto out;
    holder_begin(&workdir->holder, workdir->lock, workdir->directory, LOCK);
    status = output_claim(&workdir->claim, output, check_claim, workdir, err);
    if (status)
        goto out;
    remove_scratch(workdir);
    *out = workdir;
    workdir = NULL;
out:
    if (workdir) {
        workdir_unlock(workdir);
        free(workdir->path);
        free(workdir);
    }
    return status;
}

enum status workdir_check(const struct workdir *workdir, struct error *err)
{
    char shown[256], holder[128];
    if (holder_keeps(workdir->holder))
        return STATUS_OK;
    const int lock = openat(workdir->directory, LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    holder_name(holder, sizeof holder, lock);
    if (lock >= 0)
        close(lock);
    return error_set(err, STATUS_FAILED,
                     "%s took over %s while this process was paused: run the command again "
                     "when that one has ended",
                     holder, path_for_message(shown, sizeof shown, workdir->path));
}

const char *workdir_path(const struct workdir *workdir)
{
    return workdir->path;
}

int workdir_descriptor(const struct workdir *workdir)
{
    return workdir->directory;
}

bool workdir_has(const struct workdir *workdir, const char *name)
{
    return faccessat(workdir->directory, name, F_OK, 0) == 0 || errno != ENOENT;
}

void workdir_note_command(const struct workdir *workdir, const char *command)
{
    char *working = getcwd(NULL, 0);
    const int fd = openat(workdir->directory, "command",
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0) {
        if (write_all(fd, command, strlen(command) + 1, "a command line", NULL) == STATUS_OK &&
            working)
            write_all(fd, working, strlen(working), "a command line", NULL);
        close(fd);
    }
    free(working);
}

enum status workdir_sync(const struct workdir *workdir, struct error *err)
{
    return output_sync(workdir->directory) ? STATUS_OK
                                           : fail(err, "fsync", workdir->path, errno);
}

void workdir_close(struct workdir **workdir, bool keep)
{
    if (!workdir || !*workdir)
        return;
    struct workdir *w = *workdir;
    *workdir = NULL;
    if (!keep && holder_keeps(w->holder)) {
        unlinkat(w->directory, WORKDIR_LOG, 0);
        unlinkat(w->directory, LEARNED_NAME, 0);
        unlinkat(w->directory, "command", 0);
        unlinkat(w->directory, WORKDIR_STATUS, 0);
        /* Last: while it has its name no other process can begin here. */
        unlinkat(w->directory, LOCK, 0);
        rmdir(w->path);
    }
    workdir_unlock(w);
    free(w->path);
    free(w);
}

void workdir_release(struct workdir **workdir)
{
    struct stat st;
    if (!workdir || !*workdir)
        return;
    const int directory = (*workdir)->directory;
    const bool log = fstatat(directory, WORKDIR_LOG, &st, 0) == 0 ? st.st_size > 0 : errno != ENOENT;
    workdir_close(workdir, log);
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
        workdir_open(&workdir, output, NULL, &err) == STATUS_OK)
        workdir_release(&workdir);
    free(path);
}
