/* tree.c: reading directories, breadth first.
 *
 * A directory is opened by its last component, relative to its parent: with whole paths a deep
 * chain takes quadratic time. In breadth-first order a directory's subdirectories are consecutive,
 * and so are the links of a chain, so a few recently used descriptors nearly always include the
 * parent; otherwise it is opened by its path once, for all its children.
 *
 * Depth-first order was rejected: it needs an open descriptor or a directory position per level. */
#include "sources/tree.h"
#include "base/output.h"
#include "base/path.h"
#include "base/process.h"
#include "base/source_name.h"
#include "sources/bytes.h"
#include "sources/spool.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_BUFFER (32 * 1024)
#define RECENT      8   /* directories kept open */
#define STOP_EVERY  256 /* entries between checks for a stop */

struct recent {
    struct bytes path;
    int fd; /* -1: free */
    uint64_t used;
};

enum pending_flags {
    PENDING_LINK = 1,       /* the last component is a followed symbolic link */
    PENDING_BELOW_LINK = 2, /* it or a directory above it is a followed symbolic link */
    PENDING_INCLUDED = 4,   /* an include glob includes everything below it */
};

struct tree {
    struct source_listing *listing;
    int root;
    entry_fn found;
    void *context;
    struct spool *pending; /* directories to read; on disk if they are many */
    struct spool_reader reader;
    struct recent recent[RECENT];
    uint64_t clock; /* for recent.used */
    unsigned since_stop;

    /* The directory being read. */
    int fd;
    struct stat st;
    bool has_children;  /* directories in it were queued */
    unsigned own;       /* names written by clpipe that were found in it */
    unsigned flags;     /* enum pending_flags */
    struct bytes path;  /* "" for the root */
    size_t prefix;      /* length of `child` before the entry's name */
    struct bytes child; /* the entry's path */
};

/* --- the queue of directories to read --------------------------------------------------------- */

struct pending_header {
    uint32_t length, flags;
};

static enum status push(struct tree *tree, const char *path, size_t length, unsigned flags,
                        struct error *err)
{
    struct pending_header header = {(uint32_t)length, flags};
    enum status status = spool_write(tree->pending, &header, sizeof header, err);
    return status == STATUS_OK ? spool_write(tree->pending, path, length, err) : status;
}

/* Takes the oldest directory, or returns STATUS_END. Disk space is freed whenever the queue is
 * empty, so deep and narrow trees need little. */
static enum status pop(struct tree *tree, struct error *err)
{
    const char *bytes;
    struct pending_header header;
    struct spool_reader *reader = &tree->reader;
    enum status status = spool_peek(&bytes, reader, sizeof header, err);
    if (status != STATUS_OK)
        return status;
    memcpy(&header, bytes, sizeof header);
    spool_take(reader, sizeof header);
    status = spool_peek(&bytes, reader, header.length, err);
    assert(status != STATUS_END);
    if (status == STATUS_OK)
        status = bytes_set(&tree->path, bytes, header.length, err);
    if (status != STATUS_OK)
        return status;
    tree->flags = header.flags;
    spool_take(reader, header.length);
    if (reader->start < reader->filled || reader->offset < spool_size(tree->pending))
        return STATUS_OK;
    reader->offset = reader->start = reader->filled = 0;
    return spool_reset(tree->pending, err);
}

/* --- recently used descriptors --------------------------------------------------------------- */

static int recall(struct tree *tree, const char *path, size_t length)
{
    for (int i = 0; i < RECENT; i++) {
        struct recent *recent = &tree->recent[i];
        if (recent->fd >= 0 && recent->path.length == length &&
            memcmp(recent->path.data, path, length) == 0) {
            recent->used = ++tree->clock;
            return recent->fd;
        }
    }
    return -1;
}

