/* archives.c: listing and reading archives through libarchive.
 *
 *   list:  headers ──> names ──> listing       seeks over data if not compressed
 *   open:  a range of the archive's descriptor, or
 *          thread of archive i   ──> decompressed members ──┐
 *          thread of archive i+1 ──> decompressed members   ├──> in order, to the caller of open
 *          ...                                              ┘
 *
 * An open descriptor is duplicated for each member, in a few hundred nanoseconds, so that no
 * reference count is needed. Archives after the current one are decompressed ahead, limited by
 * STREAMS and STREAM_BYTES; a member requested after its position has passed (its device has
 * failed) is read from the start of the archive again. */
#include "sources/archives.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/numbering.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "sources/bytes.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK        4096 /* read per header when seeking */
#define STREAM_BLOCK (256u << 10)
#define KEPT_OPEN    32         /* descriptors */
#define STREAMS      4          /* archives decompressed at a time */
#define STREAM_BYTES (8u << 20) /* decompressed ahead per archive, or one larger member */
#define STREAM_ITEMS 64
#define POLL_MS      100 /* interval of checks for a stop */
/* Limits of decompression: bytes, and a ratio to the bytes read. */
#define EXPANDED_BYTES (1ll << 30)
#define EXPANDED_RATIO 100

#define DAMAGED "the archive is damaged"

#define PLACE_BITS ARCHIVE_PLACE_BITS
#define PLACE_MAX  (((uint64_t)1 << PLACE_BITS) - 1)
#define INDEX_MAX  (((uint64_t)1 << (62 - PLACE_BITS)) - 1)

/* A decompressed member. */
struct item {
    uint64_t number;
    void *memory; /* NULL: `failure` says why */
    uint64_t bytes;
    struct failure failure;
};

/* A thread that decompresses an archive. */
struct item_stream {
    const struct one *archive;
    int fd;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the following */
    pthread_cond_t moved;
    struct item items[STREAM_ITEMS];
    unsigned first, count;
    uint64_t bytes;
    uint64_t next; /* the first member not yet taken or skipped */
    bool ended;
    atomic_bool cancelled;  /* also read without the lock */
    struct failure failure; /* for all remaining members, after the thread has ended */
};

/* One archive. */
struct one {
    struct archive_file file; /* its name is that at the end */
    int fd;                   /* -1: not open */
    uint64_t used;
    struct item_stream *stream; /* used by the thread that opens in order */
    char name[];
};

struct archives {
    struct one **one;
    size_t count;
    pthread_mutex_t lock; /* guards all descriptors */
    unsigned open;
    uint64_t clock;
    size_t first_stream; /* no streams before it; used by the thread that opens in order */
};

static locale_t utf8;

static void make_utf8(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", 0);
}

/* Changes the thread's locale to a UTF-8 one, into which libarchive converts names. Returns the
 * locale to restore; 0: the system has no UTF-8 locale. */
static locale_t enter_utf8(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_utf8);
    return utf8 ? uselocale(utf8) : (locale_t)0;
}

const char *archives_library(void)
{
    return archive_version_string();
}

enum status archives_open(struct archives **out, struct error *err)
{
    struct archives *archives = *out = calloc(1, sizeof *archives);
    if (!archives)
        return error_memory(err, sizeof *archives, "archives");
    pthread_mutex_init(&archives->lock, NULL);
    return STATUS_OK;
}

/* --- descriptors ----------------------------------------------------------------------------- */

/* A new descriptor with its own file offset; -1: *failure. */
static int open_afresh(const struct one *one, struct failure *failure)
{
    struct stat st;
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
    int fd = path_open_at(one->file.directory, one->file.name, flags);
    if (fd < 0) {
        const int code = errno;
        failure_errno(failure,
                      code == ENOENT || code == ENOTDIR ? REASON_VANISHED : REASON_UNREADABLE, code,
                      "cannot open the archive");
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == one->file.bytes &&
        clock_file_time(&st.st_mtim) == one->file.mtime_ns)
        return fd;
    failure_set(failure, REASON_CHANGED, "the archive has changed since it was listed");
    close(fd);
    return -1;
}

static void close_longest_unused(struct archives *archives)
{
    struct one *oldest = NULL;
    for (size_t i = 0; i < archives->count; i++) {
        struct one *one = archives->one[i];
        if (one->fd >= 0 && (!oldest || one->used < oldest->used))
            oldest = one;
    }
    close(oldest->fd);
    oldest->fd = -1;
    archives->open--;
}

