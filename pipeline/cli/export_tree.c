/* export_tree.c: a folder for each cluster.
 *
 * The tree grows under DIR.tmp-clpipe-PID and is renamed to DIR when it is whole. DIR must be new
 * or empty, so nothing of anybody's can be overwritten. The name of an entry is the image's path
 * with its slashes turned into underscores: a path in a file is not trusted, and with "/" gone
 * nothing can leave the folder. Where two images come to the same name, the later one gets its row
 * number.
 */
#include "cli/export_tree.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "cli/signals.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of an entry's name: NAME_MAX, less what "~ROW" may add. */
#define ENTRY_MAX 230

struct tree {
    const char *target; /* DIR, without slashes at its end */
    char *temporary;
    int lock;           /* descriptor of `temporary`, locked */
    int folder;         /* descriptor of the cluster's folder that was used last, */
    int32_t folder_of;  /* and which one that is */
    char *working;      /* absolute working directory */
    char *source;       /* the last image's, */
    uint16_t source_of; /* its number, */
    bool source_is_directory;
    char *path; /* scratch: of the image */
    size_t path_size;
    enum export_link link;
    unsigned digits; /* in folder names */
};

static enum status trouble(struct error *err, int errno_value, const char *call, const char *path)
{
    char shown[256];
    return error_errno(err, STATUS_FAILED, errno_value, call, "cannot create %s",
                       path_for_message(shown, sizeof shown, path));
}

/* --- where images are ------------------------------------------------------------------------ */

/* \xHH, as bytes that are not UTF-8 stand in the file, back into bytes; in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        unsigned byte;
        if (at[0] == '\\' && at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
            isxdigit((unsigned char)at[3]) && sscanf(at + 2, "%2x", &byte) == 1 && byte) {
            *to++ = (char)byte;
            at += 4;
        } else {
            *to++ = *at++;
        }
    }
    *to = 0;
}

/* A source's name: as the file has it, or with the bytes that stand for it there. */
static enum status real_source(struct tree *tree, uint16_t number, const struct result *result,
                               struct error *err)
{
    struct stat st;
    if (tree->source && tree->source_of == number)
        return STATUS_OK;
    free(tree->source);
    tree->source = strdup(result_source(result, number));
    tree->source_of = number;
    if (!tree->source)
        return error_memory(err, strlen(result_source(result, number)) + 1, "a file name");
    const char *path = tree->source[0] == '@' ? tree->source + 1 : tree->source;
    if (stat(path, &st) != 0)
        unescape(tree->source);
    tree->source_is_directory = stat(tree->source, &st) == 0 && S_ISDIR(st.st_mode);
    return STATUS_OK;
}

/* Puts the absolute path of an image into tree->path. The sources are as they were given, so
 * relative ones are looked for in the working directory. */
static enum status locate(struct tree *tree, const struct result *result,
                          const struct result_image *image, struct error *err)
{
    enum status status = real_source(tree, image->source, result, err);
    if (status != STATUS_OK)
        return status;
    const char *source = tree->source, *path = image->path_raw;
    const size_t size = strlen(tree->working) + strlen(source) + strlen(path) + 3;
    if (size > tree->path_size) {
        char *grown = realloc(tree->path, size);
        if (!grown)
            return error_memory(err, size, "a file name");
        tree->path = grown;
        tree->path_size = size;
    }
    bool list = source[0] == '@' || strcmp(source, "-") == 0;
    bool directory = !list && tree->source_is_directory;
    const char *first = list ? path : source;
    snprintf(tree->path, tree->path_size, "%s%s%s%s%s", first[0] == '/' ? "" : tree->working,
             first[0] == '/' ? "" : "/", first, directory ? "/" : "", directory ? path : "");
    return STATUS_OK;
}

/* --- names ----------------------------------------------------------------------------------- */

/* The entry's name: without "/", without leading "./" and "../", not too long, not empty. With a
 * row number before the extension where `row` is not negative. */
