/* records.h: the logs of finished records in a work directory, read as rows of two tables.
 *
 *   log     header, then blocks, each at the next multiple of 4096 bytes
 *   header  "CLPIPLOG", version (uint32), length of the text (uint32), CRC-32C of the header without
 *           this field and of the text (uint32), number of the run (uint32), a random number (uint64);
 *           then the text: the signature of the command
 *   block   head: CRC-32C of what follows and of the columns' table (uint32), number of columns
 *           (uint32), the log's random number (uint64), images, failures (uint32), bytes of all
 *           columns (uint64); a table with the bytes and the CRC-32C (uint32) of each column; then
 *           the columns, end to end: enum records_column, in its order, and one for each feature
 *   column  the values of the block's rows, end to end; of texts where each ends (uint32), and in
 *           another column the texts
 *
 * Each process writes a log of its own, so nobody's block lies where another one's may come to lie.
 * The rows of a table are those of all whole blocks: of the logs by the number of their run, and in
 * a log as they were written. The same image may be in several logs. Numbers are little-endian (that
 * is: the machine's; no other order is supported).
 *
 * A block that is cut off or whose checksum is wrong at the end is what a kill or a power failure
 * leaves; one in the middle, what a bad disk does. Its rows are not there, and the blocks behind it
 * are found where a block may begin. */
#ifndef CLPIPE_LOG_RECORDS_H
#define CLPIPE_LOG_RECORDS_H

#include "base/error.h"
#include "base/stop.h"
#include "log/record.h"

/* The longest path that a record takes; the kernel's limit is 4096, but a tree can be deeper. */
#define RECORDS_MOST_PATH (8u << 20)
/* The longest thumbnail. */
#define RECORDS_MOST_THUMBNAIL (16u << 20)
/* Logs are called so, and 16 random digits. */
#define RECORDS_PREFIX "log-"
#define RECORDS_ALIGN  4096u

enum records_table { RECORDS_IMAGES, RECORDS_FAILURES };

/* The columns, each of images or of failures: fields of struct store_record in their width. */
enum records_column {
    LOG_IMAGE_SEQUENCE,
    LOG_IMAGE_SOURCE,
    LOG_IMAGE_BYTES,
    LOG_IMAGE_MTIME,
    LOG_IMAGE_INODE,
    LOG_IMAGE_CTIME,
    LOG_IMAGE_WIDTH,
    LOG_IMAGE_HEIGHT,
    LOG_IMAGE_ORIENTATION,
    LOG_IMAGE_CHANNELS,
    LOG_IMAGE_FORMAT,
    LOG_IMAGE_DIGEST,
    LOG_IMAGE_HAS_CODE,
    LOG_IMAGE_CODE,
    LOG_IMAGE_THUMBNAIL_SIZE,
    LOG_IMAGE_PATH_ENDS,
    LOG_IMAGE_THUMBNAIL_ENDS,
    LOG_FAILURE_SEQUENCE,
    LOG_FAILURE_SOURCE,
    LOG_FAILURE_BYTES,
    LOG_FAILURE_MTIME,
    LOG_FAILURE_INODE,
    LOG_FAILURE_CTIME,
    LOG_FAILURE_REASON, /* enum reason, as int32 */
    LOG_FAILURE_ERRNO,
    LOG_FAILURE_PATH_ENDS,
    LOG_FAILURE_MESSAGE_ENDS,
    /* Texts. */
    LOG_FAILURE_PATH,
    LOG_FAILURE_MESSAGE,
    LOG_IMAGE_PATH,
    LOG_IMAGE_THUMBNAIL,
    LOG_IMAGE_FEATURE /* of the first feature; more follow */
};
#define RECORDS_MOST_COLUMNS 256u

/* Their common part: what a block's head and the writer need to know of a column. */
struct records_kind {
    enum records_table table;
    enum { KIND_FIELD, KIND_ENDS, KIND_TEXT } kind;
    uint16_t offset; /* of the field, KIND_FIELD */
    uint16_t width;  /* of a row; 0 of a text */
    enum records_column other; /* the ends of a text, and the text of ends */
};
extern const struct records_kind records_kind[LOG_IMAGE_FEATURE];

