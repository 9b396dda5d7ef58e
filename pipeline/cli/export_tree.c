/* export_tree.c: a folder for each cluster.
 *
 *   DIR/01_cluster_3_240/001_beach_dawn.jpg     the largest cluster, and in it the nearest image
 *   DIR/index.csv                               which image every entry is
 *   DIR/.clpipe-tree                            what clpipe has put there
 *
 * The tree appears when complete (base/output_directory.h). DIR must be new, empty, or an earlier
 * tree that holds only what its .clpipe-tree lists, so no foreign file can be lost. Copies, and hard
 * links that are the last name of an image, are not replaced. The name of an entry is a number,
 * unique in its folder, and the image's path, with underscores for slashes and for what exFAT, FAT
 * and NTFS refuse in names: paths in a file are not trusted, and without "/" no entry can leave the
 * folder.
 *
 * .clpipe-tree is a sequence of texts, each ended by a NUL: the version, how entries were made,
 * FOLDER/ENTRY of each entry, and a digest of index.csv. */
#include "base/blob.h"
#include "base/compare.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/output_directory.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/source_name.h"
#include "base/text.h"
#include "cli/call.h"
#include "cli/export_table.h"
#include "cli/signals.h"
#include "jobs/original.h"
#include "result/words.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX   "index.csv"
#define MARKER  ".clpipe-tree"
#define VERSION "clpipe-tree 1"
#define STAMP   64

struct tree {
    struct export *export;
    const char *target;               /* DIR, without slashes at its end */
    struct output_directory *made_in; /* where it grows */
    char *place;           /* absolute, without symbolic links: a folder of the finished tree */
    int root;              /* descriptor of that directory */
    size_t name_max;       /* bytes of a name there */
    char (*folder)[96];    /* of each cluster */
    uint64_t *size, *rank; /* of each cluster; of each row in its cluster, from 1 */
    char *link;            /* scratch: the target of a symbolic link */
    struct sink index, marker;
    uint64_t made, missing, unlabelled; /* images */
    uint64_t archived;                  /* of those that are missing */
};

static enum status trouble(struct error *err, int errno_value, const char *call, const char *path)
{
    return error_errno(err, STATUS_FAILED, errno_value, call, "cannot create %s", PATH_TEXT(path));
}

/* --- names and order ------------------------------------------------------------------------- */

