/* learning.c: decodes candidates in parallel; joins their descriptors image by image.
 *
 * Candidates are decoded in rounds: first as many as the sample needs, then more while some fail.
 * Within a round threads take them in the order of the walk, in which members of compressed
 * archives must be opened. When enough are decoded, the sample is the first of them in the
 * candidates' order. */
#include "ingest/learning.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/path.h"
#include "base/process.h"
#include "base/threads.h"
#include "decode/isolate.h"
#include "decode/scale.h"
#include "features/kind.h"
#include "features/train.h"
#include "ingest/bounds.h"
#include "ingest/candidates.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS  16u /* rows decoded at a time */
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
    struct budget *budget;
    struct candidates candidates;
    struct taken *taken; /* per candidate; written by the thread that takes it */

    uint32_t *round; /* candidates of a round, by sequence */

    pthread_t caller;     /* one of the threads: shows progress */
    int64_t start, shown; /* clock_now(): of the phase, and when progress was last shown */

    pthread_mutex_t opening; /* held while a candidate is taken and, if order matters, opened */
    pthread_mutex_t lock;    /* guards the following; taken after `opening` */
    uint32_t next, in_round, decoded, unreadable;
};

uint32_t learning_pictures(const struct learning *learning)
{
    return min_u32(learning->decoded, learning->pictures);
}

uint32_t learning_unread(const struct learning *learning)
{
    return learning->candidates.unread + learning->unreadable;
}

/* --- one image ------------------------------------------------------------------------------- */

/* An image being decoded: scaled to each goal of the features; whole for features without one. */
struct decoding {
    uint8_t *whole; /* NULL: not needed by any feature */
    uint8_t *block; /* rows for the scalers if `whole` is NULL */
    scale_goal goal[FEATURE_MAX];
    struct scaler scaler[FEATURE_MAX];
    unsigned goals;
    bool needs_whole;
};

static void find_goals(struct decoding *decoding, const struct learning *learning)
{
    for (unsigned i = 0; i < learning->features->count; i++) {
        const scale_goal goal = learning->features->feature[i].image.scale;
        unsigned same = 0;
        while (same < decoding->goals && decoding->goal[same] != goal)
            same++;
        if (learning->each[i] == 0)
            continue;
        decoding->needs_whole = decoding->needs_whole || goal == 0;
        if (goal > 0 && same == decoding->goals)
            decoding->goal[decoding->goals++] = goal;
    }
}

/* Memory for decoding an image of that size. */
static uint64_t decoding_bytes(const struct decoding *decoding, const struct image_info *info)
{
    const uint32_t width = info->out_width, height = info->out_height;
    const uint64_t row = (uint64_t)3 * width;
    uint64_t bytes = decoding->needs_whole ? row * height : row * BLOCK_ROWS;
    for (unsigned i = 0; i < decoding->goals; i++)
        bytes += scaler_bytes(width, height, info->orientation, decoding->goal[i]);
    return bytes;
}

static void decoding_clear(struct decoding *decoding)
{
    for (unsigned i = 0; i < decoding->goals; i++)
        scaler_clear(&decoding->scaler[i]);
    free(decoding->whole);
    free(decoding->block);
}

/* false: no memory. *decoded: whether it could be decoded. */
static bool decode_pixels(struct decoding *decoding, bool *decoded, struct decode *decode,
                          const struct image_info *info, struct failure *failure)
{
    const uint32_t width = info->out_width, height = info->out_height;
    const size_t stride = (size_t)3 * width;
    uint64_t digest[2];
    bool memory = true;
    *decoded = false;
    for (unsigned i = 0; i < decoding->goals && memory; i++)
        memory =
            scaler_begin(&decoding->scaler[i], width, height, info->orientation, decoding->goal[i]);
    uint8_t **rows = decoding->needs_whole ? &decoding->whole : &decoding->block;
    *rows = malloc(decoding->needs_whole ? stride * height : stride * BLOCK_ROWS);
    if (!memory || !*rows)
        return false;
    for (uint32_t y = 0; y < height; y += BLOCK_ROWS) {
        const uint32_t count = height - y < BLOCK_ROWS ? height - y : BLOCK_ROWS;
        uint8_t *at = *rows + (decoding->needs_whole ? y * stride : 0);
        if (decode_rows(decode, at, stride, count, failure) != REASON_NONE)
            return true;
        for (unsigned i = 0; i < decoding->goals; i++)
            scaler_rows(&decoding->scaler[i], at, stride, count);
    }
    *decoded = decode_end(decode, digest, failure) == REASON_NONE;
    return true;
}

