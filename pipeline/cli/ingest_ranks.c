/* ingest_ranks.c: communication of the ranks of one ingest.
 *
 *   rank 0   walk ──> shares ──> part 0 ──────────────┬──> OUT.h5
 *                       └──> rank 1   part 1 ─────────┤
 *                       └──> rank 2   part 2 ─────────┘
 *
 * All calls of MPI are made by the thread that called main. While another thread walks, and while images
 * are decoded, it shows progress ten times a second and checks whether another rank has failed or wants
 * to stop. */
#include "cli/ingest_ranks.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/shard_option.h"
#include "cli/signals.h"
#include "ingest/losses.h"
#include "ranks/comm_processes.h"
#include "ranks/processes.h"
#include "result/merge.h"
#include "result/unfinished.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PARTS    UNFINISHED_PARTS
#define WATCH_NS 100000000

/* --- parts ----------------------------------------------------------------------------------- */

static enum status name_parts(struct ingest_ranks *ranks, const char *target, struct error *err)
{
    const uint32_t size = ranks->comm->size;
    const char *slash = strrchr(target, '/');
    const int directory = slash ? (int)(slash + 1 - target) : 0;
    ranks->path = calloc(size, sizeof *ranks->path);
    ranks->name = calloc(size, sizeof *ranks->name);
    if (!ranks->path || !ranks->name)
        return error_memory(err, size * sizeof *ranks->path, "the parts");
    for (uint32_t i = 0; i < size; i++) {
        ranks->path[i] = unfinished_part(ranks->parts, i, size);
        ranks->name[i] = ranks->path[i] ? strdup(ranks->path[i] + directory) : NULL;
        if (!ranks->name[i])
            return error_memory(err, strlen(target), "the name of a part");
    }
    return STATUS_OK;
}

/* Work by a different number of ranks cannot be used. */
static void tell_of_others(const char *parts, uint32_t size)
{
    DIR *directory = opendir(parts);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        unsigned rank, count;
        if (sscanf(entry->d_name, "shard-%u-of-%u.h5", &rank, &count) != 2 || count == size)
            continue;
        log_message(LOG_NOTICE,
                    "notice: %s holds work of %u ranks, which %u cannot use: start %u to continue "
                    "it, or delete it",
                    PATH_TEXT(parts), count, size, count);
        break;
    }
    if (directory)
        closedir(directory);
}

/* Called by rank 0. */
static enum status look_at_output(const struct ingest_ranks *ranks, const char *target,
                                  struct error *err)
{
    bool current;
    enum status status =
        merge_look(&current, target, (const char *const *)ranks->name, ranks->comm->size, err);
    if (status == STATUS_USAGE && ranks->own.fresh)
        status = STATUS_OK;
    else if (status == STATUS_USAGE)
        error_remedy(err, REMEDY_OTHER_RANKS);
    if (status != STATUS_OK)
        return status;
    if (err)
        *err = (struct error)ERROR_INIT;
    if (mkdir(ranks->parts, 0777) != 0 && errno != EEXIST)
        return error_errno(err, STATUS_FAILED, errno, "mkdir", "cannot make the directory %s",
                           PATH_TEXT(ranks->parts));
    tell_of_others(ranks->parts, ranks->comm->size);
    return STATUS_OK;
}

enum status ingest_ranks_open(struct ingest_ranks *out, const struct options *options,
                              struct error *err)
{
    char *target = NULL;
    *out = (struct ingest_ranks){.own = *(const struct ingest_options *)options,
                                 .output = options->output};
    if (!options->merges_shards)
        return STATUS_OK;
    if (!options->output)
        return misuse(err, "the output is missing: give -o F.h5");
    out->comm = processes_comm(options->processes);
    if (!out->comm && options->share.count > 1)
        return error_set(err, STATUS_USAGE,
                         "--shard mpi: clpipe has no module for this launcher: give each rank a "
                         "file with -o 'NAME-" SHARD_PLACE ".h5', and join them with clpipe merge");
    out->own.image.common.share = (struct list_share){.count = 0};
    if (!out->comm)
        return STATUS_OK;
    out->own.image.common.share.index = out->comm->rank;
    out->own.image.common.share.count = out->comm->size;
    enum status status = output_resolve(&target, options->output, err);
    if (status == STATUS_OK && asprintf(&out->parts, "%s" PARTS, target) < 0) {
        out->parts = NULL;
        status = error_memory(err, strlen(target), "the name of the parts");
    }
    if (status == STATUS_OK)
        status = name_parts(out, target, err);
    if (status == STATUS_OK && out->comm->rank == 0)
        status = look_at_output(out, target, err);
    if (status == STATUS_OK)
        out->own.image.common.output = out->path[out->comm->rank];
    free(target);
    /* The directory exists. */
    return status == STATUS_OK ? comm_processes_meet(out->comm, err) : status;
}

