/* checkpoint.c: reads and writes the state through a single description of it. */
#include "kmeans/checkpoint.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "version_generated.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Saving the state takes at most 1/SHARE of the run time. */
#define SHARE 50

/* The file consists of this, the state, and a murmur3 of both. */
struct header {
    char magic[8];
    uint32_t version, order;
    uint8_t identity[32];
    uint64_t made;
};

#define MAGIC   "clpstate"
#define VERSION 1u
#define ORDER   0x01020304u

/* --- both directions ------------------------------------------------------------------------- */

/* Appends bytes to `data`, or reads them from position `at`. */
struct codec {
    bool reading;
    char *data;
    size_t size, room, at;
    bool failed;
};

static void transfer(struct codec *codec, void *value, size_t bytes)
{
    if (codec->failed || bytes == 0)
        return;
    if (codec->reading) {
        codec->failed = bytes > codec->size - codec->at;
        if (!codec->failed)
            memcpy(value, codec->data + codec->at, bytes);
        codec->at += codec->failed ? 0 : bytes;
        return;
    }
    if (bytes > codec->room - codec->size) {
        const size_t room = 2 * codec->room + bytes;
        char *data = realloc(codec->data, room);
        codec->failed = !data;
        if (!data)
            return;
        codec->data = data;
        codec->room = room;
    }
    memcpy(codec->data + codec->size, value, bytes);
    codec->size += bytes;
}

/* When reading, allocates `count` values, but never more than the file holds. */
static void *make_room(struct codec *codec, void *old, size_t count, size_t each, size_t room)
{
    if (!codec->reading || codec->failed || count == 0)
        return old;
    codec->failed = count > (codec->size - codec->at) / each;
    void *new = codec->failed ? NULL : realloc(old, room * each);
    codec->failed = !new;
    return new ? new : old;
}

/* The history grows by array_grow. */
static void transfer_progress(struct codec *codec, struct cluster_outcome *out)
{
    transfer(codec, &out->iterations, sizeof out->iterations);
    transfer(codec, &out->converged, sizeof out->converged);
    size_t room = 1;
    while (room < out->iterations)
        room *= 2;
    out->inertia_history =
        make_room(codec, out->inertia_history, out->iterations, sizeof *out->inertia_history, room);
    transfer(codec, out->inertia_history, out->iterations * sizeof *out->inertia_history);
}

static void transfer_outcome(struct codec *codec, struct cluster_outcome *out, uint32_t k,
                             uint32_t dimension)
{
    const size_t values = (size_t)k * dimension;
    transfer_progress(codec, out);
    out->centroids = make_room(codec, out->centroids, values, sizeof *out->centroids, values);
    transfer(codec, out->centroids, values * sizeof *out->centroids);
}

static void transfer_fits(struct codec *codec, struct checkpoint_fits *fits)
{
    uint32_t count = fits->count;
    transfer(codec, &count, sizeof count);
    for (uint32_t i = 0; i < count && !codec->failed; i++) {
        struct cluster_outcome empty = {0}, *fit = codec->reading ? &empty : &fits->fit[i];
        uint32_t round = codec->reading ? 0 : fits->round[i];
        transfer(codec, &round, sizeof round);
        transfer(codec, &fit->k, sizeof fit->k);
        transfer(codec, &fit->dimension, sizeof fit->dimension);
        transfer_outcome(codec, fit, fit->k, fit->dimension);
        if (codec->reading && !codec->failed)
            codec->failed = checkpoint_add_fit(fits, fit, round, false, NULL) != STATUS_OK;
        cluster_outcome_clear(&empty);
    }
}

static void transfer_values(struct codec *codec, struct checkpoint *checkpoint)
{
    struct checkpoint_values *values = &checkpoint->values;
    struct cluster_sweep *sweep = values->sweep;
    if (!sweep)
        return;
    transfer(codec, &values->done, sizeof values->done);
    transfer(codec, &sweep->suggested, sizeof sweep->suggested);
    if (values->done > sweep->count || sweep->suggested >= sweep->count)
        codec->failed = true;
    else if (values->done > 0) {
        transfer(codec, sweep->values + sweep->count - values->done,
                 values->done * sizeof *sweep->values);
        transfer_outcome(codec, values->best, sweep->values[sweep->suggested].k,
                         checkpoint->dimension);
    }
}

static void transfer_runs(struct codec *codec, struct checkpoint *checkpoint)
{
    struct checkpoint_runs *runs = &checkpoint->runs;
    transfer(codec, &runs->done, sizeof runs->done);
    if (runs->done > 0)
        transfer_outcome(codec, runs->best, runs->best->k, checkpoint->dimension);
}

