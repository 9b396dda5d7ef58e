/* handover.c: steps of a 32nd of the log, at most 1 GiB. In each, threads read frames and write values
 * and thumbnails to their places; then the result is synced, a mark is appended, and the frames become a
 * hole. */
#include "log/handover.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/threads.h"
#include "log/records.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC         "CLPIPHOV"
#define VERSION       1u
#define IMAGE         (1u << 31) /* in entry.frame */
#define ENTRY_BLOCK   4096
#define STEPS         32
#define MOST_STEP     (1u << 30)
#define STEP_ENTRIES  (1u << 18)
#define TASK_BYTES    (1u << 20) /* of values that a thread moves at a time */
#define TASK_ENTRIES  64
#define READER_BUFFER (256u << 10)
#define GIVE_UNIT     (1u << 20) /* file systems free whole blocks */

/* VERSION changes with it, and with enum reason. */
struct head {
    char magic[8];
    uint32_t version, zero, crc_of_entries, crc; /* crc: of everything else here */
    uint64_t records;
    struct handover_plan plan;
};

struct entry {
    uint64_t offset;
    uint32_t frame, thumbnail; /* bytes */
};
_Static_assert(sizeof(struct entry) == 16, "an entry of a handover");

struct mark {
    uint64_t done; /* records */
    uint32_t zero, crc;
};
_Static_assert(sizeof(struct mark) == 16, "a mark of a handover");

struct handover {
    const struct workdir *workdir;
    int directory, file;
    char *path, *result, *log; /* of WORK/handover, WORK/result and WORK/records */
    bool begun;
    struct head head;
    struct entry entry[ENTRY_BLOCK];
    unsigned filled;
    uint64_t done, marks;
    bool skip; /* images whose frames are damaged; else they are an error */
};

static enum status fail(struct error *err, const char *call, const char *what, const char *path)
{
    char shown[256];
    return error_errno(err, STATUS_FAILED, errno, call, "cannot %s %s", what,
                       path_for_message(shown, sizeof shown, path));
}

static enum status damaged(struct error *err, const char *path)
{
    char shown[256];
    error_set(err, STATUS_FAILED, "%s is damaged", path_for_message(shown, sizeof shown, path));
    return error_remedy(err, REMEDY_START_OVER);
}

/* begun: by an earlier process. */
static enum status allocate(struct handover **out, const struct workdir *workdir, bool begun,
                            struct error *err)
{
    const char *work = workdir_path(workdir);
    struct handover *handover = calloc(1, sizeof *handover);
    *out = handover;
    if (!handover)
        return error_memory(err, sizeof *handover, "a handover");
    handover->workdir = workdir;
    handover->directory = workdir_descriptor(workdir);
    handover->file = -1;
    handover->begun = begun;
    if (asprintf(&handover->path, "%s/" WORKDIR_HANDOVER, work) < 0)
        handover->path = NULL;
    if (asprintf(&handover->result, "%s/" WORKDIR_RESULT, work) < 0)
        handover->result = NULL;
    if (asprintf(&handover->log, "%s/" WORKDIR_LOG, work) < 0)
        handover->log = NULL;
    return handover->path && handover->result && handover->log
               ? STATUS_OK
               : error_memory(err, 4096, "a file name");
}

/* --- planning -------------------------------------------------------------------------------- */

enum status handover_open(struct handover **out, const struct workdir *workdir, struct error *err)
{
    enum status status = allocate(out, workdir, false, err);
    if (status == STATUS_OK) {
        const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
        (*out)->file = openat((*out)->directory, WORKDIR_HANDOVER_NEW, flags, 0666);
        if ((*out)->file < 0 || lseek((*out)->file, sizeof(struct head), SEEK_SET) < 0)
            status = fail(err, "openat", "write", (*out)->path);
    }
    if (status != STATUS_OK)
        handover_close(out);
    return status;
}

const char *handover_file(const struct handover *handover)
{
    return handover->result;
}

static enum status flush_entries(struct handover *handover, struct error *err)
{
    const size_t size = handover->filled * sizeof handover->entry[0];
    handover->head.crc_of_entries = crc32c(handover->head.crc_of_entries, handover->entry, size);
    handover->filled = 0;
    return write_all(handover->file, handover->entry, size, handover->path, err);
}