/* The image as decoded, or as scaled to the goal. */
static struct descriptor_picture find_image(const struct decoding *decoding,
                                            const struct image_info *info, scale_goal goal)
{
    struct descriptor_picture image = {
        .pixels = decoding->whole, .width = info->out_width, .height = info->out_height};
    for (unsigned i = 0; i < decoding->goals; i++) {
        const struct scaler *scaler = &decoding->scaler[i];
        if (decoding->goal[i] == goal) {
            const bool swapped = info->orientation >= 5;
            image.pixels = scaler->pixels; /* upright */
            image.width = swapped ? scaler->window.height : scaler->window.width;
            image.height = swapped ? scaler->window.width : scaler->window.height;
        }
    }
    image.stride = (size_t)3 * image.width;
    return image;
}

/* Computes evenly spaced descriptors; false: no memory. */
static bool describe(struct taken *taken, unsigned i, const struct learning *learning,
                     const struct decoding *decoding, const struct image_info *info)
{
    const struct feature *feature = &learning->features->feature[i];
    const struct descriptor *descriptor = feature->kind->descriptor;
    const uint32_t columns = descriptor->columns;
    const struct descriptor_picture image = find_image(decoding, info, feature->image.scale);
    const uint32_t there = descriptor_number(descriptor, image.width, image.height);
    const uint32_t rows = min_u32(there, learning->each[i]);
    taken->row[i] = malloc((size_t)rows * columns + 1);
    taken->rows[i] = taken->row[i] ? rows : 0;
    for (uint32_t r = 0; r < taken->rows[i]; r++)
        descriptor_describe(taken->row[i] + (size_t)r * columns, descriptor, &image,
                            (uint32_t)((uint64_t)r * there / rows), 1);
    return taken->row[i];
}

/* An image that cannot be decoded is left out of the sample; false: no memory. */
static bool decode_image(struct taken *taken, struct learning *learning, struct decode *decode,
                         const struct candidate *candidate, const struct blob *blob,
                         struct failure *failure)
{
    struct decoding decoding = {.goals = 0};
    struct image_info info;
    if (decode_begin(decode, blob, candidate->path, &info, failure) != REASON_NONE)
        return true;
    find_goals(&decoding, learning);
    const uint64_t bytes = info.memory + decoding_bytes(&decoding, &info);
    bool memory = true, decoded = false;
    if (budget_take(learning->budget, bytes)) {
        memory = decode_pixels(&decoding, &decoded, decode, &info, failure);
        for (unsigned i = 0; decoded && memory && i < learning->features->count; i++)
            if (learning->each[i] > 0)
                memory = describe(taken, i, learning, &decoding, &info);
        budget_give(learning->budget, bytes);
    }
    if (!decoded)
        decode_abort(decode);
    taken->decoded = decoded && memory;
    decoding_clear(&decoding);
    return memory;
}

/* --- a thread -------------------------------------------------------------------------------- */

/* The next candidate of the round; UINT32_MAX: no more, or no longer needed. */
static uint32_t next_candidate(struct learning *learning)
{
    uint32_t next = UINT32_MAX;
    pthread_mutex_lock(&learning->lock);
    if (learning->next < learning->in_round && stop_requested(learning->job->stop) == STOP_NONE)
        next = learning->round[learning->next++];
    pthread_mutex_unlock(&learning->lock);
    return next;
}

