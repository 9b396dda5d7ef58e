/* records.c: writes and reads blocks. A block's table has the size of each column, so columns can be
 * read separately. */
#include "result/records.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC          "CLPIPLOG"
#define VERSION        4u
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

/* Reads a table from a row on, block by block. Rows are often read in short runs, so those of the program
 * keep what they read last: the block's head and, with checksums, two whole columns. */
struct records_reader {
    struct records_reader *next; /* of those that nobody uses */
    const struct records *records;
    enum records_table table;
    bool checked; /* compare checksums, so read whole columns */
    uint64_t row, left;
    /* Finds the block of `row` and the index in it; `here` of `left` rows are in that block. */
    struct records_block block; /* rows 0: none */
    uint64_t first, here;
    int fd;
    bool opened;
    struct block_head head;
    struct kept {
        unsigned column; /* + 1; 0: none */
        uint8_t *bytes;
        size_t room;
    } kept[2];
};

/* Those that nobody uses: at most one for each thread that has read at the same time. */
struct records_readers {
    pthread_mutex_t lock;
    struct records_reader *idle;
};

/* Struct log_row is part of the format: a different layout is a different version. */
_Static_assert(sizeof(struct log_row) == 152 && sizeof(struct result_image) == 128 &&
                   sizeof(struct failure_row) == 72,
               "rows of a log");

static enum records_table table_of(unsigned column)
{
    return column == LOG_FAILURES || column == LOG_FAILURE_PATH || column == LOG_FAILURE_MESSAGE
               ? RECORDS_FAILURES
               : RECORDS_IMAGES;
}

/* Bytes per row; 0 for texts. */
static uint32_t width_of(const struct records *records, unsigned column)
{
    return column < LOG_IMAGE_PATH ? sizeof(struct log_row)
           : column < LOG_FEATURE  ? 0
                                   : records->width[column - LOG_FEATURE];
}