/* A duplicate of the shared descriptor; -1: *failure. */
static int share_descriptor(struct archives *archives, struct one *one, struct failure *failure)
{
    int fd = -1;
    pthread_mutex_lock(&archives->lock);
    if (one->fd < 0 && (one->fd = open_afresh(one, failure)) >= 0 && ++archives->open > KEPT_OPEN) {
        one->used = ++archives->clock;
        close_longest_unused(archives);
    }
    if (one->fd >= 0) {
        one->used = ++archives->clock;
        fd = fcntl(one->fd, F_DUPFD_CLOEXEC, 0);
        if (!process_keeps_descriptor(fd, DESCRIPTORS_OF_DRIVERS)) {
            failure_errno(failure, REASON_UNREADABLE, errno, "cannot open the archive");
            fd = -1;
        }
    }
    pthread_mutex_unlock(&archives->lock);
    return fd;
}

/* --- libarchive ------------------------------------------------------------------------------ */

/* Input of a reader: a descriptor, with a check for stops: a member that expands to terabytes is
 * skipped in one call. */
struct input {
    int fd;
    uint64_t bytes; /* of the file */
    size_t block;
    void *buffer;
    bool some;                    /* bytes were read */
    bool stream;                  /* not seekable and maybe slow */
    struct stop *stop;            /* may be NULL */
    const atomic_bool *cancelled; /* may be NULL */
    bool expands;                 /* ended: expands beyond EXPANDED_RATIO */
};

static la_ssize_t read_input(struct archive *reader, void *context, const void **buffer)
{
    struct input *input = context;
    ssize_t got = -1;
    struct pollfd more = {.fd = input->fd, .events = POLLIN};
    while (input->stream && stop_requested(input->stop) == STOP_NONE &&
           poll(&more, 1, POLL_MS) <= 0)
        ;
    if (stop_requested(input->stop) != STOP_NONE ||
        (input->cancelled && atomic_load(input->cancelled))) {
        archive_set_error(reader, ECANCELED, "interrupted");
        return ARCHIVE_FATAL;
    }
    if (archive_filter_count(reader) > 1 &&
        archive_filter_bytes(reader, 0) >
            EXPANDED_BYTES + EXPANDED_RATIO * archive_filter_bytes(reader, -1)) {
        input->expands = true;
        return ARCHIVE_FATAL;
    }
    do
        got = read(input->fd, input->buffer, input->block);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        archive_set_error(reader, errno, "cannot read");
    *buffer = input->buffer;
    input->some |= got > 0;
    return got < 0 ? ARCHIVE_FATAL : got;
}

static la_int64_t seek_input(struct archive *reader, void *context, la_int64_t offset, int whence)
{
    const struct input *input = context;
    const off_t place = lseek(input->fd, (off_t)offset, whence);
    if (place < 0)
        archive_set_error(reader, errno, "cannot seek");
    return place < 0 ? ARCHIVE_FATAL : place;
}

static la_int64_t skip_input(struct archive *reader, void *context, la_int64_t bytes)
{
    const struct input *input = context;
    const off_t place = lseek(input->fd, 0, SEEK_CUR);
    (void)reader;
    if (place < 0 || (uint64_t)place >= input->bytes)
        return 0; /* libarchive then skips by reading */
    /* Not past the end, or a truncated file would look complete. */
    if ((uint64_t)bytes > input->bytes - (uint64_t)place)
        bytes = (la_int64_t)(input->bytes - (uint64_t)place);
    return lseek(input->fd, (off_t)bytes, SEEK_CUR) < 0 ? 0 : bytes;
}

/* Enables formats and filters built into libarchive: archive_read_support_filter_all would also run
 * external programs, chosen by the first bytes of a file. */
static bool add_support(struct archive *reader, bool stream)
{
    int (*const filters[])(struct archive *) = {
        archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
        archive_read_support_filter_xz,   archive_read_support_filter_lzma,
        archive_read_support_filter_lzip, archive_read_support_filter_zstd,
        archive_read_support_filter_lz4,  archive_read_support_filter_compress,
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (filters[i](reader) < ARCHIVE_WARN)
            return false;
    return archive_read_support_format_tar(reader) == ARCHIVE_OK &&
           (stream ? archive_read_set_options(reader, "tar:read_concatenated_archives")
                   : archive_read_support_format_zip_seekable(reader)) == ARCHIVE_OK;
}

/* The reason for libarchive's last error. */
static enum reason reader_failure(struct failure *failure, struct archive *reader, const char *what)
{
    const char *text = archive_error_string(reader);
    const int code = archive_errno(reader);
    enum reason reason = REASON_CORRUPT;
    if (!text)
        text = "damaged";
    if (code == EIO || code == ESTALE)
        return failure_errno(failure, REASON_UNREADABLE, code, "cannot read the archive");
    if (code == ENOMEM)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory to read the archive: %s",
                           text);
    if (strcasestr(text, "truncated") || strcasestr(text, "premature") ||
        strcasestr(text, "unexpected end") || strcasestr(text, "no progress"))
        reason = REASON_TRUNCATED;
    if (strcasestr(text, "unsupported")) {
        reason = REASON_UNSUPPORTED;
        what = "cannot be read";
    }
    return failure_set(failure, reason, "%s: %s", what, text);
}

