/* store.c: checks the output, and connects the journal of a run with the file built from it.
 *
 *   store_put: values by the contract's formulas ─> journal (result/journal.h)
 *   store_finish: the journal's order ─> lists of rows (logs, existing file) ─> rewrite ─> OUT.h5 */
#include "result/store.h"
#include "base/array.h"
#include "base/compare.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "result/carry.h"
#include "result/checksums.h"
#include "result/codebooks.h"
#include "result/journal.h"
#include "result/objects.h"
#include "result/parameters.h"
#include "result/prior.h"
#include "result/rewrite.h"
#include "result/row_map.h"
#include "result/sidecars.h"
#include "result/signature.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct store {
    struct store_config config;
    struct workdir *work;
    struct records logs; /* of an interrupted run, until the journal takes them over */
    struct journal *journal;
    struct result *replaced; /* the file under the final name, or NULL */
    struct prior *prior;
    int *source_now; /* new numbers of the sources of `replaced` (row_map.h); NULL: the same */
    struct codebooks learned; /* by an earlier run */
    bool has_learned;         /* codebooks are beside the log */
    struct sidecars *sidecars;
    bool has_texts;       /* those of all rows are in it */
    pthread_mutex_t lock; /* guards `stat`, a list of */
    struct row_stat *stat;
    size_t stats;
    bool discard, done; /* the finished file is in place */
};

/* --- opening --------------------------------------------------------------------------------- */

/* Refuses a file that has changed since the caller read it, or was made with other parameters. */
static enum status check_parameters(struct store *store, const char *shown, struct error *err)
{
    const struct content *old = store->config.old ? store->config.old : &store->config.content;
    struct signature_parts there;
    char difference[640], *theirs = NULL, *mine = NULL;
    enum status status = signature_parts_of(&there, store->replaced, err);
    if (!old->directories)
        there.content.directories = NULL;
    if (!status && (!(theirs = signature_of_content(&there.content, err)) ||
                    !(mine = signature_of_content(old, err))))
        status = STATUS_FAILED;
    const bool differs =
        mine && parameters_difference(difference, sizeof difference, theirs, mine, "this file");
    if (differs && store->config.old) {
        status = error_set(err, STATUS_FAILED,
                           "%s has been replaced by another process: run the command again", shown);
    } else if (differs) {
        status = error_set(err, STATUS_USAGE, "%s was made with other parameters: %s", shown,
                           difference);
        error_remedy(err, REMEDY_REPLACE_FILE);
    }
    free(theirs);
    free(mine);
    signature_parts_clear(&there);
    return status;
}

/* Refuses an output that cannot be written, or that must not be replaced. */
static enum status check_output(struct store *store, struct error *err)
{
    const struct store_config *config = &store->config;
    struct stat st;
    const char *shown = PATH_TEXT(config->output);
    if (stat(config->output, &st) && errno == ENOENT)
        return STATUS_OK;
    struct error why = ERROR_INIT;
    if (result_open(&store->replaced, config->output, &why)) {
        return error_set(
            err, STATUS_FAILED,
            "%s exists and is not overwritten: move it away or name another output (%s)", shown,
            ERROR_LINE(&why));
    }
    if (config->fresh)
        return STATUS_OK;
    if (result_parts(store->replaced) > 0)
        return error_set(err, STATUS_USAGE,
                         "%s shows the rows of %u other files and cannot be updated: update those "
                         "and run clpipe merge again; a file made by merge --copy can be updated",
                         shown, result_parts(store->replaced));
    if (!store->replaced->has_images) {
        error_set(err, STATUS_USAGE, "%s holds clusters of other data", shown);
        error_remedy(err, REMEDY_REPLACE_FILE);
        return STATUS_USAGE;
    }
    return check_parameters(store, shown, err);
}

