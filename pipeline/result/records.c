/* records.c: encodes and decodes blocks. A block's table has the size of each column, so columns
 * can be read separately. */
#include "result/records.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC          "CLPIPLOG"
#define VERSION        3u
#define MOST_SIGNATURE (64u << 20)
#define MOST_OPEN      16u /* logs whose descriptors stay open */
#define CHECK_BUFFER   (256u << 10)

struct header {
    char magic[8];
    uint32_t version, length, crc, run;
    uint64_t random;
};
_Static_assert(sizeof(struct header) == 32, "header of a log");

struct column_head {
    uint32_t bytes, crc;
};
struct block_head {
    uint32_t crc, columns;
    uint64_t random;
    uint32_t rows[2];
    uint64_t bytes;
    struct column_head column[RECORDS_MOST_COLUMNS];
};
#define HEAD_BYTES offsetof(struct block_head, column)
_Static_assert(HEAD_BYTES == 32, "head of a block");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the log is written as memory is");

#define FIELD(t, member)                                                                           \
    {                                                                                              \
        RECORDS_##t, KIND_FIELD, offsetof(struct store_record, member),                            \
            sizeof((struct store_record *)0)->member, 0                                            \
    }
#define ENDS(t, of) {RECORDS_##t, KIND_ENDS, 0, 4, of}
#define TEXT(t, ends) {RECORDS_##t, KIND_TEXT, 0, 0, ends}
const struct records_kind records_kind[LOG_IMAGE_FEATURE] = {
    [LOG_IMAGE_SEQUENCE] = FIELD(IMAGES, sequence),
    [LOG_IMAGE_SOURCE] = FIELD(IMAGES, source),
    [LOG_IMAGE_BYTES] = FIELD(IMAGES, bytes),
    [LOG_IMAGE_MTIME] = FIELD(IMAGES, mtime_ns),
    [LOG_IMAGE_INODE] = FIELD(IMAGES, inode),
    [LOG_IMAGE_CTIME] = FIELD(IMAGES, ctime_ns),
    [LOG_IMAGE_WIDTH] = FIELD(IMAGES, width),
    [LOG_IMAGE_HEIGHT] = FIELD(IMAGES, height),
    [LOG_IMAGE_ORIENTATION] = FIELD(IMAGES, orientation),
    [LOG_IMAGE_CHANNELS] = FIELD(IMAGES, channels),
    [LOG_IMAGE_FORMAT] = FIELD(IMAGES, format),
    [LOG_IMAGE_DIGEST] = FIELD(IMAGES, digest),
    [LOG_IMAGE_HAS_CODE] = FIELD(IMAGES, has_code),
    [LOG_IMAGE_CODE] = FIELD(IMAGES, code),
    [LOG_IMAGE_THUMBNAIL_SIZE] = FIELD(IMAGES, thumbnail_size),
    [LOG_IMAGE_PATH_ENDS] = ENDS(IMAGES, LOG_IMAGE_PATH),
    [LOG_IMAGE_THUMBNAIL_ENDS] = ENDS(IMAGES, LOG_IMAGE_THUMBNAIL),
    [LOG_FAILURE_SEQUENCE] = FIELD(FAILURES, sequence),
    [LOG_FAILURE_SOURCE] = FIELD(FAILURES, source),
    [LOG_FAILURE_BYTES] = FIELD(FAILURES, bytes),
    [LOG_FAILURE_MTIME] = FIELD(FAILURES, mtime_ns),
    [LOG_FAILURE_INODE] = FIELD(FAILURES, inode),
    [LOG_FAILURE_CTIME] = FIELD(FAILURES, ctime_ns),
    [LOG_FAILURE_REASON] = FIELD(FAILURES, failure.reason),
    [LOG_FAILURE_ERRNO] = FIELD(FAILURES, failure.error_number),
    [LOG_FAILURE_PATH_ENDS] = ENDS(FAILURES, LOG_FAILURE_PATH),
    [LOG_FAILURE_MESSAGE_ENDS] = ENDS(FAILURES, LOG_FAILURE_MESSAGE),
    [LOG_FAILURE_PATH] = TEXT(FAILURES, LOG_FAILURE_PATH_ENDS),
    [LOG_FAILURE_MESSAGE] = TEXT(FAILURES, LOG_FAILURE_MESSAGE_ENDS),
    [LOG_IMAGE_PATH] = TEXT(IMAGES, LOG_IMAGE_PATH_ENDS),
    [LOG_IMAGE_THUMBNAIL] = TEXT(IMAGES, LOG_IMAGE_THUMBNAIL_ENDS),
};