static uint64_t get(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    while (count-- > 0)
        value = value << 8 | bytes[count];
    return value;
}

/* Number of entries in a zip's directory, 0: unknown. The end record is at the end of the file,
 * before a comment; counts over 65,535 are in another record. */
static uint64_t count_entries(const struct input *input)
{
    const size_t size = input->bytes < 22 + 65535 ? (size_t)input->bytes : 22 + 65535;
    uint8_t *tail = malloc(size), large[40];
    uint64_t count = 0;
    if (tail && pread(input->fd, tail, size, (off_t)(input->bytes - size)) == (ssize_t)size)
        for (size_t at = size - 22; size >= 22 && at > 0 && count == 0; at--)
            if (memcmp(tail + at, "PK\5\6", 4) == 0) {
                count = get(tail + at + 10, 2);
                if (count == 0xffff && at >= 20 && memcmp(tail + at - 20, "PK\6\7", 4) == 0 &&
                    pread(input->fd, large, 40, (off_t)get(tail + at - 12, 8)) == 40 &&
                    memcmp(large, "PK\6\6", 4) == 0)
                    count = get(large + 32, 8);
            }
    free(tail);
    return count;
}

/* Why reading headers ended. */
static void headers_failure(struct failure *failure, struct archive *reader,
                            const struct input *input)
{
    if (input->expands)
        failure_set(failure, REASON_TOO_LARGE, "the archive expands to over %d times its size",
                    EXPANDED_RATIO);
    else
        reader_failure(failure, reader, DAMAGED);
}

static void close_reader(struct archive *reader, struct input *input)
{
    archive_read_free(reader);
    free(input->buffer);
    input->buffer = NULL;
}

/* NULL: *failure. The caller closes both; `input` must not move until then. */
static struct archive *open_reader(struct input *input, struct failure *failure)
{
    struct archive *reader = archive_read_new();
    input->buffer = malloc(input->block);
    if (!reader || !input->buffer || !add_support(reader, input->stream)) {
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory to read the archive");
        goto out;
    }
    archive_read_set_callback_data(reader, input);
    archive_read_set_read_callback(reader, read_input);
    if (!input->stream) {
        archive_read_set_seek_callback(reader, seek_input);
        archive_read_set_skip_callback(reader, skip_input);
    }
    if (archive_read_open1(reader) == ARCHIVE_OK)
        return reader;
    reader_failure(failure, reader, "not an archive that can be read");
out:
    close_reader(reader, input);
    return NULL;
}

/* libarchive aborts if it cannot convert a name while errno is ENOMEM, even from an earlier
 * call. */
static int next_header(struct archive *reader, struct archive_entry **entry)
{
    errno = 0;
    return archive_read_next_header(reader, entry);
}

/* The member's name in bytes. libarchive converts names stored as UTF-8 to the thread's locale. */
static const char *member_name(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    while (name && name[0] == '.' && name[1] == '/')
        for (name += 2; *name == '/'; name++)
            ;
    return name;
}

/* --- listing --------------------------------------------------------------------------------- */

static bool is_hidden(const char *name)
{
    for (const char *at = name; at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
        if (*at == '.')
            return true;
    return false;
}

static bool leads_out(const char *name)
{
    if (name[0] == '/')
        return true;
    for (const char *at = name; at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == 0))
            return true;
    return false;
}

/* For members that are not files: a failure only if the name has an image extension. */
static enum reason no_file(struct failure *failure, const struct source_listing *listing,
                           const char *name, const char *what)
{
    return failure_set(failure,
                       listing->promises_image(name) ? REASON_UNSUPPORTED : REASON_NOT_AN_IMAGE,
                       "%s", what);
}

