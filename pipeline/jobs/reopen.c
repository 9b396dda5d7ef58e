/* reopen.c: opens blobs for rows, with a decoder per thread.
 *
 *   rows, ascending ──> paths ──┬─ a file ─────────────────┬─> opened by the thread that uses it
 *                               └─ a member: its archive   ├─ a range
 *                                  is listed once          └─ compressed: opened here, in order
 *
 * Rows are in the order of the walk, so those of an archive are consecutive and in its order. The
 * offsets of members are kept; each call reads compressed archives from the start. */
#include "jobs/reopen.h"

#include "base/array.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/path.h"
#include "base/process.h"
#include "base/source_name.h"
#include "result/locate.h"
#include "result/parameters.h"
#include "sources/archives.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BATCH_A_THREAD 32u /* pictures */

/* A value of `where` that is not the position of a member; 0: unknown. */
#define WHERE_FILE 1u
#define WHERE_LOST 2u

struct task {
    struct reopened reopened;
    char *path;
    uint64_t bytes, where;
    int64_t mtime_ns;
    bool streamed;    /* its source was a stream */
    struct blob blob; /* of the last member opened in order */
};

struct reopen {
    struct reopen_config config;
    struct locator locator;
    uint64_t *where;        /* per row, if there is an archive: refers to archives in `known` */
    struct archives *known; /* archives that were listed */
    struct pathglob *globs; /* matches everything */
    struct task *task;
    unsigned tasks, room;
    const struct reopen_use *use;
    struct decode_options options;
    struct budget *budget;  /* for decoding; NULL: nothing was decoded yet */
    struct decode **decode; /* one per thread, opened when it is needed */
    uint64_t lost;          /* number of archives */
    char lost_path[256], lost_why[200];
    atomic_bool streamed; /* some pictures of a stream have no files here */
    atomic_int shortage;  /* errno if resources were lacking to open a picture; 0: none were */
};

/* --- positions of archive members ------------------------------------------------------------- */

struct named {
    uint64_t digest[2], row, bytes;
};

/* The rows of an archive, and the entries of its listing. */
struct finding {
    struct source_listing listing; /* must be first: `add` receives a pointer to it */
    struct reopen *reopen;
    struct named *named; /* by digest */
    uint64_t count, found;
    size_t prefix; /* length of the directory part of a member's path */
    struct failure failure;
};

static int by_digest(const void *x, const void *y)
{
    return memcmp(x, y, sizeof(uint64_t[2]));
}

static void ignore_found(struct source_listing *listing)
{
    (void)listing;
}

static bool promises_nothing(const char *path)
{
    (void)path;
    return false;
}

static enum status take_member(struct source_listing *listing, const char *path, size_t length,
                               const struct entry *entry, struct error *err)
{
    struct finding *finding = (struct finding *)listing;
    struct named key;
    (void)err;
    if (entry->failure.reason != REASON_NONE) {
        if (!archives_member(entry->where)) /* the archive itself */
            finding->failure = entry->failure;
        return STATUS_OK;
    }
    murmur3_of(key.digest, path + finding->prefix, length - finding->prefix);
    const struct named *named =
        bsearch(&key, finding->named, finding->count, sizeof key, by_digest);
    if (named && named->bytes == entry->bytes) {
        finding->reopen->where[named->row] = entry->where;
        finding->found++;
    }
    return STATUS_OK;
}

static enum status add_name(struct finding *finding, uint64_t row, uint64_t bytes, const char *name,
                            struct error *err)
{
    if (array_grow(&finding->named, finding->count, sizeof *finding->named,
                   "the names in an archive", err))
        return STATUS_FAILED;
    struct named *named = &finding->named[finding->count++];
    named->row = row;
    named->bytes = bytes;
    murmur3_of(named->digest, name, strlen(name));
    return STATUS_OK;
}

/* Collects the rows around `row` whose paths begin with the same archive. */
static enum status gather_names(struct finding *finding, uint64_t row, const char *archive,
                                size_t length, uint16_t source, struct error *err)
{
    struct result *result = finding->reopen->config.result;
    const uint64_t rows = result_images(result);
    struct result_image image;
    for (int step = -1; step <= 1; step += 2) {
        for (uint64_t at = step < 0 ? row : row + 1; at < rows; at += (uint64_t)(int64_t)step) {
            enum status status = result_image_at(result, at, &image, err);
            if (status != STATUS_OK)
                return status;
            if (image.source != source || strncmp(image.path_raw, archive, length) != 0)
                break;
            if ((status = add_name(finding, at, image.bytes, image.path_raw + length, err)))
                return status;
        }
    }
    qsort(finding->named, finding->count, sizeof *finding->named, by_digest);
    return STATUS_OK;
}

