/* walk.c: the sources one after the other, each into its final order, into one spool.
 *
 *   directory ── tree_walk ──────> extsort by path ─┐
 *   list ─────── filelist_read ──> stat ────────────┼──> final spool ── walk_next ──> items
 *   file ─────── stat ──────────────────────────────┘
 *
 * Everything is looked at before the first item is handed out: the order needs it, and so do the
 * total and the ETA. */
#include "walk/walk.h"
#include "base/log.h"
#include "base/path.h"
#include "walk/bytes.h"
#include "walk/entry.h"
#include "walk/extsort.h"
#include "walk/filelist.h"
#include "walk/pathglob.h"
#include "walk/skip.h"
#include "walk/spool.h"
#include "walk/tree.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_MIN  (1024 * 1024)
#define READ_BUFFER (64 * 1024)
/* So many source directories are kept open; the others are opened by name each time. A shell's
 * pattern can give more of them than a process may have descriptors. */
#define KEPT_OPEN      64
#define PROGRESS_EVERY 256 /* items */

enum kind { KIND_DIRECTORY, KIND_FILE, KIND_LIST };

struct source {
    char *name;
    enum kind kind;
    int fd; /* KIND_DIRECTORY: or -1 */
};

struct walk {
    struct source *sources;
    unsigned source_count;
    int working_directory;

    struct spool *spool;
    struct spool_reader reader;
    uint64_t count, bytes, limit; /* limit: UINT64_MAX for none */
    uint64_t sequence;            /* of the next item */
    size_t taken;                 /* bytes of the item handed out last, not yet taken */
};

/* What is needed only while walking. */
struct walking {
    struct walk *walk;
    const struct walk_config *config;
    uint64_t memory;
    struct pathglob *globs;
    struct skip *skip;
    struct extsort *sort;
    struct bytes last; /* path written last from this directory */
    uint16_t source;
    uint64_t found, links_passed;
};

/* An item in the spool, followed by the path, a NUL, the message and a NUL; and the payload of a
 * path while it is sorted, followed by the message. */
struct packed {
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t device, inode;
    uint32_t path_length;
    int32_t error_number;
    uint16_t source;
    uint8_t reason, message_length;
};

/* --- packing --------------------------------------------------------------------------------- */

static struct packed pack(const struct entry *entry, size_t path_length, uint16_t source)
{
    _Static_assert(sizeof entry->failure.message <= 256, "message_length has 8 bits");
    _Static_assert(REASON_COUNT <= 256, "reason has 8 bits");
    bool failed = entry->failure.reason != REASON_NONE;
    struct packed packed = {.bytes = entry->bytes,
                            .mtime_ns = entry->mtime_ns,
                            .device = entry->device,
                            .inode = entry->inode,
                            .path_length = (uint32_t)path_length,
                            .error_number = failed ? entry->failure.error_number : 0,
                            .source = source,
                            .reason = (uint8_t)entry->failure.reason,
                            .message_length = 0};
    if (failed)
        packed.message_length = (uint8_t)strlen(entry->failure.message);
    return packed;
}

/* Appends an item to the final spool; STATUS_END when the limit is reached. */
static enum status write_item(struct walk *walk, const struct packed *packed, const char *path,
                              const char *message, struct error *err)
{
    if (walk->count >= walk->limit)
        return STATUS_END;
    enum status status = spool_write(walk->spool, packed, sizeof *packed, err);
    if (status == STATUS_OK)
        status = spool_write(walk->spool, path, packed->path_length, err);
    if (status == STATUS_OK)
        status = spool_write(walk->spool, "", 1, err);
    if (status == STATUS_OK)
        status = spool_write(walk->spool, message, packed->message_length, err);
    if (status == STATUS_OK)
        status = spool_write(walk->spool, "", 1, err);
    if (status != STATUS_OK)
        return status;
    walk->count++;
    walk->bytes += packed->bytes;
    return STATUS_OK;
}

static enum status write_entry(struct walking *walking, const char *path, size_t length,
                               const struct entry *entry, struct error *err)
{
    struct packed packed = pack(entry, length, walking->source);
    return write_item(walking->walk, &packed, path, entry->failure.message, err);
}

static void count_found(struct walking *walking)
{
    if (++walking->found % PROGRESS_EVERY == 0 && walking->config->progress)
        walking->config->progress(walking->config->progress_context, walking->found);
}

/* --- directories ----------------------------------------------------------------------------- */