enum status handover_add(struct handover *handover, uint64_t offset, uint32_t frame_bytes, bool image,
                         uint32_t thumbnail_bytes, struct error *err)
{
    handover->entry[handover->filled++] =
        (struct entry){offset, frame_bytes | (image ? IMAGE : 0), thumbnail_bytes};
    handover->head.records++;
    return handover->filled == ENTRY_BLOCK ? flush_entries(handover, err) : STATUS_OK;
}

static uint32_t head_crc(struct head head)
{
    head.crc = 0;
    return crc32c(0, &head, sizeof head);
}

enum status handover_begin(struct handover *handover, const struct handover_plan *plan, struct error *err)
{
    struct head *head = &handover->head;
    if (flush_entries(handover, err) != STATUS_OK)
        return STATUS_FAILED;
    memcpy(head->magic, MAGIC, sizeof head->magic);
    head->version = VERSION;
    head->plan = *plan;
    head->crc = head_crc(*head);
    if (write_at(handover->file, head, sizeof *head, 0, handover->path, err) != STATUS_OK)
        return STATUS_FAILED;
    if (!output_sync(handover->file))
        return fail(err, "fsync", "write", handover->path);
    if (renameat(handover->directory, WORKDIR_HANDOVER_NEW, handover->directory, WORKDIR_HANDOVER) != 0)
        return fail(err, "renameat", "write", handover->path);
    handover->begun = true;
    return output_sync(handover->directory) ? STATUS_OK
                                            : fail(err, "fsync", "write", handover->path);
}

void handover_close(struct handover **out)
{
    struct handover *handover = *out;
    if (!handover)
        return;
    *out = NULL;
    if (!handover->begun && workdir_check(handover->workdir, NULL) == STATUS_OK) {
        /* It may be there after a rename that was said to have failed; the log is whole. */
        unlinkat(handover->directory, WORKDIR_HANDOVER, 0);
        unlinkat(handover->directory, WORKDIR_HANDOVER_NEW, 0);
        unlinkat(handover->directory, WORKDIR_RESULT, 0);
    }
    if (handover->file >= 0)
        close(handover->file);
    free(handover->path);
    free(handover->result);
    free(handover->log);
    free(handover);
}

/* --- reading --------------------------------------------------------------------------------- */

/* STATUS_END: the file ends before. */
static enum status read_whole(int fd, void *data, size_t size, uint64_t offset, const char *path,
                              struct error *err)
{
    size_t got;
    const enum status status = read_at(fd, data, size, offset, &got, path, err);
    return status == STATUS_OK && got < size ? STATUS_END : status;
}

static enum status read_head(int fd, struct head *head, const char *path, struct error *err)
{
    char shown[256];
    enum status status = read_whole(fd, head, sizeof *head, 0, path, err);
    if (status == STATUS_FAILED)
        return status;
    const bool ours =
        status == STATUS_OK && memcmp(head->magic, MAGIC, sizeof head->magic) == 0;
    if (ours && head->version != VERSION) {
        error_set(err, STATUS_FAILED,
                  "%s was written by another version of clpipe: finish the run with that version",
                  path_for_message(shown, sizeof shown, path));
        return error_remedy(err, REMEDY_START_OVER);
    }
    return ours && head->crc == head_crc(*head) ? STATUS_OK : damaged(err, path);
}

static uint64_t marks_begin(const struct head *head)
{
    return sizeof *head + head->records * sizeof(struct entry);
}

static uint32_t mark_crc(const struct mark *mark)
{
    return crc32c(0, mark, offsetof(struct mark, crc));
}

/* The last valid mark counts; an incomplete one was being written when the process died. */
static enum status read_marks(int fd, const struct head *head, uint64_t *done, uint64_t *marks,
                              const char *path, struct error *err)
{
    struct mark mark;
    enum status status;
    *done = *marks = 0;
    while ((status = read_whole(fd, &mark, sizeof mark, marks_begin(head) + *marks * sizeof mark,
                                path, err)) == STATUS_OK &&
           mark.crc == mark_crc(&mark) && mark.done <= head->records && mark.done >= *done) {
        *done = mark.done;
        ++*marks;
    }
    return status == STATUS_FAILED ? status : STATUS_OK;
}

