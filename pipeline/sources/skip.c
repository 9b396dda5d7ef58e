/* skip.c: files that are never input. */
#include "sources/skip.h"
#include "base/path.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct skipped {
    char *path;
    const char *name; /* last component */
    bool exists, has_directory;
    dev_t device, directory_device;
    ino_t inode, directory_inode;
};

struct skip {
    unsigned count;
    struct skipped list[];
};

static const char temporary[] = ".tmp-", work[] = ".partial";

static enum status learn(struct skipped *skipped, const char *path, struct error *err)
{
    struct stat st;
    skipped->path = strdup(path);
    char *directory = strdup(path);
    if (!directory || !skipped->path) {
        free(directory);
        return error_memory(err, strlen(path) + 1, "a path");
    }
    char *slash = strrchr(directory, '/');
    skipped->name = slash ? skipped->path + (slash + 1 - directory) : skipped->path;
    if (slash)
        slash[1] = 0;
    if (path_stat_at(AT_FDCWD, path, &st, 0) == 0) {
        skipped->exists = true;
        skipped->device = st.st_dev;
        skipped->inode = st.st_ino;
    }
    if (skipped->name[0] && path_stat_at(AT_FDCWD, slash ? directory : ".", &st, 0) == 0) {
        skipped->has_directory = true;
        skipped->directory_device = st.st_dev;
        skipped->directory_inode = st.st_ino;
    }
    free(directory);
    return STATUS_OK;
}

enum status skip_open(struct skip **out, const char *const *paths, unsigned count,
                      struct error *err)
{
    size_t size = sizeof(struct skip) + count * sizeof(struct skipped);
    struct skip *skip = calloc(1, size);
    if (!skip)
        return error_memory(err, size, "paths to skip");
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        skip->count = i + 1;
        status = learn(&skip->list[i], paths[i], err);
    }
    if (status != STATUS_OK) {
        skip_close(&skip);
        return status;
    }
    *out = skip;
    return STATUS_OK;
}

bool skip_identity(const struct skip *skip, const struct stat *st)
{
    for (unsigned i = 0; i < skip->count; i++)
        if (skip->list[i].exists && skip->list[i].inode == st->st_ino &&
            skip->list[i].device == st->st_dev)
            return true;
    return false;
}

static bool beside(const struct skipped *skipped, const struct stat *directory)
{
    return skipped->has_directory && skipped->directory_inode == directory->st_ino &&
           skipped->directory_device == directory->st_dev;
}

static bool named(const struct skipped *skipped, const char *name)
{
    size_t length = strlen(skipped->name);
    if (strncmp(skipped->name, name, length) != 0)
        return false;
    name += length;
    return *name == 0 || strcmp(name, work) == 0 ||
           strncmp(name, temporary, sizeof temporary - 1) == 0;
}

bool skip_name(const struct skip *skip, const struct stat *directory, const char *name)
{
    for (unsigned i = 0; i < skip->count; i++)
        if (named(&skip->list[i], name) && beside(&skip->list[i], directory))
            return true;
    return false;
}

void skip_close(struct skip **skip)
{
    if (!skip || !*skip)
        return;
    for (unsigned i = 0; i < (*skip)->count; i++)
        free((*skip)->list[i].path);
    free(*skip);
    *skip = NULL;
}