void ingest_ranks_close(struct ingest_ranks *ranks)
{
    for (uint32_t i = 0; ranks->path && ranks->name && i < ranks->comm->size; i++) {
        free(ranks->path[i]);
        free(ranks->name[i]);
    }
    free(ranks->path);
    free(ranks->name);
    free(ranks->parts);
    *ranks = (struct ingest_ranks){0};
}

enum status ingest_ranks_agree(struct ingest_ranks *ranks, const char *parameters,
                               const struct places *places, struct error *err)
{
    char *text = NULL;
    size_t size;
    if (!ranks->comm)
        return STATUS_OK;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return error_memory(err, 4096, "the sources");
    fputs(parameters, stream);
    for (unsigned i = 0; i < places->count; i++) {
        if (!places->walked[i]) {
            fclose(stream);
            free(text);
            return error_set(err, STATUS_USAGE,
                             "--shard mpi reads all sources again, and %s has another one: give "
                             "%s, too, or remove its images with --drop-source",
                             ranks->output, PATH_TEXT(places->stored[i]));
        }
        fprintf(stream, "\n%s", places->stored[i]);
    }
    enum status status = fclose(stream) == 0 ? STATUS_OK : error_memory(err, 4096, "the sources");
    if (status == STATUS_OK)
        status = processes_agree(ranks->own.image.common.processes, text,
                                 "options or sources in their parts", err);
    if (status == STATUS_USAGE)
        error_remedy(err, REMEDY_SAME_PARTS);
    free(text);
    return status;
}

/* --- the walk -------------------------------------------------------------------------------- */

/* The walk of rank 0. */
struct walking {
    struct walk **out;
    struct walk_config config;
    atomic_uint_fast64_t found;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended; /* under the lock */
    enum status status;
    struct error error;
};

static void note_found(void *context, const char *phase, uint64_t found, uint64_t total)
{
    struct walking *walking = context;
    (void)phase, (void)total;
    atomic_store(&walking->found, found);
}

static void *walk_main(void *argument)
{
    struct walking *walking = argument;
    walking->status = walk_open(walking->out, &walking->config, &walking->error);
    pthread_mutex_lock(&walking->lock);
    walking->has_ended = true;
    pthread_cond_signal(&walking->ended);
    pthread_mutex_unlock(&walking->lock);
    return NULL;
}

/* Runs walk_open in a thread: a list may arrive slowly through a pipe, while other ranks want to
 * stop. */
static enum status walk_apart(struct walk **out, const struct walk_config *config,
                              struct error *err)
{
    struct walking walking = {.out = out, .config = *config, .error = ERROR_INIT};
    pthread_t thread;
    walking.config.watch = (struct watch){config->watch.stop, note_found, &walking};
    pthread_mutex_init(&walking.lock, NULL);
    cond_init_monotonic(&walking.ended);
    const int code = pthread_create(&thread, NULL, walk_main, &walking);
    pthread_mutex_lock(&walking.lock);
    while (code == 0 && !walking.has_ended) {
        cond_wait_until(&walking.ended, &walking.lock, clock_now() + WATCH_NS);
        pthread_mutex_unlock(&walking.lock);
        watch_show(&config->watch, "walking", atomic_load(&walking.found), 0);
        pthread_mutex_lock(&walking.lock);
    }
    pthread_mutex_unlock(&walking.lock);
    if (code == 0)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&walking.ended);
    pthread_mutex_destroy(&walking.lock);
    if (code != 0)
        return walk_open(out, config, err);
    if (walking.status != STATUS_OK)
        *err = walking.error;
    return walking.status;
}

struct giving {
    struct comm *comm;
    uint32_t to;
};

static enum status give(void *context, const void *data, size_t bytes, struct error *err)
{
    const struct giving *giving = context;
    return comm_processes_give(giving->comm, giving->to, data, bytes, err);
}

/* Sends each of the other ranks its share, or the message that there is none. */
static enum status give_shares(struct walk *walk, struct comm *comm, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t to = 1; to < comm->size && !comm_processes_lost(comm); to++) {
        struct giving giving = {comm, to};
        struct error trouble = ERROR_INIT;
        if (status == STATUS_OK)
            status = walk_give_next(walk, give, &giving, err);
        if (give(&giving, NULL, 0, &trouble) != STATUS_OK && status == STATUS_OK) {
            *err = trouble;
            status = trouble.status;
        }
    }
    return status;
}

