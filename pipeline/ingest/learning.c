/* learning.c: decodes candidates like an ingest does, without devices; joins their descriptors image
 * by image.
 *
 * Candidates are decoded in rounds: first as many as the sample needs, then more while some fail.
 * Within a round they are taken in the order of the walk, in which members of compressed archives
 * must be opened. When enough are decoded, the sample is the first of them in the candidates'
 * order. */
#include "ingest/learning.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/workers.h"
#include "features/kind.h"
#include "features/train.h"
#include "ingest/bounds.h"
#include "ingest/candidates.h"
#include "ingest/decoder.h"
#include "ingest/readers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_NS (100 * 1000000ll)
/* The most files to try if some cannot be decoded. */
#define MOST_FILES(pictures) (4 * (pictures) + 64)
/* Minimum number of files of the second round; doubled with each further one, as each may
 * decompress all archives again. */
#define ROUND_FILES 64u

/* The outcome of decoding a candidate. */
struct taken {
    bool decoded;
    uint32_t rows[FEATURE_MAX];
    uint8_t *row[FEATURE_MAX];
};

struct learning {
    struct ingest_job *job;
    struct walk *walk;
    const struct feature_set *features;
    uint32_t pictures;          /* wanted */
    uint32_t each[FEATURE_MAX]; /* limit on descriptors per image; 0: not needed */
    struct candidates candidates;
    struct taken *taken; /* per candidate; written by the thread that decodes it */

    struct readers *readers; /* of a round */
    struct picture_sink sink;
    struct decoders_config decoders;

    uint32_t *round; /* candidates of a round, by sequence */
    uint32_t next, in_round;
    atomic_uint decoded, unreadable;

    pthread_t caller; /* shows progress */
    int64_t start;    /* clock_now(): of the phase */
};

uint32_t learning_pictures(const struct learning *learning)
{
    return min_u32(learning->decoded, learning->pictures);
}

uint32_t learning_unread(const struct learning *learning)
{
    return learning->candidates.unread + learning->unreadable;
}

/* --- pictures of a round --------------------------------------------------------------------- */

static enum status next_candidate(void *context, struct walk_item *item)
{
    struct learning *learning = context;
    if (learning->next == learning->in_round)
        return STATUS_END;
    const struct candidate *candidate =
        &learning->candidates.item[learning->round[learning->next++]];
    *item = (struct walk_item){.source = candidate->source,
                               .path = candidate->path,
                               .path_length = (uint32_t)strlen(candidate->path),
                               .entry.where = candidate->where,
                               .entry.bytes = candidate->bytes,
                               .entry.mtime_ns = candidate->mtime_ns};
    return STATUS_OK;
}

/* A picture's sequence is its place in the round. */
static struct taken *taken_of(const struct learning *learning, const struct picture *picture)
{
    return &learning->taken[learning->round[picture->record.sequence]];
}

/* Computes evenly spaced descriptors for the features of an image with that goal. */
static void describe(struct picture *picture, scale_goal goal,
                     const struct descriptor_picture *image)
{
    const struct learning *learning = picture->sink->context;
    struct taken *taken = taken_of(learning, picture);
    for (unsigned i = 0; i < learning->features->count; i++) {
        const struct feature *feature = &learning->features->feature[i];
        if (learning->each[i] == 0 || feature->image.scale != goal)
            continue;
        const struct descriptor *descriptor = feature->kind->descriptor;
        const uint32_t columns = descriptor->columns;
        const uint32_t there = descriptor_number(descriptor, image->width, image->height);
        const uint32_t rows = min_u32(there, learning->each[i]);
        free(taken->row[i]); /* of an image that is decoded again */
        taken->row[i] = malloc((size_t)rows * columns + 1);
        taken->rows[i] = taken->row[i] ? rows : 0;
        if (!taken->row[i])
            failure_set(&picture->record.failure, REASON_OUT_OF_MEMORY,
                        "no memory for %u descriptors", rows);
        for (uint32_t r = 0; r < taken->rows[i]; r++)
            descriptor_describe(taken->row[i] + (size_t)r * columns, descriptor, image,
                                (uint32_t)((uint64_t)r * there / rows), 1);
    }
}

/* An image that cannot be decoded is left out of the sample. */
static void take_finished(void *context, struct picture *picture)
{
    struct learning *learning = context;
    const enum reason reason = picture->record.failure.reason;
    taken_of(learning, picture)->decoded = reason == REASON_NONE;
    learning->decoded += reason == REASON_NONE;
    learning->unreadable += reason == REASON_UNREADABLE || reason == REASON_OUT_OF_MEMORY;
    picture_free(picture);
}

static void send_again(void *context, struct picture *picture)
{
    struct learning *learning = context;
    readers_again(learning->readers, picture);
}

/* --- all of them ----------------------------------------------------------------------------- */

static int compare_by_sequence(const void *a, const void *b, void *context)
{
    const struct candidate *candidates = context;
    const uint64_t x = candidates[*(const uint32_t *)a].sequence;
    const uint64_t y = candidates[*(const uint32_t *)b].sequence;
    return (x > y) - (x < y);
}