static unsigned digits_of(uint64_t number)
{
    unsigned digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

/* The entry's name: its number, and the path without leading "/", "./" and "../". In a name of more than
 * `most` bytes, a digest and the end of the path replace the path, since the end says more than the
 * beginning. */
static void entry_name(char out[NAME_MAX + 1], const char *path, uint64_t rank, unsigned digits,
                       size_t most)
{
    const char *from = path;
    while (from[0] == '/' || strncmp(from, "./", 2) == 0 || strncmp(from, "../", 3) == 0)
        from += from[0] == '/' ? 1 : strcspn(from, "/") + 1;
    size_t length = strlen(from);
    int used = snprintf(out, NAME_MAX + 1, "%0*" PRIu64 "_", (int)digits, rank);
    if ((size_t)used + length > most) {
        uint64_t digest[2];
        murmur3_of_path(digest, 0, path, strlen(path));
        used += snprintf(out + used, NAME_MAX + 1 - (size_t)used, "%08" PRIx32 "_",
                         (uint32_t)digest[0]);
        from += length - (most > (size_t)used ? most - (size_t)used : 0);
        while (((unsigned char)*from & 0xc0) == 0x80) /* does not begin inside a character */
            from++;
        length = strlen(from);
    }
    char *to = out + used;
    for (size_t n; length > 0; from += n, length -= n) {
        const size_t valid = utf8_sequence(from, length);
        n = valid ? valid : 1;
        if (valid > 1 ||
            (valid == 1 && *from >= 0x20 && *from < 0x7f && !strchr("/\\:?*\"<>|", *from)))
            to = mempcpy(to, from, n);
        else
            *to++ = '_';
    }
    *to = 0;
    while (*--to == '.' || *to == ' ')
        *to = '_';
}

struct member {
    int32_t label;
    float distance;
    uint64_t row;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *one = a, *two = b;
    if (one->label != two->label)
        return one->label < two->label ? -1 : 1;
    if (one->distance != two->distance)
        return one->distance < two->distance ? -1 : 1;
    return (one->row > two->row) - (one->row < two->row);
}

/* Numbers the rows of each cluster by their distance, and names the folders by size. Rows without a
 * label have no rank. */
static enum status put_in_order(struct tree *tree, struct error *err)
{
    const struct export *export = tree->export;
    const uint64_t rows = export->clusters->rows;
    const uint32_t k = export->clusters->k;
    struct held *held = &tree->export->held;
    struct member *member = held_array(held, rows, sizeof *member);
    tree->rank = held_array(held, rows, sizeof *tree->rank);
    tree->size = held_array(held, k, sizeof *tree->size);
    tree->folder = held_array(held, k, sizeof *tree->folder);
    if (held_check(held, "the order of the images", err) != STATUS_OK)
        return STATUS_FAILED;
    size_t used = 0;
    for (uint64_t row = 0; row < rows; row++) {
        const int32_t label = export->labels[row];
        const float distance = export->distances[row];
        if (label >= 0 && (uint32_t)label < k)
            member[used++] = (struct member){label, isnan(distance) ? INFINITY : distance, row};
    }
    qsort(member, used, sizeof *member, compare_members);
    for (size_t i = 0; i < used; i++)
        tree->rank[member[i].row] = ++tree->size[member[i].label];
    uint32_t *order = clusters_by_size(tree->size, k);
    if (!order)
        return error_memory(err, k * sizeof *order, "the order of the images");
    for (uint32_t i = 0; i < k; i++)
        snprintf(tree->folder[order[i]], sizeof *tree->folder, "%0*u_cluster_%u_%" PRIu64,
                 (int)digits_of(k), i + 1, order[i], tree->size[order[i]]);
    free(order);
    return STATUS_OK;
}

/* --- entries --------------------------------------------------------------------------------- */

/* Copies the rest of `in`; returns an error number. */
static int copy_bytes(int out, int in)
{
    char buffer[1 << 15];
    struct error err = ERROR_INIT;
    ssize_t size;
    while ((size = read(in, buffer, sizeof buffer)) != 0) {
        if (size < 0 && errno != EINTR)
            return errno;
        if (size > 0 && write_all(out, buffer, (size_t)size, "", &err) != STATUS_OK)
            return err.native;
    }
    return 0;
}

static int copy_file(int root, const char *name, const char *from)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, failed = 0;
    struct stat st;
    if (in < 0)
        return errno;
    if (fstat(in, &st) != 0 ||
        (out = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777)) < 0)
        failed = errno;
    if (!failed)
        failed = copy_bytes(out, in);
    if (!failed) {
        struct timespec times[2] = {st.st_atim, st.st_mtim};
        futimens(out, times); /* a copy that looks newer is still a copy */
    }
    close(in);
    if (out >= 0 && close(out) != 0 && !failed)
        failed = errno;
    return failed;
}

/* `path` relative to the directory `from`; both are absolute, without symbolic links in their
 * directories. NULL: no memory. */
static char *relative_path(const char *from, const char *path)
{
    size_t common = 0, up = 0;
    for (size_t i = 0; from[i] == path[i] || (!from[i] && path[i] == '/'); i++) {
        if (path[i] == '/')
            common = i + 1;
        if (!from[i] || !path[i])
            break;
    }
    const char *rest = strlen(from) >= common ? from + common : "";
    for (const char *at = rest; *at; at++)
        up += *at == '/' || at == rest;
    char *out = malloc(3 * up + strlen(path + common) + 1);
    if (!out)
        return NULL;
    for (size_t i = 0; i < up; i++)
        memcpy(out + 3 * i, "../", 3);
    strcpy(out + 3 * up, path + common);
    return out;
}