static enum status sort_entry(void *context, const char *path, size_t length,
                              const struct entry *entry, struct error *err)
{
    struct walking *walking = context;
    count_found(walking);
    struct packed packed = pack(entry, length, walking->source);
    char payload[sizeof packed + sizeof entry->failure.message];
    memcpy(payload, &packed, sizeof packed);
    memcpy(payload + sizeof packed, entry->failure.message, packed.message_length);
    struct extsort_record record = {.key = path,
                                    .payload = payload,
                                    .key_length = (uint32_t)length,
                                    .payload_length =
                                        (uint32_t)(sizeof packed + packed.message_length)};
    return extsort_add(walking->sort, &record, err);
}

static enum status write_sorted(struct walking *walking, struct error *err)
{
    struct extsort_record record;
    struct packed packed;
    enum status status;
    bytes_cut(&walking->last, 0);
    while ((status = extsort_next(walking->sort, &record, err)) == STATUS_OK) {
        /* A directory that changes while it is read may show a name twice. */
        if (walking->last.length == record.key_length && record.key_length > 0 &&
            memcmp(walking->last.data, record.key, record.key_length) == 0)
            continue;
        bytes_cut(&walking->last, 0);
        status = bytes_append(&walking->last, record.key, record.key_length, err);
        if (status != STATUS_OK)
            return status;
        memcpy(&packed, record.payload, sizeof packed);
        status =
            write_item(walking->walk, &packed, record.key, record.payload + sizeof packed, err);
        if (status != STATUS_OK)
            return status;
    }
    return status;
}

static enum status open_source_directory(int *fd, const char *name, struct error *err)
{
    char shown[256];
    *fd = path_open_at(AT_FDCWD, name, O_RDONLY | O_DIRECTORY);
    if (*fd >= 0)
        return STATUS_OK;
    return error_errno(err, STATUS_FAILED, errno, "open", "cannot read the source directory %s",
                       path_for_message(shown, sizeof shown, name));
}

static enum status walk_directory(struct walking *walking, const struct source *source,
                                  struct error *err)
{
    const struct walk_config *config = walking->config;
    int fd = source->fd;
    enum status status = STATUS_OK;
    if (fd < 0)
        status = open_source_directory(&fd, source->name, err);
    if (status == STATUS_OK)
        status = extsort_open(&walking->sort, config->spool_directory, walking->memory,
                              config->stop, err);
    if (status == STATUS_OK) {
        struct tree_config tree = {.root = fd,
                                   .follow_symlinks = config->follow_symlinks,
                                   .hidden = config->hidden,
                                   .globs = walking->globs,
                                   .skip = walking->skip,
                                   .spool_directory = config->spool_directory,
                                   .stop = config->stop,
                                   .found = sort_entry,
                                   .context = walking};
        status = tree_walk(&walking->links_passed, &tree, err);
    }
    if (fd >= 0 && fd != source->fd)
        close(fd);
    if (status == STATUS_OK)
        status = extsort_finish(walking->sort, err);
    if (status == STATUS_OK)
        status = write_sorted(walking, err);
    extsort_close(&walking->sort);
    return status;
}

/* --- files and lists ------------------------------------------------------------------------- */

/* A file that was named, as a source or in a list: whatever its name, it is missed if it is not
 * there. */
static enum status write_named(struct walking *walking, const char *open_path, const char *path,
                               size_t length, struct error *err)
{
    struct stat st;
    struct entry entry;
    int directory = walking->walk->working_directory;
    count_found(walking);
    if (!pathglob_takes_alone(walking->globs, path, length))
        return STATUS_OK;
    if (path_stat_at(directory, open_path, &st, 0) == 0) {
        if (skip_identity(walking->skip, &st))
            return STATUS_OK;
        entry_from_stat(&entry, &st);
    } else {
        int number = errno;
        if (path_stat_at(directory, open_path, &st, AT_SYMLINK_NOFOLLOW) == 0)
            entry_broken_link(&entry, number, true);
        else if (number == ENOENT && path[length - 1] == '\r')
            entry_unreadable(&entry, number,
                             "the name ends in a carriage return: the list has Windows line ends");
        else
            entry_unreadable(&entry, number, "cannot look at the file");
    }
    return write_entry(walking, path, length, &entry, err);
}

