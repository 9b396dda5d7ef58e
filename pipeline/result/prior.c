/* prior.c: cursors over earlier records, and an index for lists. */
#include "result/prior.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/source_name.h"
#include "base/unnamed_file.h"
#include "result/parameters.h"
#include "result/result_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STREAM_ROWS 256 /* rows of the log read at a time */

struct record_stream {
    enum location_kind kind;
    uint64_t start, at, end; /* rows; `record` is the one at `at`, if it is loaded */
    bool loaded;
    struct store_record record;
    struct records_cursor cursor; /* of the log */
};

/* An open-addressing table in a file: 16 bytes a slot, location 0 where it is free. */
struct hash_slot {
    uint64_t hash, location;
};

struct prior {
    struct prior_config config;
    bool *ordered; /* for each source: sorted by the bytes of its paths */
    struct record_stream
        *stream; /* the existing file's first, then those of the logs, latest run first */
    unsigned stream_count;
    uint64_t records;                    /* of all */
    uint64_t listed[2];                  /* rows of the existing file that prior_list has passed */
    struct records_cursor random, given; /* given: for prior_at */
    struct hash_slot *table;
    uint64_t slots; /* a power of two */
    bool no_table;  /* creating it has failed */
};

enum status prior_open(struct prior **out, const struct prior_config *config, struct error *err)
{
    static const struct records none;
    const struct content *content = config->content;
    const bool archives = parameters_archives(content->parameters);
    *out = NULL;
    const struct records *log = config->log ? config->log : &none;
    unsigned most = 2 * log->logs + 2;
    struct prior *prior = calloc(1, sizeof *prior);
    if (!prior || !(prior->ordered = calloc(content->source_count + 1, sizeof *prior->ordered)) ||
        !(prior->stream = calloc(most, sizeof *prior->stream))) {
        prior_close(&prior);
        return error_memory(err, most * sizeof *prior->stream, "earlier work");
    }
    prior->config = *config;
    for (unsigned i = 0; i < content->source_count; i++)
        prior->ordered[i] = source_is_sorted(content->sources[i], archives);
    /* It may have its name from before it was relocated. */
    int last = -1;
    bool ascending = true;
    for (unsigned i = 0; config->finished && i < config->finished->source_count; i++) {
        const int now = config->source_now ? config->source_now[i] : (int)i;
        if (now < 0)
            continue;
        prior->ordered[now] &= source_is_sorted(config->finished->sources[i], archives);
        ascending = ascending && now > last;
        last = now;
    }
    for (unsigned i = 0; i < content->source_count; i++)
        prior->ordered[i] &= ascending;
    uint64_t rows[2] = {config->finished ? result_images(config->finished) : 0,
                        config->finished ? result_failures(config->finished) : 0};
    for (int i = 0; i < 2; i++)
        if (rows[i] > 0)
            prior->stream[prior->stream_count++] = (struct record_stream){
                .kind = i ? LOCATION_FAILURE : LOCATION_IMAGE, .end = rows[i]};
    /* Backwards from the last block: blocks of a log are consecutive. */
    for (uint64_t end = log->blocks, first; end > 0; end = first) {
        for (first = end - 1; first > 0 && log->block[first - 1].log == log->block[end - 1].log;
             first--)
            ;
        for (int i = 0; i < 2; i++) {
            struct record_stream *stream = &prior->stream[prior->stream_count];
            *stream = (struct record_stream){.kind = i ? LOCATION_LOG_FAILURE : LOCATION_LOG_IMAGE,
                                             .start = log->block[first].first[i],
                                             .at = log->block[first].first[i],
                                             .end = log->block[end - 1].first[i] +
                                                    log->block[end - 1].rows[i],
                                             .cursor = {.records = log, .window = STREAM_ROWS}};
            prior->stream_count += stream->start < stream->end;
        }
    }
    prior->random = (struct records_cursor){.records = log, .window = 1};
    prior->given = (struct records_cursor){.records = log, .window = STREAM_ROWS};
    prior->records = rows[0] + rows[1] + log->rows[0] + log->rows[1];
    *out = prior;
    return STATUS_OK;
}

void prior_close(struct prior **prior)
{
    if (!prior || !*prior)
        return;
    struct prior *p = *prior;
    *prior = NULL;
    for (unsigned i = 0; i < p->stream_count; i++)
        records_cursor_clear(&p->stream[i].cursor);
    records_cursor_clear(&p->random);
    records_cursor_clear(&p->given);
    if (p->table)
        munmap(p->table, p->slots * sizeof *p->table);
    free(p->stream);
    free(p->ordered);
    free(p);
}