static enum status take(void *context, void *data, size_t bytes, struct error *err)
{
    return comm_processes_take(context, data, bytes, err);
}

static enum status take_share(struct walk **out, struct comm *comm,
                              const struct walk_config *config, struct error *err)
{
    struct error trouble = ERROR_INIT;
    enum status status = walk_take(out, config, take, comm, err);
    if (status == STATUS_END)
        return error_set(err, STATUS_FAILED, "rank 0 has no share to give");
    enum status rest = STATUS_OK;
    while (rest == STATUS_OK)
        rest = comm_processes_take(comm, NULL, 0, &trouble);
    if (rest != STATUS_END && status == STATUS_OK) {
        *err = trouble;
        status = rest;
    }
    return status;
}

static enum status open_walk(void *context, struct walk **out, const struct walk_config *config,
                             struct error *err)
{
    struct ingest_ranks *ranks = context;
    struct comm *comm = ranks->comm;
    int64_t divides = 0;
    enum status status = comm->rank == 0 ? walk_apart(out, config, err) : STATUS_OK;
    if (status == STATUS_OK && comm->rank == 0)
        divides = walk_divides(*out);
    if (status == STATUS_OK)
        status = comm_sum(comm, &divides, &divides, 1, err);
    if (status != STATUS_OK)
        return status;
    ranks->divided = true;
    if (comm->rank == 0)
        return divides ? give_shares(*out, comm, err) : STATUS_OK;
    return divides ? take_share(out, comm, config, err) : walk_open(out, config, err);
}

/* --- meanwhile ------------------------------------------------------------------------------- */

static void watch(void *context, const struct ingest_progress *progress)
{
    struct ingest_ranks *ranks = context;
    struct error ignored = ERROR_INIT;
    progress_ingest(ranks->progress, progress);
    if (comm_processes_watch(ranks->comm, &ignored) != STATUS_OK)
        stop_request(signals_stop(), STOP_ERROR);
}

static enum status sum(void *context, int64_t *values, size_t count, struct error *err)
{
    struct ingest_ranks *ranks = context;
    ranks->sums = 0;
    return comm_sum(ranks->comm, values, values, count, err);
}

/* Called by a rank that fails before the sum; the last number tells the others. */
static enum status sum_nothing(struct ingest_ranks *ranks, struct error *err)
{
    const size_t count = ranks->sums;
    int64_t *values = calloc(count + 1, sizeof *values);
    if (!values)
        return error_memory(err, count * sizeof *values, "ranks");
    values[count - 1] = 1;
    const enum status status = sum(ranks, values, count, err);
    free(values);
    return status;
}

void ingest_ranks_configure(struct ingest_config *config, struct ingest_ranks *ranks)
{
    if (!ranks->comm)
        return;
    ranks->sums = config->dry_run ? 0 : losses_numbers(config);
    config->sum = sum;
    comm_processes_share_stop(ranks->comm, signals_stop());
    ranks->progress = config->progress_context;
    config->open_walk = open_walk;
    config->ranks = ranks;
    config->progress = watch;
    config->progress_context = ranks;
    config->also_skipped[0] = ranks->output;
    config->also_skipped[1] = ranks->parts;
}

/* --- the whole ------------------------------------------------------------------------------- */

/* The outcome of a rank's ingest. */
struct outcome {
    enum status status;
    struct ingest_report report; /* pointers to names are valid only in the rank's own memory */
};