static void transfer_run(struct codec *codec, struct checkpoint *checkpoint)
{
    struct checkpoint_run *run = &checkpoint->run;
    transfer(codec, &run->stage, sizeof run->stage);
    transfer(codec, &run->seeds, sizeof run->seeds);
    if (run->seeds == 0)
        return;
    const size_t stride = checkpoint->stride, k = run->outcome->k;
    codec->failed |= run->seeds > k || (run->stage == CHECKPOINT_ITERATING && run->seeds < k);
    if (codec->failed)
        return;
    transfer(codec, run->centroids, run->seeds * stride * sizeof *run->centroids);
    if (run->stage == CHECKPOINT_SEEDING)
        return;
    transfer_progress(codec, run->outcome);
    if (run->counts) {
        transfer(codec, run->counts, k * sizeof *run->counts);
        transfer(codec, run->sums, k * stride * sizeof *run->sums);
        transfer(codec, run->weights, run->weights ? k * sizeof *run->weights : 0);
    }
}

/* --- reading --------------------------------------------------------------------------------- */

static enum status identify(struct checkpoint *checkpoint, const void *extra, size_t extra_size,
                            struct error *err)
{
    const struct checkpoint_config *config = checkpoint->config;
    char rows[65];
    struct sha256 state;
    if (config->rows(config->context, rows, err) != STATUS_OK)
        return err->status;
    sha256_init(&state);
    sha256_update(&state, CLPIPE_VERSION, sizeof CLPIPE_VERSION);
    sha256_update(&state, rows, strlen(rows) + 1);
    sha256_update(&state, config->parameters, strlen(config->parameters) + 1);
    sha256_update(&state, extra, extra_size);
    sha256_final(&state, checkpoint->identity);
    return STATUS_OK;
}

/* Returns the problem with the file's contents, or NULL. */
static const char *judge(struct checkpoint *checkpoint)
{
    struct header header;
    uint64_t digest[2];
    if (checkpoint->size < sizeof header + sizeof digest)
        return "is damaged";
    memcpy(&header, checkpoint->loaded, sizeof header);
    if (memcmp(header.magic, MAGIC, sizeof header.magic) != 0 || header.version != VERSION ||
        header.order != ORDER)
        return "was written by another version of clpipe or on another kind of machine";
    checkpoint->size -= sizeof digest;
    murmur3_of(digest, checkpoint->loaded, checkpoint->size);
    if (memcmp(digest, checkpoint->loaded + checkpoint->size, sizeof digest) != 0)
        return "is damaged";
    if (memcmp(header.identity, checkpoint->identity, sizeof header.identity) != 0)
        return "belongs to other rows, other options or another version of clpipe";
    checkpoint->at = sizeof header;
    checkpoint->made = checkpoint->resumed = header.made;
    return NULL;
}

static struct codec codec_of(const struct checkpoint *checkpoint)
{
    return (struct codec){.reading = true,
                          .data = checkpoint->loaded,
                          .size = checkpoint->size,
                          .at = checkpoint->at};
}

static enum status took(struct checkpoint *checkpoint, const struct codec *codec, struct error *err)
{
    char shown[256];
    checkpoint->at = codec->at;
    if (codec->failed)
        return error_set(err, STATUS_FAILED,
                         "cannot resume from %s: it is invalid, or memory is exhausted; remove it",
                         checkpoint->config
                             ? path_for_message(shown, sizeof shown, checkpoint->config->path)
                             : "the state of the run");
    return STATUS_OK;
}

static enum status take_fits(struct checkpoint *checkpoint, struct checkpoint_fits *fits,
                             struct error *err)
{
    struct codec codec = codec_of(checkpoint);
    transfer_fits(&codec, fits);
    return took(checkpoint, &codec, err);
}