static void note_lost(struct reopen *reopen, const char *path, const char *why)
{
    if (reopen->lost++ > 0)
        return;
    path_for_message(reopen->lost_path, sizeof reopen->lost_path, path);
    snprintf(reopen->lost_why, sizeof reopen->lost_why, "%s", why);
}

static enum status list_archive(struct finding *finding, const struct archive_file *file,
                                struct error *err)
{
    static const struct walk_options options = {.archives = true, .hidden = true};
    struct reopen *reopen = finding->reopen;
    enum status status = STATUS_OK;
    if (!reopen->globs)
        status = pathglob_open(&reopen->globs, NULL, 0, NULL, 0, err);
    if (status == STATUS_OK && !reopen->known)
        status = archives_open(&reopen->known, err);
    if (status != STATUS_OK)
        return status;
    finding->listing = (struct source_listing){.options = &options,
                                               .globs = reopen->globs,
                                               .promises_image = promises_nothing,
                                               .stop = reopen->config.watch.stop,
                                               .found = ignore_found,
                                               .add = take_member};
    finding->prefix = file->length + 1;
    return archives_list(reopen->known, &finding->listing, file, err);
}

/* Sets `where` for all rows of the archive named at the beginning of `path`, the path of a row. The
 * member's name begins at `path` + `name`, the row's at `path` + `prefix`. */
static enum status find_members(struct reopen *reopen, uint64_t row,
                                const struct result_image *image, const char *path, size_t name,
                                size_t prefix, struct error *err)
{
    struct finding finding = {.reopen = reopen};
    const int64_t mtime_ns = image->mtime_ns;
    struct stat st;
    enum status status = STATUS_FAILED;
    char *archive = strndup(path, name - 1), *begins = strndup(image->path_raw, prefix);
    if (!archive || !begins) {
        error_memory(err, name + prefix, "a file name");
        goto out;
    }
    if ((status = gather_names(&finding, row, begins, prefix, image->source, err)))
        goto out;
    const int code = path_stat_at(AT_FDCWD, archive, &st, 0) == 0 ? 0 : errno;
    const bool directory = !code && S_ISDIR(st.st_mode);
    for (uint64_t i = 0; i < finding.count; i++)
        reopen->where[finding.named[i].row] = directory ? WHERE_FILE : WHERE_LOST;
    if (directory)
        goto out;
    if (code) {
        note_lost(reopen, archive,
                  code == ENOENT || code == ENOTDIR ? "it no longer exists" : strerror(code));
        goto out;
    }
    if (!S_ISREG(st.st_mode) || clock_file_time(&st.st_mtim) != mtime_ns) {
        note_lost(reopen, archive, "it has changed since it was read");
        goto out;
    }
    const struct archive_file file = {.directory = AT_FDCWD,
                                      .name = archive,
                                      .path = archive,
                                      .length = name - 1,
                                      .bytes = (uint64_t)st.st_size,
                                      .mtime_ns = mtime_ns};
    status = list_archive(&finding, &file, err);
    if (status == STATUS_OK && finding.found < finding.count)
        note_lost(reopen, archive,
                  finding.failure.reason != REASON_NONE ? finding.failure.message
                                                        : "it has changed since it was read");
out:
    free(finding.named);
    free(archive);
    free(begins);
    return status;
}

/* --- tasks -------------------------------------------------------------------------------------
 */

static enum status add_task(struct reopen *reopen, uint64_t row, uint64_t index, struct error *err)
{
    struct result *result = reopen->config.result;
    struct result_image image;
    const char *path;
    enum status status = result_image_at(result, row, &image, err);
    if (status == STATUS_OK)
        status = locate_image(&reopen->locator, &path, result, image.source, image.path_raw, err);
    if (status != STATUS_OK)
        return status;
    /* Rows of other data have only a path: any file there is accepted. */
    const size_t prefix = image.bytes > 0 ? archive_prefix(image.path_raw) : 0;
    const size_t name = strlen(path) - strlen(image.path_raw) + prefix;
    struct task task = {.path = strdup(path),
                        .bytes = image.bytes,
                        .mtime_ns = image.mtime_ns,
                        .streamed = source_is_stream(result->sources[image.source]),
                        .where = WHERE_FILE,
                        .blob = BLOB_NOTHING};
    if (!task.path)
        return error_memory(err, strlen(path) + 1, "a file name");
    task.reopened = (struct reopened){
        .index = index, .path = task.path, .width = image.width, .height = image.height};
    if (prefix > 0 && !reopen->where) {
        reopen->where = calloc(result_images(result), sizeof *reopen->where);
        if (!reopen->where)
            status = error_memory(err, result_images(result) * sizeof *reopen->where, "rows");
    }
    if (prefix > 0 && status == STATUS_OK && !reopen->where[row])
        status = find_members(reopen, row, &image, task.path, name, prefix, err);
    if (prefix > 0 && status == STATUS_OK)
        task.where = reopen->where[row];
    if (status == STATUS_OK && archives_member(task.where))
        task.where = archives_where(reopen->known, archives_of(task.where),
                                    archives_place(task.where), task.where & SOURCE_WHERE_IN_ORDER);
    if (status != STATUS_OK || task.where == WHERE_LOST)
        free(task.path);
    else
        reopen->task[reopen->tasks++] = task;
    return status;
}

