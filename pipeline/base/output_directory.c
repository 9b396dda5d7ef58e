/* output_directory.c: directories that appear complete or not at all. */
#include "base/output_directory.h"
#include "base/output.h"
#include "base/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors that the removal of a tree may use. */
#define REMOVAL_DESCRIPTORS 16

/* How often a directory is made again after others have removed it. */
#define TRIES 100

struct output_directory {
    char *final;        /* links followed, without trailing slashes */
    char *temporary;    /* final with a suffix */
    output_names names; /* NULL: `check` decides */
    enum status (*check)(void *context, struct error *err);
    void *context;
    int lock;    /* descriptor of the temporary directory, locked; -1: not created */
    bool exists; /* the temporary directory, which this process removes */
};

static enum status trouble(struct error *err, int errno_value, const char *call, const char *path)
{
    const char *advice = "";
    if (errno_value == ENOENT)
        advice = "; the directory it would lie in must exist";
    else if (errno_value == EACCES || errno_value == EPERM || errno_value == EROFS)
        advice = "; name a directory where you have permission to write";
    else if (errno_value == ENOSPC || errno_value == EDQUOT)
        advice = "; free some space or name a directory on another disk";
    return error_errno(err, STATUS_FAILED, errno_value, call, "cannot write %s%s", PATH_TEXT(path),
                       advice);
}

/* --- removal --------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path); /* whether it worked shows when the directory is removed */
    return 0;
}

/* Removes a directory and its contents as far as possible. */
static void remove_tree(const char *path)
{
    nftw(path, remove_entry, REMOVAL_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

void output_directory_remove_abandoned(const char *final)
{
    const char *slash = strrchr(final, '/'), *base = slash ? slash + 1 : final;
    char *parent = slash ? strndup(final, (size_t)(slash - final) + 1) : strdup("./");
    DIR *stream = parent ? opendir(parent) : NULL;
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        char *path = NULL;
        if (!output_is_temporary(entry->d_name, base) ||
            asprintf(&path, "%s%s", parent, entry->d_name) < 0)
            continue;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_tree(path);
        if (fd >= 0)
            close(fd);
        free(path);
    }
    if (stream)
        closedir(stream);
    free(parent);
}

/* --- the existing one ----------------------------------------------------------------------- */

static bool is_one_of(const char *name, output_names names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Checks that the final name is free, or an empty directory or one of clpipe's. */
static enum status check_final(const char *final, output_names names, struct error *err)
{
    char other[256] = "";
    struct stat st;
    const char *shown = PATH_TEXT(final);
    if (lstat(final, &st) != 0)
        return STATUS_OK; /* mkdir reports other errors */
    if (!S_ISDIR(st.st_mode))
        return error_set(err, STATUS_FAILED, "%s exists and is not a directory: name another",
                         shown);
    DIR *stream = opendir(final);
    if (!stream)
        return error_errno(err, STATUS_FAILED, errno, "opendir", "cannot read the directory %s",
                           shown);
    bool marked = false;
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (strcmp(entry->d_name, names[0]) == 0)
            marked = true;
        else if (!is_one_of(entry->d_name, names))
            path_for_message(other, sizeof other, entry->d_name);
        else if (!other[0])
            other[0] = '\1'; /* clpipe's, if it is marked */
    }
    closedir(stream);
    if (other[0] && other[0] != '\1')
        return error_set(err, STATUS_FAILED,
                         "%s holds %s, which clpipe did not write, so it is not replaced: name "
                         "another directory",
                         shown, other);
    if (other[0] && !marked)
        return error_set(err, STATUS_FAILED,
                         "%s was not written by clpipe, so it is not replaced: name another "
                         "directory",
                         shown);
    return STATUS_OK;
}

static enum status resolve(char **final, const char *path, struct error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    *final = NULL;
    char *trimmed = strndup(path, length);
    if (!trimmed)
        return error_memory(err, length, "a file name");
    enum status status = output_resolve(final, trimmed, err);
    free(trimmed);
    if (status != STATUS_OK)
        return status;
    const char *slash = strrchr(*final, '/'), *base = slash ? slash + 1 : *final;
    /* The temporary directory needs a sibling name. */
    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return error_set(err, STATUS_FAILED, "%s cannot be replaced: name a directory in it", path);
    return STATUS_OK;
}

enum status output_directory_check(const char *path, output_names names, struct error *err)
{
    char *final = NULL;
    enum status status = resolve(&final, path, err);
    if (status == STATUS_OK)
        status = check_final(final, names, err);
    free(final);
    return status;
}

static enum status check_existing(const struct output_directory *directory, struct error *err)
{
    return directory->names ? check_final(directory->final, directory->names, err)
                            : directory->check(directory->context, err);
}

/* --- writing ----------------------------------------------------------------------------------- */

/* Until the directory is locked, another process may consider it abandoned and remove it: then it
 * is made again. */
static enum status make_temporary(struct output_directory *directory, const char *path,
                                  struct error *err)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        if (mkdir(directory->temporary, 0777) != 0)
            return trouble(err, errno, "mkdir", path);
        directory->lock = open(directory->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory->lock < 0 && errno == ENOENT)
            continue;
        directory->exists = true;
        if (directory->lock < 0)
            return trouble(err, errno, "open", path);
        /* Waits for such a process. Without locks, no directory is considered abandoned. */
        while (flock(directory->lock, LOCK_EX) != 0 && errno == EINTR)
            continue;
        if (output_still_named(AT_FDCWD, directory->temporary, directory->lock))
            return STATUS_OK;
        close(directory->lock);
        directory->lock = -1;
        directory->exists = false;
    }
    return trouble(err, EBUSY, "mkdir", path);
}