/* Renumbers the sources of the existing file. */
static enum status number_sources(struct store *store, struct error *err)
{
    const struct store_config *config = &store->config;
    const unsigned count = store->replaced ? store->replaced->source_count : 0;
    if (count == 0 || (!config->source_before && !config->fresh))
        return STATUS_OK;
    int *now = store->source_now = malloc(count * sizeof *now);
    if (!now)
        return error_memory(err, count * sizeof *now, "the sources");
    for (unsigned j = 0; j < count; j++)
        now[j] = -1;
    for (unsigned i = 0; i < config->content.source_count; i++) {
        const int before = config->fresh ? -1 : config->source_before[i];
        if (before >= 0 && (unsigned)before < count)
            now[before] = (int)i;
        /* With --fresh, some sources may be the same as before. */
        for (unsigned j = 0; config->fresh && j < count; j++)
            if (now[j] < 0 && strcmp(store->replaced->sources[j], config->content.sources[i]) == 0)
                now[j] = (int)i;
    }
    return STATUS_OK;
}

/* Resumes the logs of an interrupted run of the same command, or begins one. */
static enum status begin_journal(struct store *store, const uint32_t *widths, struct error *err)
{
    const struct content *content = &store->config.content;
    char difference[640], *mine = signature_of_content(content, err);
    const char *theirs = store->logs.signature;
    enum status status = mine ? STATUS_OK : STATUS_FAILED;
    if (mine && theirs &&
        parameters_difference(difference, sizeof difference, theirs, mine, "the unfinished run")) {
        status = error_set(err, STATUS_USAGE,
                           "%s holds the unfinished work of another command: %s; finish that one "
                           "first",
                           PATH_TEXT(store->work->path), difference);
        error_remedy(err, REMEDY_REPLACE_FILE);
    }
    /* Learned codebooks must exist before the log marks the run as begun. */
    if (!status && store->has_learned && !theirs)
        status = codebooks_write_log(content->features, store->work->path, err);
    if (!status)
        status = journal_open(&store->journal, store->work, &store->logs, widths,
                              content->features->count, store->config.fresh, mine,
                              store->config.stop, err);
    if (!status && store->config.command)
        workdir_note_command(store->work, store->config.command);
    free(mine);
    return status;
}

/* Creates the work directory, and checks now that the output can be written at the end. */
static enum status claim_output(struct store *store, struct error *err)
{
    struct output *probe = NULL;
    struct error why = ERROR_INIT;
    enum status status = workdir_open(&store->work, store->config.output, &why);
    /* A problem with the directory is better reported for the output. */
    if (!status || why.native != EWOULDBLOCK) {
        enum status writable = output_open(&probe, store->config.output, err);
        output_close(&probe);
        if (writable)
            return writable;
    }
    if (status && err)
        *err = why;
    return status;
}

/* The existing file, if its rows can be reused. */
static struct result *usable(const struct store *store)
{
    return store->config.fresh || store->config.redo ? NULL : store->replaced;
}

enum status store_begin(struct store *store, const struct content *content, struct error *err)
{
    struct store_config *config = &store->config;
    const unsigned thumbnail_size = config->content.thumbnail_size;
    uint32_t widths[FEATURE_MAX];
    enum status status = STATUS_OK;
    config->content = *content;
    config->content.thumbnail_size = thumbnail_size;
    for (unsigned i = 0; i < content->features->count; i++) {
        widths[i] = (uint32_t)feature_row_bytes(&content->features->feature[i]);
        store->has_learned |= content->features->feature[i].codebook != NULL;
    }
    if ((status = workdir_check(store->work, err)) || (status = begin_journal(store, widths, err)))
        return status;
    struct result *finished = usable(store);
    /* Without a size, the file's thumbnails stay, and new images get none. */
    if (thumbnail_size == 0 && finished)
        config->content.thumbnail_size = finished->thumbnail_size;
    struct prior_config prior = {.content = &config->content,
                                 .retry_failed = config->retry_failed,
                                 .retry_limited = config->retry_limited,
                                 .codes = config->require_codes,
                                 .thumbnail_size = thumbnail_size,
                                 .finished = finished,
                                 .source_now = store->source_now,
                                 .log = journal_records(store->journal),
                                 .directory = store->work->path};
    return prior_open(&store->prior, &prior, err);
}