static size_t block_of(uint64_t left)
{
    return left < ENTRY_BLOCK ? (size_t)left : ENTRY_BLOCK;
}

/* Loads entries [first, first + count), at most ENTRY_BLOCK. */
static enum status load_entries(struct handover *handover, uint64_t first, size_t count,
                                struct error *err)
{
    const size_t size = sizeof handover->entry[0];
    const enum status status =
        read_whole(handover->file, handover->entry, count * size,
                   sizeof handover->head + first * size, handover->path, err);
    return status == STATUS_END ? damaged(err, handover->path) : status;
}

/* Opens a plan that an earlier process has begun. */
static enum status reopen(struct handover **out, const struct workdir *workdir, struct error *err)
{
    enum status status = allocate(out, workdir, true, err);
    struct handover *handover = *out;
    uint32_t crc = 0;
    if (status != STATUS_OK)
        goto out;
    const struct head *head = &handover->head;
    handover->file = openat(handover->directory, WORKDIR_HANDOVER, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    status = handover->file < 0 ? fail(err, "openat", "read", handover->path)
                                : read_head(handover->file, &handover->head, handover->path, err);
    for (uint64_t i = 0; status == STATUS_OK && i < head->records; i += ENTRY_BLOCK) {
        const size_t count = block_of(head->records - i);
        status = load_entries(handover, i, count, err);
        crc = crc32c(crc, handover->entry, count * sizeof handover->entry[0]);
    }
    if (status == STATUS_OK && crc != head->crc_of_entries)
        status = damaged(err, handover->path);
    if (status == STATUS_OK)
        status = read_marks(handover->file, head, &handover->done, &handover->marks,
                            handover->path, err);
out:
    if (status != STATUS_OK)
        handover_close(out);
    return status;
}

bool handover_is_begun(const struct workdir *workdir)
{
    return workdir_has(workdir, WORKDIR_HANDOVER);
}

enum status handover_drop(const struct workdir *workdir, struct error *err)
{
    const int directory = workdir_descriptor(workdir);
    if ((unlinkat(directory, WORKDIR_RESULT, 0) != 0 && errno != ENOENT) ||
        (unlinkat(directory, WORKDIR_HANDOVER, 0) != 0 && errno != ENOENT))
        return fail(err, "unlinkat", "empty", workdir_path(workdir));
    return STATUS_OK;
}

bool handover_look(int directory, uint64_t by_reason[REASON_COUNT], uint64_t *done)
{
    struct head head;
    uint64_t marks;
    const int fd = openat(directory, WORKDIR_HANDOVER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool there = fd >= 0 && read_head(fd, &head, "", NULL) == STATUS_OK &&
                       read_marks(fd, &head, done, &marks, "", NULL) == STATUS_OK;
    if (there)
        memcpy(by_reason, head.plan.by_reason, sizeof head.plan.by_reason);
    if (fd >= 0)
        close(fd);
    return there;
}

/* --- moving ---------------------------------------------------------------------------------- */

/* Records of a step. */
struct step {
    struct handover *handover;
    int log, result;
    struct placed {
        struct entry entry;
        uint64_t row, thumbnail; /* of an image: its row, and where in the result its thumbnail goes */
    } *placed;
    unsigned count, task; /* entries */
    struct stop *stop;
    atomic_uint next;
    pthread_mutex_t lock;
    struct error error; /* guarded by lock: the first error */
    atomic_bool failed;
};

static void note_failure(struct step *step, const struct error *error)
{
    pthread_mutex_lock(&step->lock);
    if (!step->error.status)
        step->error = *error;
    pthread_mutex_unlock(&step->lock);
    atomic_store(&step->failed, true);
}

/* What a thread has in memory: rows of each part that follow each other, and the values of one image. */
struct rows {
    struct records_reader reader;
    uint8_t *values, *part[HANDOVER_MOST_PARTS];
};

static void clear_rows(struct rows *rows)
{
    records_reader_clear(&rows->reader);
    free(rows->values);
    for (unsigned p = 0; p < HANDOVER_MOST_PARTS; p++)
        free(rows->part[p]);
}

static enum status make_rows(struct rows *rows, const struct step *step, struct error *err)
{
    const struct handover *handover = step->handover;
    const struct handover_plan *plan = &handover->head.plan;
    bool made = (rows->values = malloc(4 * (size_t)plan->counters + 1)) != NULL;
    records_reader_init(&rows->reader, step->log, handover->log, plan->counters, plan->log_end,
                        READER_BUFFER);
    for (unsigned p = 0; made && p < plan->parts; p++)
        made = (rows->part[p] = malloc((size_t)plan->part[p].bytes * step->task + 1)) != NULL;
    return made ? STATUS_OK : error_memory(err, 4 * (size_t)plan->counters * step->task, "rows");
}

/* A damaged frame leaves zeros for its values, and a hole for its thumbnail. */
static enum status skip_image(struct rows *rows, const struct step *step, unsigned at,
                              struct error *err)
{
    const struct handover *handover = step->handover;
    const struct handover_plan *plan = &handover->head.plan;
    char shown[256];
    /* Another process that goes on with the handover releases the log. */
    enum status status = workdir_check(handover->workdir, err);
    if (status)
        return status;
    if (!handover->skip)
        return error_set(err, STATUS_FAILED,
                         "%s is damaged: clpipe repair finishes the result without the images whose "
                         "values are lost",
                         path_for_message(shown, sizeof shown, handover->log));
    for (unsigned p = 0; p < plan->parts; p++)
        memset(rows->part[p] + (size_t)at * plan->part[p].bytes, 0, plan->part[p].bytes);
    return STATUS_OK;
}

/* Reads the values of an image into row `at` of those in memory; its thumbnail goes to the result. */
static enum status take_image(struct rows *rows, const struct step *step,
                              const struct placed *placed, unsigned at, struct error *err)
{
    const struct handover *handover = step->handover;
    const struct handover_plan *plan = &handover->head.plan;
    struct records_entry entry;
    enum status status = records_read(&rows->reader, placed->entry.offset, &entry, err);
    if (status == STATUS_END ||
        (status == STATUS_OK &&
         (entry.start || entry.record.failure.reason != REASON_NONE ||
          (placed->entry.thumbnail > 0 && entry.record.thumbnail_length != placed->entry.thumbnail) ||
          !records_unpack(rows->values, plan->counters, &entry))))
        return skip_image(rows, step, at, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned p = 0; p < plan->parts; p++)
        memcpy(rows->part[p] + (size_t)at * plan->part[p].bytes,
               rows->values + 4 * (size_t)plan->part[p].place, plan->part[p].bytes);
    return placed->entry.thumbnail == 0
               ? STATUS_OK
               : write_at(step->result, entry.record.thumbnail, placed->entry.thumbnail,
                          placed->thumbnail, handover->result, err);
}

static enum status move_rows(struct rows *rows, const struct step *step, unsigned first, unsigned count,
                             struct error *err)
{
    const struct handover_plan *plan = &step->handover->head.plan;
    unsigned images = 0;
    for (unsigned i = first; i < first + count; i++)
        if ((step->placed[i].entry.frame & IMAGE) &&
            take_image(rows, step, &step->placed[i], images++, err) != STATUS_OK)
            return STATUS_FAILED;
    /* The row of a record that is no image is that of the next image. */
    for (unsigned p = 0; images > 0 && p < plan->parts; p++)
        if (write_at(step->result, rows->part[p], (size_t)images * plan->part[p].bytes,
                     plan->part[p].start + step->placed[first].row * plan->part[p].bytes,
                     step->handover->result, err) != STATUS_OK)
            return STATUS_FAILED;
    return STATUS_OK;
}

static void *move_tasks(void *context)
{
    struct step *step = context;
    struct rows rows = {.values = NULL};
    struct error error = ERROR_INIT;
    unsigned first;
    enum status status = make_rows(&rows, step, &error);
    while (status == STATUS_OK && !atomic_load(&step->failed) &&
           (first = atomic_fetch_add(&step->next, step->task)) < step->count) {
        const unsigned left = step->count - first;
        status = stop_check(step->stop, "writing the file", &error);
        if (status == STATUS_OK)
            status = move_rows(&rows, step, first, left < step->task ? left : step->task, &error);
    }
    if (status != STATUS_OK)
        note_failure(step, &error);
    clear_rows(&rows);
    return NULL;
}

static enum status move_step(struct step *step, unsigned threads, struct error *err)
{
    const unsigned tasks = (step->count + step->task - 1) / step->task;
    atomic_store(&step->next, 0);
    threads_run(move_tasks, step, tasks < threads ? tasks : threads);
    if (step->error.status && err)
        *err = step->error;
    return step->error.status;
}

/* Where the next record goes. */
struct place {
    uint64_t row, thumbnail;
};

/* Loads the entries of the next step: of about `bytes` bytes of the log. */
static enum status load_step(struct step *step, struct place *place, uint64_t bytes, struct error *err)
{
    struct handover *handover = step->handover;
    uint64_t loaded = 0, left = handover->head.records - handover->done;
    step->count = 0;
    while (left > 0 && loaded < bytes && step->count < STEP_ENTRIES) {
        const size_t count = block_of(left);
        const enum status status = load_entries(handover, handover->done + step->count, count, err);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < count && loaded < bytes; i++, left--) {
            const struct entry *entry = &handover->entry[i];
            step->placed[step->count++] = (struct placed){*entry, place->row, place->thumbnail};
            place->row += (entry->frame & IMAGE) != 0;
            place->thumbnail += entry->thumbnail;
            loaded += entry->frame & ~IMAGE;
        }
    }
    return STATUS_OK;
}

/* Makes durable that the step's records are in their place. */
static enum status mark_step(struct step *step, struct error *err)
{
    struct handover *handover = step->handover;
    struct mark mark = {.done = handover->done + step->count};
    mark.crc = mark_crc(&mark);
    if (!output_sync(step->result))
        return fail(err, "fsync", "write", handover->result);
    if (workdir_check(handover->workdir, err))
        return STATUS_FAILED;
    if (write_at(handover->file, &mark, sizeof mark,
                 marks_begin(&handover->head) + handover->marks * sizeof mark, handover->path,
                 err) != STATUS_OK)
        return STATUS_FAILED;
    if (!output_sync(handover->file))
        return fail(err, "fsync", "write", handover->path);
    handover->marks++;
    handover->done = mark.done;
    return STATUS_OK;
}

/* A stretch of frames that are done. */
struct given {
    uint64_t start, end;
};

/* Not every file system can make holes; then the log keeps its space until it is removed. */
static void give(int log, struct given *given)
{
    const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (given->end > given->start && fallocate(log, hole, (off_t)given->start,
                                               (off_t)(given->end - given->start)) == 0) {
        /* The last, partly covered block is freed together with what follows it. */
        const uint64_t last = given->end - given->end % GIVE_UNIT;
        if (last > given->start)
            given->start = last;
    }
}

static void give_frame(int log, struct given *given, const struct entry *entry)
{
    if (entry->offset != given->end) {
        give(log, given);
        given->start = given->end = entry->offset;
    }
    given->end += entry->frame & ~IMAGE;
}

static int by_offset(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return (x->entry.offset > y->entry.offset) - (x->entry.offset < y->entry.offset);
}

/* In the order of the log: in that of the rows, the records of several runs may alternate. */
static void give_back(struct step *step, struct given *given)
{
    qsort(step->placed, step->count, sizeof *step->placed, by_offset);
    for (unsigned i = 0; i < step->count; i++)
        give_frame(step->log, given, &step->placed[i].entry);
    give(step->log, given);
}

/* Where the records go that follow what is done, of which a kill may have kept the log from being
 * released. */
static enum status find_place(struct handover *handover, struct place *place, int log,
                              struct given *given, struct error *err)
{
    *place = (struct place){.thumbnail = handover->head.plan.thumbnails};
    for (uint64_t at = 0; at < handover->done; at += ENTRY_BLOCK) {
        const size_t count = block_of(handover->done - at);
        const enum status status = load_entries(handover, at, count, err);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < count; i++) {
            place->row += (handover->entry[i].frame & IMAGE) != 0;
            place->thumbnail += handover->entry[i].thumbnail;
            give_frame(log, given, &handover->entry[i]);
        }
    }
    give(log, given);
    return STATUS_OK;
}