static bool is_zip(struct archive *reader)
{
    return (archive_format(reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
}

static bool is_compressed(struct archive *reader)
{
    return archive_filter_count(reader) > 1 ||
           (is_zip(reader) && !strstr(archive_format_name(reader), "uncompressed"));
}

struct member_listing {
    struct source_listing *listing;
    const struct archive_file *file;
    struct one *one;         /* NULL: a stream, whose members' paths have no archive name */
    uint64_t index;          /* of the archive */
    bool whole;              /* members were added and must stay together */
    uint64_t offset, stored; /* position of the current member's data, and its bytes with padding */
    struct numbering names;
    struct bytes path;
};

/* Decides whether a member is an image, skipped, or a failure. */
static void judge_member(struct entry *out, struct member_listing *members, struct archive *reader,
                         struct archive_entry *entry, const char *name, uint64_t number, bool again)
{
    const struct source_listing *listing = members->listing;
    struct failure *failure = &out->failure;
    const uint64_t offset = members->offset;
    *out = (struct entry){.mtime_ns = members->file->mtime_ns,
                          .inode = members->file->inode,
                          .ctime_ns = members->file->ctime_ns,
                          .where = SOURCE_WHERE_ARCHIVE | members->index << PLACE_BITS};
    if (!members->one) {
        out->where = 0;
        out->mtime_ns = archive_entry_mtime(entry) * 1000000000 + archive_entry_mtime_nsec(entry);
    }
    if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > 0)
        out->bytes = (uint64_t)archive_entry_size(entry);
    if (leads_out(name)) {
        failure_set(failure, REASON_UNSUPPORTED, "the name leads out of the archive");
    } else if (name[strlen(name) - 1] == '/') {
        failure_set(failure, REASON_UNSUPPORTED, "a file with the name of a directory");
    } else if (again) {
        failure_set(failure, REASON_UNSUPPORTED,
                    "a second member of this name: the first one is read");
    } else if (archive_entry_hardlink(entry) || archive_entry_filetype(entry) == AE_IFLNK) {
        no_file(failure, listing, name, "a link in an archive, not followed");
    } else if (archive_entry_filetype(entry) != AE_IFREG) {
        no_file(failure, listing, name, "not a regular file");
    } else if (archive_entry_sparse_count(entry) > 0) {
        failure_set(failure, REASON_UNSUPPORTED,
                    "stored as a sparse file: pack the archive without --sparse");
    } else if (archive_entry_is_encrypted(entry)) {
        failure_set(failure, REASON_UNSUPPORTED, "encrypted");
    } else if (!archive_entry_size_is_set(entry)) {
        failure_set(failure, REASON_UNSUPPORTED, "the archive does not say how long it is");
    } else if (archive_entry_size(entry) < 0) {
        failure_set(failure, REASON_CORRUPT, "the archive states a size below 0");
    } else if (!members->one || is_compressed(reader)) {
        if (out->bytes > ARCHIVE_MEMBER_MAX) {
            failure_set(failure, REASON_TOO_LARGE, "%llu bytes: members of %s may have %llu MiB",
                        (unsigned long long)out->bytes,
                        members->one ? "compressed archives" : "streams", ARCHIVE_MEMBER_MAX >> 20);
            return;
        }
        out->where |= SOURCE_WHERE_IN_ORDER | number;
        if (members->one)
            members->one->file.in_order = true;
    } else if (offset > members->one->file.bytes ||
               out->bytes > members->one->file.bytes - offset) {
        failure_set(failure, REASON_TRUNCATED, "the archive ends before the member does");
    } else if (members->stored < out->bytes) {
        /* Data after the stated size belongs to other members. */
        failure_set(failure, REASON_CORRUPT,
                    "the archive states a size of %llu bytes, but has fewer",
                    (unsigned long long)out->bytes);
    } else {
        out->where |= offset;
    }
}

static enum status add_member(struct member_listing *members, struct archive *reader,
                              struct archive_entry *entry, uint64_t number, struct error *err)
{
    struct source_listing *listing = members->listing;
    errno = 0; /* see next_header */
    const char *name = member_name(entry);
    struct entry found;
    enum status status;
    uint32_t named;
    if (archive_entry_filetype(entry) == AE_IFDIR)
        return STATUS_OK;
    listing->found(listing);
    if (!name || !*name)
        name = "?";
    if (!listing->options->hidden && !leads_out(name) && is_hidden(name))
        return STATUS_OK;
    bytes_cut(&members->path, members->one ? members->file->length + 1 : 0);
    if ((status = bytes_append(&members->path, name, strlen(name), err)))
        return status;
    if (!pathglob_takes_alone(listing->globs, members->path.data, members->path.length))
        return STATUS_OK;
    const uint32_t names = members->names.count;
    if ((status = numbering_look(&named, &members->names, 0, name, strlen(name),
                                 "the names in an archive", err)))
        return status;
    judge_member(&found, members, reader, entry, name, number, named < names);
    /* To read one member of a compressed tar, all before it must be decompressed. */
    if (members->one && archive_filter_count(reader) > 1) {
        found.share = members->whole ? ENTRY_SHARE_REST : members->file->bytes;
        members->whole = true;
    }
    return listing->add(listing, members->path.data, members->path.length, &found, err);
}

/* Adds an entry for the archive itself, with the reason why it cannot be read; its path ends in a
 * slash, like a directory's. */
static enum status add_failed(struct member_listing *members, const struct failure *failure,
                              struct error *err)
{
    struct source_listing *listing = members->listing;
    const struct entry entry = {.bytes = members->file->bytes,
                                .mtime_ns = members->file->mtime_ns,
                                .inode = members->file->inode,
                                .ctime_ns = members->file->ctime_ns,
                                .share = members->whole ? ENTRY_SHARE_REST : 0,
                                .failure = *failure};
    listing->found(listing);
    bytes_cut(&members->path, members->file->length + 1);
    return listing->add(listing, members->path.data, members->path.length, &entry, err);
}

static enum status list_members(struct member_listing *members, int fd, struct error *err)
{
    struct failure failure = {.reason = REASON_NONE};
    struct archive_entry *entry;
    enum status status = STATUS_OK;
    struct input input = {
        .fd = fd, .bytes = members->file->bytes, .block = BLOCK, .stop = members->listing->stop};
    struct archive *reader = open_reader(&input, &failure);
    int code = ARCHIVE_EOF;
    uint64_t number = 0, entries;
    for (; reader && status == STATUS_OK; number++) {
        code = next_header(reader, &entry);
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
            break;
        if (number > PLACE_MAX) {
            failure_set(&failure, REASON_TOO_LARGE, "the archive has too many members");
            break;
        }
        members->offset = (uint64_t)archive_filter_bytes(reader, 0);
        members->stored = UINT64_MAX;
        if (!is_zip(reader) && !is_compressed(reader)) {
            code = archive_read_data_skip(reader);
            members->stored = (uint64_t)archive_filter_bytes(reader, 0) - members->offset;
        }
        status = add_member(members, reader, entry, number, err);
        if (code < ARCHIVE_WARN)
            break;
    }
    if (status == STATUS_OK)
        status = stop_check(input.stop, "listing an archive", err);
    const bool good = status == STATUS_OK && failure.reason == REASON_NONE;
    /* An empty tar is valid; libarchive reports an empty zip if the directory is not found. */
    if (good && code != ARCHIVE_EOF)
        headers_failure(&failure, reader, &input);
    else if (good && is_zip(reader) && number == 0)
        failure_set(&failure, REASON_CORRUPT, "a zip without members");
    else if (good && is_zip(reader) && (entries = count_entries(&input)) > number)
        failure_set(&failure, REASON_CORRUPT,
                    "%llu of %llu entries are missing, or have the place of another one",
                    (unsigned long long)(entries - number), (unsigned long long)entries);
    close_reader(reader, &input);
    return status == STATUS_OK && failure.reason != REASON_NONE ? add_failed(members, &failure, err)
                                                                : status;
}

static enum status add_archive(struct one **out, struct archives *archives,
                               const struct archive_file *file, struct error *err)
{
    if (array_grow(&archives->one, archives->count, sizeof *archives->one, "archives", err))
        return STATUS_FAILED;
    const size_t size = strlen(file->name) + 1;
    struct one *one = malloc(sizeof *one + size);
    if (!one)
        return error_memory(err, sizeof *one + size, "archives");
    *one = (struct one){.file = *file, .fd = -1};
    one->file.name = memcpy(one->name, file->name, size);
    one->file.path = NULL;
    archives->one[archives->count++] = one;
    *out = one;
    return STATUS_OK;
}

enum status archives_list(struct archives *archives, struct source_listing *listing,
                          const struct archive_file *file, struct error *err)
{
    struct member_listing members = {.listing = listing, .file = file, .index = archives->count};
    struct failure failure = {.reason = REASON_NONE};
    int fd = -1;
    enum status status = STATUS_OK;
    if (file->bytes == 0)
        failure_set(&failure, REASON_EMPTY, "an empty file");
    else if (members.index > INDEX_MAX || file->bytes > PLACE_MAX)
        failure_set(&failure, REASON_TOO_LARGE, "more than %llu archives, or one over %llu GiB",
                    (unsigned long long)INDEX_MAX, (unsigned long long)(PLACE_MAX >> 30));
    if ((status = bytes_append(&members.path, file->path, file->length, err)) ||
        (status = bytes_append(&members.path, "/", 1, err)) ||
        (failure.reason == REASON_NONE &&
         (status = add_archive(&members.one, archives, file, err))))
        goto out;
    if (failure.reason != REASON_NONE || (fd = open_afresh(members.one, &failure)) < 0) {
        status = add_failed(&members, &failure, err);
        goto out;
    }
    const locale_t before = enter_utf8();
    status = list_members(&members, fd, err);
    if (before)
        uselocale(before);
out:
    if (fd >= 0)
        close(fd);
    free(members.names.slot);
    bytes_clear(&members.path);
    return status;
}

/* --- known members --------------------------------------------------------------------------- */

enum status archives_register(uint64_t *archive, struct archives *archives,
                              const struct archive_file *file, struct error *err)
{
    struct one *one;
    if (archives->count > INDEX_MAX || file->bytes > PLACE_MAX)
        return error_set(err, STATUS_FAILED,
                         "a list has more than %llu archives, or one over %llu GiB",
                         (unsigned long long)INDEX_MAX, (unsigned long long)(PLACE_MAX >> 30));
    *archive = SOURCE_WHERE_ARCHIVE | (uint64_t)archives->count << PLACE_BITS;
    return add_archive(&one, archives, file, err);
}

uint64_t archives_where(struct archives *archives, uint64_t archive, uint64_t place, bool in_order)
{
    if (place > PLACE_MAX)
        return 0;
    archives->one[archive >> PLACE_BITS & INDEX_MAX]->file.in_order |= in_order;
    return archive | place | (in_order ? SOURCE_WHERE_IN_ORDER : 0);
}

uint64_t archives_count(const struct archives *archives)
{
    return archives->count;
}

const struct archive_file *archives_at(const struct archives *archives, uint64_t i)
{
    return &archives->one[i & INDEX_MAX]->file;
}

/* --- decompressing ahead --------------------------------------------------------------------- */

/* Reads all data of a member. */
static void read_member(struct item *item, struct archive *reader, struct archive_entry *entry)
{
    const uint64_t size = (uint64_t)archive_entry_size(entry);
    uint64_t filled = 0;
    la_ssize_t got = 1;
    item->memory = malloc(size + 1); /* one byte more shows excess data, and avoids 0 */
    if (!item->memory) {
        failure_set(&item->failure, REASON_OUT_OF_MEMORY, "no memory for %llu bytes",
                    (unsigned long long)size);
        return;
    }
    while (filled < size && got > 0) {
        got = archive_read_data(reader, (char *)item->memory + filled, size - filled);
        filled += got > 0 ? (uint64_t)got : 0;
    }
    /* Only the end of a zip member tells whether its checksum is correct and whether there is more
     * data. */
    if (filled == size && is_zip(reader)) {
        got = archive_read_data(reader, (char *)item->memory + filled, 1);
        filled += got > 0 ? 1 : 0;
    }
    item->bytes = filled;
    if (got >= 0 && filled == size)
        return;
    if (got < 0)
        reader_failure(&item->failure, reader, DAMAGED);
    else
        failure_set(&item->failure, REASON_CORRUPT,
                    "the archive states a size of %llu bytes, but has %s", (unsigned long long)size,
                    filled > size ? "more" : "fewer");
    free(item->memory);
    item->memory = NULL;
    item->bytes = 0;
}

/* Waits for space for a member of that size; false: cancelled. */
static bool wait_for_room(struct item_stream *stream, uint64_t bytes)
{
    pthread_mutex_lock(&stream->lock);
    while (!stream->cancelled && stream->count > 0 &&
           (stream->count == STREAM_ITEMS || stream->bytes + bytes > STREAM_BYTES)) {
        /* put_item may not have woken the other thread. */
        pthread_cond_signal(&stream->moved);
        pthread_cond_wait(&stream->moved, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return !stream->cancelled;
}

static void put_item(struct item_stream *stream, const struct item *item)
{
    pthread_mutex_lock(&stream->lock);
    stream->items[(stream->first + stream->count++) % STREAM_ITEMS] = *item;
    stream->bytes += item->bytes;
    /* Damaged members come faster than a thread wakes up. */
    if (item->memory || stream->count >= STREAM_ITEMS / 2)
        pthread_cond_signal(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
}

static void *stream_main(void *argument)
{
    struct item_stream *stream = argument;
    struct failure failure = {.reason = REASON_NONE};
    struct archive_entry *entry;
    struct input input = {.fd = stream->fd,
                          .bytes = stream->archive->file.bytes,
                          .block = STREAM_BLOCK,
                          .cancelled = &stream->cancelled};
    struct archive *reader = open_reader(&input, &failure);
    int code = ARCHIVE_FATAL;
    for (uint64_t number = 0; reader; number++) {
        code = next_header(reader, &entry);
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
            break;
        if (archive_entry_filetype(entry) != AE_IFREG || !archive_entry_size_is_set(entry) ||
            archive_entry_size(entry) < 0 ||
            (uint64_t)archive_entry_size(entry) > ARCHIVE_MEMBER_MAX || !is_compressed(reader))
            continue;
        if (!wait_for_room(stream, (uint64_t)archive_entry_size(entry)))
            break;
        struct item item = {.number = number};
        read_member(&item, reader, entry);
        put_item(stream, &item);
    }
    if (failure.reason == REASON_NONE && code == ARCHIVE_EOF)
        failure_set(&failure, REASON_CHANGED, "the archive has changed since it was listed");
    else if (failure.reason == REASON_NONE)
        headers_failure(&failure, reader, &input);
    close_reader(reader, &input);
    pthread_mutex_lock(&stream->lock);
    stream->ended = true;
    stream->failure = failure;
    pthread_cond_signal(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static void stop_stream(struct one *one)
{
    struct item_stream *stream = one->stream;
    if (!stream)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->cancelled = true;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    for (; stream->count > 0; stream->count--, stream->first++)
        free(stream->items[stream->first % STREAM_ITEMS].memory);
    close(stream->fd);
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
    one->stream = NULL;
}

static enum reason start_stream(struct one *one, struct failure *failure)
{
    struct item_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory to read the archive");
    stream->archive = one;
    stream->fd = open_afresh(one, failure);
    if (stream->fd < 0) {
        free(stream);
        return failure->reason;
    }
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->moved, NULL);
    const int code = pthread_create(&stream->thread, NULL, stream_main, stream);
    if (code == 0) {
        one->stream = stream;
        return REASON_NONE;
    }
    close(stream->fd);
    free(stream);
    return failure_errno(failure, REASON_OUT_OF_MEMORY, code, "no thread to read the archive");
}

/* Starts the streams of this archive and of the next compressed ones; earlier ones have ended. */
static enum reason start_streams(struct archives *archives, size_t index, struct failure *failure)
{
    struct failure ignored;
    while (archives->first_stream < index)
        stop_stream(archives->one[archives->first_stream++]);
    archives->first_stream = index;
    if (!archives->one[index]->stream && start_stream(archives->one[index], failure) != REASON_NONE)
        return failure->reason;
    unsigned running = 1;
    for (size_t i = index + 1; i < archives->count && running < STREAMS; i++) {
        struct one *one = archives->one[i];
        if (one->file.in_order && (one->stream || start_stream(one, &ignored) == REASON_NONE))
            running++;
    }
    return REASON_NONE;
}

/* Members are requested in ascending order, so those before `number` are skipped. */
static enum reason take_item(struct blob *out, struct item_stream *stream, uint64_t number,
                             bool *passed, struct failure *failure)
{
    struct item item = {.number = UINT64_MAX};
    pthread_mutex_lock(&stream->lock);
    for (*passed = stream->next > number; !*passed;) {
        while (stream->count == 0 && !stream->ended)
            pthread_cond_wait(&stream->moved, &stream->lock);
        if (stream->count == 0) {
            *failure = stream->failure;
            break;
        }
        item = stream->items[stream->first];
        *passed = item.number > number;
        if (*passed)
            break;
        stream->first = (stream->first + 1) % STREAM_ITEMS;
        stream->count--;
        stream->bytes -= item.bytes;
        stream->next = item.number + 1;
        if (item.memory || stream->count <= STREAM_ITEMS / 2)
            pthread_cond_signal(&stream->moved);
        if (item.number == number)
            break;
        free(item.memory);
    }
    pthread_mutex_unlock(&stream->lock);
    if (*passed)
        return failure_set(failure, REASON_CHANGED, "the archive has changed since it was listed");
    if (item.number != number)
        return failure->reason;
    if (!item.memory) {
        *failure = item.failure;
        return failure->reason;
    }
    *out = blob_of_memory(item.memory, item.bytes);
    return REASON_NONE;
}

enum reason archives_open_member(struct blob *out, struct archives *archives,
                                 const struct source_member *member, struct failure *failure)
{
    const uint64_t place = member->where & PLACE_MAX;
    const size_t index = (size_t)(member->where >> PLACE_BITS & INDEX_MAX);
    struct one *one = archives->one[index];
    if (!(member->where & SOURCE_WHERE_IN_ORDER)) {
        const int fd = share_descriptor(archives, one, failure);
        if (fd < 0)
            return failure->reason;
        *out = blob_of_file(fd, member->bytes, one->file.mtime_ns);
        out->offset = place;
        out->file_bytes = one->file.bytes;
        return REASON_NONE;
    }
    bool passed = false;
    failure->reason = REASON_NONE;
    if (start_streams(archives, index, failure) != REASON_NONE ||
        take_item(out, one->stream, place, &passed, failure) == REASON_NONE || !passed)
        return failure->reason;
    /* Its position has passed: start again. */
    failure->reason = REASON_NONE;
    stop_stream(one);
    passed = false;
    if (start_stream(one, failure) != REASON_NONE)
        return failure->reason;
    return take_item(out, one->stream, place, &passed, failure);
}

void archives_rewind(struct archives *archives)
{
    for (size_t i = 0; i < archives->count; i++) {
        stop_stream(archives->one[i]);
        archives->one[i]->file.in_order = false;
    }
    archives->first_stream = 0;
}

/* --- streams --------------------------------------------------------------------------------- */

struct archive_stream {
    struct input input;
    struct archive *reader;
    struct archive_file nothing;
    struct member_listing members;
    uint64_t number;  /* of the next header */
    struct item item; /* the last member, until it is opened */
};

static enum status ended_early(const struct archive_stream *stream, const char *why,
                               struct error *err)
{
    if (stream->number == 0)
        return error_set(err, STATUS_FAILED, "standard input is not a tar that can be read: %s",
                         stream->input.some ? why : "it is empty");
    return error_set(
        err, STATUS_FAILED,
        "the tar on standard input ends early or is damaged, after %s (%s): the same command with "
        "the whole stream continues from here",
        NUMBER_OF(stream->number, "member"), why);
}

/* Reads the next member completely; STATUS_END: end of the tar. */
static enum status read_next(struct archive_stream *stream, struct archive_entry **entry,
                             struct error *err)
{
    struct failure failure = {.reason = REASON_NONE};
    struct item item = {.number = stream->number};
    const la_int64_t before = stream->reader ? archive_filter_bytes(stream->reader, 0) : 0;
    int code = ARCHIVE_FATAL;
    if (!stream->reader)
        stream->reader = open_reader(&stream->input, &failure);
    if (stream->reader)
        code = next_header(stream->reader, entry);
    if (code == ARCHIVE_EOF && archive_filter_bytes(stream->reader, 0) > before)
        return STATUS_END;
    if (code == ARCHIVE_EOF)
        failure_set(&failure, REASON_TRUNCATED, "its end is missing");
    else if (code != ARCHIVE_OK && code != ARCHIVE_WARN && failure.reason == REASON_NONE)
        headers_failure(&failure, stream->reader, &stream->input);
    else if (failure.reason == REASON_NONE && archive_entry_filetype(*entry) == AE_IFREG &&
             !archive_entry_hardlink(*entry) && archive_entry_sparse_count(*entry) == 0 &&
             archive_entry_size(*entry) >= 0 &&
             archive_entry_size(*entry) <= (la_int64_t)ARCHIVE_MEMBER_MAX)
        read_member(&item, stream->reader, *entry);
    if (failure.reason == REASON_NONE)
        failure = item.failure;
    if (failure.reason == REASON_NONE && archive_read_data_skip(stream->reader) < ARCHIVE_WARN)
        headers_failure(&failure, stream->reader, &stream->input);
    stream->item = item;
    if (stop_check(stream->input.stop, "reading a stream", err) != STATUS_OK)
        return STATUS_INTERRUPTED;
    return failure.reason == REASON_NONE ? STATUS_OK : ended_early(stream, failure.message, err);
}

enum status archive_stream_next(struct archive_stream **opened, struct source_listing *listing,
                                struct error *err)
{
    struct archive_stream *stream = *opened;
    struct archive_entry *entry;
    if (!stream) {
        if (!(stream = *opened = calloc(1, sizeof *stream)))
            return error_memory(err, sizeof *stream, "a stream");
        stream->input = (struct input){.fd = STDIN_FILENO,
                                       .bytes = UINT64_MAX,
                                       .block = STREAM_BLOCK,
                                       .stream = true,
                                       .stop = listing->stop};
        stream->members = (struct member_listing){.listing = listing, .file = &stream->nothing};
    }
    free(stream->item.memory);
    stream->item = (struct item){.number = UINT64_MAX};
    const locale_t before = enter_utf8();
    enum status status = read_next(stream, &entry, err);
    if (status == STATUS_OK)
        status = add_member(&stream->members, stream->reader, entry, stream->number++, err);
    if (before)
        uselocale(before);
    return status;
}

enum reason archive_stream_open(struct blob *out, struct archive_stream *stream,
                                const struct source_member *member, struct failure *failure)
{
    struct item *item = &stream->item;
    if ((member->where & PLACE_MAX) != item->number || !item->memory)
        return failure_set(failure, REASON_VANISHED, "the stream has passed it");
    *out = blob_of_memory(item->memory, item->bytes);
    item->memory = NULL;
    return REASON_NONE;
}

void archive_stream_close(struct archive_stream **opened)
{
    struct archive_stream *stream = *opened;
    if (!stream)
        return;
    close_reader(stream->reader, &stream->input);
    free(stream->item.memory);
    free(stream->members.names.slot);
    bytes_clear(&stream->members.path);
    free(stream);
    *opened = NULL;
}

void archives_close(struct archives **archives)
{
    if (!archives || !*archives)
        return;
    for (size_t i = 0; i < (*archives)->count; i++) {
        struct one *one = (*archives)->one[i];
        stop_stream(one);
        if (one->fd >= 0)
            close(one->fd);
        free(one);
    }
    pthread_mutex_destroy(&(*archives)->lock);
    free((*archives)->one);
    free(*archives);
    *archives = NULL;
}