static void show_sample(const struct learning *learning)
{
    ingest_job_phase(learning->job, "sample", learning_pictures(learning),
                     min_u32(learning->candidates.count, learning->pictures), learning->start);
}

static enum status run_round(struct learning *learning, struct error *err)
{
    struct ingest_job *job = learning->job;
    struct decoders *decoders = NULL;
    enum status status =
        readers_open(&learning->readers, job, learning->walk, NULL, &learning->sink, 0, 1, err);
    if (status != STATUS_OK)
        return status;
    readers_choose(learning->readers, next_candidate, learning);
    learning->next = 0;
    learning->decoders.context = learning->readers;
    status = decoders_open(&decoders, &learning->decoders, err);
    if (status == STATUS_OK) {
        readers_start(learning->readers);
        while (!decoders_wait(decoders, clock_now() + PROGRESS_NS))
            show_sample(learning);
        decoders_join(decoders);
        show_sample(learning);
        status = stop_check(job->stop, "decoding the sample", err);
    }
    readers_join(learning->readers);
    decoders_close(&decoders);
    readers_close(&learning->readers);
    if (job->error.status == STATUS_OK)
        return status;
    if (err)
        *err = job->error;
    return job->error.status;
}

/* Decodes candidates until there are enough images. */
static enum status run_rounds(struct learning *learning, struct error *err)
{
    const uint32_t count = learning->candidates.count;
    enum status status = STATUS_OK;
    uint32_t begun = 0, least = ROUND_FILES;
    learning->round = malloc(((size_t)count + 1) * sizeof *learning->round);
    if (!learning->round)
        return error_memory(err, count * sizeof *learning->round, "a sample");
    while (status == STATUS_OK && begun < count && learning->decoded < learning->pictures) {
        uint32_t files = learning->pictures - learning->decoded;
        if (begun > 0 && files < least)
            files = least;
        if (files > count - begun)
            files = count - begun;
        for (uint32_t i = 0; i < files; i++)
            learning->round[i] = begun + i;
        qsort_r(learning->round, files, sizeof *learning->round, compare_by_sequence,
                learning->candidates.item);
        least = begun > 0 ? 2 * least : least;
        begun += files;
        learning->in_round = files;
        status = run_round(learning, err);
    }
    return status;
}

/* Drops images after the first `pictures` that were decoded. */
static void drop_rest(struct learning *learning)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < learning->candidates.count; i++)
        if (learning->taken[i].decoded && kept++ >= learning->pictures)
            learning->taken[i].decoded = false;
}

static void add_goal(struct decoders_config *decoders, scale_goal goal)
{
    unsigned same = 0;
    while (same < decoders->goals && decoders->goal[same] != goal)
        same++;
    if (same == decoders->goals)
        decoders->goal[decoders->goals++] = goal;
}

enum status learning_sample(struct learning **out, struct ingest_job *job, struct walk *walk,
                            const struct feature_set *features, uint32_t pictures,
                            struct error *err)
{
    struct learning *learning = *out = calloc(1, sizeof *learning);
    if (!learning)
        return error_memory(err, sizeof *learning, "a sample");
    *learning = (struct learning){
        .job = job,
        .walk = walk,
        .features = features,
        .pictures = pictures,
        .sink = {.finished = take_finished, .again = send_again, .context = learning},
        .decoders = {.job = job, .take = readers_take, .open_files = 1, .describe = describe},
        .caller = pthread_self(),
        .start = clock_now()};
    ingest_job_phase(learning->job, "sample", 0, 0, learning->start);
    enum status status =
        candidates_choose(&learning->candidates, walk, MOST_FILES(pictures), job->stop, err);
    if (status == STATUS_OK)
        status = budget_open(&job->budget, bounds_codecs(job->config->memory), err);
    const uint32_t count = learning->candidates.count;
    learning->taken = calloc((size_t)count + 1, sizeof *learning->taken);
    if (status == STATUS_OK && !learning->taken)
        status = error_memory(err, count * sizeof *learning->taken, "a sample");
    const uint32_t most = min_u32(count, pictures);
    for (unsigned i = 0; i < features->count; i++) {
        const struct feature *feature = &features->feature[i];
        if (!feature_lacks_codebook(feature))
            continue;
        uint64_t all = (uint64_t)LEARNING_FOR_WORD * feature->codebook_words;
        all = max_u64(all, max_u64(LEARNING_DESCRIPTORS, LEARNING_OF_PICTURE * (uint64_t)most));
        learning->each[i] = most > 0 ? (uint32_t)((all + most - 1) / most) : 1;
        add_goal(&learning->decoders, feature->image.scale);
    }
    if (status == STATUS_OK)
        status = run_rounds(learning, err);
    budget_close(&job->budget);
    if (status == STATUS_OK)
        drop_rest(learning);
    if (status == STATUS_OK && learning_unread(learning) > 0)
        log_message(LOG_NOTICE,
                    "notice: %u of the files and directories for learning codebooks could not be "
                    "read: the others are used",
                    learning_unread(learning));
    if (status != STATUS_OK)
        learning_close(out);
    return status;
}

