/* output.c: files that appear complete or not at all.
 *
 * The temporary file lies beside the final one because rename() is atomic only within a file
 * system. A symbolic link under the final name is followed first, so that the link stays and its
 * target is replaced.
 *
 * A killed process leaves its temporary file. The next process that writes the same file removes
 * it: the writer of a temporary file holds a lock on it, which the kernel releases with the
 * process. The lock is fcntl()'s on the open file description, because HDF5, which opens the same
 * file again, may flock() it, and because closing another descriptor of the file does not release
 * it. If the file system has no locks, nothing is removed. */
#include "base/output.h"
#include "base/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The limit of the kernel. */
#define MOST_LINKS 40
/* How many temporary names with this process's number may be taken already. */
#define MOST_NAMES 100

struct output {
    char *final;     /* after links */
    char *temporary; /* final with a suffix; the same directory. NULL: a claim */
    int directory, file;
    bool exists;       /* the temporary file, which this process removes */
    struct stat began; /* the file under the final name; zeros: none */
    /* Of a claim. */
    enum status (*check)(const void *context, struct error *err);
    const void *context;
    struct output *next; /* under claims_lock */
};

static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;
static struct output *claims;

static const char appeared[] = "a file with this name has appeared since the run began; move it "
                               "away and run the command again";

/* An error about `path` from a failed call, with advice in place of the system's text. */
static enum status __attribute__((format(printf, 4, 5)))
explain(struct error *err, int errno_value, const char *path, const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    error_set(err, STATUS_FAILED, "cannot write %s: %s", PATH_TEXT(path), why);
    return error_cause(err, CAUSE_OTHER, errno_value);
}

static enum status explain_errno(struct error *err, int errno_value, const char *call,
                                 const char *path)
{
    static const struct {
        int number;
        const char *why;
    } known[] = {
        {ENOSPC, "the disk is full; free some space or name a file on another disk"},
        {EDQUOT, "your disk quota is used up; free some space or name a file elsewhere"},
        {EROFS, "the file system is read-only; name a file on another file system"},
        {ENAMETOOLONG, "the name is too long (a suffix is added to it while it is written); choose "
                       "a shorter one"},
        {ELOOP, "its symbolic links form a loop; remove them or name another file"},
        {EFBIG,
         "the file would be larger than the file system or ulimit -f allows; raise the limit "
         "or name a file elsewhere"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == errno_value)
            return explain(err, errno_value, path, "%s", known[i].why);
    return error_errno(err, STATUS_FAILED, errno_value, call, "cannot write %s", PATH_TEXT(path));
}

/* The part of `path` up to and including its last slash: "" if there is none. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

enum status output_resolve(char **resolved, const char *path, struct error *err)
{
    *resolved = NULL;
    char *at = strdup(path);
    for (int links = 0; at; links++) {
        char target[PATH_MAX];
        /* A trailing slash names a directory, even at the end of a link. */
        size_t prefix = directory_length(at);
        ssize_t n = at[prefix] ? readlink(at, target, sizeof target - 1) : -1;
        if (n < 0) {
            *resolved = at;
            return STATUS_OK;
        }
        if (links == MOST_LINKS) {
            free(at);
            return explain_errno(err, ELOOP, "readlink", path);
        }
        target[n] = 0;
        if (target[0] == '/')
            prefix = 0;
        char *next = malloc(prefix + (size_t)n + 1);
        if (next) {
            memcpy(next, at, prefix);
            memcpy(next + prefix, target, (size_t)n + 1);
        }
        free(at);
        at = next;
    }
    return error_memory(err, PATH_MAX, "a file name");
}

