/* records.h: the logs of finished records in a work directory, as rows of two tables.
 *
 *   log     header, then blocks, each aligned to 4096 bytes
 *   header  "CLPIPLOG", version (uint32), length of the text (uint32), CRC-32C of the header without
 *           this field and of the text (uint32), number of the run (uint32), a random number (uint64);
 *           then the text: the signature of the command
 *   block   head: CRC-32C of what follows and of the columns' table (uint32), number of columns
 *           (uint32), the log's random number (uint64), images, failures (uint32), bytes of all
 *           columns (uint64); a table with the bytes and the CRC-32C (uint32) of each column; then
 *           the columns, end to end: enum records_column, in its order, and one for each feature
 *   column  the values of the block's rows, end to end; for texts their ends (uint32), and in
 *           another column the texts
 *
 * Each process writes its own log, so blocks of different processes cannot collide. The rows of a
 * table are those of all complete blocks: logs ordered by run number, and in a log as written. The
 * same image may be in several logs. Numbers are little-endian (the machine's order; no other is
 * supported).
 *
 * A truncated block or a wrong checksum at the end of a log is the result of a kill or a power
 * failure; in the middle, of a bad disk. The block's rows are ignored, and later blocks are
 * searched at aligned offsets. */
#ifndef CLPIPE_RESULT_RECORDS_H
#define CLPIPE_RESULT_RECORDS_H

#include "base/error.h"
#include "base/stop.h"
#include "result/record.h"

/* The longest path of a record; the kernel's limit is 4096, but trees can be deeper. */
#define RECORDS_MOST_PATH (8u << 20)
/* The longest thumbnail. */
#define RECORDS_MOST_THUMBNAIL (16u << 20)
/* Name of a log, followed by 16 random digits. */
#define RECORDS_PREFIX "log-"
#define RECORDS_ALIGN  4096u

enum records_table { RECORDS_IMAGES, RECORDS_FAILURES };

/* Columns of images and of failures: fields of struct store_record in their width. */
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
    LOG_IMAGE_FEATURE /* first feature; others follow */
};
#define RECORDS_MOST_COLUMNS 256u

/* Description of a column, for blocks and the writer. */
struct records_kind {
    enum records_table table;
    enum { KIND_FIELD, KIND_ENDS, KIND_TEXT } kind;
    uint16_t offset;           /* of the field; KIND_FIELD */
    uint16_t width;            /* per row; 0 for texts */
    enum records_column other; /* for a text its ends, for ends their text */
};
extern const struct records_kind records_kind[LOG_IMAGE_FEATURE];

/* A complete block. */
struct records_block {
    uint64_t offset, first[2]; /* offset in the log; rows of each table before it */
    uint32_t rows[2], log;
};

struct records {
    int directory;   /* owned by the caller */
    char *path;      /* of the directory, for messages */
    char *signature; /* of all logs; NULL: none */
    uint32_t *width; /* bytes per row of each feature; NULL: unknown */
    unsigned features;
    struct records_log {
        char name[sizeof RECORDS_PREFIX + 16];
        int fd; /* -1: opened for each read */
        uint32_t run;
        uint64_t random, start, size, blocks;
    } *log;
    unsigned logs;
    struct records_block *block;
    uint64_t blocks, rows[2];
    uint64_t bytes;         /* of all logs */
    uint64_t damaged, torn; /* outside complete blocks: before the last one of each log; after it */
    int64_t written_ns;     /* last write to any log, since 1970 */
};

/* Finds the logs in a directory and reads their headers; logs with a truncated header are ignored.
 * STATUS_USAGE: a log of an earlier version of clpipe, or logs of different commands. Call
 * records_clear also after a failure. */
enum status records_open(struct records *out, int directory, const char *path, struct error *err);
void records_clear(struct records *records);

/* Finds and verifies all complete blocks, with `features` features of these widths. `widths` NULL:
 * reads and verifies only block headers. STATUS_INTERRUPTED: stopped; `stop` may be NULL. */
enum status records_scan(struct records *records, const uint32_t *widths, unsigned features,
                         struct stop *stop, struct error *err);

/* The following may be called by any thread, in parallel, after records_scan. STATUS_FAILED: read
 * error or wrong checksum. */

/* Reads rows [first, first + count) of a column that is not a text; LOG_IMAGE_FEATURE + i is the
 * i-th feature. */
enum status records_read(const struct records *records, unsigned column, uint64_t first,
                         uint64_t count, void *rows, struct error *err);

/* Reads the texts of these rows, contiguous, to *bytes, which is enlarged as needed (*room; free
 * it); ends[i]: end of the text of row first + i. LOG_IMAGE_PATH, LOG_IMAGE_THUMBNAIL,
 * LOG_FAILURE_PATH, LOG_FAILURE_MESSAGE. */
enum status records_read_texts(const struct records *records, enum records_column column,
                               uint64_t first, uint64_t count, uint64_t *ends, uint8_t **bytes,
                               size_t *room, struct error *err);

/* Reads single rows; fastest in ascending order. One thread. */
struct records_cursor {
    const struct records *records;
    unsigned window; /* rows read at a time; 0: a whole block, with checksums */
    bool values;     /* also read features and thumbnails */
    enum records_table table;
    uint64_t first, count; /* rows in the buffer */
    uint8_t *buffer;
    size_t room, at[RECORDS_MOST_COLUMNS]; /* offset of each column in the buffer */
};
void records_cursor_clear(struct records_cursor *cursor);

/* Reads a row. Path and thumbnail are in the buffer until the next call; a thumbnail that was not
 * read is NULL with its length set. */
enum status records_at(struct records_cursor *cursor, enum records_table table, uint64_t row,
                       struct store_record *record, struct error *err);
/* The feature's values of the row of images last read by records_at. */
const uint8_t *records_feature(const struct records_cursor *cursor, unsigned feature, uint64_t row);

/* For the writer (journal.h): */

/* Begins a log with the signature, which becomes the last of `records`, without blocks. */
enum status records_create(struct records *records, const char *signature, struct error *err);
/* Encodes a block of rows: *size bytes, a multiple of RECORDS_ALIGN, in *bytes, which is enlarged
 * as needed (*room; free it). `values` of an image: words, each feature's row padded to 4 bytes. */
struct records_row {
    struct store_record record;
    const uint8_t *values;
};
enum status records_encode(uint8_t **bytes, size_t *room, size_t *size, const struct records *records,
                           struct records_row *const *rows, uint32_t count, struct error *err);
/* Adds a block that was written to the last log at `offset`. */
enum status records_add(struct records *records, uint64_t offset, const uint32_t rows[2],
                        struct error *err);

#endif