/* Takes ownership of the descriptor, replacing the least recently used one. */
static enum status remember(struct tree *tree, const char *path, size_t length, int fd,
                            struct error *err)
{
    struct recent *oldest = &tree->recent[0];
    for (int i = 1; i < RECENT; i++)
        if (tree->recent[i].used < oldest->used)
            oldest = &tree->recent[i];
    if (oldest->fd >= 0)
        close(oldest->fd);
    oldest->fd = fd;
    oldest->used = ++tree->clock;
    return bytes_set(&oldest->path, path, length, err);
}

/* --- opening --------------------------------------------------------------------------------- */

/* Opens tree->path. On STATUS_OK *fd is a descriptor, or -1 with errno in *number. */
static enum status open_directory(int *fd, int *number, struct tree *tree, struct error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct bytes *path = &tree->path;
    int at = tree->root;
    const char *name = path->data;
    char *slash = strrchr(path->data, '/');
    *fd = -1;
    *number = 0;
    if (slash) {
        size_t length = (size_t)(slash - path->data);
        at = recall(tree, path->data, length);
        if (at < 0) {
            *slash = 0;
            at = path_open_at(tree->root, path->data, O_PATH | O_DIRECTORY);
            *number = errno;
            *slash = '/';
            if (at >= 0) {
                enum status status = remember(tree, path->data, length, at, err);
                if (status != STATUS_OK)
                    return status;
            }
        }
        name = slash + 1;
    }
    if (at >= 0) {
        *fd = openat(at, path->length ? name : ".",
                     tree->flags & PENDING_LINK ? flags : flags | O_NOFOLLOW);
        *number = errno;
    }
    if (*fd < 0 && process_is_short(*number)) {
        return error_errno(err, STATUS_FAILED, *number, "openat", "cannot open the directory %s",
                           PATH_TEXT(path->length ? path->data : "."));
    }
    return STATUS_OK;
}

/* Reports the directory itself as an entry, with a '/' at the end of its path. */
static enum status found_directory(struct tree *tree, const struct entry *entry, struct error *err)
{
    const struct bytes *path = &tree->path;
    enum status status = bytes_set(&tree->child, path->length ? path->data : ".",
                                   path->length ? path->length : 1, err);
    if (status == STATUS_OK)
        status = bytes_append(&tree->child, "/", 1, err);
    if (status != STATUS_OK)
        return status;
    return tree->found(tree->context, tree->child.data, tree->child.length, entry, err);
}

/* For a directory at or below a followed link: is it the same as a directory above it? Checks each
 * of them again, since a list of them would grow with the depth. Sets *number if the path has too
 * many links in a row. */
static bool leads_back(struct tree *tree, int *number)
{
    int root = tree->root;
    struct stat st;
    char *path = tree->path.data;
    *number = path_stat_at(root, path, &st, 0) == 0 ? 0 : errno;
    if (*number != 0)
        return false;
    for (size_t i = 0; i < tree->path.length; i++) {
        if (i > 0 && path[i] != '/')
            continue;
        char cut = path[i];
        path[i] = 0;
        int result = path_stat_at(root, i ? path : ".", &st, 0);
        path[i] = cut;
        if (result == 0 && st.st_ino == tree->st.st_ino && st.st_dev == tree->st.st_dev)
            return true;
    }
    return false;
}

/* --- entries --------------------------------------------------------------------------------- */

static enum status found_subdirectory(struct tree *tree, unsigned flags, struct error *err)
{
    const struct pathglob *globs = tree->listing->globs;
    const struct bytes *child = &tree->child;
    if (pathglob_excludes_directory(globs, child->data, child->length))
        return STATUS_OK;
    flags |= tree->flags & (PENDING_BELOW_LINK | PENDING_INCLUDED);
    if (pathglob_includes_directory(globs, child->data, child->length))
        flags |= PENDING_INCLUDED;
    tree->has_children = true;
    return push(tree, child->data, child->length, flags, err);
}