static const char *shown_log(char *shown, size_t size, const struct records *records,
                             const char *name)
{
    snprintf(shown, size, "%s/%s", PATH_TEXT(records->path), name);
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
    struct records_log *more = array_with_room(records->log, records->logs, sizeof *more);
    if (!more)
        return error_memory(err, array_bytes(records->logs, sizeof *more), "the logs");
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

/* Logs of earlier versions must be finished by those versions. */
static enum status refuse_old(const struct records *records, struct error *err)
{
    static const char *const old[] = {"records", "handover"};
    struct stat st;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (fstatat(records->directory, old[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0) {
            error_set(
                err, STATUS_USAGE,
                "%s/%s was left by clpipe 0.2 or an earlier version: finish the run with that "
                "version",
                PATH_TEXT(records->path), old[i]);
            error_remedy(err, REMEDY_START_OVER);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

enum status records_open(struct records *out, int directory, const char *path, bool none,
                         struct error *err)
{
    struct dirent **entry = NULL;
    char shown[320];
    *out = (struct records){.directory = directory, .path = strdup(path)};
    out->readers = calloc(1, sizeof *out->readers);
    if (out->readers)
        pthread_mutex_init(&out->readers->lock, NULL);
    if (!out->path || !out->readers)
        return error_memory(err, strlen(path), "a file name");
    enum status status = none ? STATUS_OK : refuse_old(out, err);
    if (status || none)
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

static void readers_close(struct records_readers *readers)
{
    for (struct records_reader *reader, *next = readers->idle; (reader = next);) {
        next = reader->next;
        free(reader->kept[0].bytes);
        free(reader->kept[1].bytes);
        free(reader);
    }
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}

void records_clear(struct records *records)
{
    if (records->readers)
        readers_close(records->readers);
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
        /* Even without random numbers, the name distinguishes it from all others there. */
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
    return LOG_FEATURE + (uint64_t)records->features;
}

/* Opens a log if necessary; if *opened the caller closes it. */
static enum status descriptor_of(int *fd, bool *opened, const struct records *records,
                                 const struct records_log *log, struct error *err)
{
    char shown[320];
    struct stat st;
    *fd = log->fd;
    *opened = log->fd < 0;
    if (*opened) /* O_NONBLOCK: what has the log's name now may be a FIFO */
        *fd = openat(records->directory, log->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0 || (*opened && fstat(*fd, &st)))
        return error_errno(err, STATUS_FAILED, errno, *fd < 0 ? "openat" : "fstat",
                           "cannot read %s", shown_log(shown, sizeof shown, records, log->name));
    return !*opened || S_ISREG(st.st_mode)
               ? STATUS_OK
               : error_set(err, STATUS_FAILED, "%s is not a regular file",
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
    if (got < HEAD_BYTES || head->random != log->random || head->columns < LOG_FEATURE ||
        head->columns > RECORDS_MOST_COLUMNS ||
        (records->width && head->columns != columns_of(records)))
        return STATUS_END;
    const size_t size = HEAD_BYTES + head->columns * sizeof head->column[0];
    if (got < size || crc32c(0, &head->columns, size - sizeof head->crc) != head->crc)
        return STATUS_END;
    uint64_t bytes = 0;
    for (unsigned c = 0; c < head->columns; c++) {
        bytes += head->column[c].bytes;
        const uint32_t width = c < LOG_FEATURE || records->width ? width_of(records, c) : 0;
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
    struct records_block *more = array_with_room(records->block, records->blocks, sizeof *more);
    if (!more)
        return error_memory(err, array_bytes(records->blocks, sizeof *more),
                            "the blocks of the log");
    records->block = more;
    more[records->blocks++] = (struct records_block){
        offset, {records->rows[0], records->rows[1]}, {rows[0], rows[1]}, log};
    records->log[log].blocks++;
    records->rows[0] += rows[0];
    records->rows[1] += rows[1];
    return STATUS_OK;
}

/* buffer: CHECK_BUFFER bytes for the columns; NULL: reads only heads. */
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
        else if (!status && buffer)
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
    uint8_t *buffer = widths ? malloc(CHECK_BUFFER) : NULL;
    enum status status = STATUS_OK;
    if (buffer && LOG_FEATURE + (uint64_t)features <= RECORDS_MOST_COLUMNS)
        records->width = malloc(bytes + 1);
    if (widths && !records->width)
        status = error_memory(err, CHECK_BUFFER, "the log's buffer");
    else if (widths)
        memcpy(records->width, widths, bytes);
    records->features = features;
    for (unsigned i = 0; i < records->logs && !status; i++)
        status = scan_log(records, i, buffer, stop, err);
    free(buffer);
    return status;
}

enum status records_rescan(struct records *records, uint64_t end, struct error *err)
{
    records->log[records->logs - 1].size = end;
    return scan_log(records, records->logs - 1, NULL, NULL, err);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Gets a reader: one that has the row's block, if there is one. */
static enum status take_reader(struct records_reader **out, const struct records *records,
                               bool checked, unsigned column, uint64_t first, uint64_t count,
                               struct error *err)
{
    const enum records_table table = table_of(column);
    pthread_mutex_lock(&records->readers->lock);
    struct records_reader **at = &records->readers->idle, **found = at;
    for (; *at; at = &(*at)->next)
        if (first - (*at)->block.first[table] < (*at)->block.rows[table])
            found = at;
    struct records_reader *reader = *found;
    if (reader)
        *found = reader->next;
    pthread_mutex_unlock(&records->readers->lock);
    if (!reader && !(reader = calloc(1, sizeof *reader)))
        return error_memory(err, sizeof *reader, "a reader of the log");
    reader->records = records;
    reader->checked = checked;
    reader->table = table;
    reader->row = first;
    reader->left = count;
    *out = reader;
    return STATUS_OK;
}

static void close_block(struct records_reader *reader)
{
    if (reader->opened && reader->fd >= 0)
        close(reader->fd);
    reader->opened = false;
}

static void return_reader(struct records_reader *reader)
{
    struct records_readers *readers = reader->records->readers;
    close_block(reader);
    pthread_mutex_lock(&readers->lock);
    reader->next = readers->idle;
    readers->idle = reader;
    pthread_mutex_unlock(&readers->lock);
}

static enum status damaged(const struct records_reader *reader, uint32_t log, struct error *err)
{
    char shown[320];
    return error_set(
        err, STATUS_FAILED,
        "%s has been damaged since it was written: run the command again to compute the lost rows",
        shown_log(shown, sizeof shown, reader->records, reader->records->log[log].name));
}

/* Opens the block of the next rows. */
static enum status next_block(struct records_reader *reader, struct error *err)
{
    const struct records *records = reader->records;
    uint64_t low = 0, high = records->blocks;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(records->block[middle].first[reader->table] <= reader->row ? &low : &high) = middle;
    }
    const struct records_block *const block = &records->block[low];
    const struct records_log *log = &records->log[block->log];
    close_block(reader);
    reader->first = reader->row - block->first[reader->table];
    reader->here = min_u64(reader->left, block->rows[reader->table] - reader->first);
    reader->row += reader->here;
    reader->left -= reader->here;
    enum status status = descriptor_of(&reader->fd, &reader->opened, records, log, err);
    if (status || (reader->block.offset == block->offset && reader->block.log == block->log))
        return status;
    reader->block = (struct records_block){0};
    reader->kept[0].column = reader->kept[1].column = 0;
    status = read_head(&reader->head, reader->fd, records, log, block->offset, err);
    if (status == STATUS_END ||
        (!status && memcmp(reader->head.rows, block->rows, sizeof block->rows) != 0))
        return damaged(reader, block->log, err);
    if (!status)
        reader->block = *block;
    return status;
}

/* Finds bytes [from, from + size) of a column of the block: read to `direct` if that is not NULL and
 * nothing else has to be read, else in the reader, valid until another column of that kind is read. */
static enum status read_column(struct records_reader *reader, unsigned column, uint64_t from,
                               uint64_t size, void *direct, uint8_t **bytes, struct error *err)
{
    const struct column_head *head = &reader->head.column[column];
    struct kept *const kept = &reader->kept[column != LOG_IMAGES && column != LOG_FAILURES];
    if (from > head->bytes || size > head->bytes - from)
        return damaged(reader, reader->block.log, err);
    if (kept->column == column + 1) {
        *bytes = kept->bytes + from;
        return STATUS_OK;
    }
    const uint64_t start = reader->checked ? 0 : from, all = reader->checked ? head->bytes : size;
    const bool fits = direct && size == all;
    if (!fits)
        kept->column = 0;
    if (!fits && all > kept->room) {
        free(kept->bytes);
        kept->bytes = malloc(all);
        kept->room = kept->bytes ? all : 0;
        if (!kept->bytes)
            return error_memory(err, all, "a column of the log");
    }
    uint8_t *to = fits ? direct : kept->bytes;
    size_t got = 0;
    enum status status =
        all > 0 ? read_at(reader->fd, to, all,
                          column_at(&reader->head, reader->block.offset, column) + start, &got,
                          reader->records->path, err)
                : STATUS_OK;
    if (!status && (got < all || (reader->checked && crc32c(0, to, all) != head->crc)))
        status = damaged(reader, reader->block.log, err);
    if (!status && !fits && reader->checked)
        kept->column = column + 1;
    *bytes = to + (from - start);
    return status;
}

static enum status read_rows(const struct records *records, bool checked, unsigned column,
                             size_t offset, size_t bytes, uint64_t first, uint64_t count,
                             uint8_t *rows, struct error *err)
{
    const size_t width = width_of(records, column);
    struct records_reader *reader;
    enum status status = take_reader(&reader, records, checked, column, first, count, err);
    if (status)
        return status;
    while (reader->left > 0 && !(status = next_block(reader, err))) {
        uint8_t *from;
        if ((status = read_column(reader, column, reader->first * width, reader->here * width,
                                  bytes == width ? rows : NULL, &from, err)))
            break;
        if (bytes == width && from != rows)
            memcpy(rows, from, reader->here * width);
        for (uint64_t i = 0; bytes < width && i < reader->here; i++)
            memcpy(rows + i * bytes, from + i * width + offset, bytes);
        rows += reader->here * bytes;
    }
    return_reader(reader);
    return status;
}

enum status records_read(const struct records *records, unsigned column, size_t offset,
                         size_t bytes, uint64_t first, uint64_t count, void *rows,
                         struct error *err)
{
    return read_rows(records, true, column, offset, bytes, first, count, rows, err);
}

/* The beginning and end of the texts of the block's rows. */
static enum status read_ends(struct records_reader *reader, unsigned text, uint64_t *start,
                             uint64_t *ends, struct error *err)
{
    const uint64_t before = reader->first > 0;
    const size_t width = sizeof(struct log_row);
    uint8_t *rows;
    enum status status = read_column(
        reader, reader->table == RECORDS_IMAGES ? LOG_IMAGES : LOG_FAILURES,
        (reader->first - before) * width, (reader->here + before) * width, NULL, &rows, err);
    uint64_t last = *start = 0;
    for (uint64_t i = 0; i < reader->here + before && !status; i++) {
        struct log_row row;
        memcpy(&row, rows + i * width, width);
        const uint64_t end = row.end[text % 2];
        if (end < last || end > reader->head.column[text].bytes)
            status = damaged(reader, reader->block.log, err);
        *(i < before ? start : &ends[i - before]) = last = end;
    }
    return status;
}

static enum status read_texts(const struct records *records, bool checked, unsigned column,
                              uint64_t first, uint64_t count, uint64_t *ends, uint8_t **bytes,
                              size_t *room, struct error *err)
{
    uint64_t used = 0;
    struct records_reader *reader;
    enum status status = take_reader(&reader, records, checked, column, first, count, err);
    if (status)
        return status;
    while (reader->left > 0 && !(status = next_block(reader, err))) {
        uint64_t start;
        uint8_t *from;
        if ((status = read_ends(reader, column, &start, ends, err)))
            break;
        const uint64_t size = ends[reader->here - 1] - start;
        if (bytes && used + size > *room) {
            uint8_t *more = realloc(*bytes, 2 * (used + size));
            if (!more) {
                status = error_memory(err, 2 * (used + size), "texts of the log");
                break;
            }
            *bytes = more;
            *room = 2 * (used + size);
        }
        if (bytes && size > 0 &&
            (status = read_column(reader, column, start, size, *bytes + used, &from, err)))
            break;
        if (bytes && size > 0 && from != *bytes + used)
            memcpy(*bytes + used, from, size);
        for (uint64_t i = 0; i < reader->here; i++)
            *ends++ += used - start;
        used += size;
    }
    return_reader(reader);
    return status;
}

enum status records_read_texts(const struct records *records, enum records_column column,
                               uint64_t first, uint64_t count, uint64_t *ends, uint8_t **bytes,
                               size_t *room, struct error *err)
{
    return read_texts(records, true, column, first, count, ends, bytes, room, err);
}

/* --- row by row ------------------------------------------------------------------------------ */

void records_cursor_clear(struct records_cursor *cursor)
{
    free(cursor->rows);
    for (int i = 0; i < 2; i++)
        free(cursor->text[i]);
    *cursor = (struct records_cursor){.records = cursor->records, .window = cursor->window};
}

/* Loads texts of the rows in the buffer, each ended by NUL. */
static enum status load_texts(struct records_cursor *cursor, unsigned column, size_t offset,
                              struct error *err)
{
    const unsigned text = column % 2;
    uint64_t *ends = malloc(cursor->count * sizeof *ends);
    enum status status =
        ends ? read_texts(cursor->records, false, column, cursor->first, cursor->count, ends,
                          &cursor->text[text], &cursor->room[text], err)
             : error_memory(err, cursor->count * sizeof *ends, "texts of the log");
    const uint64_t size = status ? 0 : ends[cursor->count - 1] + cursor->count;
    uint8_t *bytes = status ? NULL : realloc(cursor->text[text], size);
    if (!status && !bytes)
        status = error_memory(err, size, "texts of the log");
    cursor->text[text] = bytes ? bytes : cursor->text[text];
    cursor->room[text] = bytes ? size : cursor->room[text];
    for (uint64_t i = cursor->count; i-- > 0 && !status;) {
        const uint64_t start = i > 0 ? ends[i - 1] : 0, length = ends[i] - start;
        const char *at = memmove(bytes + start + i, bytes + start, length);
        bytes[start + i + length] = 0;
        memcpy((char *)&cursor->rows[i] + offset, &at, sizeof at);
    }
    free(ends);
    return status;
}

enum status records_at(struct records_cursor *cursor, enum records_table table, uint64_t row,
                       const struct log_row **found, struct error *err)
{
    const struct records *records = cursor->records;
    const bool image = table == RECORDS_IMAGES;
    enum reason reason;
    if (table != cursor->table || row < cursor->first || row - cursor->first >= cursor->count) {
        cursor->table = table;
        cursor->first = row;
        cursor->count = min_u64(cursor->window, records->rows[table] - row);
        if (!cursor->rows && !(cursor->rows = malloc(cursor->window * sizeof *cursor->rows)))
            return error_memory(err, cursor->window * sizeof *cursor->rows, "the log's buffer");
        enum status status =
            read_rows(records, false, image ? LOG_IMAGES : LOG_FAILURES, 0, sizeof *cursor->rows,
                      row, cursor->count, (uint8_t *)cursor->rows, err);
        if (!status)
            status = load_texts(cursor, image ? LOG_IMAGE_PATH : LOG_FAILURE_PATH,
                                offsetof(struct log_row, image.path), err);
        if (!status && !image)
            status = load_texts(cursor, LOG_FAILURE_MESSAGE,
                                offsetof(struct log_row, failure.message), err);
        for (uint64_t i = 0; i < cursor->count && image; i++) {
            uint8_t *is = (uint8_t *)&cursor->rows[i].image.has_code; /* not a valid bool yet */
            *is = *is != 0;
        }
        if (status) {
            cursor->count = 0;
            return status;
        }
    }
    *found = &cursor->rows[row - cursor->first];
    return image || failure_row_reason(&reason, &(*found)->failure)
               ? STATUS_OK
               : error_set(err, STATUS_FAILED, "%s: a record of the log is not valid",
                           records->path);
}

/* --- writing --------------------------------------------------------------------------------- */

enum status records_write(const struct records *records, const struct records_bytes *column,
                          const uint32_t rows[2], uint64_t *end, struct error *err)
{
    static const uint8_t zeros[RECORDS_ALIGN];
    const struct records_log *log = &records->log[records->logs - 1];
    struct block_head head = {.columns = (uint32_t)columns_of(records),
                              .random = log->random,
                              .rows = {rows[0], rows[1]}};
    const size_t size = HEAD_BYTES + head.columns * sizeof head.column[0];
    uint64_t at = *end + size;
    enum status status = STATUS_OK;
    for (unsigned c = 0; c < head.columns && !status; c++) {
        const size_t bytes = column[c].used;
        head.column[c] = (struct column_head){(uint32_t)bytes, crc32c(0, column[c].bytes, bytes)};
        head.bytes += bytes;
        status = write_at(log->fd, column[c].bytes, bytes, at, records->path, err);
        at += bytes;
    }
    head.crc = crc32c(0, &head.columns, size - sizeof head.crc);
    if (!status)
        status = write_at(log->fd, &head, size, *end, records->path, err);
    if (!status)
        status = write_at(log->fd, zeros, (size_t)(aligned(at) - at), at, records->path, err);
    *end = status ? *end : aligned(at);
    return status;
}