static bool in_log(enum location_kind kind)
{
    return location_in_log(location_of(kind, 0));
}

static void set_failure(struct store_record *record, const struct failure_row *failure,
                        enum reason reason)
{
    *record = (struct store_record){.image.source = failure->source,
                                    .image.bytes = failure->bytes,
                                    .image.mtime_ns = failure->mtime_ns,
                                    .image.inode = failure->inode,
                                    .image.ctime_ns = failure->ctime_ns};
    failure_set(&record->failure, reason, "%s", failure->message);
    record->failure.error_number = failure->error_number;
}

/* Sets members that are not in the row itself. */
static enum status complete_image(struct prior *prior, uint64_t row, struct store_record *record,
                                  struct error *err)
{
    struct result *finished = prior->config.finished;
    const unsigned size = prior->config.thumbnail_size ? finished->thumbnail_size : 0;
    const uint8_t *thumbnail;
    uint64_t length = 0;
    record->image.has_code = result_has_codes(finished);
    if (size > 0 && result_thumbnail_read(finished, row, &thumbnail, &length, err))
        return STATUS_FAILED;
    /* A row without a thumbnail has size 0. */
    record->thumbnail_size = length > 0 ? (uint16_t)size : 0;
    return STATUS_OK;
}

/* Reads the record at a row of a stream. */
static enum status read_record(struct prior *prior, struct records_cursor *cursor,
                               enum location_kind kind, uint64_t row, struct store_record *record,
                               struct error *err)
{
    struct result *finished = prior->config.finished;
    const bool image = kind == LOCATION_IMAGE || kind == LOCATION_LOG_IMAGE;
    const struct log_row *logged;
    const void *found;
    const char *path;
    enum reason reason;
    if (in_log(kind)) {
        if (records_at(cursor, image ? RECORDS_IMAGES : RECORDS_FAILURES, row, &logged, err))
            return STATUS_FAILED;
        found = logged;
        path = logged->image.path;
    } else if (rows_at(image ? finished->images : finished->failures, row, &found, &path, err)) {
        return STATUS_FAILED;
    }
    if (image)
        *record = (struct store_record){.image = *(const struct result_image *)found};
    else if (failure_row_reason(&reason, found))
        set_failure(record, found, reason);
    else
        return h5_damaged(err, finished->path, "failure %llu has a reason that does not exist",
                          (unsigned long long)row);
    if (!in_log(kind) && record->image.source >= finished->source_count)
        return h5_damaged(err, finished->path, "row %llu has a source that is not in the list",
                          (unsigned long long)row);
    if (kind == LOCATION_LOG_IMAGE)
        record->thumbnail_size = logged->thumbnail_size;
    if (kind == LOCATION_IMAGE && complete_image(prior, row, record, err))
        return STATUS_FAILED;
    record->path = path;
    record->path_length = (uint32_t)strlen(path);
    record->origin = location_of(kind, row);
    return STATUS_OK;
}

/* Sets the new number of the source of an existing file's record; false: the source was removed. */
static bool renumber(const struct prior *prior, enum location_kind kind,
                     struct store_record *record)
{
    if (in_log(kind) || !prior->config.source_now)
        return true;
    const int now = prior->config.source_now[record->image.source];
    record->image.source = (uint16_t)now;
    return now >= 0;
}

enum status prior_list(struct prior *prior, uint16_t source,
                       enum status (*add)(void *context, const struct store_record *record,
                                          struct error *err),
                       void *context, struct error *err)
{
    struct result *finished = prior->config.finished;
    struct store_record record;
    enum status status = STATUS_OK;
    for (int i = 0; i < 2; i++) {
        const uint64_t rows = i ? result_failures(finished) : result_images(finished);
        const enum location_kind kind = i ? LOCATION_FAILURE : LOCATION_IMAGE;
        for (uint64_t *row = &prior->listed[i]; *row < rows && !status; ++*row) {
            if ((status = read_record(prior, NULL, kind, *row, &record, err)))
                break;
            if (!renumber(prior, kind, &record) || record.image.source < source)
                continue;
            if (record.image.source > source)
                break;
            status = add(context, &record, err);
        }
    }
    return status;
}

enum status prior_at(struct prior *prior, uint64_t location, struct store_record *record,
                     struct error *err)
{
    const enum location_kind kind = location_kind(location);
    if (read_record(prior, &prior->given, kind, location_row(location), record, err))
        return STATUS_FAILED;
    renumber(prior, kind, record);
    return STATUS_OK;
}