static enum status open_directory(struct output *output, const char *path, struct error *err)
{
    size_t length = directory_length(output->final);
    char *name = length ? strndup(output->final, length) : strdup(".");
    if (!name)
        return error_memory(err, length + 1, "a file name");
    output->directory = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->directory < 0 && errno == EACCES)
        /* A directory may be writable but not readable. */
        output->directory = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int failed = output->directory < 0 ? errno : 0;
    const char *shown = PATH_TEXT(name);
    free(name);
    switch (failed) {
    case 0:
        return STATUS_OK;
    case ENOENT:
        return explain(
            err, failed, path,
            "the directory %s does not exist; create it or name a file in another directory",
            shown);
    case ENOTDIR:
        return explain(err, failed, path, "%s is not a directory; name a file in a directory",
                       shown);
    case EACCES:
        return explain(err, failed, path,
                       "no permission to enter the directory %s; change its permissions or name a "
                       "file in another directory",
                       shown);
    default:
        return explain_errno(err, failed, "open", path);
    }
}

/* Whether another program has locked the file for writing, as HDF5 does (for example h5py). False
 * if the file system has no locks. */
static bool is_held(int directory, const char *base)
{
    const int fd = openat(directory, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

/* Follows the links of `path` and opens its directory. */
static enum status open_final(struct output *output, const char *path, struct error *err)
{
    output->directory = output->file = -1;
    enum status status = output_resolve(&output->final, path, err);
    return status ? status : open_directory(output, path, err);
}

/* Checks the file under the final name; *found gets its stat, even if refused; zeros if there is
 * none. */
static enum status check_final(const struct output *output, struct stat *found, const char *path,
                               struct error *err)
{
    const char *base = output->final + directory_length(output->final);
    memset(found, 0, sizeof *found);
    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return explain(err, EISDIR, path, "it is a directory; name a file inside it");
    struct stat st, directory;
    int failed = fstatat(output->directory, base, &st, AT_SYMLINK_NOFOLLOW);
    const bool held = !failed && S_ISREG(st.st_mode) && is_held(output->directory, base);
    /* Network file systems refresh attributes when a file is opened, as is_held has done. */
    failed = failed ? failed : fstatat(output->directory, base, &st, AT_SYMLINK_NOFOLLOW);
    if (failed)
        return errno == ENOENT ? STATUS_OK : explain_errno(err, errno, "fstatat", path);
    *found = st;
    const char *kind = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? "a device node"
                       : S_ISFIFO(st.st_mode)                     ? "a named pipe"
                       : S_ISSOCK(st.st_mode)                     ? "a socket"
                                                                  : "a symbolic link";
    if (S_ISDIR(st.st_mode))
        return explain(err, EISDIR, path, "it is a directory; name a file inside it");
    if (!S_ISREG(st.st_mode))
        return explain(err, EINVAL, path, "it is %s, not a regular file; name another file", kind);
    /* rename() would replace it nevertheless, but the missing permission is intended. */
    if (faccessat(output->directory, base, W_OK, AT_EACCESS) && errno == EACCES)
        return explain(err, EACCES, path,
                       "the file is write-protected; make it writable or name another file");
    if (held)
        return explain(
            err, EWOULDBLOCK, path,
            "another program has it open for writing; close it there, and run the command "
            "again");
    /* In a sticky directory rename() over another user's file fails: report that now. */
    if (fstat(output->directory, &directory) == 0 && (directory.st_mode & S_ISVTX) &&
        geteuid() != 0 && st.st_uid != geteuid() && directory.st_uid != geteuid())
        return explain(err, EPERM, path,
                       "the file belongs to another user, in a directory where only its owner may "
                       "replace it; name another file");
    return STATUS_OK;
}

/* Locks the whole file, which must be open for writing; false: another process holds a lock.
 * *lockless: the file system has no locks. */
static bool lock_file(int fd, bool *lockless)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    *lockless = false;
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return true;
    *lockless = errno != EAGAIN && errno != EACCES;
    return *lockless;
}

bool output_still_named(int directory, const char *name, int fd)
{
    struct stat named, open;
    return fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/* Removes a temporary file that no process holds. */
static void remove_abandoned(int directory, const char *name)
{
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return;
    int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool lockless;
    if (fd < 0)
        return;
    if (lock_file(fd, &lockless) && !lockless && output_still_named(directory, name, fd))
        unlinkat(directory, name, 0);
    close(fd);
}

bool output_is_temporary(const char *name, const char *final)
{
    const size_t length = final ? strlen(final) : 0, more = strlen(OUTPUT_TEMPORARY);
    const char *suffix = final ? strncmp(name, final, length) == 0 ? name + length : NULL
                               : strstr(name, OUTPUT_TEMPORARY);
    if (!suffix || strncmp(suffix, OUTPUT_TEMPORARY, more) != 0)
        return false;
    const char *number = suffix + more;
    return *number && number[strspn(number, "0123456789-")] == 0;
}

/* Looks for temporary files of killed processes beside the final name. */
static void remove_all_abandoned(const struct output *output)
{
    const char *base = output->final + directory_length(output->final);
    int fd = openat(output->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (output_is_temporary(entry->d_name, base))
            remove_abandoned(output->directory, entry->d_name);
    closedir(directory);
}

static enum status create_temporary(struct output *output, const char *path, struct error *err)
{
    size_t size = strlen(output->final) + 48;
    output->temporary = malloc(size);
    if (!output->temporary)
        return error_memory(err, size, "a file name");
    size_t prefix = directory_length(output->final);
    for (int i = 0; i < MOST_NAMES; i++) {
        snprintf(output->temporary, size, "%s" OUTPUT_TEMPORARY "%ld", output->final,
                 (long)getpid());
        /* A process of another machine or container that writes, or was killed writing, to the same
         * directory may have this process's number: its file stays. */
        if (i > 0)
            snprintf(output->temporary + strlen(output->temporary), 12, "-%d", i + 1);
        output->file = openat(output->directory, output->temporary + prefix,
                              O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        bool lockless;
        if (output->file >= 0 && lock_file(output->file, &lockless) &&
            (lockless ||
             output_still_named(output->directory, output->temporary + prefix, output->file))) {
            output->exists = true;
            return STATUS_OK;
        }
        /* Between its creation and its lock, another process may have considered the file
         * abandoned. */
        if (output->file >= 0) {
            close(output->file);
            output->file = -1;
            errno = EEXIST;
        }
        if (errno != EEXIST)
            break;
    }
    int failed = errno;
    if (failed == EACCES || failed == EPERM)
        return explain(err, failed, path,
                       "you may not create files in its directory; change the directory's "
                       "permissions or name a file in another");
    if (failed == ENOENT)
        return explain(
            err, failed, path,
            "its directory accepts no new files, or was removed; name a file in another");
    if (failed == EEXIST)
        return explain(err, failed, path,
                       "its directory is full of temporary files of earlier runs; remove the "
                       "*.tmp-* files beside it");
    return explain_errno(err, failed, "openat", path);
}

/* A file that is replaced keeps its permissions, if the file system has any. */
static enum status set_mode(struct output *output, mode_t mode, const char *path, struct error *err)
{
    if (fchmod(output->file, mode & 0777) == 0 || errno == EPERM || errno == ENOTSUP)
        return STATUS_OK;
    return explain_errno(err, errno, "fchmod", path);
}

enum status output_open(struct output **out, const char *path, struct error *err)
{
    *out = NULL;
    if (!*path)
        return error_set(err, STATUS_FAILED, "cannot write a file with an empty name");
    struct output *output = calloc(1, sizeof *output);
    if (!output)
        return error_memory(err, sizeof *output, "an output file");
    enum status status = open_final(output, path, err);
    if (!status)
        status = check_final(output, &output->began, path, err);
    if (!status) {
        remove_all_abandoned(output);
        status = create_temporary(output, path, err);
    }
    /* Users without read permission on the replaced file must not be able to read the new one, but
     * this process must until it is finished. */
    if (!status && output->began.st_mode)
        status = set_mode(output, output->began.st_mode | 0600, path, err);
    if (status)
        output_close(&output);
    *out = output;
    return status;
}

const char *output_temporary(const struct output *output)
{
    return output->temporary;
}

int output_descriptor(const struct output *output)
{
    return output->file;
}

/* EINVAL and ENOTSUP: the file system has nothing to sync. EBADF: a directory without read permission
 * cannot be synced. */
bool output_sync(int descriptor)
{
    return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EBADF;
}

/* ctime also changes with the permissions, the owner and the number of links. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) == 0 &&
           (memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) == 0 || a->st_mode != b->st_mode ||
            a->st_uid != b->st_uid || a->st_gid != b->st_gid || a->st_nlink != b->st_nlink);
}

/* Whether this process may replace the file under the final name, whose stat is *now. */
static enum status check_claims(const struct output *output, const struct stat *now,
                                struct error *err)
{
    struct stat began = output->began;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&claims_lock);
    for (const struct output *claim = claims; claim && !status; claim = claim->next) {
        if (claim->check)
            status = claim->check(claim->context, err);
        if (strcmp(claim->final, output->final) == 0)
            began = claim->began;
    }
    pthread_mutex_unlock(&claims_lock);
    if (status || same_file(&began, now))
        return status;
    if (!began.st_mode)
        return explain(err, EEXIST, output->final, "%s", appeared);
    return explain(err, 0, output->final,
                   "another process has replaced, changed or removed it since the run began; run "
                   "the command again");
}

/* Without `replace`, fails if the name exists, provided that the file system supports this. */
static enum status rename_to_final(const struct output *output, bool replace, struct error *err)
{
    const size_t prefix = directory_length(output->final);
    const char *from = output->temporary + prefix, *base = output->final + prefix;
    const int at = output->directory;
    int failed =
        replace ? renameat(at, from, at, base) : renameat2(at, from, at, base, RENAME_NOREPLACE);
    if (failed && !replace && (errno == EINVAL || errno == ENOSYS)) {
        failed = linkat(at, from, at, base, 0);
        if (!failed)
            unlinkat(at, from, 0);
        else if (errno != EEXIST) /* no hard links either */
            failed = renameat(at, from, at, base);
    }
    if (!failed)
        return STATUS_OK;
    return errno == EEXIST ? explain(err, EEXIST, output->final, "%s", appeared)
                           : explain_errno(err, errno, "renameat", output->final);
}

enum status output_commit(struct output *output, struct error *err)
{
    struct stat st;
    if (!output_sync(output->file))
        return explain_errno(err, errno, "fsync", output->final);
    /* Hours may have passed: rename() would replace a FIFO created meanwhile. */
    enum status status = check_final(output, &st, output->final, err);
    if (!status && st.st_mode)
        status = set_mode(output, st.st_mode, output->final, err);
    if (!status)
        status = check_claims(output, &st, err);
    if (!status)
        status = rename_to_final(output, st.st_mode != 0, err);
    if (status)
        return status;
    output->exists = false;
    if (!output_sync(output->directory))
        return explain_errno(err, errno, "fsync", output->final);
    return STATUS_OK;
}

enum status output_check_free(const char *path, struct error *err)
{
    struct output output = {.final = NULL};
    struct stat st;
    enum status status = open_final(&output, path, err);
    if (!status && fstatat(output.directory, output.final + directory_length(output.final), &st,
                           AT_SYMLINK_NOFOLLOW) == 0)
        status = explain(err, EEXIST, path, "%s", appeared);
    else if (!status && errno != ENOENT)
        status = explain_errno(err, errno, "fstatat", path);
    if (output.directory >= 0)
        close(output.directory);
    free(output.final);
    return status;
}

enum status output_claim(struct output **out, const char *path,
                         enum status (*check)(const void *context, struct error *err),
                         const void *context, struct error *err)
{
    struct output *claim = calloc(1, sizeof *claim);
    *out = claim;
    if (!claim)
        return error_memory(err, sizeof *claim, "an output file");
    claim->check = check;
    claim->context = context;
    enum status status = open_final(claim, path, err);
    if (status) {
        output_close(out);
        return status;
    }
    /* output_open will report why the file cannot be written. */
    check_final(claim, &claim->began, path, NULL);
    pthread_mutex_lock(&claims_lock);
    claim->next = claims;
    claims = claim;
    pthread_mutex_unlock(&claims_lock);
    return STATUS_OK;
}

void output_close(struct output **output)
{
    if (!output || !*output)
        return;
    struct output *o = *output;
    *output = NULL;
    pthread_mutex_lock(&claims_lock);
    for (struct output **at = &claims; *at; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
    pthread_mutex_unlock(&claims_lock);
    if (o->exists)
        unlinkat(o->directory, o->temporary + directory_length(o->temporary), 0);
    if (o->file >= 0)
        close(o->file);
    if (o->directory >= 0)
        close(o->directory);
    free(o->temporary);
    free(o->final);
    free(o);
}

void output_remove(const char *path)
{
    struct output output = {.directory = -1, .file = -1};
    struct error ignored = ERROR_INIT;
    if (output_resolve(&output.final, path, &ignored) == STATUS_OK &&
        open_directory(&output, path, &ignored) == STATUS_OK) {
        remove_all_abandoned(&output);
        unlinkat(output.directory, output.final + directory_length(output.final), 0);
        close(output.directory);
    }
    free(output.final);
}

enum status write_all(int fd, const void *data, size_t size, const char *path, struct error *err)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n >= 0) {
            at += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd wait = {fd, POLLOUT, 0};
            poll(&wait, 1, 1000);
        } else if (errno != EINTR) {
            return explain_errno(err, errno, "write", path);
        }
    }
    return STATUS_OK;
}

enum status write_at(int fd, const void *data, size_t size, uint64_t offset, const char *path,
                     struct error *err)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t n = pwrite(fd, at, size, (off_t)offset);
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT))
            return explain(err, errno, path, "%s; free some space and run the command again",
                           errno == ENOSPC ? "the disk is full" : "your disk quota is used up");
        if (n < 0 && errno != EINTR)
            return explain_errno(err, errno, "pwrite", path);
        if (n > 0) {
            at += n;
            offset += (uint64_t)n;
            size -= (size_t)n;
        }
    }
    return STATUS_OK;
}