static void entry_name(char out[NAME_MAX + 1], const char *path, int64_t row)
{
    while (path[0] == '/' || strncmp(path, "./", 2) == 0 || strncmp(path, "../", 3) == 0)
        path += path[0] == '/' ? 1 : strcspn(path, "/") + 1;
    size_t length = strlen(path);
    /* The end says more than the beginning; do not begin inside a character. */
    if (length > ENTRY_MAX) {
        path += length - ENTRY_MAX;
        while (((unsigned char)*path & 0xc0) == 0x80)
            path++;
    }
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    if (!dot || dot == path || (slash && dot <= slash + 1) || strlen(dot) > 10)
        dot = path + strlen(path);
    char number[24] = "";
    if (row >= 0)
        snprintf(number, sizeof number, "~%lld", (long long)row);
    snprintf(out, NAME_MAX + 1, "%.*s%s%s", (int)(dot - path), path, number, dot);
    for (char *at = out; *at; at++)
        if (*at == '/')
            *at = '_';
    if (!out[0] || strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
        snprintf(out, NAME_MAX + 1, "image%s", number);
}

/* --- entries --------------------------------------------------------------------------------- */

static int copy_file(int folder, const char *name, const char *from)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, failed = 0;
    struct stat st;
    if (in < 0)
        return errno;
    if (fstat(in, &st) != 0)
        failed = errno;
    else
        out = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
    if (!failed && out < 0)
        failed = errno;
    char *buffer = failed ? NULL : malloc((size_t)1 << 16);
    if (!failed && !buffer)
        failed = ENOMEM;
    while (!failed) {
        ssize_t size = read(in, buffer, (size_t)1 << 16);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            failed = errno;
        if (size <= 0)
            break;
        struct error err = ERROR_INIT;
        if (write_all(out, buffer, (size_t)size, name, &err) != STATUS_OK)
            failed = err.native;
    }
    if (!failed) {
        struct timespec times[2] = {st.st_atim, st.st_mtim};
        futimens(out, times); /* a copy that looks newer is still a copy */
    }
    free(buffer);
    close(in);
    if (out >= 0 && close(out) != 0 && !failed)
        failed = errno;
    return failed;
}

static int make_entry(const struct tree *tree, const char *name)
{
    if (tree->link == LINK_COPY)
        return copy_file(tree->folder, name, tree->path);
    const int failed = tree->link == LINK_HARD
                           ? linkat(AT_FDCWD, tree->path, tree->folder, name, AT_SYMLINK_FOLLOW)
                           : symlinkat(tree->path, tree->folder, name);
    return failed ? errno : 0;
}

static enum status enter_folder(struct tree *tree, int32_t cluster, struct error *err)
{
    if (tree->folder >= 0 && tree->folder_of == cluster)
        return STATUS_OK;
    char name[64];
    snprintf(name, sizeof name, "cluster_%0*d", (int)tree->digits, cluster);
    if (tree->folder >= 0)
        close(tree->folder);
    tree->folder = -1;
    size_t size = strlen(tree->temporary) + sizeof name + 2;
    char *path = malloc(size);
    if (!path)
        return error_memory(err, size, "a file name");
    snprintf(path, size, "%s/%s", tree->temporary, name);
    enum status status = STATUS_OK;
    tree->folder_of = cluster;
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        status = trouble(err, errno, "mkdir", path);
    else if ((tree->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        status = trouble(err, errno, "open", path);
    free(path);
    return status;
}

/* *missing: the image is not where the file says, and there is no entry. */
static enum status add_image(struct tree *tree, const struct result_image *image, uint64_t row,
                             bool *missing, struct error *err)
{
    char name[NAME_MAX + 1], shown[256];
    struct stat st;
    *missing = stat(tree->path, &st) != 0;
    if (*missing)
        return STATUS_OK;
    entry_name(name, image->path_raw, -1);
    int failed = make_entry(tree, name);
    if (failed == EEXIST) {
        entry_name(name, image->path_raw, (int64_t)row);
        failed = make_entry(tree, name);
    }
    if (failed == EXDEV || failed == EPERM)
        return error_set(err, STATUS_FAILED,
                         "%s cannot be hard-linked here (another file system, or not yours): use "
                         "--link symlink or copy",
                         path_for_message(shown, sizeof shown, tree->path));
    if (failed)
        return trouble(err, failed, tree->link == LINK_COPY ? "copy" : "link", name);
    return STATUS_OK;
}

/* --- the tree -------------------------------------------------------------------------------- */

static enum status check_target(const char *target, struct error *err)
{
    char shown[256];
    struct stat st;
    path_for_message(shown, sizeof shown, target);
    if (lstat(target, &st) != 0)
        return STATUS_OK; /* new; what else is wrong, mkdir says */
    if (!S_ISDIR(st.st_mode))
        return error_set(err, STATUS_FAILED, "%s exists and is not a directory: name another",
                         shown);
    DIR *stream = opendir(target);
    if (!stream)
        return error_errno(err, STATUS_FAILED, errno, "opendir", "cannot read the directory %s",
                           shown);
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(stream));)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(stream);
    if (!empty)
        return error_set(err, STATUS_FAILED,
                         "%s is not empty: name a new directory, or empty this one", shown);
    return STATUS_OK; /* rename() replaces an empty directory */
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path); /* the directory's removal shows whether it worked */
    return 0;
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Removes what killed processes have left on the way to `target`. Who works on such a directory
 * holds a lock on it. */