/* Processes the entry of tree->child, named `name` in tree->fd. `type` is a d_type. */
static enum status found_name(struct tree *tree, const char *name, unsigned char type,
                              struct error *err)
{
    const struct source_listing *listing = tree->listing;
    const struct bytes *child = &tree->child;
    struct stat st;
    struct entry entry;
    if (type == DT_DIR)
        return found_subdirectory(tree, 0, err);
    /* Archives are like directories: globs apply to their members. */
    bool wanted = listing->options->archives && archive_promised(child->data, child->length)
                      ? !pathglob_excludes_directory(listing->globs, child->data, child->length)
                      : pathglob_takes(listing->globs, child->data, child->length,
                                       (tree->flags & PENDING_INCLUDED) != 0);
    if (!wanted && type != DT_LNK && type != DT_UNKNOWN)
        return STATUS_OK;
    bool link = type == DT_LNK;
    int number = fstatat(tree->fd, name, &st, link ? 0 : AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    if (number == 0 && S_ISLNK(st.st_mode)) {
        link = true;
        number = fstatat(tree->fd, name, &st, 0) == 0 ? 0 : errno;
    }
    if (number == 0 && S_ISDIR(st.st_mode)) {
        if (!link)
            return found_subdirectory(tree, 0, err);
        if (listing->options->follow_symlinks)
            return found_subdirectory(tree, PENDING_LINK | PENDING_BELOW_LINK, err);
        tree->listing->passed.links++;
        return STATUS_OK;
    }
    if (!wanted || (number == 0 && skip_identity(listing->skip, &st)))
        return STATUS_OK;
    /* Distinguishes a broken link from one that was removed. */
    bool broken = link && number != 0 && fstatat(tree->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (number == 0)
        entry_from_stat(&entry, &st, &tree->listing->trust, tree->fd, name);
    else if (broken)
        entry_broken_link(&entry, number, listing->promises_image(child->data));
    else if (number == ENOENT)
        entry_vanished(&entry);
    else
        entry_unreadable(&entry, number, "cannot examine the file");
    return tree->found(tree->context, child->data, child->length, &entry, err);
}

/* Names written by clpipe: its marker files, and the files of reports and trees that were copied
 * without markers. */
enum {
    OWN_MARK = 1 << 0,
    OWN_REPORT = 15 << 1, /* all of the above */
    OWN_TREE = 3 << 5,
};

static unsigned own_name(const struct tree *tree, const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = {{".clpipe-report", OWN_MARK}, {".clpipe-tree", OWN_MARK},
                 {".clpipe-shards", OWN_MARK}, {"index.html", 1 << 1},
                 {"app.js", 1 << 2},           {"data", 1 << 3},
                 {"sheets", 1 << 4},           {"index.csv", 1 << 5}};
    static const char work[] = ".partial";
    const size_t length = tree->path.length, tail = sizeof work - 1;
    unsigned cluster, count;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].bit;
    if (sscanf(name, "%*u_cluster_%u_%u", &cluster, &count) == 2)
        return 1 << 6;
    return strcmp(name, "lock") == 0 && length > tail &&
                   strcmp(tree->path.data + length - tail, work) == 0
               ? OWN_MARK
               : 0;
}

static bool is_own(unsigned own)
{
    return own & OWN_MARK || (own & OWN_REPORT) == OWN_REPORT || (own & OWN_TREE) == OWN_TREE;
}

static enum status read_entries(struct tree *tree, DIR *stream, struct error *err)
{
    enum status status;
    const char *slash = strrchr(tree->path.data, '/');
    /* A directory that a process writes or left behind. */
    tree->own = output_is_temporary(slash ? slash + 1 : tree->path.data, NULL) ? OWN_MARK : 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = tree->own & OWN_MARK ? NULL : readdir(stream);
        if (!entry)
            break;
        if (++tree->since_stop >= STOP_EVERY) {
            tree->since_stop = 0;
            if ((status = stop_check(tree->listing->stop, "listing directories", err)))
                return status;
        }
        const char *name = entry->d_name;
        if (tree->path.length > 0)
            tree->own |= own_name(tree, name);
        if (name[0] == '.' &&
            (!tree->listing->options->hidden || name[1] == 0 || (name[1] == '.' && name[2] == 0)))
            continue;
        if (skip_name(tree->listing->skip, &tree->st, name))
            continue;
        bytes_cut(&tree->child, tree->prefix);
        if ((status = bytes_append(&tree->child, name, strlen(name), err)) != STATUS_OK ||
            (status = found_name(tree, name, entry->d_type, err)) != STATUS_OK)
            return status;
    }
    struct entry entry = {.where = ENTRY_OWN};
    if (is_own(tree->own))
        return found_directory(tree, &entry, err);
    if (errno == 0)
        return STATUS_OK;
    entry_unreadable(&entry, errno, "cannot read the whole directory");
    return found_directory(tree, &entry, err);
}

