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
 *   column  the values of the block's rows, end to end: struct log_row, texts or rows of a feature
 *
 * Each process writes its own log, so blocks of different processes cannot collide. The rows of a
 * table are those of all complete blocks: logs ordered by run number, and in a log as written. The
 * same image may be in several logs. Numbers are little-endian (the machine's order; no other is
 * supported).
 *
 * A truncated block or a wrong checksum at the end of a log is the result of a kill or a power
 * failure; in the middle, of a bad disk. The block's rows are ignored, and later blocks are looked
 * for at aligned offsets. */
#ifndef CLPIPE_RESULT_RECORDS_H
#define CLPIPE_RESULT_RECORDS_H

#include "base/error.h"
#include "base/stop.h"
#include "result/record.h"
#include "result/schema.h"

/* The longest path of a record; the kernel's limit is 4096, but trees can be deeper. */
#define RECORDS_MOST_PATH (8u << 20)
/* The longest thumbnail. */
#define RECORDS_MOST_THUMBNAIL (16u << 20)
/* Name of a log, followed by 16 random digits. */
#define RECORDS_PREFIX "log-"
#define RECORDS_ALIGN  4096u

enum records_table { RECORDS_IMAGES, RECORDS_FAILURES };

/* A row of a table: the columns of the result file, without texts. */
struct log_row {
    union {
        struct result_image image;
        struct failure_row failure;
    };
    uint64_t sequence;
    uint32_t
        end[2]; /* of its texts in the columns of the block: the path, and thumbnail or message */
    uint16_t thumbnail_size;
};

enum records_column {
    LOG_IMAGES, /* struct log_row */
    LOG_FAILURES,
    LOG_IMAGE_PATH, /* texts, likewise in the order of `end` */
    LOG_IMAGE_THUMBNAIL,
    LOG_FAILURE_PATH,
    LOG_FAILURE_MESSAGE,
    LOG_FEATURE /* of images: the first feature; others follow */
};
#define RECORDS_MOST_COLUMNS 256u

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
    } * log;
    unsigned logs;
    struct records_block *block;
    uint64_t blocks, rows[2];
    uint64_t bytes;         /* of all logs */
    uint64_t damaged, torn; /* outside complete blocks: before the last one of each log; after it */
    int64_t written_ns;     /* last write to any log, since 1970 */
    struct records_readers *readers;
};

/* Finds the logs in a directory and reads their headers; logs with a truncated header are ignored,
 * and all if `none`. STATUS_USAGE: a log of an earlier version of clpipe, or logs of different
 * commands. Call records_clear even after a failure. */
enum status records_open(struct records *out, int directory, const char *path, bool none,
                         struct error *err);
void records_clear(struct records *records);

/* Finds and verifies all complete blocks, with `features` features of these widths. `widths` NULL:
 * reads and verifies only block headers. STATUS_INTERRUPTED: stopped; `stop` may be NULL. */
enum status records_scan(struct records *records, const uint32_t *widths, unsigned features,
                         struct stop *stop, struct error *err);

/* The following may be called by any thread, in parallel, after records_scan. What they read last stays in
 * memory, up to a block for each of the threads. STATUS_FAILED: read error or wrong checksum. */

/* Reads `bytes` bytes, from `offset` on, of each of the rows [first, first + count) of a column without
 * texts. */
enum status records_read(const struct records *records, unsigned column, size_t offset,
                         size_t bytes, uint64_t first, uint64_t count, void *rows,
                         struct error *err);

/* Reads the texts of these rows, contiguous, to *bytes, which is enlarged as needed (*room; the
 * caller frees it); ends[i]: end of the text of row first + i. `bytes` NULL: only the ends. */
enum status records_read_texts(const struct records *records, enum records_column column,
                               uint64_t first, uint64_t count, uint64_t *ends, uint8_t **bytes,
                               size_t *room, struct error *err);

/* Reads single rows, fastest in ascending order, without comparing checksums again. One thread. */
struct records_cursor {
    const struct records *records;
    unsigned window; /* rows read at a time */
    enum records_table table;
    uint64_t first, count; /* rows in the buffers */
    struct log_row *rows;
    uint8_t *text[2];
    size_t room[2];
};
void records_cursor_clear(struct records_cursor *cursor);

/* Reads a row with its path (as bytes) and message. Valid until the next call. */
enum status records_at(struct records_cursor *cursor, enum records_table table, uint64_t row,
                       const struct log_row **found, struct error *err);

/* For the writer (journal.h): */

/* Begins a log with the signature, which becomes the last of `records`, without blocks. */
enum status records_create(struct records *records, const char *signature, struct error *err);
/* Writes a block with these columns at *end of the last log; moves *end past it. */
struct records_bytes {
    uint8_t *bytes;
    size_t used, room;
};
enum status records_write(const struct records *records, const struct records_bytes *column,
                          const uint32_t rows[2], uint64_t *end, struct error *err);
/* Finds the blocks written to the last log, up to `end`. */
enum status records_rescan(struct records *records, uint64_t end, struct error *err);

#endif