enum status read_to_end(char **data, size_t *size, int fd, const char *name, struct error *err)
{
    *data = NULL;
    *size = 0;
    for (size_t room = 0;;) {
        if (*size + 1 >= room) {
            room = room ? 2 * room : 1 << 16;
            char *grown = realloc(*data, room);
            if (!grown)
                return error_memory(err, room, name);
            *data = grown;
        }
        const ssize_t n = read(fd, *data + *size, room - 1 - *size);
        if (n < 0 && errno != EINTR)
            return error_errno(err, STATUS_FAILED, errno, "read", "cannot read %s",
                               PATH_TEXT(name));
        *size += n > 0 ? (size_t)n : 0;
        (*data)[*size] = 0;
        if (n == 0)
            return STATUS_OK;
    }
}

char *read_small(size_t *size, int directory, const char *name)
{
    const int links = directory == AT_FDCWD ? 0 : O_NOFOLLOW;
    const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | links);
    struct stat st;
    char *data = NULL;
    *size = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (read_to_end(&data, size, fd, name, NULL) != STATUS_OK || *size == 0)) {
        free(data);
        data = NULL;
    }
    if (fd >= 0)
        close(fd);
    return data;
}

enum status read_at(int fd, void *data, size_t size, uint64_t offset, size_t *got, const char *path,
                    struct error *err)
{
    char *at = data;
    *got = 0;
    while (*got < size) {
        const ssize_t n = pread(fd, at + *got, size - *got, (off_t)(offset + *got));
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return error_errno(err, STATUS_FAILED, errno, "pread", "cannot read %s",
                               PATH_TEXT(path));
        if (n > 0)
            *got += (size_t)n;
    }
    return STATUS_OK;
}