/* Stores the target of a symbolic link to the image in tree->link: relative to its folder, so that
 * the tree can be moved with its images. Returns 0 or an errno. */
static int link_text(struct tree *tree, const char *path)
{
    const bool absolute = tree->export->own->absolute_paths;
    char *name = absolute ? strdup(path) : original_name(path);
    if (!name)
        return errno;
    free(tree->link);
    tree->link = absolute ? name : relative_path(tree->place, name);
    if (!absolute)
        free(name);
    return tree->link ? 0 : ENOMEM;
}

static int make_entry(struct tree *tree, const char *path, const char *name)
{
    int failed = 0;
    switch ((enum export_link)tree->export->own->link) {
    case LINK_COPY:
        return copy_file(tree->root, name, path);
    case LINK_HARD:
        return linkat(AT_FDCWD, path, tree->root, name, AT_SYMLINK_FOLLOW) ? errno : 0;
    case LINK_SYMBOLIC:
        failed = link_text(tree, path);
        return failed ? failed : symlinkat(tree->link, tree->root, name) ? errno : 0;
    }
    return EINVAL;
}

static void index_line(struct tree *tree, const struct result_image *image, int32_t label,
                       uint64_t rank, float distance, const char *entry)
{
    char text[FLOAT32_TEXT], shown[4 * NAME_MAX + 1];
    sink_printf(&tree->index, "%s,", tree->folder[label]);
    path_to_utf8(shown, sizeof shown, entry, strlen(entry));
    sink_field(&tree->index, shown, ',');
    format_float32(text, (float)sqrt((double)distance));
    sink_printf(&tree->index, ",%d,%" PRIu64 ",%s,", label, rank, text);
    sink_field(&tree->index, image->path, ',');
    sink_text(&tree->index, ",");
    sink_field(&tree->index, tree->export->result->sources[image->source], ',');
    sink_text(&tree->index, "\n");
}

/* *missing: the file is no longer at its path, so no entry was made. */
static enum status add_image(struct tree *tree, const struct result_image *image, uint64_t row,
                             const char *path, bool *missing, struct error *err)
{
    const int32_t label = tree->export->labels[row];
    char entry[NAME_MAX + 1], name[NAME_MAX + 100];
    bool member;
    *missing = original_check(path, image, &member) != ORIGINAL_THERE || member;
    if (*missing)
        return STATUS_OK;
    entry_name(entry, image->path_raw, tree->rank[row], digits_of(tree->size[label]),
               tree->name_max);
    snprintf(name, sizeof name, "%s/%s", tree->folder[label], entry);
    const int failed = make_entry(tree, path, name);
    const bool unable = failed == EPERM || failed == EOPNOTSUPP || failed == ENOSYS;
    if (unable && tree->export->own->link == LINK_SYMBOLIC)
        return error_set(err, STATUS_FAILED,
                         "the file system of %s has no symbolic links: use --link copy",
                         PATH_TEXT(tree->target));
    if ((unable || failed == EXDEV || failed == EMLINK) && tree->export->own->link == LINK_HARD)
        return error_set(
            err, STATUS_FAILED,
            "%s cannot be hard-linked there (another file system, one without links, or "
            "not yours): use --link %scopy",
            PATH_TEXT(path), symlinkat(MARKER, tree->root, "symlink") == 0 ? "symlink or " : "");
    if (failed)
        return trouble(err, failed, tree->export->own->link == LINK_COPY ? "copy" : "link", name);
    sink_write(&tree->marker, name, strlen(name) + 1);
    index_line(tree, image, label, tree->rank[row], tree->export->distances[row], entry);
    return STATUS_OK;
}

/* --- an earlier tree ------------------------------------------------------------------------- */