static enum status open_as(struct output_directory **out, const struct output_directory *as,
                           const char *path, struct error *err)
{
    struct output_directory *directory = *out = malloc(sizeof *directory);
    if (!directory)
        return error_memory(err, sizeof *directory, "a directory");
    *directory = *as;
    directory->lock = -1;
    enum status status = resolve(&directory->final, path, err);
    if (status == STATUS_OK)
        status = check_existing(directory, err);
    if (status == STATUS_OK && asprintf(&directory->temporary, "%s" OUTPUT_TEMPORARY "%ld",
                                        directory->final, (long)getpid()) < 0) {
        directory->temporary = NULL;
        status = error_memory(err, strlen(directory->final) + 48, "a file name");
    }
    if (status == STATUS_OK) {
        output_directory_remove_abandoned(directory->final);
        status = make_temporary(directory, path, err);
    }
    if (status != STATUS_OK)
        output_directory_close(out);
    return status;
}

enum status output_directory_open(struct output_directory **out, const char *path,
                                  output_names names, struct error *err)
{
    return open_as(out, &(struct output_directory){.names = names}, path, err);
}

enum status output_directory_open_if(struct output_directory **out, const char *path,
                                     enum status (*check)(void *context, struct error *err),
                                     void *context, struct error *err)
{
    return open_as(out, &(struct output_directory){.check = check, .context = context}, path, err);
}

int output_directory_descriptor(const struct output_directory *directory)
{
    return directory->lock;
}

const char *output_directory_temporary(const struct output_directory *directory)
{
    return directory->temporary;
}

enum status output_directory_add(struct output_directory *directory, const char *name,
                                 struct error *err)
{
    if (mkdirat(directory->lock, name, 0777) != 0)
        return trouble(err, errno, "mkdirat", directory->final);
    return STATUS_OK;
}

enum status output_directory_write(struct output_directory *directory, const char *name,
                                   const void *data, size_t bytes, struct error *err)
{
    int fd = openat(directory->lock, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return trouble(err, errno, "openat", directory->final);
    enum status status = write_all(fd, data, bytes, directory->final, err);
    if (close(fd) != 0 && status == STATUS_OK)
        status = trouble(err, errno, "close", directory->final);
    return status;
}

/* The new directory takes the place of the old one, whose name is then the temporary one. */
static int replace(const struct output_directory *directory)
{
    if (renameat2(AT_FDCWD, directory->temporary, AT_FDCWD, directory->final, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* The file system cannot exchange names: for a moment there is no directory under the final
     * name. */
    char *aside = NULL;
    if (asprintf(&aside, "%s-0", directory->temporary) < 0) {
        errno = ENOMEM;
        return -1;
    }
    int failed = rename(directory->final, aside);
    if (failed == 0 && (failed = rename(directory->temporary, directory->final)) != 0) {
        int saved = errno;
        rename(aside, directory->final);
        errno = saved;
    }
    if (failed == 0)
        remove_tree(aside);
    free(aside);
    return failed;
}

enum status output_directory_commit(struct output_directory *directory, struct error *err)
{
    if (syncfs(directory->lock) != 0 && errno != ENOSYS && errno != EINVAL)
        return trouble(err, errno, "syncfs", directory->final);
    if (rename(directory->temporary, directory->final) == 0) { /* new, or empty */
        directory->exists = false;
        return STATUS_OK;
    }
    const int failed = errno;
    /* Minutes may have passed, and only what this finds is replaced. */
    enum status status = check_existing(directory, err);
    if (status != STATUS_OK)
        return status;
    if (failed != ENOTEMPTY && failed != EEXIST)
        return trouble(err, failed, "rename", directory->final);
    if (replace(directory) != 0)
        return trouble(err, errno, "renameat2", directory->final);
    return STATUS_OK; /* close removes the old one */
}

void output_directory_close(struct output_directory **directory)
{
    if (!directory || !*directory)
        return;
    struct output_directory *d = *directory;
    *directory = NULL;
    if (d->exists)
        remove_tree(d->temporary);
    if (d->lock >= 0)
        close(d->lock);
    free(d->temporary);
    free(d->final);
    free(d);
}