static enum records_table table_of(unsigned column)
{
    return column < LOG_IMAGE_FEATURE ? records_kind[column].table : RECORDS_IMAGES;
}

/* Bytes per row; 0 for texts. */
static uint32_t width_of(const struct records *records, unsigned column)
{
    return column < LOG_IMAGE_FEATURE ? records_kind[column].width
                                  : records->width[column - LOG_IMAGE_FEATURE];
}

static const char *shown_log(char *shown, size_t size, const struct records *records,
                             const char *name)
{
    char folder[256];
    snprintf(shown, size, "%s/%s", path_for_message(folder, sizeof folder, records->path), name);
    return shown;
}

/* --- headers --------------------------------------------------------------------------------- */

static uint32_t header_crc(const struct header *header, const char *text)
{
    uint32_t crc = crc32c(0, header, offsetof(struct header, crc));
    crc = crc32c(crc, &header->run, sizeof *header - offsetof(struct header, run));
    return crc32c(crc, text, header->length);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + RECORDS_ALIGN - 1) / RECORDS_ALIGN * RECORDS_ALIGN;
}

static enum status add_log(struct records *records, const char *name, int fd, struct error *err)
{
    const size_t bytes = (records->logs + 1) * sizeof *records->log;
    struct records_log *more = realloc(records->log, bytes);
    if (!more)
        return error_memory(err, bytes, "the logs");
    records->log = more;
    struct records_log *log = &more[records->logs++];
    *log = (struct records_log){.fd = fd};
    snprintf(log->name, sizeof log->name, "%s", name);
    return STATUS_OK;
}

/* Reads the header of the last log. STATUS_END: it is truncated. */
static enum status read_header(struct records *records, struct error *err)
{
    struct records_log *log = &records->log[records->logs - 1];
    char shown[320], *text = NULL;
    struct header header;
    struct stat st;
    size_t got;
    shown_log(shown, sizeof shown, records, log->name);
    if (fstat(log->fd, &st))
        return error_errno(err, STATUS_FAILED, errno, "fstat", "cannot read %s", shown);
    enum status status = read_at(log->fd, &header, sizeof header, 0, &got, shown, err);
    if (status || got < sizeof header)
        return status ? status : STATUS_END;
    if (memcmp(header.magic, MAGIC, sizeof header.magic) != 0) {
        error_set(err, STATUS_FAILED, "%s is not a clpipe log", shown);
        return error_remedy(err, REMEDY_START_OVER);
    }
    if (header.version != VERSION) {
        status = error_set(err, STATUS_USAGE,
                           "%s was written by another version of clpipe: finish the run with that "
                           "version",
                           shown);
        error_remedy(err, REMEDY_START_OVER);
        return status;
    }
    if (header.length <= MOST_SIGNATURE) {
        text = malloc((size_t)header.length + 1);
        if (!text)
            return error_memory(err, header.length, "the log's header");
        status = read_at(log->fd, text, header.length, sizeof header, &got, shown, err);
        text[status ? 0 : got] = 0;
        if (!status && got < header.length)
            status = STATUS_END;
    }
    if (!status && (!text || header_crc(&header, text) != header.crc)) {
        error_set(err, STATUS_FAILED, "%s is damaged", shown);
        status = error_remedy(err, REMEDY_START_OVER);
    }
    log->run = header.run;
    log->random = header.random;
    log->start = aligned(sizeof header + header.length);
    log->size = (uint64_t)st.st_size;
    const int64_t written = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (!status && written > records->written_ns)
        records->written_ns = written;
    /* A log with only a header may be from a different command that was refused. */
    if (!status && records->signature && log->size > log->start &&
        strcmp(text, records->signature) != 0) {
        error_set(err, STATUS_USAGE, "%s was written by a different command than the other logs",
                  shown);
        error_remedy(err, REMEDY_START_OVER);
        status = STATUS_USAGE;
    }
    if (!status && (!records->signature || log->size > log->start)) {
        free(records->signature);
        records->signature = text;
        text = NULL;
    }
    free(text);
    return status;
}