/* A whole block. */
struct records_block {
    uint64_t offset, first[2]; /* in the log; rows of each table before it */
    uint32_t rows[2], log;
};

struct records {
    int directory;      /* the caller's */
    char *path;         /* of it, for messages */
    char *signature;    /* of all logs; NULL: there is none */
    uint32_t *width;    /* of a row of each feature, in bytes; NULL: not known */
    unsigned features;
    struct records_log {
        char name[sizeof RECORDS_PREFIX + 16];
        int fd; /* or -1: opened for each read */
        uint32_t run;
        uint64_t random, start, size, blocks;
    } *log;
    unsigned logs;
    struct records_block *block;
    uint64_t blocks, rows[2];
    uint64_t bytes;         /* of all logs */
    uint64_t damaged, torn; /* of these no whole block's: before the last one of each log, and behind it */
    int64_t written_ns;      /* when one was last written, since 1970 */
};

/* Finds the logs in a directory and reads their headers; one that ends inside its header counts as
 * none. STATUS_USAGE: one was left by an earlier version of clpipe, or they are those of different commands.
 * Clear it also after a failure. */
enum status records_open(struct records *out, int directory, const char *path, struct error *err);
void records_clear(struct records *records);

/* Finds all whole blocks, with features of these widths (`features` of them), and checks every byte of them.
 * `widths` NULL: only the heads are read and checked. STATUS_INTERRUPTED: `stop`, which may be NULL, came first. */
enum status records_scan(struct records *records, const uint32_t *widths, unsigned features,
                         struct stop *stop, struct error *err);

/* What follows may be called by any thread, and by several at once, after records_scan. STATUS_FAILED: it
 * cannot be read, or a checksum is wrong by now. */

/* Rows [first, first + count) of a column that is no text: LOG_IMAGE_FEATURE + i is the i-th feature. */
enum status records_read(const struct records *records, unsigned column, uint64_t first,
                         uint64_t count, void *rows, struct error *err);

/* Texts of these rows, end to end, in *bytes, which grows (*room; free it); ends[i]: where that of row
 * first + i ends. LOG_IMAGE_PATH, LOG_IMAGE_THUMBNAIL, LOG_FAILURE_PATH, LOG_FAILURE_MESSAGE. */
enum status records_read_texts(const struct records *records, enum records_column column,
                               uint64_t first, uint64_t count, uint64_t *ends, uint8_t **bytes,
                               size_t *room, struct error *err);

/* Reads rows one by one; fastest in ascending order. One thread. */
struct records_cursor {
    const struct records *records;
    unsigned window; /* rows that are read at once; 0: all of a block, whose checksums are checked then */
    bool values;     /* features and thumbnails, too */
    enum records_table table;
    uint64_t first, count; /* rows in the buffer */
    uint8_t *buffer;
    size_t room, at[RECORDS_MOST_COLUMNS]; /* where each column lies there */
};
void records_cursor_clear(struct records_cursor *cursor);

/* The row, whose path and thumbnail lie in the buffer until the next call; a thumbnail that is not read is
 * NULL with a length. */
enum status records_at(struct records_cursor *cursor, enum records_table table, uint64_t row,
                       struct store_record *record, struct error *err);
/* The feature's values of a row of images, after records_at of it. */
const uint8_t *records_feature(const struct records_cursor *cursor, unsigned feature, uint64_t row);

/* For the writer (journal.h): */

/* Begins a log of the signature; it is the last of `records` then, without blocks. */
enum status records_create(struct records *records, const char *signature, struct error *err);
/* A block of rows as bytes, a multiple of RECORDS_ALIGN: *size of them in *bytes, which grows (*room; free
 * it). `values` of an image: words, each feature's row filled up to 4 bytes. */
struct records_row {
    struct store_record record;
    const uint8_t *values;
};
enum status records_encode(uint8_t **bytes, size_t *room, size_t *size, const struct records *records,
                           struct records_row *const *rows, uint32_t count, struct error *err);
/* Adds a block of the last log that was written at `offset`. */
enum status records_add(struct records *records, uint64_t offset, const uint32_t rows[2],
                        struct error *err);

#endif