enum status store_learned(struct store *store, struct feature_set *features, bool *all,
                          struct error *err)
{
    *all = false;
    /* Without a log's header they may be those of another command. */
    if (!store->logs.signature)
        return STATUS_OK;
    if (codebooks_read_log(&store->learned, store->work->path, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < features->count; i++) {
        struct feature *feature = &features->feature[i];
        for (unsigned c = 0; feature_lacks_codebook(feature) && c < store->learned.count; c++) {
            char asked[sizeof feature->spec];
            struct stored_codebook *stored = &store->learned.stored[c];
            codebooks_spec_asked(asked, sizeof asked, feature->spec);
            if (strcmp(stored->name, feature->name) == 0 && strcmp(stored->spec, asked) == 0)
                feature_bind_codebook(feature, &stored->codebook, NULL);
        }
    }
    *all = !feature_set_lacks_codebooks(features);
    return STATUS_OK;
}

enum status store_open(struct store **out, const struct store_config *config, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return error_memory(err, sizeof *store, "the store");
    store->config = *config;
    pthread_mutex_init(&store->lock, NULL);
    if ((status = claim_output(store, err)) || (status = check_output(store, err)) ||
        (status = number_sources(store, err)) ||
        (status = records_open(&store->logs, store->work->directory, store->work->path,
                               config->fresh, err)))
        goto out;
    if (!feature_set_lacks_codebooks(config->content.features))
        status = store_begin(store, &config->content, err);
out:
    if (status)
        store_close(&store);
    *out = store;
    return status;
}

unsigned store_thumbnail_size(const struct store *store, bool *file)
{
    const struct result *there = store->config.fresh ? NULL : store->replaced;
    *file = there != NULL;
    return there ? there->thumbnail_size : 0;
}

void store_make_thumbnails(struct store *store, unsigned size, bool all)
{
    store->config.content.thumbnail_size = size;
    prior_require_thumbnails(store->prior, all ? size : 0);
}

void store_set_share(struct store *store, const struct list_share *share)
{
    store->config.content.share = *share;
}

void store_set_sidecars(struct store *store, struct sidecars *sidecars)
{
    store->sidecars = sidecars;
}

const char *store_work_directory(const struct store *store)
{
    return store->work->path;
}

struct prior *store_prior(const struct store *store)
{
    return store->prior;
}

struct journal *store_journal(const struct store *store)
{
    return store->journal;
}

enum status store_count_at(uint64_t *count, const struct store *store, uint16_t source,
                           const char *path, struct error *err)
{
    struct result *there = store->config.fresh ? NULL : store->replaced;
    const size_t length = strlen(path);
    const bool below = length == 0 || path[length - 1] == '/';
    *count = 0;
    for (uint64_t i = 0; there && i < result_images(there); i++) {
        struct result_image image;
        if (result_image_at(there, i, &image, err))
            return STATUS_FAILED;
        const int now = store->source_now ? store->source_now[image.source] : image.source;
        *count += now == source && (below ? strncmp(image.path_raw, path, length) == 0
                                          : strcmp(image.path_raw, path) == 0);
    }
    return STATUS_OK;
}

bool store_updates(const struct store *store)
{
    return usable(store);
}

/* --- putting --------------------------------------------------------------------------------- */

static enum status add_stat(struct store *store, const struct store_record *record,
                            struct error *err)
{
    pthread_mutex_lock(&store->lock);
    struct row_stat *stat = array_with_room(store->stat, store->stats, sizeof *stat);
    if (stat) {
        store->stat = stat;
        stat[store->stats++] = (struct row_stat){.row = location_row(record->origin),
                                                 .inode = record->image.inode,
                                                 .ctime_ns = record->image.ctime_ns};
    }
    pthread_mutex_unlock(&store->lock);
    return stat ? STATUS_OK
                : error_memory(err, array_bytes(store->stats, sizeof *stat), "inode numbers");
}

enum status store_put(struct store *store, const struct store_record *record, struct error *err)
{
    struct store_record kept = *record;
    if (record->restated && location_kind(record->origin) == LOCATION_IMAGE &&
        add_stat(store, record, err))
        return STATUS_FAILED;
    /* Only thumbnails that the file will hold are counted. */
    if (kept.thumbnail_size == 0 || kept.thumbnail_size != store->config.content.thumbnail_size ||
        kept.thumbnail_length > RECORDS_MOST_THUMBNAIL || (!kept.origin && !kept.thumbnail)) {
        kept.thumbnail = NULL;
        kept.thumbnail_length = 0;
    }
    if (record->origin || record->failure.reason != REASON_NONE)
        return journal_put(store->journal, &kept, NULL, err);
    assert(record->counters);
    const size_t bytes = 4 * (size_t)store->config.content.features->values;
    uint8_t *values = malloc(bytes);
    bool made = values != NULL;
    for (unsigned i = 0; made && i < store->config.content.features->count; i++) {
        const struct feature *feature = &store->config.content.features->feature[i];
        made = feature_store_values(values + 4 * (size_t)feature->place, feature,
                                    record->counters + feature->offset);
    }
    const enum status status = made ? journal_put(store->journal, &kept, values, err)
                                    : error_memory(err, bytes, "an image's values");
    free(values);
    return status;
}

/* --- finishing ------------------------------------------------------------------------------- */

/* With --fresh, what the file held besides images is dropped. */
static void tell_dropped(const struct store *store)
{
    struct objects objects = {.count = 0};
    if (store->replaced)
        objects_list(&objects, store->replaced->file, NULL);
    for (unsigned i = 0; i < objects.count; i++) {
        const struct object *object = &objects.object[i];
        const char *name = strchr(object->name, '/') + 1;
        const struct result_clusters *c =
            object->kind == OBJECT_CLUSTERS ? result_clusters_find(store->replaced, name) : NULL;
        if (c)
            log_message(LOG_NOTICE,
                        "clusters '%s' are removed because the file is started over (k %u, feature "
                        "%s, metric %s, init %s, seed %lld)",
                        name, c->k, c->feature, c->metric, c->init, (long long)c->seed);
        else if (object->kind == OBJECT_FEATURE)
            log_message(LOG_NOTICE,
                        "the imported feature '%s' is removed because the file is started over",
                        name);
        else
            log_message(LOG_NOTICE, "%s is removed because the file is started over", object->name);
    }
    objects_clear(&objects);
}

static enum status ask_may_go(struct store *store, const uint8_t *there, struct error *err)
{
    const struct store_config *config = &store->config;
    struct result *old =
        config->fresh || (store->replaced && !store->replaced->has_images) ? NULL : store->replaced;
    enum status status =
        config->may_go ? config->may_go(config->may_go_context, old, store->source_now, there, err)
                       : STATUS_OK;
    /* The work of a mistaken command must not block the corrected one. */
    if (status == STATUS_USAGE && old && config->old &&
        strcmp(config->old->parameters, config->content.parameters) != 0)
        store->discard = true;
    return status;
}

enum status store_may_all_go(struct store *store, struct error *err)
{
    const uint64_t rows = store->replaced ? result_images(store->replaced) : 0;
    uint8_t *there = calloc(rows + 1, 1);
    enum status status =
        there ? ask_may_go(store, there, err) : error_memory(err, rows, "the rows");
    free(there);
    return status;
}

/* Maps rows to those of the existing file, and asks whether missing rows may be removed. */
static enum status map_rows(struct row_map *map, struct store *store, const struct new_rows *rows,
                            struct error *err)
{
    const uint64_t images = result_images(store->replaced);
    uint8_t *there = calloc(images + 1, 1);
    enum status status = there ? row_map_make(map, rows, store->replaced, store->source_now,
                                              store->work->path, there, err)
                               : error_memory(err, images, "the rows");
    if (!status)
        status = ask_may_go(store, there, err);
    free(there);
    return status;
}

/* Data of other programs does not move with the rows: tells the user. */
static void tell_foreign(const struct store *store, const struct rewrite_report *report, bool moved)
{
    const struct foreign_copied *copied = &report->foreign;
    const char *shown = PATH_TEXT(store->config.output);
    const char *objects = NUMBER_OF(copied->objects, "object");
    const char *attributes = NUMBER_OF(copied->attributes, "attribute");
    if (moved && copied->objects + copied->attributes > 0)
        log_message(LOG_NOTICE,
                    "notice: data of other programs in %s is kept unchanged (%s, %s); rows have "
                    "moved: /runs/%llu/row_map has the earlier row of each",
                    shown, objects, attributes, (unsigned long long)report->run);
    if (copied->lost > 0)
        log_message(LOG_NOTICE, "notice: %s of other programs in %s could not be kept",
                    NUMBER_OF(copied->lost, "item"), shown);
}

static void keep_first_line(const char *line, void *context)
{
    char *first = context;
    if (!*first)
        snprintf(first, 256, "%.255s", line);
}

/* The new file will have checksums of the current values, so values that have changed since they
 * were written are reported. */
static void tell_damage(struct result *old, bool carried)
{
    static const char *const parts[] = {"/", "/clusters", "/neighbours"};
    char first[256] = "";
    struct verify verify = {.result = old, .broken = keep_first_line, .context = first};
    struct error why = ERROR_INIT;
    for (unsigned i = 0; old && i < (carried ? 3 : 1); i++)
        if (checksums_verify(&verify, parts[i], &why) != STATUS_OK)
            keep_first_line(why.sentence, first);
    if (*first)
        log_message(LOG_NOTICE,
                    "notice: %s has changed since clpipe wrote it (%s); rows that are kept keep "
                    "their present values",
                    PATH_TEXT(old->path), first);
}

/* The result may fit on a disk other than that of its log. */
static void tell_other_disk(const struct store *store, struct error *err)
{
    const bool full = err && err->native == ENOSPC;
    if (full || (err && err->native == EDQUOT))
        error_set(err, STATUS_FAILED,
                  "the result does not fit beside its log, %s: free some space and run the command "
                  "again, or move %s to another disk and run it with -o there",
                  full ? "the disk is full" : "your disk quota is used up",
                  PATH_TEXT(store->work->path));
}

/* Once. */
static enum status add_sidecars(struct store *store, const struct row_list *images,
                                struct error *err)
{
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < images->runs && !store->has_texts && !status; i++) {
        const struct row_run run = images->run[i];
        const bool in_file = run.input == INPUT_FILE;
        for (uint64_t row = run.first; row < run.first + run.count && !status; row++) {
            struct store_record record;
            status = prior_at(store->prior,
                              location_of(in_file ? LOCATION_IMAGE : LOCATION_LOG_IMAGE, row),
                              &record, err);
            if (!status)
                status = sidecars_row(store->sidecars, record.image.source, record.path,
                                      record.path_length, in_file ? row : SIDECAR_NO_ROW, err);
        }
    }
    store->has_texts = true;
    return status;
}