static enum reason open_file(struct blob *out, const struct task *task, struct failure *failure)
{
    struct stat st;
    int64_t since = 0;
    int fd;
    do
        fd = path_open_at(AT_FDCWD, task->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && process_wait_for(&since, errno, "what decoding needs"));
    if (fd < 0)
        return failure_errno(failure, REASON_VANISHED, errno, "cannot open");
    *out = blob_of_file(fd, task->bytes, task->mtime_ns);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return failure_set(failure, REASON_CHANGED, "no file");
    if (task->bytes == 0)
        *out = blob_of_file(fd, (uint64_t)st.st_size, clock_file_time(&st.st_mtim));
    return REASON_NONE;
}

static enum reason open_member(struct blob *out, struct archives *archives, const struct task *task,
                               struct failure *failure)
{
    const struct source_member member = {task->path, task->where, task->bytes, task->mtime_ns};
    return archives_open_member(out, archives, &member, failure);
}

/* --- decoding ----------------------------------------------------------------------------------
 */

enum status reopen_decode_options(struct decode_options *out, const struct result *result,
                                  struct error *err)
{
    struct parameters *parameters;
    decode_options_default(out);
    if (parameters_open(&parameters, result->parameters, err) != STATUS_OK)
        return STATUS_FAILED;
    const char *alpha = parameters_member(parameters, "alpha");
    const char *icc = parameters_member(parameters, "icc");
    if (alpha)
        out->alpha = strcmp(alpha, "black") == 0  ? ALPHA_BLACK
                     : strcmp(alpha, "drop") == 0 ? ALPHA_DROP
                                                  : ALPHA_WHITE;
    out->icc = icc && strcmp(icc, "apply") == 0;
    parameters_integer(parameters, "max_pixels", &out->max_pixels);
    out->max_scans = parameters_number(parameters, "max_scans", out->max_scans);
    out->scale = parameters_number(parameters, "decode_scale", 1);
    parameters_close(&parameters);
    return STATUS_OK;
}

static enum status open_decoding(struct reopen *reopen, struct error *err)
{
    const struct reopen_config *config = &reopen->config;
    enum status status = reopen_decode_options(&reopen->options, config->result, err);
    reopen->options.icc = reopen->options.icc && decode_icc_library();
    reopen->options.max_pixels = UINT64_MAX;
    reopen->options.max_scans = UINT32_MAX;
    reopen->options.scale = 1;
    reopen->options.stop = config->watch.stop;
    reopen->decode = calloc(workers_count(config->workers), sizeof(struct decode *));
    if (status == STATUS_OK && !reopen->decode)
        status = error_memory(err, 64, "pictures");
    return status == STATUS_OK ? budget_open(&reopen->budget, config->memory, err) : status;
}

static void decode_picture(struct reopen *reopen, const struct reopened *picture)
{
    const struct reopen_use *use = reopen->use;
    struct decode **decode = &reopen->decode[workers_number()];
    struct failure failure = {.reason = REASON_NONE};
    struct image_info info;
    if (!*decode && decode_open(decode, &reopen->options, NULL) != STATUS_OK)
        return;
    if (use->side > 0)
        decode_for_display(*decode, decode_scale_for(picture->width, picture->height, use->side));
    if (decode_begin(*decode, picture->blob, picture->path, &info, &failure) != REASON_NONE)
        return;
    const uint64_t memory = info.memory + max_u64(REOPEN_STRIP, (uint64_t)info.out_width * 3) +
                            (use->memory ? use->memory(use->context, &info) : 0);
    const bool taken = budget_take(reopen->budget, memory);
    if (!taken || !use->decode(use->context, picture->index, *decode, &info))
        decode_abort(*decode);
    if (taken)
        budget_give(reopen->budget, memory);
}

static void use_task(void *context, uint64_t i)
{
    struct reopen *reopen = context;
    struct task *task = &reopen->task[i];
    struct failure failure = {.reason = REASON_NONE};
    if (watch_check(&reopen->config.watch, "", NULL) != STATUS_OK)
        return;
    if (!archives_member(task->where))
        open_file(&task->blob, task, &failure);
    else if (!(task->where & SOURCE_WHERE_IN_ORDER))
        open_member(&task->blob, reopen->known, task, &failure);
    if (failure.reason != REASON_NONE && task->streamed)
        atomic_store(&reopen->streamed, true);
    if (process_is_short(failure.error_number))
        atomic_store(&reopen->shortage, failure.error_number);
    if (failure.reason == REASON_NONE && blob_is_open(&task->blob)) {
        task->reopened.blob = &task->blob;
        if (reopen->use->decode)
            decode_picture(reopen, &task->reopened);
        else
            reopen->use->picture(reopen->use->context, &task->reopened);
    }
    blob_close(&task->blob);
}