static void remove_abandoned(const char *target)
{
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    char *parent = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup("./");
    DIR *directory = parent ? opendir(parent) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
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
    if (directory)
        closedir(directory);
    free(parent);
}

static enum status begin(struct tree *tree, const char *target, struct error *err)
{
    size_t length = strlen(target);
    while (length > 1 && target[length - 1] == '/')
        length--;
    char *trimmed = strndup(target, length);
    tree->target = trimmed;
    tree->temporary = malloc(length + 48);
    tree->working = getcwd(NULL, 0);
    if (!trimmed || !tree->temporary)
        return error_memory(err, length + 48, "a file name");
    if (!tree->working)
        return error_errno(err, STATUS_FAILED, errno, "getcwd",
                           "the working directory has no name");
    snprintf(tree->temporary, length + 48, "%s" OUTPUT_TEMPORARY "%ld", trimmed, (long)getpid());
    enum status status = check_target(trimmed, err);
    if (status == STATUS_OK) {
        remove_abandoned(trimmed);
        if (mkdir(tree->temporary, 0777) != 0)
            status = trouble(err, errno, "mkdir", target);
    }
    if (status != STATUS_OK) {
        tree->temporary[0] = 0;
        return status;
    }
    /* Where there are no locks nobody takes it for abandoned either. */
    tree->lock = open(tree->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->lock < 0)
        return trouble(err, errno, "open", target);
    flock(tree->lock, LOCK_EX | LOCK_NB);
    return STATUS_OK;
}

static void end(struct tree *tree)
{
    if (tree->folder >= 0)
        close(tree->folder);
    if (tree->temporary && tree->temporary[0])
        remove_tree(tree->temporary);
    if (tree->lock >= 0)
        close(tree->lock);
    free(tree->temporary);
    free((char *)tree->target);
    free(tree->working);
    free(tree->source);
    free(tree->path);
}

static enum status fill(struct tree *tree, struct tree_counts *counts, struct result *result,
                        const int32_t *labels, uint32_t k, struct error *err)
{
    char first[256] = "";
    for (uint64_t row = 0; row < result_images(result); row++) {
        struct result_image image;
        bool missing = false;
        if (stop_requested(signals_stop()) != STOP_NONE)
            return error_set(err, STATUS_INTERRUPTED,
                             "interrupted: nothing was written; run the same command again");
        enum status status = result_image_at(result, row, &image, err);
        if (status != STATUS_OK)
            return status;
        if (labels[row] < 0 || (uint32_t)labels[row] >= k ||
            image.source >= result_source_count(result))
            return error_set(err, STATUS_FAILED,
                             "row %llu has no valid label or source: the file is damaged, see "
                             "clpipe verify",
                             (unsigned long long)row);
        status = locate(tree, result, &image, err);
        if (status != STATUS_OK)
            return status;
        status = enter_folder(tree, labels[row], err);
        if (status != STATUS_OK)
            return status;
        status = add_image(tree, &image, row, &missing, err);
        if (status != STATUS_OK)
            return status;
        if (missing && counts->missing++ == 0)
            path_for_message(first, sizeof first, tree->path);
        counts->made += !missing;
    }
    if (counts->made == 0)
        return error_set(err, STATUS_FAILED,
                         "none of the images was found (%s is missing): run this in the directory "
                         "from which clpipe read them",
                         first[0] ? first : "an image");
    if (counts->missing)
        log_message(LOG_NOTICE, "%llu image%s missing: %s%s", (unsigned long long)counts->missing,
                    counts->missing == 1 ? " is" : "s are", first,
                    counts->missing == 1 ? "" : " and others");
    return STATUS_OK;
}

enum status export_tree(struct tree_counts *counts, struct result *result,
                        const struct result_clusters *clusters, const int32_t *labels,
                        const struct options *options, struct error *err)
{
    struct tree tree = {
        .folder = -1, .lock = -1, .link = (enum export_link)options->link, .digits = 1};
    for (uint32_t rest = clusters->k - 1; rest >= 10; rest /= 10)
        tree.digits++;
    memset(counts, 0, sizeof *counts);
    enum status status = begin(&tree, options->to, err);
    for (uint32_t i = 0; status == STATUS_OK && i < clusters->k; i++)
        status = enter_folder(&tree, (int32_t)i, err);
    if (status == STATUS_OK)
        status = fill(&tree, counts, result, labels, clusters->k, err);
    if (status == STATUS_OK && rename(tree.temporary, tree.target) != 0)
        status = trouble(err, errno, "rename", tree.target);
    else if (status == STATUS_OK)
        tree.temporary[0] = 0;
    end(&tree);
    return status;
}