/* Joins all descriptors of a feature in one array, in the order of images. */
static enum status join_rows(uint8_t **rows, uint64_t *count, struct learning *learning, uint64_t i,
                             struct error *err)
{
    const size_t columns = learning->features->feature[i].kind->descriptor->columns;
    uint64_t total = 0;
    for (uint32_t c = 0; c < learning->candidates.count; c++)
        total += learning->taken[c].decoded ? learning->taken[c].rows[i] : 0;
    uint8_t *at = *rows = malloc(total * columns + 1);
    *count = total;
    if (!at)
        return error_memory(err, total * columns, "the descriptors of a sample");
    for (uint32_t c = 0; c < learning->candidates.count; c++) {
        struct taken *taken = &learning->taken[c];
        if (taken->decoded) {
            memcpy(at, taken->row[i], taken->rows[i] * columns);
            at += taken->rows[i] * columns;
        }
        free(taken->row[i]);
        taken->row[i] = NULL;
    }
    return STATUS_OK;
}

/* The codebooks of the features that lack one, which threads learn side by side: learning waits for a device
 * and has parts that use one thread. */
struct training {
    struct learning *learning;
    const struct feature_set *features;
    struct cluster_devices devices;
    struct feature_codebook codebook[FEATURE_MAX];
    uint64_t rows[FEATURE_MAX];
    unsigned threads;
    int64_t start;
};

static void show_training(void *context, const char *phase, uint64_t done, uint64_t total)
{
    const struct training *all = context;
    if (pthread_equal(pthread_self(), all->learning->caller))
        ingest_job_phase(all->learning->job, phase, done, total, all->start);
}

static enum status train(void *context, uint64_t i, struct error *err)
{
    struct training *all = context;
    struct learning *learning = all->learning;
    const struct feature *feature = &all->features->feature[i];
    if (!feature_lacks_codebook(feature))
        return STATUS_OK;
    const struct ingest_config *config = learning->job->config;
    struct codebook_training training = {.devices = &all->devices,
                                         .memory = config->memory / all->threads,
                                         .threads = config->threads,
                                         .watch = {learning->job->stop, show_training, all}};
    uint8_t *rows = NULL;
    enum status status = join_rows(&rows, &training.rows, learning, i, err);
    all->rows[i] = training.rows;
    training.sample = rows;
    if (status == STATUS_OK && training.rows == 0)
        status =
            error_set(err, STATUS_USAGE,
                      "no codebook can be learned for feature %s: the images of the sample "
                      "(%u) are too small to have descriptors; give a codebook in the feature's "
                      "SPEC (codebook=C.h5)",
                      feature->name, learning_pictures(learning));
    if (status == STATUS_OK)
        status = codebook_train(&all->codebook[i], feature->kind->descriptor,
                                feature->codebook_words, &training, err);
    free(rows);
    return status;
}

enum status learning_train(struct learning *learning, struct codebooks *codebooks,
                           struct feature_set *features, struct ocl_context *context,
                           struct error *err)
{
    struct training all = {
        .learning = learning, .features = features, .devices = {&context, 1}, .start = clock_now()};
    struct workers *workers = NULL;
    if (learning->decoded == 0)
        return error_set(err, STATUS_FAILED,
                         "no image could be decoded: there is nothing to learn a codebook from");
    for (unsigned i = 0; i < features->count; i++)
        all.threads += feature_lacks_codebook(&features->feature[i]);
    /* A device that is the host gains nothing, and PoCL's need one thread at a time. */
    if (ocl_context_device(context)->type & CL_DEVICE_TYPE_CPU)
        all.threads = 1;
    enum status status = workers_open(&workers, all.threads, err);
    if (status == STATUS_OK)
        status = workers_try(workers, train, &all, features->count, err);
    workers_close(&workers);
    for (unsigned i = 0; i < features->count; i++) {
        struct feature *feature = &features->feature[i];
        if (!feature_lacks_codebook(feature))
            continue;
        if (status == STATUS_OK)
            status = codebooks_add(codebooks, feature, &all.codebook[i], err);
        if (status == STATUS_OK)
            log_message(LOG_DEBUG, "%s: %u words learned from %llu descriptors in %u images",
                        feature->name, feature->codebook_words, (unsigned long long)all.rows[i],
                        learning_pictures(learning));
        feature_codebook_clear(&all.codebook[i]);
    }
    return status;
}

void learning_close(struct learning **out)
{
    struct learning *learning = *out;
    if (!learning)
        return;
    for (uint32_t c = 0; learning->taken && c < learning->candidates.count; c++)
        for (unsigned i = 0; i < FEATURE_MAX; i++)
            free(learning->taken[c].row[i]);
    free(learning->taken);
    candidates_clear(&learning->candidates);
    free(learning->round);
    free(learning);
    *out = NULL;
}