/* Writes the file, with what is kept of the existing one. */
static enum status write_file(struct store *store, const struct new_rows *rows, bool compress,
                              const struct store_run *run, struct error *err)
{
    const struct store_config *config = &store->config;
    struct row_map map = {.earlier = NULL};
    struct carry carry = {.label = config->label,
                          .threads = config->threads,
                          .stop = config->stop,
                          .features = config->content.features,
                          .remade = config->remade};
    struct rewrite_report report;
    struct rewrite rewrite = {.output = config->output,
                              .rows = rows,
                              .compress = compress,
                              .threads = config->threads,
                              .sidecars = store->sidecars,
                              .run = run,
                              .replaced = store->replaced,
                              .watch.stop = config->stop};
    enum status status = STATUS_OK;
    if (!store->replaced || !store->replaced->has_images) {
        status = ask_may_go(store, NULL, err);
    } else {
        status = map_rows(&map, store, rows, err);
        rewrite.map = &map;
        rewrite.carry = config->fresh ? NULL : &carry;
    }
    if (!status)
        tell_damage(usable(store), rewrite.carry);
    if (!status && store->sidecars)
        status = add_sidecars(store, &rows->lists.images, err);
    if (!status && (status = rewrite_file(&report, &rewrite, err)))
        tell_other_disk(store, err);
    if (!status && rewrite.carry)
        carry_tell(&carry);
    else if (!status)
        tell_dropped(store);
    if (!status)
        tell_foreign(store, &report, map.earlier && !map.same);
    row_map_clear(&map);
    return status;
}