static enum status move_all(struct handover *handover, int log, int result, unsigned threads,
                            struct stop *stop, struct error *err)
{
    const struct handover_plan *plan = &handover->head.plan;
    const uint64_t share = plan->log_end / STEPS;
    const uint64_t bytes = share < MOST_STEP ? share + 1 : MOST_STEP;
    const uint64_t row = 4 * (uint64_t)plan->counters + 1;
    struct step step = {.handover = handover, .log = log, .result = result, .stop = stop};
    struct given given = {0, 0};
    struct place place;
    enum status status = find_place(handover, &place, log, &given, err);
    step.task = row * TASK_ENTRIES < TASK_BYTES ? TASK_ENTRIES
                : row < TASK_BYTES              ? (unsigned)(TASK_BYTES / row)
                                                : 1;
    step.placed = malloc((STEP_ENTRIES + ENTRY_BLOCK) * sizeof *step.placed);
    if (!step.placed)
        return error_memory(err, STEP_ENTRIES * sizeof *step.placed, "a handover");
    pthread_mutex_init(&step.lock, NULL);
    while (status == STATUS_OK && handover->done < handover->head.records) {
        status = load_step(&step, &place, bytes, err);
        if (status == STATUS_OK)
            status = move_step(&step, threads, err);
        if (status == STATUS_OK)
            status = mark_step(&step, err);
        if (status == STATUS_OK)
            give_back(&step, &given);
    }
    pthread_mutex_destroy(&step.lock);
    free(step.placed);
    return status;
}