/* Is the failure a lack of resources? It must not affect the sample. */
static bool is_shortage(const struct failure *failure)
{
    return failure->reason == REASON_OUT_OF_MEMORY || process_is_short(failure->error_number);
}

/* Opens a candidate; one that cannot be opened is left out of the sample: *out is empty and
 * *failure says why. */
static void open_candidate(struct blob *out, struct failure *failure,
                           const struct learning *learning, uint32_t i)
{
    const struct candidate *candidate = &learning->candidates.item[i];
    const struct source_member member = {candidate->path, candidate->where, candidate->bytes,
                                         candidate->mtime_ns};
    if (walk_open_member(out, learning->walk, candidate->source, &member, failure) != REASON_NONE)
        *out = (struct blob)BLOB_NOTHING;
}

static uint32_t take_candidate(struct blob *out, struct failure *failure, struct learning *learning)
{
    pthread_mutex_lock(&learning->opening);
    const uint32_t i = next_candidate(learning);
    const bool in_order =
        i != UINT32_MAX && walk_opens_in_order(learning->candidates.item[i].where);
    if (in_order)
        open_candidate(out, failure, learning, i);
    pthread_mutex_unlock(&learning->opening);
    if (i != UINT32_MAX && !in_order)
        open_candidate(out, failure, learning, i);
    return i;
}

static void show_sample(const struct learning *learning, uint32_t decoded)
{
    ingest_job_phase(learning->job, "sample", decoded,
                     min_u32(learning->candidates.count, learning->pictures), learning->start);
}

/* Decodes candidates of the round. */
static void *take_candidates(void *argument)
{
    struct learning *learning = argument;
    const struct ingest_config *config = learning->job->config;
    struct decode_options options = config->decode;
    struct error err = ERROR_INIT;
    struct decode *decode = NULL;
    options.stop = learning->job->stop;
    bool going = (config->isolate ? decode_open_isolated(&decode, config->isolate, &err)
                                  : decode_open(&decode, &options, &err)) == STATUS_OK;
    while (going && (going = decode_ready(decode, &err) == STATUS_OK)) {
        struct blob blob = BLOB_NOTHING;
        struct failure failure = {.reason = REASON_NONE};
        const uint32_t i = take_candidate(&blob, &failure, learning);
        if (i == UINT32_MAX)
            break;
        const struct candidate *candidate = &learning->candidates.item[i];
        const bool open = blob_is_open(&blob);
        going =
            open ? decode_image(&learning->taken[i], learning, decode, candidate, &blob, &failure)
                 : !is_shortage(&failure);
        if (!going && !open)
            error_set(&err, STATUS_FAILED, "%s: %s", PATH_TEXT(candidate->path), failure.message);
        else if (!going)
            error_memory(&err, candidate->bytes, "an image of the sample");
        blob_close(&blob);
        pthread_mutex_lock(&learning->lock);
        learning->decoded += learning->taken[i].decoded;
        learning->unreadable += failure.reason == REASON_UNREADABLE || is_shortage(&failure);
        const uint32_t decoded = learning_pictures(learning);
        pthread_mutex_unlock(&learning->lock);
        if (pthread_equal(pthread_self(), learning->caller) &&
            clock_now() - learning->shown >= PROGRESS_NS) {
            show_sample(learning, decoded);
            learning->shown = clock_now();
        }
    }
    if (!going) {
        ingest_job_fail(learning->job, &err);
        budget_abort(learning->budget);
    }
    decode_close(&decode);
    return NULL;
}

/* --- all of them ----------------------------------------------------------------------------- */