/* Makes the record under the cursor available, or the next one whose source still exists; false at
 * the end. */
static bool stream_load(struct prior *prior, struct record_stream *stream)
{
    if (stream->loaded || stream->at >= stream->end)
        return stream->loaded;
    struct error error = ERROR_INIT;
    for (; stream->at < stream->end; stream->at++) {
        if (read_record(prior, &stream->cursor, stream->kind, stream->at, &stream->record,
                        &error)) {
            log_message(LOG_NOTICE, "notice: earlier work is not used: %s", ERROR_LINE(&error));
            stream->at = stream->end;
            return false;
        }
        if (renumber(prior, stream->kind, &stream->record))
            return stream->loaded = true;
    }
    return false;
}

static void stream_advance(struct record_stream *stream)
{
    stream->at++;
    stream->loaded = false;
}

static int compare_paths(const struct store_record *record, const char *path, uint32_t length)
{
    uint32_t both = record->path_length < length ? record->path_length : length;
    int order = memcmp(record->path, path, both);
    return order ? order : (record->path_length > length) - (record->path_length < length);
}

/* An item found by the walk. */
struct look {
    uint64_t bytes;
    int64_t mtime_ns;
    bool unseen; /* the walk could not read it */
};

/* Whether a record of the item is still valid. */
static bool still_holds(const struct prior *prior, const struct store_record *record,
                        const struct look *look)
{
    if (look->unseen)
        return record->failure.reason == REASON_NONE;
    if (record->image.bytes != look->bytes || record->image.mtime_ns != look->mtime_ns)
        return false;
    switch (record->failure.reason) {
    case REASON_NONE:
        return (record->image.has_code || !prior->config.codes) &&
               (prior->config.thumbnail_size == 0 ||
                record->thumbnail_size == prior->config.thumbnail_size);
    case REASON_UNREADABLE:
    case REASON_VANISHED:
    case REASON_CHANGED:
    case REASON_OUT_OF_MEMORY:
        /* These failures do not depend on the content. */
        return false;
    case REASON_TOO_LARGE:
    case REASON_TOO_MANY_SCANS:
    case REASON_TIMEOUT:
        return !prior->config.retry_failed && !prior->config.retry_limited;
    default:
        return !prior->config.retry_failed;
    }
}

/* --- the index ------------------------------------------------------------------------------- */

/* Creates the file, which has no name, and maps it. */
static bool map_table(struct prior *prior)
{
    prior->slots = 1024;
    while (prior->slots < 2 * prior->records)
        prior->slots *= 2;
    size_t bytes = prior->slots * sizeof *prior->table;
    int fd = unnamed_file(prior->config.directory);
    /* Allocates its space, since a mapping cannot report a full disk. */
    int failed = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    void *table =
        failed ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!failed && table == MAP_FAILED)
        failed = errno;
    if (fd >= 0)
        close(fd);
    if (failed) {
        log_message(
            LOG_NOTICE,
            "notice: cannot index earlier work (%s): files of reordered lists are decoded again",
            strerror(failed));
        return false;
    }
    prior->table = table;
    return true;
}

/* Adds every record of unordered sources. Cursors keep their place. */
static void build_table(struct prior *prior)
{
    prior->no_table = !map_table(prior);
    for (unsigned i = 0; !prior->no_table && i < prior->stream_count; i++) {
        struct record_stream *stream = &prior->stream[i];
        uint64_t at = stream->at;
        stream->loaded = false;
        for (stream->at = stream->start; stream_load(prior, stream); stream_advance(stream)) {
            const struct store_record *record = &stream->record;
            if (record->image.source >= prior->config.content->source_count ||
                prior->ordered[record->image.source])
                continue;
            uint64_t hash = hash_of_path(record->image.source, record->path, record->path_length);
            uint64_t place = hash & (prior->slots - 1);
            while (prior->table[place].location)
                place = (place + 1) & (prior->slots - 1);
            prior->table[place] = (struct hash_slot){hash, location_of(stream->kind, stream->at)};
        }
        stream->at = at;
    }
}