static bool same_share(const struct list_share *a, const struct list_share *b)
{
    return a->index == b->index && a->count == b->count && a->first == b->first &&
           a->last == b->last && a->list_count == b->list_count &&
           strcmp(a->list_digest, b->list_digest) == 0;
}

/* An unknown directory of a source is not enough reason to rewrite the file. */
static bool same_content(const struct content *a, const struct content *b)
{
    bool same = a->source_count == b->source_count && strcmp(a->parameters, b->parameters) == 0;
    for (unsigned i = 0; same && i < a->source_count; i++)
        same = strcmp(a->sources[i], b->sources[i]) == 0 &&
               (!a->directories || !a->directories[i][0] || !b->directories ||
                strcmp(a->directories[i], b->directories[i]) == 0);
    return same;
}

/* *same: the existing file already equals the new one. */
static enum status compare(bool *same, struct store *store, const struct new_rows *rows,
                           bool compress, struct error *err)
{
    const struct store_config *config = &store->config;
    enum status status = rows_are_same(same, rows, usable(store), err);
    /* The file also stores its sources and the options that select files. */
    if (*same)
        *same = (!config->old || same_content(config->old, &config->content)) &&
                same_share(&store->replaced->share, &config->content.share) &&
                (!compress || result_compressed(store->replaced) || rows->lists.images.rows == 0);
    if (!status && store->sidecars && store->replaced)
        status = sidecars_keep(store->sidecars, store->replaced, *same, err);
    if (status || !*same || !store->sidecars)
        return status;
    /* A repaired file may lack the columns. */
    status = add_sidecars(store, &rows->lists.images, err);
    *same = sidecars_same(store->sidecars);
    return status;
}

