/* workdir.c: manages the work directory and its lock.
 *
 * The lock is an flock(), which the kernel releases when a process dies. There is one race: another
 * process may remove the directory, or take it over, between open() and flock(). Then the lock is
 * on an unlinked file, and this process starts again.
 *
 * A process that takes over replaces the lock file. If the former holder was only paused, or runs
 * on a machine with which locks are not shared, it notices that its lock file has been unlinked
 * (workdir_check), and its writes do no harm.
 *
 * The lock file has a line "PROCESS HOST BOOT", where BOOT is the kernel's boot id, which
 * distinguishes machines or containers with equal names; "-": the last holder has left. */
#include "result/workdir.h"
#include "base/output.h"
#include "base/path.h"
#include "result/records.h"
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

static enum status fail(struct error *err, const char *call, const char *path, int errno_value)
{
    const char *shown = PATH_TEXT(path);
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

/* --- the lock file --------------------------------------------------------------------------- */

/* Reads the first line, or "". */
static void read_line(char line[WORKDIR_LINE], int lock)
{
    size_t n = 0;
    if (lock < 0 || read_at(lock, line, WORKDIR_LINE - 1, 0, &n, LOCK, NULL))
        n = 0;
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
}

/* A full disk is reported elsewhere. Syncs, so that other machines see it. */
static void write_line(int lock, const char *line)
{
    const size_t size = strlen(line);
    if (write_at(lock, line, size, 0, LOCK, NULL) == STATUS_OK && ftruncate(lock, (off_t)size) == 0)
        fdatasync(lock);
}

/* The kernel's boot id; "?" if not available. */
static void read_boot(char boot[64])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || fscanf(file, "%63s", boot) != 1)
        strcpy(boot, "?");
    if (file)
        fclose(file);
}

void workdir_holder(char *name, size_t size, bool *elsewhere, int lock)
{
    char line[WORKDIR_LINE], host[65], theirs[64], boot[64];
    long pid;
    read_line(line, lock);
    read_boot(boot);
    const int fields = sscanf(line, "%ld %64s %63s", &pid, host, theirs);
    if (fields >= 2)
        snprintf(name, size, "process %ld on %s", pid, host);
    else
        snprintf(name, size, "another process");
    *elsewhere =
        strcmp(line, "-") != 0 && (fields < 3 || strcmp(theirs, boot) != 0 || *boot == '?');
}

/* Does the lock file still belong to this process? Opening it makes a network file system query its
 * server. */
static bool keeps(const struct workdir *workdir)
{
    char line[WORKDIR_LINE];
    const int lock = openat(workdir->directory, LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0)
        return errno != ENOENT && errno != ESTALE;
    const bool same = output_still_named(workdir->directory, LOCK, workdir->lock);
    read_line(line, lock);
    close(lock);
    /* Empty if the disk was full. */
    return same && (!*line || (strncmp(line, workdir->who, strlen(line)) == 0 &&
                               workdir->who[strlen(line)] == '\n'));
}

static enum status refuse(const struct workdir *workdir, const char *output, struct error *err)
{
    char holder[128];
    bool elsewhere;
    workdir_holder(holder, sizeof holder, &elsewhere, workdir->lock);
    error_set(err, STATUS_FAILED, "%s is being written by %s", PATH_TEXT(output), holder);
    err->native = EWOULDBLOCK;
    return error_remedy(err, REMEDY_OTHER_WRITER);
}

/* STATUS_END: another process has just removed the directory or the lock file. */
static enum status workdir_lock(struct workdir *workdir, const char *output, struct error *err)
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
    /* On file systems without locks the last process gets the directory. */
    if (flock(workdir->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return refuse(workdir, output, err);
    if (!output_still_named(workdir->directory, LOCK, workdir->lock))
        return STATUS_END;
    /* If it cannot be removed, its line names the owner. */
    return created || unlinkat(workdir->directory, LOCK, 0) ? STATUS_OK : STATUS_END;
}

/* --- the directory --------------------------------------------------------------------------- */

/* Removes files of the directory whose names begin with `prefix`. */
static void remove_named(const struct workdir *workdir, const char *prefix)
{
    int fd = openat(workdir->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            unlinkat(workdir->directory, entry->d_name, 0);
    closedir(directory);
}

/* Removes temporary files that a kill left before they were unlinked, and incomplete files. */
static void remove_scratch(const struct workdir *workdir)
{
    remove_named(workdir, ".clpipe-");
    remove_named(workdir, WORKDIR_LEARNED OUTPUT_TEMPORARY);
    unlinkat(workdir->directory, WORKDIR_STATUS_NEW, 0);
}

void workdir_remove_logs(const struct workdir *workdir)
{
    /* Of earlier versions. */
    static const char *const earlier[] = {"records", "handover", "result", "order", "index"};
    for (size_t i = 0; i < sizeof earlier / sizeof *earlier; i++)
        unlinkat(workdir->directory, earlier[i], 0);
    remove_named(workdir, RECORDS_PREFIX);
}

static void workdir_unlock(struct workdir *workdir)
{
    output_close(&workdir->claim);
    if (*workdir->who && keeps(workdir))
        write_line(workdir->lock, "-\n");
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

enum status workdir_open(struct workdir **out, const char *output, struct error *err)
{
    char host[65] = "", boot[64];
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
        status = workdir_lock(workdir, output, err);
    }
    if (status == STATUS_END)
        status = fail(err, "open", workdir->path, EBUSY);
    if (status)
        goto out;
    read_boot(boot);
    gethostname(host, sizeof host - 1);
    snprintf(workdir->who, sizeof workdir->who, "%ld %s %s\n", (long)getpid(), *host ? host : "?",
             boot);
    write_line(workdir->lock, workdir->who);
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
    char holder[128];
    bool elsewhere;
    if (keeps(workdir))
        return STATUS_OK;
    const int lock = openat(workdir->directory, LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    workdir_holder(holder, sizeof holder, &elsewhere, lock);
    if (lock >= 0)
        close(lock);
    return error_set(err, STATUS_FAILED,
                     "%s has taken over %s from this process, which was paused, or whose lock does "
                     "not reach the other: run the command again when that process has ended",
                     holder, PATH_TEXT(workdir->path));
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
    return output_sync(workdir->directory) ? STATUS_OK : fail(err, "fsync", workdir->path, errno);
}

void workdir_close(struct workdir **workdir, bool keep)
{
    if (!workdir || !*workdir)
        return;
    struct workdir *w = *workdir;
    bool stays = false;
    *workdir = NULL;
    if (!keep && keeps(w)) {
        workdir_remove_logs(w);
        unlinkat(w->directory, WORKDIR_LEARNED, 0);
        unlinkat(w->directory, "command", 0);
        unlinkat(w->directory, WORKDIR_STATUS, 0);
        /* Last: until its name is removed, no other process can start here. */
        unlinkat(w->directory, LOCK, 0);
        stays = rmdir(w->path) != 0;
    }
    workdir_unlock(w);
    /* NFS and FUSE keep open files under another name, so the directory is empty only now. A
     * process that has locked it in the meantime starts again, or has its own lock file in it. */
    if (stays)
        rmdir(w->path);
    free(w->path);
    free(w);
}

/* Does it have a log? True if that cannot be determined. */
static bool has_log(const struct workdir *workdir)
{
    struct records records;
    const bool has =
        records_open(&records, workdir->directory, workdir->path, false, NULL) != STATUS_OK ||
        records.logs > 0;
    records_clear(&records);
    return has;
}

void workdir_release(struct workdir **workdir)
{
    if (workdir && *workdir)
        workdir_close(workdir, has_log(*workdir));
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