static int by_run(const void *a, const void *b)
{
    const struct records_log *x = a, *y = b;
    return x->run != y->run ? (x->run < y->run ? -1 : 1) : strcmp(x->name, y->name);
}

static int with_prefix(const struct dirent *entry)
{
    return strncmp(entry->d_name, RECORDS_PREFIX, sizeof RECORDS_PREFIX - 1) == 0 &&
           strlen(entry->d_name) == sizeof RECORDS_PREFIX - 1 + 16;
}

/* Logs of earlier versions must be finished by these. */
static enum status refuse_old(const struct records *records, struct error *err)
{
    static const char *const old[] = {"records", "handover"};
    char shown[256];
    struct stat st;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (fstatat(records->directory, old[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0) {
            error_set(err, STATUS_USAGE,
                      "%s/%s was left by clpipe 0.2 or an earlier version: finish the run with that "
                      "version",
                      path_for_message(shown, sizeof shown, records->path), old[i]);
            error_remedy(err, REMEDY_START_OVER);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

enum status records_open(struct records *out, int directory, const char *path, struct error *err)
{
    struct dirent **entry = NULL;
    char shown[320];
    *out = (struct records){.directory = directory, .path = strdup(path)};
    if (!out->path)
        return error_memory(err, strlen(path), "a file name");
    enum status status = refuse_old(out, err);
    if (status)
        return status;
    const int count = scandirat(directory, ".", &entry, with_prefix, alphasort);
    if (count < 0)
        return error_errno(err, STATUS_FAILED, errno, "scandir", "cannot read %s",
                           path_for_message(shown, sizeof shown, path));
    for (int i = 0; i < count; i++) {
        const char *name = entry[i]->d_name;
        const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (!status && fd < 0 && errno != ENOENT)
            status = error_errno(err, STATUS_FAILED, errno, "openat", "cannot read %s",
                                 shown_log(shown, sizeof shown, out, name));
        if (status || fd < 0 || (status = add_log(out, name, fd, err))) {
            if (fd >= 0)
                close(fd);
        } else if ((status = read_header(out, err)) == STATUS_END) {
            close(fd);
            out->logs--;
            status = STATUS_OK;
        } else if (out->logs > MOST_OPEN) {
            close(fd);
            out->log[out->logs - 1].fd = -1;
        }
        free(entry[i]);
    }
    free(entry);
    if (out->logs > 0)
        qsort(out->log, out->logs, sizeof *out->log, by_run);
    for (unsigned i = 0; i < out->logs; i++)
        out->bytes += out->log[i].size;
    return status;
}

void records_clear(struct records *records)
{
    for (unsigned i = 0; i < records->logs; i++)
        if (records->log[i].fd >= 0)
            close(records->log[i].fd);
    free(records->log);
    free(records->block);
    free(records->width);
    free(records->signature);
    free(records->path);
    *records = (struct records){.directory = -1};
}

enum status records_create(struct records *records, const char *signature, struct error *err)
{
    struct header header = {.version = VERSION, .length = (uint32_t)strlen(signature), .run = 1};
    char name[sizeof records->log->name], shown[320];
    if (strlen(signature) > MOST_SIGNATURE)
        return error_set(err, STATUS_USAGE, "the sources and options take more than 64 MiB");
    if (records->logs > 0)
        header.run = records->log[records->logs - 1].run + 1;
    int fd;
    do {
        /* Without random numbers the name still distinguishes it from all others there. */
        if (getrandom(&header.random, sizeof header.random, 0) != (ssize_t)sizeof header.random)
            header.random = header.random * 6364136223846793005u + (uint64_t)getpid();
        snprintf(name, sizeof name, RECORDS_PREFIX "%016llx", (unsigned long long)header.random);
        fd = openat(records->directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0666);
    } while (fd < 0 && errno == EEXIST);
    shown_log(shown, sizeof shown, records, name);
    if (fd < 0)
        return error_errno(err, STATUS_FAILED, errno, "openat", "cannot create %s", shown);
    if (add_log(records, name, fd, err)) {
        close(fd);
        return STATUS_FAILED;
    }
    memcpy(header.magic, MAGIC, sizeof header.magic);
    header.crc = header_crc(&header, signature);
    struct records_log *log = &records->log[records->logs - 1];
    log->run = header.run;
    log->random = header.random;
    log->start = log->size = aligned(sizeof header + header.length);
    return write_all(fd, &header, sizeof header, shown, err) ||
                   write_all(fd, signature, header.length, shown, err)
               ? STATUS_FAILED
               : STATUS_OK;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static uint64_t columns_of(const struct records *records)
{
    return LOG_IMAGE_FEATURE + (uint64_t)records->features;
}

/* Opens a log if necessary; if *opened the caller closes it. */
static enum status descriptor_of(int *fd, bool *opened, const struct records *records,
                                 const struct records_log *log, struct error *err)
{
    char shown[320];
    *fd = log->fd;
    *opened = log->fd < 0;
    if (*opened)
        *fd = openat(records->directory, log->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return *fd >= 0 ? STATUS_OK
                    : error_errno(err, STATUS_FAILED, errno, "openat", "cannot read %s",
                                  shown_log(shown, sizeof shown, records, log->name));
}

/* Reads the header of a block. STATUS_END: there is no block. */
static enum status read_head(struct block_head *head, int fd, const struct records *records,
                             const struct records_log *log, uint64_t offset, struct error *err)
{
    size_t got;
    enum status status = read_at(fd, head, sizeof *head, offset, &got, log->name, err);
    if (status)
        return status;
    if (got < HEAD_BYTES || head->random != log->random || head->columns < LOG_IMAGE_FEATURE ||
        head->columns > RECORDS_MOST_COLUMNS ||
        (records->width && head->columns != columns_of(records)))
        return STATUS_END;
    const size_t size = HEAD_BYTES + head->columns * sizeof head->column[0];
    if (got < size || crc32c(0, &head->columns, size - sizeof head->crc) != head->crc)
        return STATUS_END;
    uint64_t bytes = 0;
    for (unsigned c = 0; c < head->columns; c++) {
        bytes += head->column[c].bytes;
        const uint32_t width = c < LOG_IMAGE_FEATURE || records->width ? width_of(records, c) : 0;
        if (width > 0 && head->column[c].bytes != (uint64_t)width * head->rows[table_of(c)])
            return STATUS_END;
    }
    return bytes == head->bytes ? STATUS_OK : STATUS_END;
}

static uint64_t column_at(const struct block_head *head, uint64_t offset, unsigned column)
{
    offset += HEAD_BYTES + head->columns * sizeof head->column[0];
    for (unsigned c = 0; c < column; c++)
        offset += head->column[c].bytes;
    return offset;
}

/* Checks all columns of a block. STATUS_END: truncated, or a wrong checksum. */
static enum status check_columns(const struct block_head *head, int fd, const char *name,
                                 uint64_t offset, uint8_t *buffer, struct error *err)
{
    uint64_t at = column_at(head, offset, 0);
    for (unsigned c = 0; c < head->columns; c++) {
        uint32_t crc = 0;
        for (uint32_t left = head->column[c].bytes; left > 0;) {
            const size_t size = left < CHECK_BUFFER ? left : CHECK_BUFFER;
            size_t got;
            enum status status = read_at(fd, buffer, size, at, &got, name, err);
            if (status || got < size)
                return status ? status : STATUS_END;
            crc = crc32c(crc, buffer, size);
            at += size;
            left -= (uint32_t)size;
        }
        if (crc != head->column[c].crc)
            return STATUS_END;
    }
    return STATUS_OK;
}

static enum status add_block(struct records *records, uint32_t log, uint64_t offset,
                             const uint32_t rows[2], struct error *err)
{
    if ((records->blocks & (records->blocks - 1)) == 0) {
        const size_t bytes = (2 * records->blocks + 1) * sizeof *records->block;
        struct records_block *more = realloc(records->block, bytes);
        if (!more)
            return error_memory(err, bytes, "the blocks of the log");
        records->block = more;
    }
    records->block[records->blocks++] = (struct records_block){
        offset, {records->rows[0], records->rows[1]}, {rows[0], rows[1]}, log};
    records->log[log].blocks++;
    records->rows[0] += rows[0];
    records->rows[1] += rows[1];
    return STATUS_OK;
}

enum status records_add(struct records *records, uint64_t offset, const uint32_t rows[2],
                        struct error *err)
{
    return add_block(records, records->logs - 1, offset, rows, err);
}

static enum status scan_log(struct records *records, unsigned number, uint8_t *buffer,
                            struct stop *stop, struct error *err)
{
    const struct records_log *log = &records->log[number];
    struct block_head head;
    bool opened;
    int fd;
    uint64_t whole = log->start; /* end of the last complete block */
    enum status status = descriptor_of(&fd, &opened, records, log, err);
    for (uint64_t at = log->start; !status && at < log->size;) {
        if ((status = stop_check(stop, "reading the log of an earlier run", err)))
            break;
        status = read_head(&head, fd, records, log, at, err);
        const uint64_t end =
            status ? at + RECORDS_ALIGN : aligned(column_at(&head, at, head.columns));
        if (!status && column_at(&head, at, head.columns) > log->size)
            status = STATUS_END;
        else if (!status && records->width)
            status = check_columns(&head, fd, log->name, at, buffer, err);
        if (!status) {
            status = add_block(records, number, at, head.rows, err);
            records->damaged += at - whole;
            at = whole = end;
        } else if (status == STATUS_END) {
            at += RECORDS_ALIGN;
            status = STATUS_OK;
        }
    }
    records->torn += log->size > whole ? log->size - whole : 0;
    if (opened && fd >= 0)
        close(fd);
    return status;
}

enum status records_scan(struct records *records, const uint32_t *widths, unsigned features,
                         struct stop *stop, struct error *err)
{
    const size_t bytes = features * sizeof *widths;
    uint8_t *buffer = malloc(CHECK_BUFFER);
    enum status status = STATUS_OK;
    if (widths && LOG_IMAGE_FEATURE + (uint64_t)features <= RECORDS_MOST_COLUMNS)
        records->width = malloc(bytes + 1);
    if (!buffer || (widths && !records->width))
        status = error_memory(err, CHECK_BUFFER, "the log's buffer");
    else if (widths)
        memcpy(records->width, widths, bytes);
    records->features = features;
    for (unsigned i = 0; i < records->logs && !status; i++)
        status = scan_log(records, i, buffer, stop, err);
    free(buffer);
    return status;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A block opened for reading. */
struct open_block {
    const struct records *records;
    const struct records_block *block;
    int fd;
    bool opened;
    struct block_head head;
};

static enum status damaged(const struct open_block *open, struct error *err)
{
    char shown[320];
    return error_set(err, STATUS_FAILED,
                     "%s has been damaged since it was written: run the command again, which does "
                     "again what is lost",
                     shown_log(shown, sizeof shown, open->records,
                               open->records->log[open->block->log].name));
}

/* Opens the block with a row. */
static enum status open_block(struct open_block *open, const struct records *records,
                              enum records_table table, uint64_t row, struct error *err)
{
    uint64_t low = 0, high = records->blocks;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(records->block[middle].first[table] <= row ? &low : &high) = middle;
    }
    open->records = records;
    open->block = &records->block[low];
    const struct records_log *log = &records->log[open->block->log];
    enum status status = descriptor_of(&open->fd, &open->opened, records, log, err);
    if (!status)
        status = read_head(&open->head, open->fd, records, log, open->block->offset, err);
    if (status == STATUS_END || (!status && memcmp(open->head.rows, open->block->rows,
                                                   sizeof open->head.rows) != 0))
        status = damaged(open, err);
    return status;
}

static void close_block(struct open_block *open)
{
    if (open->opened && open->fd >= 0)
        close(open->fd);
}

/* Reads bytes [from, from + size) of a column; checks its checksum only if that is all of it. */
static enum status read_part(const struct open_block *open, unsigned column, uint64_t from,
                             uint64_t size, void *bytes, struct error *err)
{
    const struct column_head *head = &open->head.column[column];
    size_t got;
    if (from > head->bytes || size > head->bytes - from)
        return damaged(open, err);
    enum status status =
        read_at(open->fd, bytes, size, column_at(&open->head, open->block->offset, column) + from,
                &got, open->records->path, err);
    if (!status && (got < size || (size == head->bytes && crc32c(0, bytes, size) != head->crc)))
        status = damaged(open, err);
    return status;
}

/* The same, always checked: to read a part, the whole column is read to *buffer (free it). */
static enum status read_checked(const struct open_block *open, unsigned column, uint64_t from,
                                uint64_t size, void *bytes, uint8_t **buffer, struct error *err)
{
    const uint64_t all = open->head.column[column].bytes;
    if (size == all || from > all || size > all - from)
        return read_part(open, column, from, size, bytes, err);
    uint8_t *more = realloc(*buffer, all);
    if (!more)
        return error_memory(err, all, "a column of the log");
    *buffer = more;
    enum status status = read_part(open, column, 0, all, more, err);
    if (!status && size > 0)
        memcpy(bytes, more + from, size);
    return status;
}

/* How many of `count` rows from `row` on are in the block, and the index of the first in it. */
static uint64_t rows_here(const struct open_block *open, enum records_table table, uint64_t row,
                          uint64_t count, uint64_t *first)
{
    *first = row - open->block->first[table];
    const uint64_t left = open->block->rows[table] - *first;
    return left < count ? left : count;
}

enum status records_read(const struct records *records, unsigned column, uint64_t first,
                         uint64_t count, void *rows, struct error *err)
{
    const enum records_table table = table_of(column);
    const uint64_t width = width_of(records, column);
    uint8_t *buffer = NULL, *at = rows;
    enum status status = STATUS_OK;
    while (count > 0 && !status) {
        struct open_block open;
        uint64_t row;
        status = open_block(&open, records, table, first, err);
        const uint64_t here = status ? 0 : rows_here(&open, table, first, count, &row);
        if (!status)
            status = read_checked(&open, column, row * width, here * width, at, &buffer, err);
        close_block(&open);
        first += here;
        count -= here;
        at += here * width;
    }
    free(buffer);
    return status;
}

/* Offsets of `count` texts of a block from `row` on, and the end of the last: count + 1 offsets in
 * their column. */
static enum status read_ends(const struct open_block *open, unsigned text, uint64_t row,
                             uint64_t count, uint32_t *ends, struct error *err)
{
    const unsigned column = records_kind[text].other;
    ends[0] = 0;
    enum status status = row > 0 ? read_part(open, column, 4 * (row - 1), 4 * (count + 1), ends, err)
                                 : read_part(open, column, 0, 4 * count, ends + 1, err);
    for (uint64_t i = 0; i < count && !status; i++)
        if (ends[i] > ends[i + 1])
            status = damaged(open, err);
    return status ? status
                  : ends[count] <= open->head.column[text].bytes ? STATUS_OK : damaged(open, err);
}

enum status records_read_texts(const struct records *records, enum records_column column,
                               uint64_t first, uint64_t count, uint64_t *ends, uint8_t **bytes,
                               size_t *room, struct error *err)
{
    const enum records_table table = table_of(column);
    uint8_t *buffer = NULL;
    uint64_t used = 0;
    enum status status = STATUS_OK;
    while (count > 0 && !status) {
        struct open_block open;
        uint32_t *here_ends = NULL;
        uint64_t row, here = 0, size = 0;
        status = open_block(&open, records, table, first, err);
        if (!status) {
            here = rows_here(&open, table, first, count, &row);
            here_ends = malloc((here + 1) * sizeof *here_ends);
            status = here_ends ? read_ends(&open, column, row, here, here_ends, err)
                               : error_memory(err, 4 * here, "texts of the log");
        }
        if (!status) {
            size = here_ends[here] - here_ends[0];
            for (uint64_t i = 0; i < here; i++)
                ends[i] = used + here_ends[i + 1] - here_ends[0];
        }
        if (!status && used + size > *room) {
            uint8_t *more = realloc(*bytes, 2 * (used + size));
            status = more ? STATUS_OK : error_memory(err, 2 * (used + size), "texts of the log");
            *bytes = more ? more : *bytes;
            *room = more ? 2 * (used + size) : *room;
        }
        if (!status && size > 0)
            status = read_checked(&open, column, here_ends[0], size, *bytes + used, &buffer, err);
        free(here_ends);
        close_block(&open);
        used += size;
        first += here;
        ends += here;
        count -= here;
    }
    free(buffer);
    return status;
}

/* --- row by row ------------------------------------------------------------------------------ */

void records_cursor_clear(struct records_cursor *cursor)
{
    free(cursor->buffer);
    cursor->buffer = NULL;
    cursor->room = 0;
    cursor->count = 0;
}

static enum status load(struct records_cursor *cursor, const struct open_block *open,
                        enum records_table table, uint64_t row, uint64_t count, struct error *err)
{
    size_t used = 0;
    for (unsigned c = 0; c < open->head.columns; c++) {
        const bool text = c < LOG_IMAGE_FEATURE && records_kind[c].kind == KIND_TEXT;
        const bool ends = c < LOG_IMAGE_FEATURE && records_kind[c].kind == KIND_ENDS;
        if (table_of(c) != table || (!cursor->values && c >= LOG_IMAGE_THUMBNAIL))
            continue;
        uint64_t from, size;
        if (text) {
            const uint32_t *end =
                (const uint32_t *)(cursor->buffer + cursor->at[records_kind[c].other]);
            from = end[0];
            size = end[count] - end[0];
        } else {
            from = row * width_of(cursor->records, c);
            size = count * width_of(cursor->records, c) + (ends ? 4 : 0);
        }
        used = (used + 7) / 8 * 8;
        if (size > cursor->room - used || used > cursor->room) {
            const size_t room = 2 * (used + size) + 4096;
            uint8_t *more = realloc(cursor->buffer, room);
            if (!more)
                return error_memory(err, room, "the log's buffer");
            cursor->buffer = more;
            cursor->room = room;
        }
        cursor->at[c] = used;
        enum status status =
            ends ? read_ends(open, records_kind[c].other, row, count,
                             (uint32_t *)(cursor->buffer + used), err)
                 : read_part(open, c, from, size, cursor->buffer + used, err);
        if (status)
            return status;
        used += size;
    }
    return STATUS_OK;
}

/* The text of row `i` of the buffer. */
static const uint8_t *text_at(const struct records_cursor *cursor, unsigned column, uint64_t i,
                              uint32_t *length)
{
    const uint32_t *ends =
        (const uint32_t *)(cursor->buffer + cursor->at[records_kind[column].other]);
    *length = ends[i + 1] - ends[i];
    return cursor->buffer + cursor->at[column] + (ends[i] - ends[0]);
}

enum status records_at(struct records_cursor *cursor, enum records_table table, uint64_t row,
                       struct store_record *record, struct error *err)
{
    const bool image = table == RECORDS_IMAGES;
    struct open_block open = {.records = cursor->records};
    if (table != cursor->table || row < cursor->first || row - cursor->first >= cursor->count) {
        uint64_t first, count = cursor->window;
        enum status status = open_block(&open, cursor->records, table, row, err);
        cursor->table = table;
        cursor->first = !status && count == 0 ? open.block->first[table] : row;
        cursor->count = 0;
        if (!status) {
            count = rows_here(&open, table, cursor->first, count ? count : UINT64_MAX, &first);
            status = load(cursor, &open, table, first, count, err);
        }
        close_block(&open);
        if (status)
            return status;
        cursor->count = count;
    }
    const uint64_t i = row - cursor->first;
    uint32_t length;
    *record = (struct store_record){.sequence = 0};
    for (unsigned c = 0; c < LOG_IMAGE_FEATURE; c++) {
        const struct records_kind *kind = &records_kind[c];
        if (kind->table == table && kind->kind == KIND_FIELD)
            memcpy((uint8_t *)record + kind->offset, cursor->buffer + cursor->at[c] + i * kind->width,
                   kind->width);
    }
    record->path = (const char *)text_at(cursor, image ? LOG_IMAGE_PATH : LOG_FAILURE_PATH, i,
                                         &record->path_length);
    if (image) {
        const uint8_t *code = cursor->buffer + cursor->at[LOG_IMAGE_HAS_CODE] + i;
        record->has_code = *code != 0;
        const uint8_t *thumbnail = text_at(cursor, LOG_IMAGE_THUMBNAIL, i, &record->thumbnail_length);
        if (cursor->values && record->thumbnail_length > 0)
            record->thumbnail = thumbnail;
        return STATUS_OK;
    }
    const uint8_t *message = text_at(cursor, LOG_FAILURE_MESSAGE, i, &length);
    const unsigned reason = record->failure.reason;
    if (reason == REASON_NONE || reason >= REASON_COUNT || length >= sizeof record->failure.message)
        return error_set(err, STATUS_FAILED, "%s: a record of the log makes no sense",
                         cursor->records->path);
    memcpy(record->failure.message, message, length);
    return STATUS_OK;
}

const uint8_t *records_feature(const struct records_cursor *cursor, unsigned feature, uint64_t row)
{
    return cursor->buffer + cursor->at[LOG_IMAGE_FEATURE + feature] +
           (row - cursor->first) * cursor->records->width[feature];
}

/* --- writing --------------------------------------------------------------------------------- */

static const void *text_of(const struct store_record *record, unsigned column, uint32_t *length)
{
    switch (column) {
    case LOG_IMAGE_THUMBNAIL:
        *length = record->thumbnail ? record->thumbnail_length : 0;
        return record->thumbnail;
    case LOG_FAILURE_MESSAGE:
        *length = (uint32_t)strlen(record->failure.message);
        return record->failure.message;
    default:
        *length = record->path_length;
        return record->path;
    }
}

/* Writes a row's value of a column, or only returns its size (`to` NULL); *sum: total length of
 * texts so far. */
static uint32_t encode_value(uint8_t *to, const struct records *records, unsigned column,
                             const struct records_row *row, size_t place, uint32_t *sum)
{
    const struct records_kind *kind = column < LOG_IMAGE_FEATURE ? &records_kind[column] : NULL;
    const void *from = kind ? (const uint8_t *)&row->record + kind->offset : row->values + place;
    uint32_t length = width_of(records, column), text;
    if (kind && kind->kind == KIND_TEXT) {
        from = text_of(&row->record, column, &length);
    } else if (kind && kind->kind == KIND_ENDS) {
        text_of(&row->record, kind->other, &text);
        *sum += text;
        from = sum;
    }
    if (to && length > 0)
        memcpy(to, from, length);
    return length;
}

enum status records_encode(uint8_t **bytes, size_t *room, size_t *size, const struct records *records,
                           struct records_row *const *rows, uint32_t count, struct error *err)
{
    struct block_head head = {.columns = (uint32_t)columns_of(records),
                              .random = records->log[records->logs - 1].random};
    uint8_t *data = NULL;
    const size_t head_bytes = HEAD_BYTES + head.columns * sizeof head.column[0];
    for (uint32_t i = 0; i < count; i++)
        head.rows[rows[i]->record.failure.reason != REASON_NONE]++;
    /* First the sizes, then the columns. */
    for (int pass = 0; pass < 2; pass++) {
        size_t place = 0, at = head_bytes;
        for (unsigned c = 0; c < head.columns; c++) {
            const enum records_table table = table_of(c);
            const size_t start = at;
            uint32_t sum = 0;
            const bool text = c < LOG_IMAGE_FEATURE && records_kind[c].kind == KIND_TEXT;
            if (!data && !text)
                at += (size_t)head.rows[table] * width_of(records, c);
            for (uint32_t i = 0; (data || text) && i < count; i++)
                if ((rows[i]->record.failure.reason != REASON_NONE) == (table == RECORDS_FAILURES))
                    at += encode_value(data ? data + at : NULL, records, c, rows[i], place, &sum);
            head.column[c].bytes = (uint32_t)(at - start);
            if (data)
                head.column[c].crc = crc32c(0, data + start, at - start);
            if (c >= LOG_IMAGE_FEATURE)
                place += ((size_t)width_of(records, c) + 3) / 4 * 4;
        }
        head.bytes = at - head_bytes;
        *size = (size_t)aligned(at);
        if (pass == 0 && *room < *size) {
            free(*bytes);
            *bytes = malloc(*size);
            *room = *bytes ? *size : 0;
        }
        if (pass == 0 && !(data = *bytes))
            return error_memory(err, *size, "a block of the log");
        if (pass == 1)
            memset(data + at, 0, *size - at);
    }
    head.crc = crc32c(0, &head.columns, head_bytes - sizeof head.crc);
    memcpy(data, &head, head_bytes);
    return STATUS_OK;
}