enum status store_finish(struct store *store, const struct store_run *run,
                         struct store_summary *summary, struct error *err)
{
    const struct store_config *config = &store->config;
    struct row_input input[2] = {{0}};
    struct new_rows rows = {.content = &config->content, .input = input, .prior = store->prior};
    struct journal_tally tally;
    struct log_input log;
    struct file_input file;
    struct result *finished = usable(store);
    const unsigned size = config->content.thumbnail_size;
    const bool compress = config->compress ||
                          (store->replaced && !config->fresh && result_compressed(store->replaced));
    const struct row_lists *lists;
    enum status status = journal_finish(store->journal, &lists, &tally, err);
    if (status)
        return status;
    rows.lists = *lists;
    *summary = (struct store_summary){.images = tally.by_reason[REASON_NONE]};
    memcpy(summary->by_reason, tally.by_reason, sizeof summary->by_reason);
    rows.codes = tally.codes == summary->images && tally.codes > 0;
    log_input_init(&input[INPUT_LOG], &log, journal_records(store->journal), size);
    if (finished)
        result_input_init(&input[INPUT_FILE], &file, finished, config->content.features,
                          store->source_now, size);
    if (finished && store->stats > 0) {
        qsort(store->stat, store->stats, sizeof *store->stat, compare_u64);
        file.stat = store->stat;
        file.stats = store->stats;
    }
    status = compare(&summary->unchanged, store, &rows, compress, err);
    if (!status)
        status = summary->unchanged ? ask_may_go(store, NULL, err)
                                    : write_file(store, &rows, compress, run, err);
    store->done = !status;
    if (finished)
        file_input_clear(&file);
    return status;
}

void store_discard(struct store *store)
{
    store->discard = true;
}

void store_close(struct store **store)
{
    if (!store || !*store)
        return;
    struct store *s = *store;
    *store = NULL;
    /* Learned codebooks are work, too. */
    const bool remove = s->journal && (s->done || s->discard ||
                                       (!journal_holds_work(s->journal) && !s->has_learned));
    prior_close(&s->prior);
    journal_close(&s->journal);
    records_clear(&s->logs);
    result_close(&s->replaced);
    codebooks_clear(&s->learned);
    pthread_mutex_destroy(&s->lock);
    free(s->stat);
    free(s->source_now);
    if (remove)
        workdir_close(&s->work, false);
    else
        workdir_release(&s->work);
    free(s);
}