/* A digest of the index, which shows whether it has changed; "" if it cannot be read. */
static const char *index_stamp(char stamp[STAMP], int directory, const char *path)
{
    uint64_t digest[2];
    const int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct blob index = blob_of_file(fd, 0, 0);
    stamp[0] = 0;
    if (fd >= 0 && blob_digest(&index, digest, NULL))
        snprintf(stamp, STAMP, "%016" PRIx64 "%016" PRIx64, digest[0], digest[1]);
    if (fd >= 0)
        blob_close(&index);
    return stamp;
}

/* The texts of a marker: pointers into `bytes`, which end with a NUL; the entries (all but the first two
 * and the last) are sorted. NULL: not a marker, or out of memory. */
static const char **marker_texts(const char *bytes, size_t size, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < size; i++)
        *count += bytes[i] == 0;
    if (*count < 3 || bytes[size - 1] != 0 || strcmp(bytes, VERSION) != 0)
        return NULL;
    const char **texts = malloc(*count * sizeof *texts);
    for (size_t i = 0; texts && i < *count; i++) {
        texts[i] = bytes;
        bytes += strlen(bytes) + 1;
    }
    if (texts)
        qsort(texts + 2, *count - 3, sizeof *texts, compare_texts);
    return texts;
}

static enum status foreign(struct error *err, const char *target, const char *name, const char *why)
{
    return error_set(
        err, STATUS_FAILED,
        "%s is an earlier tree, but %s %s: move that elsewhere, or name a new directory",
        PATH_TEXT(target), PATH_TEXT(name), why);
}

/* Whether everything in a folder of an earlier tree (folder "": its root) comes from clpipe. */
static enum status check_folder(const char *target, const char *folder, const char **texts,
                                size_t count, struct error *err)
{
    char *path = NULL;
    DIR *stream = asprintf(&path, "%s/%s", target, folder) < 0 ? NULL : opendir(path);
    enum status status = STATUS_OK;
    if (!stream)
        status = error_errno(err, STATUS_FAILED, errno, "opendir", "cannot read %s", target);
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(stream));) {
        char *name = NULL;
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (asprintf(&name, "%s%s%s", folder, *folder ? "/" : "", entry->d_name) < 0)
            return closedir(stream), free(path), error_memory(err, 256, "a file name");
        if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            status = error_errno(err, STATUS_FAILED, errno, "fstatat", "cannot read %s", name);
        else if (!*folder && S_ISDIR(st.st_mode))
            status = check_folder(target, name, texts, count, err);
        else if (!*folder && strcmp(name, INDEX) == 0) {
            char stamp[STAMP];
            if (strcmp(index_stamp(stamp, dirfd(stream), INDEX), texts[count - 1]) != 0)
                status = foreign(err, target, name, "has changed");
        } else if (*folder || strcmp(name, MARKER) != 0) {
            const bool ours =
                bsearch(&name, texts + 2, count - 3, sizeof *texts, compare_texts) != NULL;
            if (!ours || S_ISDIR(st.st_mode))
                status = foreign(err, target, name, "is not from clpipe");
            else if (strcmp(texts[1], "symlink") == 0 ? !S_ISLNK(st.st_mode) : st.st_nlink < 2)
                status = foreign(err, target, name,
                                 S_ISREG(st.st_mode) && strcmp(texts[1], "hard") == 0
                                     ? "is the last name of its image"
                                     : "has changed");
        }
        free(name);
    }
    if (stream)
        closedir(stream);
    free(path);
    return status;
}