/* Reads the directory tree->path. */
static enum status read_directory(struct tree *tree, struct error *err)
{
    struct entry entry;
    int fd, number;
    enum status status = open_directory(&fd, &number, tree, err);
    if (status != STATUS_OK)
        return status;
    if (fd < 0) {
        bool replaced = number == ENOTDIR || (number == ELOOP && !(tree->flags & PENDING_LINK));
        if (number == ENOENT || replaced)
            entry_vanished(&entry);
        else
            entry_unreadable(&entry, number, "cannot open the directory");
        return found_directory(tree, &entry, err);
    }

    DIR *stream = fstat(fd, &tree->st) == 0 ? fdopendir(fd) : NULL;
    if (!stream) {
        number = errno;
        close(fd);
        if (process_is_short(number))
            return error_memory(err, sizeof(struct dirent), "reading a directory");
        entry_unreadable(&entry, number, "cannot read the directory");
        return found_directory(tree, &entry, err);
    }
    tree->fd = fd;
    tree->has_children = false;
    number = 0;
    if (skip_identity(tree->listing->skip, &tree->st) ||
        (tree->flags & PENDING_BELOW_LINK && leads_back(tree, &number)))
        goto out;
    if (number != 0) {
        entry_unreadable(&entry, number, "cannot follow the symbolic links to the directory");
        status = found_directory(tree, &entry, err);
        goto out;
    }
    bytes_cut(&tree->child, 0);
    if (tree->path.length > 0 && ((status = bytes_append(&tree->child, tree->path.data,
                                                         tree->path.length, err)) != STATUS_OK ||
                                  (status = bytes_append(&tree->child, "/", 1, err)) != STATUS_OK))
        goto out;
    tree->prefix = tree->child.length;
    status = read_entries(tree, stream, err);
    if (status == STATUS_OK && tree->has_children && tree->path.length > 0) {
        int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (kept >= 0)
            status = remember(tree, tree->path.data, tree->path.length, kept, err);
    }
out:
    closedir(stream);
    return status;
}

enum status tree_walk(struct source_listing *listing, int root, entry_fn found, void *context,
                      struct error *err)
{
    struct tree tree = {.listing = listing, .root = root, .found = found, .context = context};
    for (int i = 0; i < RECENT; i++)
        tree.recent[i].fd = -1;
    enum status status = spool_open(&tree.pending, listing->spool_directory, err);
    if (status == STATUS_OK)
        status = spool_reader_init(&tree.reader, tree.pending, 0, SPOOL_END, READ_BUFFER, err);
    if (status == STATUS_OK)
        status = push(&tree, "", 0, 0, err);
    while (status == STATUS_OK) {
        status = pop(&tree, err);
        if (status == STATUS_OK)
            status = stop_check(listing->stop, "listing directories", err);
        if (status == STATUS_OK)
            status = read_directory(&tree, err);
    }
    spool_reader_clear(&tree.reader);
    spool_close(&tree.pending);
    for (int i = 0; i < RECENT; i++) {
        if (tree.recent[i].fd >= 0)
            close(tree.recent[i].fd);
        bytes_clear(&tree.recent[i].path);
    }
    bytes_clear(&tree.path);
    bytes_clear(&tree.child);
    return status == STATUS_END ? STATUS_OK : status;
}