/* Looks an item up; moves its stream's cursor past it. */
static bool find_in_table(struct prior *prior, uint16_t source, const char *path, uint32_t length,
                          const struct look *look, struct store_record *record)
{
    uint64_t hash = hash_of_path(source, path, length);
    for (uint64_t place = hash & (prior->slots - 1); prior->table[place].location;
         place = (place + 1) & (prior->slots - 1)) {
        if (prior->table[place].hash != hash)
            continue;
        uint64_t location = prior->table[place].location;
        enum location_kind kind = location_kind(location);
        uint64_t row = location_row(location);
        struct record_stream *stream = prior->stream;
        while (stream->kind != kind || row < stream->start || row >= stream->end)
            stream++;
        /* Reading a block may replace the row under the cursor. */
        stream->loaded = false;
        struct error error = ERROR_INIT;
        if (read_record(prior, &prior->random, kind, row, record, &error) == STATUS_OK &&
            renumber(prior, kind, record) && record->image.source == source &&
            compare_paths(record, path, length) == 0 && still_holds(prior, record, look)) {
            stream->at = row + 1;
            return true;
        }
    }
    return false;
}

static bool exhausted(const struct prior *prior)
{
    for (unsigned i = 0; i < prior->stream_count; i++)
        if (prior->stream[i].at < prior->stream[i].end)
            return false;
    return true;
}

void prior_require_thumbnails(struct prior *prior, unsigned size)
{
    prior->config.thumbnail_size = size;
}

static bool find(struct prior *prior, uint16_t source, const char *path, uint32_t length,
                 const struct look *look, struct store_record *record)
{
    bool ordered = prior->ordered[source], found = false;
    for (unsigned i = 0; !found && i < prior->stream_count; i++) {
        struct record_stream *stream = &prior->stream[i];
        while (stream_load(prior, stream)) {
            if (stream->record.image.source > source)
                break;
            int order = stream->record.image.source < source
                            ? -1
                            : compare_paths(&stream->record, path, length);
            if (order == 0) {
                *record = stream->record;
                found = still_holds(prior, record, look);
                stream_advance(stream);
                break;
            }
            if (order > 0 || (!ordered && stream->record.image.source == source))
                break;
            stream_advance(stream);
        }
    }
    if (!found && !ordered && !prior->no_table && (prior->table || !exhausted(prior))) {
        if (!prior->table)
            build_table(prior);
        found = prior->table && find_in_table(prior, source, path, length, look, record);
    }
    /* The same bytes, but terminated by a NUL. */
    record->path = path;
    return found;
}

bool prior_find(struct prior *prior, uint16_t source, const char *path, uint32_t length,
                uint64_t bytes, int64_t mtime_ns, struct store_record *record)
{
    return find(prior, source, path, length, &(struct look){bytes, mtime_ns, false}, record);
}

bool prior_find_unseen(struct prior *prior, uint16_t source, const char *path, uint32_t length,
                       struct store_record *record)
{
    return find(prior, source, path, length, &(struct look){.unseen = true}, record);
}

void prior_seek(struct prior *prior, uint64_t row)
{
    for (unsigned i = 0; i < prior->stream_count; i++)
        if (prior->stream[i].kind == LOCATION_IMAGE) {
            prior->stream[i].at = row;
            prior->stream[i].loaded = false;
        }
}

enum status prior_find_row(struct prior *prior, uint16_t source, const char *path, uint32_t length,
                           int64_t *row, struct error *err)
{
    struct store_record record;
    const bool found = prior_find_unseen(prior, source, path, length, &record);
    *row = found ? (int64_t)location_row(record.origin) : -1;
    return prior->no_table ? error_set(err, STATUS_FAILED, "cannot index the earlier rows in %s",
                                       prior->config.directory)
                           : STATUS_OK;
}

bool prior_next_below(struct prior *prior, uint16_t source, const char *directory,
                      const char *before, struct store_record *record)
{
    const uint32_t length = (uint32_t)strlen(directory);
    struct record_stream *first = NULL;
    for (unsigned i = 0; i < prior->stream_count && !in_log(prior->stream[i].kind); i++) {
        struct record_stream *stream = &prior->stream[i];
        const struct store_record *next = &stream->record;
        while (stream_load(prior, stream) &&
               (next->image.source < source ||
                (next->image.source == source && compare_paths(next, directory, length) < 0)))
            stream_advance(stream);
        if (stream->loaded && next->image.source == source && next->path_length >= length &&
            memcmp(next->path, directory, length) == 0 &&
            (!before || compare_paths(next, before, (uint32_t)strlen(before)) < 0) &&
            (!first || compare_paths(next, first->record.path, first->record.path_length) < 0))
            first = stream;
    }
    if (!first)
        return false;
    *record = first->record;
    stream_advance(first);
    return true;
}