enum status handover_finish(struct handover *handover, const char *output, unsigned threads,
                            struct stop *stop, struct error *err)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int log = -1, result = -1;
    enum status status = output_check_free(output, err);
    if (status == STATUS_OK && handover->done < handover->head.records) {
        if ((log = openat(handover->directory, WORKDIR_LOG, flags)) < 0)
            status = fail(err, "openat", "read", handover->log);
        else if ((result = openat(handover->directory, WORKDIR_RESULT, flags)) < 0)
            status = fail(err, "openat", "write", handover->result);
        else
            status = move_all(handover, log, result, threads, stop, err);
    }
    if (log >= 0)
        close(log);
    if (result >= 0)
        close(result);
    /* The plan stays until the log is removed: without it the log would be damaged. */
    return status == STATUS_OK ? output_place(handover->result, output, err) : status;
}

bool handover_pending(const char *output)
{
    struct stat st;
    char *name, *path = NULL;
    if (workdir_name(&name, output, NULL) != STATUS_OK)
        return false;
    const bool pending =
        asprintf(&path, "%s/" WORKDIR_HANDOVER, name) > 0 && lstat(path, &st) == 0;
    free(path);
    free(name);
    return pending;
}

/* Whether the result has its final name already; STATUS_FAILED: it is missing before all is in it. */
static enum status look_for_result(const struct handover *handover, bool *placed, struct error *err)
{
    struct stat st;
    *placed = false;
    if (fstatat(handover->directory, WORKDIR_RESULT, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return STATUS_OK;
    *placed = errno == ENOENT && handover->done == handover->head.records;
    return *placed ? STATUS_OK : fail(err, "fstatat", "read", handover->result);
}

enum status handover_resume(const char *output, unsigned threads, bool skip, struct stop *stop,
                            struct error *err)
{
    struct workdir *workdir = NULL;
    struct handover *handover = NULL;
    char shown[256], done[32], all[32];
    bool placed = false;
    if (!handover_pending(output))
        return STATUS_OK;
    enum status status = workdir_open(&workdir, output, stop, err);
    if (status != STATUS_OK)
        return status;
    /* Another process may have finished it. */
    if (!handover_is_begun(workdir)) {
        workdir_release(&workdir);
        return STATUS_OK;
    }
    status = reopen(&handover, workdir, err);
    if (status == STATUS_OK)
        status = look_for_result(handover, &placed, err);
    if (status == STATUS_OK && !placed) {
        log_message(LOG_NOTICE,
                    "notice: %s: the run before has processed all files; %s of %s records are in the result, "
                    "moving the rest",
                    path_for_message(shown, sizeof shown, output),
                    format_count(done, sizeof done, handover->done),
                    format_count(all, sizeof all, handover->head.records));
        handover->skip = skip;
        status = handover_finish(handover, output, threads, stop, err);
    }
    handover_close(&handover);
    if (status == STATUS_OK)
        workdir_close(&workdir, false);
    else
        workdir_release(&workdir);
    return status;
}