static enum status run_tasks(struct reopen *reopen, uint64_t done, uint64_t count,
                             struct error *err)
{
    workers_run(reopen->config.workers, use_task, reopen, reopen->tasks);
    for (unsigned i = 0; i < reopen->tasks; i++)
        free(reopen->task[i].path);
    reopen->tasks = 0;
    if (reopen->shortage)
        return error_errno(err, STATUS_FAILED, reopen->shortage, "open",
                           "cannot open pictures again%s", process_limits());
    if (reopen->use->phase)
        watch_show(&reopen->config.watch, reopen->use->phase, done, count);
    return watch_check(&reopen->config.watch, "decoding pictures again", err);
}

/* --- rows --------------------------------------------------------------------------------------
 */

static int by_row(const void *x, const void *y, void *context)
{
    const uint64_t *rows = context, *i = x, *j = y;
    if (rows[*i] != rows[*j])
        return rows[*i] < rows[*j] ? -1 : 1;
    return *i < *j ? -1 : *i > *j;
}

enum status reopen_rows(struct reopen *reopen, const uint64_t *rows, uint64_t count,
                        const struct reopen_use *use, struct error *err)
{
    uint64_t held = 0;
    enum status status = use->decode && !reopen->budget ? open_decoding(reopen, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    uint64_t *order = malloc((count + 1) * sizeof *order);
    if (!order)
        return error_memory(err, count * sizeof *order, "rows");
    for (uint64_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, by_row, (void *)rows);
    reopen->use = use;
    for (uint64_t i = 0; i < count && status == STATUS_OK && !(use->failed && *use->failed); i++) {
        const unsigned before = reopen->tasks;
        struct failure failure = {.reason = REASON_NONE};
        status = add_task(reopen, rows[order[i]], order[i], err);
        if (reopen->tasks > before && reopen->task[before].where & SOURCE_WHERE_IN_ORDER) {
            struct task *task = &reopen->task[before];
            if (open_member(&task->blob, reopen->known, task, &failure) == REASON_NONE)
                held += task->blob.bytes;
            else
                blob_close(&task->blob);
        }
        if (status == STATUS_OK &&
            (reopen->tasks == reopen->room || held >= reopen->config.memory || i + 1 == count)) {
            status = run_tasks(reopen, i + 1, count, err);
            held = 0;
        }
    }
    for (unsigned i = 0; i < reopen->tasks; i++) {
        blob_close(&reopen->task[i].blob);
        free(reopen->task[i].path);
    }
    reopen->tasks = 0;
    if (reopen->known)
        archives_rewind(reopen->known);
    free(order);
    return status;
}

enum status reopen_open(struct reopen **out, const struct reopen_config *config, struct error *err)
{
    struct reopen *reopen = *out = calloc(1, sizeof *reopen);
    if (!reopen)
        return error_memory(err, sizeof *reopen, "pictures");
    reopen->config = *config;
    reopen->room = BATCH_A_THREAD * workers_count(config->workers);
    reopen->task = calloc(reopen->room, sizeof *reopen->task);
    if (reopen->task)
        return STATUS_OK;
    reopen_close(out);
    return error_memory(err, sizeof(struct task) * BATCH_A_THREAD, "pictures");
}

void reopen_close(struct reopen **out)
{
    struct reopen *reopen = out ? *out : NULL;
    if (!reopen)
        return;
    if (reopen->lost == 1)
        log_message(LOG_NOTICE, "notice: pictures in %s cannot be read again: %s",
                    reopen->lost_path, reopen->lost_why);
    else if (reopen->lost > 1)
        log_message(LOG_NOTICE,
                    "notice: pictures in %llu archives cannot be read again, such as %s: %s",
                    (unsigned long long)reopen->lost, reopen->lost_path, reopen->lost_why);
    if (reopen->streamed)
        log_message(
            LOG_NOTICE,
            "notice: pictures that were read from tar:- are not files here: unpack the tar to a "
            "directory D, and let clpipe ingest D --relocate tar:- -o F.h5 find them there");
    for (unsigned i = 0; reopen->decode && i < workers_count(reopen->config.workers); i++)
        decode_close(&reopen->decode[i]);
    free(reopen->decode);
    budget_close(&reopen->budget);
    archives_close(&reopen->known);
    pathglob_close(&reopen->globs);
    locator_clear(&reopen->locator);
    free(reopen->where);
    free(reopen->task);
    free(reopen);
    *out = NULL;
}