static enum status take_listed(void *context, const char *path, size_t length, struct error *err)
{
    return write_named(context, path, path, length, err);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- sources --------------------------------------------------------------------------------- */

static enum status classify(struct source *source, struct error *err)
{
    struct stat st;
    char shown[256];
    if (strcmp(source->name, "-") == 0 || source->name[0] == '@') {
        source->kind = KIND_LIST;
        return STATUS_OK;
    }
    if (source->name[0] == 0)
        return error_set(err, STATUS_USAGE,
                         "a SOURCE is empty: give a directory, a file, @LIST or -");
    if (path_stat_at(AT_FDCWD, source->name, &st, 0) == 0) {
        source->kind = S_ISDIR(st.st_mode) ? KIND_DIRECTORY : KIND_FILE;
        return STATUS_OK;
    }
    int number = errno;
    path_for_message(shown, sizeof shown, source->name);
    bool link = path_stat_at(AT_FDCWD, source->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (link && path_promises_image(source->name)) {
        source->kind = KIND_FILE; /* one broken image of many that a shell's pattern gave */
        return STATUS_OK;
    }
    if (number == ENOENT || number == ENOTDIR || number == ELOOP)
        return error_errno(err, STATUS_USAGE, number, "stat",
                           link ? "the source %s is a symbolic link that leads nowhere"
                                : "the source %s is not there (spelled wrong, or not mounted?)",
                           shown);
    return error_errno(err, STATUS_FAILED, number, "stat", "cannot look at the source %s", shown);
}

/* Every source is looked at before the first one is walked, so that a misspelt one is known at
 * once. */
static enum status take_sources(struct walk *walk, const struct walk_config *config,
                                struct error *err)
{
    unsigned kept = 0;
    bool standard_input = false;
    walk->sources = calloc(config->source_count, sizeof *walk->sources);
    if (!walk->sources)
        return error_memory(err, config->source_count * sizeof *walk->sources, "the sources");
    for (unsigned i = 0; i < config->source_count; i++) {
        struct source *source = &walk->sources[i];
        source->fd = -1;
        source->name = strdup(config->sources[i]);
        walk->source_count = i + 1;
        if (!source->name)
            return error_memory(err, strlen(config->sources[i]) + 1, "a source's name");
        enum status status = classify(source, err);
        if (status == STATUS_OK && source->kind == KIND_DIRECTORY && kept++ < KEPT_OPEN)
            status = open_source_directory(&source->fd, source->name, err);
        if (status != STATUS_OK)
            return status;
        if (strcmp(source->name, "-") == 0) {
            if (standard_input)
                return error_set(err, STATUS_USAGE,
                                 "standard input (-) is given as a SOURCE more than once");
            standard_input = true;
        }
    }
    return STATUS_OK;
}

static enum status walk_source(struct walking *walking, const struct source *source,
                               struct error *err)
{
    const struct walk_config *config = walking->config;
    if (config->stop && stop_requested(config->stop) != STOP_NONE)
        return error_set(err, STATUS_INTERRUPTED, "interrupted while listing the sources");
    switch (source->kind) {
    case KIND_DIRECTORY:
        return walk_directory(walking, source, err);
    case KIND_LIST:
        return filelist_read(source->name, config->spool_directory, walking->memory, config->stop,
                             take_listed, walking, err);
    case KIND_FILE:
        break;
    }
    const char *name = last_component(source->name);
    return write_named(walking, source->name, name, strlen(name), err);
}

static enum status walk_sources(struct walk *walk, const struct walk_config *config,
                                struct error *err)
{
    struct walking walking = {.walk = walk, .config = config, .memory = config->memory};
    if (walking.memory < MEMORY_MIN)
        walking.memory = MEMORY_MIN;
    enum status status = pathglob_open(&walking.globs, config->include, config->include_count,
                                       config->exclude, config->exclude_count, err);
    if (status == STATUS_OK)
        status = skip_open(&walking.skip, config->skip_paths, config->skip_count, err);
    for (unsigned i = 0; i < walk->source_count && status == STATUS_OK; i++) {
        walking.source = (uint16_t)i;
        status = walk_source(&walking, &walk->sources[i], err);
        if (status == STATUS_END)
            status = STATUS_OK;
        if (walk->count >= walk->limit)
            break;
    }
    if (status == STATUS_OK && walking.links_passed > 0)
        log_message(LOG_NOTICE,
                    "%llu symbolic link%s to directories not followed (--follow-symlinks does)",
                    (unsigned long long)walking.links_passed, walking.links_passed == 1 ? "" : "s");
    pathglob_close(&walking.globs);
    skip_close(&walking.skip);
    bytes_clear(&walking.last);
    return status;
}

enum status walk_open(struct walk **out, const struct walk_config *config, struct error *err)
{
    assert(config->source_count >= 1);
    if (config->source_count > UINT16_MAX)
        return error_set(err, STATUS_USAGE,
                         "%u SOURCEs are more than 65535: write them to a file and give @FILE",
                         config->source_count);
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return error_memory(err, sizeof *walk, "the walk");
    enum status status = STATUS_OK;
    walk->limit = config->limit ? config->limit : UINT64_MAX;
    walk->working_directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (walk->working_directory < 0)
        status =
            error_errno(err, STATUS_FAILED, errno, "open", "cannot open the working directory");
    if (status == STATUS_OK)
        status = take_sources(walk, config, err);
    if (status == STATUS_OK)
        status = spool_open(&walk->spool, config->spool_directory, err);
    if (status == STATUS_OK)
        status = walk_sources(walk, config, err);
    if (status == STATUS_OK)
        status = spool_flush(walk->spool, err);
    if (status == STATUS_OK)
        status = spool_reader_init(&walk->reader, walk->spool, 0, SPOOL_END, READ_BUFFER, err);
    if (status != STATUS_OK) {
        walk_close(&walk);
        return status;
    }
    *out = walk;
    return STATUS_OK;
}

/* --- what it gives --------------------------------------------------------------------------- */

uint64_t walk_count(const struct walk *walk)
{
    return walk->count;
}

uint64_t walk_bytes(const struct walk *walk)
{
    return walk->bytes;
}

enum status walk_next(struct walk *walk, struct walk_item *item, struct error *err)
{
    struct packed packed;
    const char *bytes;
    spool_take(&walk->reader, walk->taken);
    walk->taken = 0;
    enum status status = spool_peek(&bytes, &walk->reader, sizeof packed, err);
    if (status != STATUS_OK)
        return status;
    memcpy(&packed, bytes, sizeof packed);
    size_t size = sizeof packed + packed.path_length + 1 + packed.message_length + 1;
    status = spool_peek(&bytes, &walk->reader, size, err);
    assert(status != STATUS_END);
    if (status != STATUS_OK)
        return status;
    walk->taken = size;
    *item = (struct walk_item){.sequence = walk->sequence++,
                               .source = packed.source,
                               .path = bytes + sizeof packed,
                               .path_length = packed.path_length,
                               .bytes = packed.bytes,
                               .mtime_ns = packed.mtime_ns,
                               .device = packed.device,
                               .inode = packed.inode};
    item->failure.reason = (enum reason)packed.reason;
    item->failure.error_number = packed.error_number;
    memcpy(item->failure.message, item->path + packed.path_length + 1,
           (size_t)packed.message_length + 1);
    return STATUS_OK;
}

static int open_for_reading(int directory, const char *path)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
    int fd = path_open_at(directory, path, flags | O_NOATIME);
    if (fd < 0 && errno == EPERM) /* O_NOATIME is for a file's owner */
        fd = path_open_at(directory, path, flags);
    return fd;
}

int walk_open_file(const struct walk *walk, uint16_t source, const char *path)
{
    assert(source < walk->source_count);
    const struct source *from = &walk->sources[source];
    if (from->kind == KIND_FILE)
        return open_for_reading(walk->working_directory, from->name);
    if (from->kind == KIND_LIST)
        return open_for_reading(walk->working_directory, path);
    if (from->fd >= 0)
        return open_for_reading(from->fd, path);
    struct bytes whole = {0};
    int fd = -1;
    if (bytes_append(&whole, from->name, strlen(from->name), NULL) == STATUS_OK &&
        bytes_append(&whole, "/", 1, NULL) == STATUS_OK &&
        bytes_append(&whole, path, strlen(path), NULL) == STATUS_OK)
        fd = open_for_reading(walk->working_directory, whole.data);
    else
        errno = ENOMEM;
    int number = errno;
    bytes_clear(&whole);
    errno = number;
    return fd;
}

void walk_close(struct walk **walk)
{
    if (!walk || !*walk)
        return;
    for (unsigned i = 0; i < (*walk)->source_count; i++) {
        free((*walk)->sources[i].name);
        if ((*walk)->sources[i].fd >= 0)
            close((*walk)->sources[i].fd);
    }
    free((*walk)->sources);
    if ((*walk)->working_directory >= 0)
        close((*walk)->working_directory);
    spool_reader_clear(&(*walk)->reader);
    spool_close(&(*walk)->spool);
    free(*walk);
    *walk = NULL;
}