static enum status load(struct checkpoint *checkpoint, const void *extra, size_t extra_size,
                        struct error *err)
{
    const struct checkpoint_config *config = checkpoint->config;
    checkpoint->next = clock_now() + (int64_t)(config->seconds * 1e9);
    struct checkpoint_fits *fits = config->fits;
    enum status status = identify(checkpoint, extra, extra_size, err);
    checkpoint->made = fits ? fits->made : 0;
    if (fits && !fits->pending)
        return status;
    const int fd = status == STATUS_OK ? open(config->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return status;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        status = read_to_end(&checkpoint->loaded, &checkpoint->size, fd, config->path, err);
    close(fd);
    const char *wrong = status == STATUS_OK ? judge(checkpoint) : NULL;
    if (wrong) {
        log_message(LOG_NOTICE, "notice: %s %s; it is ignored", PATH_TEXT(config->path), wrong);
        checkpoint->size = checkpoint->at = 0;
        if (fits)
            fits->pending = false;
        return status;
    }
    if (status == STATUS_OK && (!fits || checkpoint->made > fits->resumed))
        log_message(LOG_NOTICE, "resuming after %s, from %s",
                    NUMBER_OF(checkpoint->made, "iteration"), PATH_TEXT(config->path));
    if (status == STATUS_OK && fits) {
        /* They have been taken already. */
        struct checkpoint_fits again = {0};
        fits->resumed = checkpoint->made;
        status = take_fits(checkpoint, &again, err);
        checkpoint_clear_fits(&again);
    }
    return status;
}

/* Sends the data read by rank 0 to all ranks. */
static enum status share_state(struct checkpoint *checkpoint, struct comm *comm, struct error *err)
{
    uint64_t read[4] = {checkpoint->size, checkpoint->at, checkpoint->made, checkpoint->resumed};
    enum status status = comm_broadcast(comm, read, sizeof read, 0, err);
    if (status != STATUS_OK || comm->size == 1)
        return status;
    if (comm->rank > 0) {
        checkpoint->size = (size_t)read[0];
        checkpoint->at = (size_t)read[1];
        checkpoint->made = read[2];
        checkpoint->resumed = read[3];
        checkpoint->loaded = malloc(checkpoint->size + 1);
        if (!checkpoint->loaded)
            return error_memory(err, checkpoint->size, "the state of a run");
    }
    return comm_broadcast(comm, checkpoint->loaded, checkpoint->size, 0, err);
}

enum status checkpoint_open(struct checkpoint *checkpoint, struct comm *comm,
                            const struct checkpoint_config *config, uint32_t dimension,
                            uint32_t stride, const void *extra, size_t extra_size,
                            struct error *err)
{
    *checkpoint = (struct checkpoint){.dimension = dimension, .stride = stride};
    if (!config)
        return STATUS_OK;
    if (comm->rank == 0) {
        checkpoint->config = config;
        if (load(checkpoint, extra, extra_size, err) != STATUS_OK)
            return err->status;
    }
    return share_state(checkpoint, comm, err);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    free(checkpoint->loaded);
    *checkpoint = (struct checkpoint){0};
}

static enum status take(struct checkpoint *checkpoint,
                        void (*part)(struct codec *codec, struct checkpoint *checkpoint),
                        struct error *err)
{
    struct codec codec = codec_of(checkpoint);
    if (checkpoint->at == checkpoint->size)
        return STATUS_OK;
    part(&codec, checkpoint);
    return took(checkpoint, &codec, err);
}

enum status checkpoint_take_values(struct checkpoint *checkpoint, struct error *err)
{
    return take(checkpoint, transfer_values, err);
}

enum status checkpoint_take_runs(struct checkpoint *checkpoint, struct error *err)
{
    return take(checkpoint, transfer_runs, err);
}

enum status checkpoint_take_run(struct checkpoint *checkpoint, struct error *err)
{
    return take(checkpoint, transfer_run, err);
}

/* --- writing --------------------------------------------------------------------------------- */

bool checkpoint_due(const struct checkpoint *checkpoint)
{
    return checkpoint->config && clock_now() >= checkpoint->next;
}

static enum status write_state(struct checkpoint *checkpoint, struct error *err)
{
    struct codec codec = {0};
    struct header header = {MAGIC, VERSION, ORDER, {0}, checkpoint->made};
    struct output *output = NULL;
    uint64_t digest[2];
    memcpy(header.identity, checkpoint->identity, sizeof header.identity);
    transfer(&codec, &header, sizeof header);
    if (checkpoint->config->fits)
        transfer_fits(&codec, checkpoint->config->fits);
    transfer_values(&codec, checkpoint);
    transfer_runs(&codec, checkpoint);
    transfer_run(&codec, checkpoint);
    murmur3_of(digest, codec.data, codec.failed ? 0 : codec.size);
    transfer(&codec, digest, sizeof digest);
    const char *path = checkpoint->config->path;
    enum status status =
        codec.failed ? error_memory(err, codec.room, "the state") : output_open(&output, path, err);
    if (status == STATUS_OK)
        status = write_all(output_descriptor(output), codec.data, codec.size, path, err);
    if (status == STATUS_OK)
        status = output_commit(output, err);
    output_close(&output);
    free(codec.data);
    return status;
}

static bool save(struct checkpoint *checkpoint)
{
    struct error err = ERROR_INIT;
    char text[1200];
    if (!checkpoint->config || checkpoint->at < checkpoint->size)
        return checkpoint->config != NULL;
    free(checkpoint->loaded);
    checkpoint->loaded = NULL;
    const int64_t start = clock_now();
    const bool saved = write_state(checkpoint, &err) == STATUS_OK;
    if (!saved)
        log_message(LOG_NOTICE, "notice: cannot save the state of the run: %s",
                    error_line(text, sizeof text, &err));
    else if (checkpoint->config->fits && checkpoint->run.outcome)
        checkpoint->config->fits->pending = true;
    const int64_t end = clock_now(), pause = (int64_t)(checkpoint->config->seconds * 1e9);
    checkpoint->next = end + (pause > (end - start) * SHARE ? pause : (end - start) * SHARE);
    return saved;
}

void checkpoint_save(struct checkpoint *checkpoint)
{
    save(checkpoint);
}

void checkpoint_save_interrupted(struct checkpoint *checkpoint, struct error *err)
{
    const struct checkpoint_run *run = &checkpoint->run;
    char seeds[64] = "", iterations[40];
    if (run->stage == CHECKPOINT_SEEDING && run->seeds > 0)
        snprintf(seeds, sizeof seeds, " and %u of %u initial centroids", run->seeds,
                 run->outcome->k);
    if (save(checkpoint))
        error_set(err, STATUS_INTERRUPTED,
                  "clustering was interrupted after %s%s; run the same command again to resume",
                  format_number_of(iterations, sizeof iterations, checkpoint->made, "iteration"),
                  seeds);
}

void checkpoint_untouched(const struct checkpoint_config *config, struct error *err)
{
    char shown[256];
    if (config && access(config->path, F_OK) == 0)
        error_set(err, STATUS_INTERRUPTED,
                  "clustering was interrupted; run the same command again to resume from %s",
                  path_for_message(shown, sizeof shown, config->path));
}

/* --- several fits ---------------------------------------------------------------------------- */

enum status checkpoint_take_fits(struct checkpoint_fits *fits,
                                 const struct checkpoint_config *config, struct error *err)
{
    struct checkpoint checkpoint = {0};
    struct checkpoint_config only;
    *fits = (struct checkpoint_fits){0};
    if (!config)
        return STATUS_OK;
    only = *config;
    only.fits = NULL;
    fits->next = clock_now() + (int64_t)(config->seconds * 1e9);
    /* Without a file, the rows need not be digested. */
    enum status status = STATUS_OK;
    if (access(config->path, F_OK) == 0) {
        checkpoint.config = &only;
        status = load(&checkpoint, NULL, 0, err);
    }
    if (status == STATUS_OK && checkpoint.at < checkpoint.size)
        status = take_fits(&checkpoint, fits, err);
    fits->made = fits->resumed = checkpoint.resumed;
    fits->pending = checkpoint.at < checkpoint.size;
    checkpoint_close(&checkpoint);
    return status;
}

enum status checkpoint_add_fit(struct checkpoint_fits *fits, const struct cluster_outcome *fit,
                               uint32_t round, bool replace, struct error *err)
{
    const uint32_t at = replace ? fits->count - 1 : fits->count;
    if (array_grow(&fits->fit, at, sizeof *fits->fit, "centroids", err) ||
        array_grow(&fits->round, at, sizeof *fits->round, "centroids", err))
        return STATUS_FAILED;
    if (!replace)
        fits->fit[at] = (struct cluster_outcome){0};
    fits->count = at;
    const enum status status = cluster_outcome_copy(&fits->fit[at], fit, err);
    if (status != STATUS_OK) {
        cluster_outcome_clear(&fits->fit[at]);
        return status;
    }
    fits->round[at] = round;
    fits->count = at + 1;
    fits->pending = false;
    return STATUS_OK;
}

void checkpoint_save_fits(const struct checkpoint_config *config, struct error *err)
{
    const bool interrupted = err->status == STATUS_INTERRUPTED;
    struct checkpoint checkpoint = {.config = config};
    struct error ignored = ERROR_INIT;
    if (!config || (!interrupted && clock_now() < config->fits->next))
        return;
    if (config->fits->pending) {
        if (interrupted)
            checkpoint_untouched(config, err);
        return;
    }
    checkpoint.made = config->fits->made;
    if (identify(&checkpoint, NULL, 0, &ignored) != STATUS_OK)
        return;
    if (interrupted)
        checkpoint_save_interrupted(&checkpoint, err);
    else
        checkpoint_save(&checkpoint);
    config->fits->next = checkpoint.next;
}

void checkpoint_clear_fits(struct checkpoint_fits *fits)
{
    for (uint32_t i = 0; i < fits->count; i++)
        cluster_outcome_clear(&fits->fit[i]);
    free(fits->fit);
    free(fits->round);
    *fits = (struct checkpoint_fits){0};
}