static bool is_empty(DIR *stream)
{
    for (struct dirent *entry; (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    return true;
}

/* Checks that the target is new, empty, or a tree that may be replaced; context: the tree. */
static enum status check_target(void *context, struct error *err)
{
    const struct tree *tree = context;
    const char *target = tree->target;
    struct stat st;
    const char *shown = PATH_TEXT(target);
    if (lstat(target, &st) != 0)
        return STATUS_OK; /* new; mkdir reports other errors */
    if (!S_ISDIR(st.st_mode))
        return error_set(err, STATUS_FAILED, "%s exists and is not a directory: name another",
                         shown);
    DIR *stream = opendir(target);
    if (!stream)
        return error_errno(err, STATUS_FAILED, errno, "opendir", "cannot read the directory %s",
                           shown);
    const bool empty = is_empty(stream);
    size_t size, count = 0;
    char *bytes = read_small(&size, dirfd(stream), MARKER);
    closedir(stream);
    const char **texts = bytes ? marker_texts(bytes, size, &count) : NULL;
    enum status status = STATUS_OK;
    if (!texts && !empty)
        status = error_set(err, STATUS_FAILED,
                           "%s is not empty: name a new directory, or empty this one", shown);
    else if (texts && strcmp(texts[1], "copy") == 0)
        status = error_set(err, STATUS_FAILED,
                           "%s holds copies of images, which are not replaced: name a new "
                           "directory, or remove this one",
                           shown);
    else if (texts)
        status = check_folder(target, "", texts, count, err);
    free(texts);
    free(bytes);
    return status;
}

/* --- the tree -------------------------------------------------------------------------------- */

/* The final path of the folders, without symbolic links. */
static enum status find_place(struct tree *tree, struct error *err)
{
    char *real = original_name(tree->target);
    enum status status = STATUS_OK;
    if (!real)
        status = trouble(err, errno, "realpath", tree->target);
    else if (asprintf(&tree->place, "%s/folder", real) < 0)
        status = error_memory(err, 256, "a file name");
    free(real);
    return status;
}

static enum status open_table(struct sink *sink, const struct tree *tree, const char *name,
                              char **path, struct error *err)
{
    if (asprintf(path, "%s/%s", output_directory_temporary(tree->made_in), name) < 0) {
        *path = NULL;
        return error_memory(err, 256, "a file name");
    }
    return sink_open(sink, *path, err);
}

static enum status begin(struct tree *tree, struct error *err)
{
    const char *target = tree->export->own->to;
    size_t length = strlen(target);
    while (length > 1 && target[length - 1] == '/')
        length--;
    tree->target = strndup(target, length);
    if (!tree->target)
        return error_memory(err, length, "a file name");
    enum status status =
        output_directory_open_if(&tree->made_in, tree->target, check_target, tree, err);
    if (status == STATUS_OK)
        status = find_place(tree, err);
    if (status != STATUS_OK)
        return status;
    tree->root = output_directory_descriptor(tree->made_in);
    const long most = fpathconf(tree->root, _PC_NAME_MAX);
    tree->name_max = most > 0 && most < NAME_MAX ? (size_t)most : NAME_MAX;
    for (uint32_t i = 0; i < tree->export->clusters->k && status == STATUS_OK; i++)
        status = output_directory_add(tree->made_in, tree->folder[i], err);
    return status;
}

static void end(struct tree *tree)
{
    output_directory_close(&tree->made_in);
    free((char *)tree->target);
    free(tree->place);
    free(tree->link);
}

static enum status fill(struct tree *tree, struct error *err)
{
    struct export *export = tree->export;
    const uint64_t rows = result_images(export->result);
    char first[256] = "";
    sink_text(&tree->index, "folder,entry,cluster,rank,distance,path,source\n");
    for (uint64_t row = 0; row < rows; row++) {
        struct result_image image;
        const char *path;
        bool missing = false;
        progress_phase(&export->own->common.call->progress, "images", row, rows);
        if (stop_requested(signals_stop()) != STOP_NONE)
            return error_set(err, STATUS_INTERRUPTED,
                             "interrupted: nothing was written; run the same command again");
        if (tree->rank[row] == 0) {
            tree->unlabelled++;
            continue;
        }
        enum status status = result_image_at(export->result, row, &image, err);
        if (status == STATUS_OK)
            status = locate_image(&export->locator, &path, export->result, image.source,
                                  image.path_raw, err);
        if (status == STATUS_OK)
            status = add_image(tree, &image, row, path, &missing, err);
        if (status != STATUS_OK)
            return status;
        tree->archived += missing && archive_prefix(image.path_raw) > 0;
        if (missing && tree->missing++ == 0)
            path_for_message(first, sizeof first, path);
        tree->made += !missing;
    }
    if (tree->made == 0 && tree->archived > 0)
        return error_set(err, STATUS_FAILED,
                         "the images are in archives, so there are no files to link to: unpack "
                         "them, and ingest the unpacked files");
    if (tree->made == 0)
        return error_set(err, STATUS_FAILED,
                         "none of the images was found (%s is missing or has changed): run this in "
                         "the directory from which clpipe read them",
                         first[0] ? first : "an image");
    if (tree->missing)
        log_message(LOG_NOTICE, "%llu image%s missing or changed since%s: %s%s",
                    (unsigned long long)tree->missing, tree->missing == 1 ? " is" : "s are",
                    tree->archived ? " or in archives" : "", first,
                    tree->missing == 1 ? "" : " and others");
    if (tree->unlabelled)
        log_message(LOG_NOTICE, "%llu image%s no label in /clusters/%s",
                    (unsigned long long)tree->unlabelled, tree->unlabelled == 1 ? " has" : "s have",
                    export->clusters->name);
    return STATUS_OK;
}

static enum status write_tree(struct tree *tree, struct error *err)
{
    const char *link = CHOICE_WORD(&tree->export->own->common, "link");
    char *index = NULL, *marker = NULL, stamp[STAMP];
    enum status status = open_table(&tree->index, tree, INDEX, &index, err);
    if (status == STATUS_OK)
        status = open_table(&tree->marker, tree, MARKER, &marker, err);
    if (status == STATUS_OK) {
        sink_write(&tree->marker, VERSION, sizeof VERSION);
        sink_write(&tree->marker, link, strlen(link) + 1);
        status = fill(tree, err);
    }
    status = sink_end(&tree->index, status, err);
    if (status == STATUS_OK && !*index_stamp(stamp, tree->root, INDEX))
        status = trouble(err, errno, "read", index);
    if (status == STATUS_OK)
        sink_write(&tree->marker, stamp, strlen(stamp) + 1);
    status = sink_end(&tree->marker, status, err);
    free(index);
    free(marker);
    return status;
}

/* Creates own->to atomically. STATUS_FAILED: it exists and is neither empty nor an earlier tree
 * without foreign files, or no image is at its path. STATUS_INTERRUPTED: nothing is left behind. */
static enum status make_tree(struct export *export, struct error *err)
{
    const struct options *options = &export->own->common;
    struct tree tree = {.export = export};
    if (!export_has_images(export))
        return error_set(
            err, STATUS_FAILED,
            "%s: /clusters/%s does not label the images of this file; export it with --what labels",
            PATH_TEXT(options->operand[0]), export->clusters->name);
    progress_init(&options->call->progress, options);
    enum status status = put_in_order(&tree, err);
    if (status == STATUS_OK)
        status = begin(&tree, err);
    if (status == STATUS_OK)
        status = write_tree(&tree, err);
    progress_end(&options->call->progress);
    if (status == STATUS_OK)
        status = output_directory_commit(tree.made_in, err);
    end(&tree);
    if (status != STATUS_OK)
        return status;
    export->rows = tree.made;
    log_message(LOG_INFO, "%s in %s under %s", NUMBER_OF(tree.made, "image"),
                NUMBER_OF(export->clusters->k, "folder"), PATH_TEXT(export->own->to));
    return tree.missing ? STATUS_PARTIAL : STATUS_OK;
}

const struct export_kind export_tree = {.takes = TAKES_NAME | TAKES_PATHS | TAKES_LINK,
                                        .directory = true,
                                        .open = export_open_labels,
                                        .write = make_tree};