static int compare_by_sequence(const void *a, const void *b, void *context)
{
    const struct candidate *candidates = context;
    const uint64_t x = candidates[*(const uint32_t *)a].sequence;
    const uint64_t y = candidates[*(const uint32_t *)b].sequence;
    return (x > y) - (x < y);
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
        learning->next = 0;
        learning->in_round = files;
        threads_run(take_candidates, learning, learning->job->config->threads);
        show_sample(learning, learning_pictures(learning));
        const struct error *failed = &learning->job->error;
        status = failed->status != STATUS_OK
                     ? failed->status
                     : stop_check(learning->job->stop, "decoding the sample", err);
        if (failed->status != STATUS_OK && err)
            *err = *failed;
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

enum status learning_sample(struct learning **out, struct ingest_job *job, struct walk *walk,
                            const struct feature_set *features, uint32_t pictures,
                            struct error *err)
{
    struct learning *learning = *out = calloc(1, sizeof *learning);
    if (!learning)
        return error_memory(err, sizeof *learning, "a sample");
    *learning = (struct learning){.job = job,
                                  .walk = walk,
                                  .features = features,
                                  .pictures = pictures,
                                  .caller = pthread_self(),
                                  .start = clock_now()};
    pthread_mutex_init(&learning->opening, NULL);
    pthread_mutex_init(&learning->lock, NULL);
    ingest_job_phase(learning->job, "sample", 0, 0, learning->start);
    enum status status =
        candidates_choose(&learning->candidates, walk, MOST_FILES(pictures), job->stop, err);
    if (status == STATUS_OK)
        status = budget_open(&learning->budget, bounds_codecs(job->config->memory), err);
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
    }
    if (status == STATUS_OK)
        status = run_rounds(learning, err);
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
static enum status join_rows(uint8_t **rows, uint64_t *count, struct learning *learning, unsigned i,
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
    enum status status[FEATURE_MAX];
    struct error error[FEATURE_MAX];
    atomic_uint next; /* feature */
    unsigned threads;
    int64_t start;
};

static void show_training(void *context, const char *phase, uint64_t done, uint64_t total)
{
    const struct training *all = context;
    if (pthread_equal(pthread_self(), all->learning->caller))
        ingest_job_phase(all->learning->job, phase, done, total, all->start);
}

static enum status train(struct training *all, unsigned i, struct error *err)
{
    struct learning *learning = all->learning;
    const struct feature *feature = &all->features->feature[i];
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

static void *train_next(void *context)
{
    struct training *all = context;
    for (unsigned i; (i = atomic_fetch_add(&all->next, 1)) < all->features->count;) {
        if (feature_lacks_codebook(&all->features->feature[i]))
            all->status[i] = train(all, i, &all->error[i]);
        if (all->status[i] != STATUS_OK)
            atomic_store(&all->next, all->features->count); /* learns no more */
    }
    return NULL;
}

enum status learning_train(struct learning *learning, struct codebooks *codebooks,
                           struct feature_set *features, struct ocl_context *context,
                           struct error *err)
{
    struct training all = {
        .learning = learning, .features = features, .devices = {&context, 1}, .start = clock_now()};
    enum status status = STATUS_OK;
    if (learning->decoded == 0)
        return error_set(err, STATUS_FAILED,
                         "no image could be decoded: there is nothing to learn a codebook from");
    for (unsigned i = 0; i < features->count; i++)
        all.threads += feature_lacks_codebook(&features->feature[i]);
    /* A device that is the host gains nothing, and PoCL's need one thread at a time. */
    if (ocl_context_device(context)->type & CL_DEVICE_TYPE_CPU)
        all.threads = 1;
    threads_run(train_next, &all, all.threads);
    for (unsigned i = 0; i < features->count; i++) {
        struct feature *feature = &features->feature[i];
        if (!feature_lacks_codebook(feature))
            continue;
        if (status == STATUS_OK && (status = all.status[i]) != STATUS_OK && err)
            *err = all.error[i];
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
    budget_close(&learning->budget);
    pthread_mutex_destroy(&learning->lock);
    pthread_mutex_destroy(&learning->opening);
    free(learning->round);
    free(learning);
    *out = NULL;
}