static void add_report(struct ingest_report *sum, const struct outcome *outcome)
{
    const struct ingest_report *one = &outcome->report;
    sum->images_ok += one->images_ok;
    sum->images_unchanged += one->images_unchanged;
    sum->images_resumed += one->images_resumed;
    sum->files_compared += one->files_compared;
    sum->files_differ += one->files_differ;
    sum->bytes_read += one->bytes_read;
    sum->pixels += one->pixels;
    sum->jpeg_handed_back += one->jpeg_handed_back;
    sum->jpeg_progressive += one->jpeg_progressive;
    sum->summary.images += one->summary.images;
    sum->summary.unchanged = sum->summary.unchanged && one->summary.unchanged;
    sum->sealed += outcome->status == STATUS_OK
                       ? one->summary.images + failures_counted(one->summary.by_reason)
                       : one->sealed;
    for (int i = 0; i < REASON_COUNT; i++) {
        sum->by_reason[i] += one->by_reason[i];
        sum->summary.by_reason[i] += one->summary.by_reason[i];
    }
    for (int i = 0; i < LOSSES; i++)
        sum->removed[i] += one->removed[i];
    for (int i = 0; i < JPEG_WAYS; i++)
        sum->jpeg[i] += one->jpeg[i];
    for (int i = 0; i < INGEST_STAGES; i++) {
        sum->stage[i].threads += one->stage[i].threads;
        sum->stage[i].busy += one->stage[i].busy;
        sum->stage[i].starved += one->stage[i].starved;
        sum->stage[i].blocked += one->stage[i].blocked;
    }
    sum->seconds = one->seconds > sum->seconds ? one->seconds : sum->seconds;
    sum->memory = one->memory > sum->memory ? one->memory : sum->memory;
    if (one->peak_rss_bytes > sum->peak_rss_bytes)
        sum->peak_rss_bytes = one->peak_rss_bytes;
    if (!strstr(sum->device, one->device))
        text_add(sum->device, sizeof sum->device, " + ", "%s", one->device);
}

static void add_reports(struct ingest_report *sum, const struct outcome *all, uint32_t count)
{
    struct ingest_report first = *sum;
    memset(sum, 0, sizeof *sum);
    sum->ranks = count;
    sum->summary.unchanged = true;
    sum->passed = first.passed;
    for (int i = 0; i < INGEST_STAGES; i++)
        sum->stage[i].name = first.stage[i].name;
    for (uint32_t i = 0; i < count; i++)
        add_report(sum, &all[i]);
    sum->bottleneck = stages_bottleneck(sum->stage);
}

static enum status merge_parts(struct ingest_report *report, struct ingest_ranks *ranks,
                               struct error *err)
{
    const struct options *options = &ranks->own.image.common;
    const unsigned count = ranks->comm->size;
    struct merge_report merged;
    char *target = NULL;
    bool current = false;
    if (report->summary.images == 0)
        return error_set(err, STATUS_FAILED, "no image under %s%s; %s is not written",
                         PATH_TEXT(options->operand[0]),
                         options->operand_count > 1 ? " and the other sources" : "",
                         PATH_TEXT(ranks->output));
    const struct store_run run = {.command = options->command_line};
    const struct merge_config config = {.input = (const char *const *)ranks->path,
                                        .count = count,
                                        .output = ranks->output,
                                        .keep_objects = !ranks->own.fresh,
                                        .run = &run,
                                        .watch = {signals_stop(), progress_phase, ranks->progress}};
    enum status status = output_resolve(&target, ranks->output, err);
    if (status == STATUS_OK && !ranks->own.fresh)
        status = merge_look(&current, target, (const char *const *)ranks->name, count, err);
    free(target);
    if (status == STATUS_OK && !current) {
        report->summary.unchanged = false;
        status = merge_files(&merged, &config, err);
        progress_end(ranks->progress);
    }
    report->seconds = clock_seconds_since(clock_process_start());
    return status;
}

enum status ingest_ranks_merge(struct ingest_report *report, struct ingest_ranks *ranks,
                               enum status status, struct error *err)
{
    struct comm *comm = ranks->comm;
    /* A rank that was stopped before it knew its share ends the others' calls like one that failed. */
    if (!comm || !ranks->divided)
        return status;
    struct error trouble = ERROR_INIT;
    if (ranks->sums > 0 && sum_nothing(ranks, &trouble) != STATUS_OK) {
        *err = trouble;
        return trouble.status;
    }
    struct outcome *all = calloc(comm->size, sizeof *all);
    if (!all)
        return error_memory(err, comm->size * sizeof *all, "ranks");
    all[comm->rank] = (struct outcome){status, *report};
    enum status gathered = comm_gather_each(comm, all, sizeof *all, err);
    if (gathered != STATUS_OK) {
        free(all);
        return gathered;
    }
    add_reports(report, all, comm->size);
    /* Ranks that finished before the stop have STATUS_OK; a failure under --strict is more informative
     * than the stop that it caused in the others. */
    for (uint32_t i = 0; i < comm->size; i++)
        if (all[i].status == STATUS_PARTIAL || (status == STATUS_OK && all[i].status != STATUS_OK))
            status = error_set(err, all[i].status, "interrupted");
    free(all);
    return status == STATUS_OK && comm->rank == 0 ? merge_parts(report, ranks, err) : status;
}
