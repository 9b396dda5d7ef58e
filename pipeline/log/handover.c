/* handover.c: steps of a 32nd of the log. In each, threads read frames and write values and thumbnails to
 * their places; then the file is synced, a mark is appended, and the frames become a hole. */
#include "log/handover.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
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
#define MOST_THREADS  64
#define GIVE_UNIT     (1u << 20) /* file systems free whole blocks */

struct head {
    char magic[8];
    uint32_t version, reasons, crc_of_entries, crc; /* crc: of everything else here */
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
    int directory, file;
    char *path, *result; /* of WORK/handover and of WORK/result */
    bool begun;
    struct head head;
    struct entry entry[ENTRY_BLOCK];
    unsigned filled;
    uint64_t done, marks;
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

static enum status allocate(struct handover **out, const struct workdir *workdir, struct error *err)
{
    struct handover *handover = calloc(1, sizeof *handover);
    *out = handover;
    if (!handover)
        return error_memory(err, sizeof *handover, "a handover");
    handover->directory = workdir_descriptor(workdir);
    handover->file = -1;
    if (asprintf(&handover->path, "%s/" WORKDIR_HANDOVER, workdir_path(workdir)) < 0)
        handover->path = NULL;
    if (asprintf(&handover->result, "%s/" WORKDIR_RESULT, workdir_path(workdir)) < 0)
        handover->result = NULL;
    return handover->path && handover->result ? STATUS_OK : error_memory(err, 4096, "a file name");
}

/* --- noting ---------------------------------------------------------------------------------- */

enum status handover_open(struct handover **out, const struct workdir *workdir, struct error *err)
{
    enum status status = allocate(out, workdir, err);
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
    head->reasons = REASON_COUNT;
    head->plan = *plan;
    head->crc = head_crc(*head);
    if (write_at(handover->file, head, sizeof *head, 0, handover->path, err) != STATUS_OK)
        return STATUS_FAILED;
    if (fsync(handover->file) != 0 ||
        renameat(handover->directory, WORKDIR_HANDOVER_NEW, handover->directory, WORKDIR_HANDOVER) != 0)
        return fail(err, "fsync", "write", handover->path);
    handover->begun = true;
    return output_sync_directory(handover->directory) ? STATUS_OK
                                                      : fail(err, "fsync", "write", handover->path);
}

void handover_close(struct handover **out)
{
    struct handover *handover = *out;
    if (!handover)
        return;
    *out = NULL;
    if (!handover->begun) {
        unlinkat(handover->directory, WORKDIR_HANDOVER_NEW, 0);
        unlinkat(handover->directory, WORKDIR_RESULT, 0);
    }
    if (handover->file >= 0)
        close(handover->file);
    free(handover->path);
    free(handover->result);
    free(handover);
}

/* --- reading --------------------------------------------------------------------------------- */

/* false: the file ends, or cannot be read. */
static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
    char *at = data;
    while (size > 0) {
        const ssize_t n = pread(fd, at, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

static bool head_is_whole(const struct head *head)
{
    return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 && head->version == VERSION &&
           head->reasons == REASON_COUNT && head->crc == head_crc(*head);
}

static uint64_t marks_begin(const struct head *head)
{
    return sizeof *head + head->records * sizeof(struct entry);
}

static uint32_t mark_crc(const struct mark *mark)
{
    return crc32c(0, mark, offsetof(struct mark, crc));
}

/* The last mark counts; one that is not whole was being written. */
static uint64_t read_marks(int fd, const struct head *head, uint64_t *done)
{
    uint64_t marks = 0;
    struct mark mark;
    *done = 0;
    while (read_at(fd, &mark, sizeof mark, marks_begin(head) + marks * sizeof mark) &&
           mark.crc == mark_crc(&mark) && mark.done <= head->records && mark.done >= *done) {
        *done = mark.done;
        marks++;
    }
    return marks;
}

/* One that was begun. */
static enum status reopen(struct handover **out, const struct workdir *workdir, struct error *err)
{
    enum status status = allocate(out, workdir, err);
    struct handover *handover = *out;
    if (status != STATUS_OK)
        goto out;
    handover->begun = true;
    handover->file = openat(handover->directory, WORKDIR_HANDOVER, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (handover->file < 0) {
        status = fail(err, "openat", "read", handover->path);
        goto out;
    }
    if (!read_at(handover->file, &handover->head, sizeof handover->head, 0) ||
        !head_is_whole(&handover->head))
        status = damaged(err, handover->path);
    uint32_t crc = 0;
    for (uint64_t i = 0; status == STATUS_OK && i < handover->head.records; i += ENTRY_BLOCK) {
        const uint64_t left = handover->head.records - i;
        const size_t size = (left < ENTRY_BLOCK ? left : ENTRY_BLOCK) * sizeof handover->entry[0];
        if (!read_at(handover->file, handover->entry, size,
                     sizeof handover->head + i * sizeof handover->entry[0]))
            status = damaged(err, handover->path);
        crc = crc32c(crc, handover->entry, size);
    }
    if (status == STATUS_OK && crc != handover->head.crc_of_entries)
        status = damaged(err, handover->path);
    if (status == STATUS_OK)
        handover->marks = read_marks(handover->file, &handover->head, &handover->done);
out:
    if (status != STATUS_OK)
        handover_close(out);
    return status;
}

bool handover_is_begun(const struct workdir *workdir)
{
    return faccessat(workdir_descriptor(workdir), WORKDIR_HANDOVER, F_OK, 0) == 0;
}

/* A plan without its file is finished: no kill leaves one that would be resumed. */
void handover_drop(const struct workdir *workdir)
{
    unlinkat(workdir_descriptor(workdir), WORKDIR_RESULT, 0);
    unlinkat(workdir_descriptor(workdir), WORKDIR_HANDOVER, 0);
}

bool handover_look(int directory, uint64_t by_reason[REASON_COUNT], uint64_t *done)
{
    struct head head;
    const int fd = openat(directory, WORKDIR_HANDOVER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool there = fd >= 0 && read_at(fd, &head, sizeof head, 0) && head_is_whole(&head);
    if (there) {
        memcpy(by_reason, head.plan.by_reason, sizeof head.plan.by_reason);
        read_marks(fd, &head, done);
    }
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
        uint64_t row, thumbnail; /* of an image: its row, and where in the file its thumbnail goes */
    } *placed;
    unsigned count, task; /* entries */
    atomic_uint next;
    pthread_mutex_t lock;
    struct error error; /* under it: the first */
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
    records_reader_init(&rows->reader, step->log, handover->path, plan->counters, plan->log_end,
                        READER_BUFFER);
    for (unsigned p = 0; made && p < plan->parts; p++)
        made = (rows->part[p] = malloc((size_t)plan->part[p].bytes * step->task + 1)) != NULL;
    return made ? STATUS_OK : error_memory(err, 4 * (size_t)plan->counters * step->task, "rows");
}

/* Reads the values of an image into row `at` of those in memory; its thumbnail goes to the file. */
static enum status take_image(struct rows *rows, const struct step *step, const struct placed *placed,
                              unsigned at, struct error *err)
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
        return damaged(err, handover->path);
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
        status = move_rows(&rows, step, first, left < step->task ? left : step->task, &error);
    }
    if (status != STATUS_OK)
        note_failure(step, &error);
    clear_rows(&rows);
    return NULL;
}

static enum status move_step(struct step *step, unsigned threads, struct error *err)
{
    pthread_t thread[MOST_THREADS];
    const unsigned tasks = (step->count + step->task - 1) / step->task;
    const unsigned most = threads < MOST_THREADS ? threads : MOST_THREADS;
    const unsigned wanted = tasks < most ? tasks : most;
    unsigned started = 0;
    atomic_store(&step->next, 0);
    while (started + 1 < wanted && pthread_create(&thread[started], NULL, move_tasks, step) == 0)
        started++;
    move_tasks(step);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
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
        const size_t count = left < ENTRY_BLOCK ? (size_t)left : ENTRY_BLOCK;
        if (!read_at(handover->file, handover->entry, count * sizeof handover->entry[0],
                     sizeof handover->head +
                         (handover->done + step->count) * sizeof handover->entry[0]))
            return damaged(err, handover->path);
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

/* Where the records go that follow what is done. */
static enum status find_place(struct handover *handover, struct place *place, struct error *err)
{
    *place = (struct place){.thumbnail = handover->head.plan.thumbnails};
    for (uint64_t at = 0; at < handover->done;) {
        const uint64_t left = handover->done - at;
        const size_t count = left < ENTRY_BLOCK ? (size_t)left : ENTRY_BLOCK;
        if (!read_at(handover->file, handover->entry, count * sizeof handover->entry[0],
                     sizeof handover->head + at * sizeof handover->entry[0]))
            return damaged(err, handover->path);
        for (size_t i = 0; i < count; i++) {
            place->row += (handover->entry[i].frame & IMAGE) != 0;
            place->thumbnail += handover->entry[i].thumbnail;
        }
        at += count;
    }
    return STATUS_OK;
}

/* Makes durable that the step's records are in their place. */
static enum status mark_step(struct step *step, struct error *err)
{
    struct handover *handover = step->handover;
    struct mark mark = {.done = handover->done + step->count};
    mark.crc = mark_crc(&mark);
    if (fdatasync(step->result) != 0)
        return fail(err, "fdatasync", "write", handover->result);
    if (write_at(handover->file, &mark, sizeof mark,
                 marks_begin(&handover->head) + handover->marks * sizeof mark, handover->path,
                 err) != STATUS_OK)
        return STATUS_FAILED;
    if (fdatasync(handover->file) != 0)
        return fail(err, "fdatasync", "write", handover->path);
    handover->marks++;
    handover->done = mark.done;
    return STATUS_OK;
}

/* A stretch of frames that are done. */
struct given {
    uint64_t start, end;
};

/* Not every file system can make holes; then the log keeps its space until it goes. */
static void give(int log, struct given *given)
{
    const int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (given->end > given->start && fallocate(log, hole, (off_t)given->start,
                                               (off_t)(given->end - given->start)) == 0) {
        /* The block at the end becomes free with what follows it. */
        const uint64_t last = given->end - given->end % GIVE_UNIT;
        if (last > given->start)
            given->start = last;
    }
}

static void give_back(const struct step *step, struct given *given)
{
    for (unsigned i = 0; i < step->count; i++) {
        const struct entry *entry = &step->placed[i].entry;
        if (entry->offset != given->end) {
            give(step->log, given);
            given->start = given->end = entry->offset;
        }
        given->end += entry->frame & ~IMAGE;
    }
    give(step->log, given);
}

static enum status move_all(struct handover *handover, int log, int result, unsigned threads,
                            struct stop *stop, struct error *err)
{
    const struct handover_plan *plan = &handover->head.plan;
    const uint64_t share = plan->log_end / STEPS;
    const uint64_t bytes = share < MOST_STEP ? share + 1 : MOST_STEP;
    const uint64_t row = 4 * (uint64_t)plan->counters + 1;
    struct step step = {.handover = handover, .log = log, .result = result};
    struct given given = {0, 0};
    struct place place;
    enum status status = find_place(handover, &place, err);
    step.task = row * TASK_ENTRIES < TASK_BYTES ? TASK_ENTRIES
                : row < TASK_BYTES              ? (unsigned)(TASK_BYTES / row)
                                                : 1;
    step.placed = malloc((STEP_ENTRIES + ENTRY_BLOCK) * sizeof *step.placed);
    if (!step.placed)
        return error_memory(err, STEP_ENTRIES * sizeof *step.placed, "a handover");
    pthread_mutex_init(&step.lock, NULL);
    while (status == STATUS_OK && handover->done < handover->head.records) {
        status = stop_check(stop, "writing the file", err);
        if (status == STATUS_OK)
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
    enum status status = STATUS_FAILED;
    const int log = openat(handover->directory, WORKDIR_LOG, flags);
    const int result = openat(handover->directory, WORKDIR_RESULT, flags);
    if (log < 0 || result < 0)
        fail(err, "openat", "write", handover->result);
    else
        status = move_all(handover, log, result, threads, stop, err);
    if (log >= 0)
        close(log);
    if (result >= 0)
        close(result);
    if (status == STATUS_OK)
        status = output_place(handover->result, output, err);
    if (status == STATUS_OK)
        unlinkat(handover->directory, WORKDIR_HANDOVER, 0);
    return status;
}

enum status handover_resume(const char *output, unsigned threads, struct stop *stop, struct error *err)
{
    struct workdir *workdir = NULL;
    struct handover *handover = NULL;
    struct stat st;
    char shown[256], done[32], all[32], *name;
    enum status status = workdir_name(&name, output, err);
    if (status != STATUS_OK)
        return status;
    char *path = NULL;
    const bool there = asprintf(&path, "%s/" WORKDIR_HANDOVER, name) > 0 && lstat(path, &st) == 0;
    free(path);
    free(name);
    if (!there)
        return STATUS_OK;
    if ((status = workdir_open(&workdir, output, stop, err)) != STATUS_OK)
        return status;
    /* Without the file it was killed after it had got its name; without the plan, finished meanwhile. */
    if (fstatat(workdir_descriptor(workdir), WORKDIR_RESULT, &st, 0) != 0) {
        workdir_close(&workdir, false);
        return STATUS_OK;
    }
    status = reopen(&handover, workdir, err);
    if (status == STATUS_OK) {
        log_message(LOG_NOTICE,
                    "%s: all files of the run before are done, %s of %s have their place in it: "
                    "finishing it",
                    path_for_message(shown, sizeof shown, output),
                    format_count(done, sizeof done, handover->done),
                    format_count(all, sizeof all, handover->head.records));
        status = handover_finish(handover, output, threads, stop, err);
    }
    handover_close(&handover);
    if (status == STATUS_OK)
        workdir_close(&workdir, false);
    else
        workdir_release(&workdir);
    return status;
}
