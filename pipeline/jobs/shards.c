/* shards.c: assigns images to archives, and writes one archive after another.
 *
 * The position of each member in an archive follows from the sizes in the result, so threads write
 * pictures to their places while others are read. Whether a file is missing or has changed is only
 * known afterwards: then the archive is written again without it. */
#include "jobs/shards.h"
#include "base/hash.h"
#include "base/held.h"
#include "base/json.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/path.h"
#include "jobs/reopen.h"
#include "jobs/selection.h"
#include "kmeans/canonical.h"
#include "matrix/npy.h"
#include "result/feature_matrix.h"
#include "result/flags.h"
#include "result/parameters.h"
#include "result/selections.h"
#include "result/sidecars.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE    (256u << 10)
#define KEY_MOST 32
#define TEXTS    3 /* KEY.json, KEY.cls, KEY.txt */

#define TAR_BLOCK     512u
#define TAR_END       (2 * TAR_BLOCK)        /* zeros after the last member */
#define TAR_MOST      UINT64_C(077777777777) /* bytes of a member */
#define TAR_NAME_MOST 99u

/* Size of a member in the archive: header, content, padding. */
static inline uint64_t tar_member_bytes(uint64_t bytes)
{
    return TAR_BLOCK + (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

static const char *const text_names[TEXTS] = {"json", "cls", "txt"};

struct sample {
    uint64_t row, bytes, digest[2], at; /* at: offset of the picture's header in the archive */
    int64_t seconds;
    char format[9];
    char *text[TEXTS]; /* NULL: none */
    bool is_out, done;
};

struct chosen {
    uint64_t row;
    double key;   /* of a random order */
    char *reason; /* from a selection, or NULL */
};

struct labelled {
    const struct result_clusters *clusters;
    int32_t *labels;
};

struct shards {
    const struct shards_config *config;
    struct chosen *chosen; /* all samples, in order */
    uint64_t rows, archives;
    uint64_t *first; /* per archive: its first sample; then the total */
    struct labelled *labelled;
    unsigned labelled_count;
    struct held held; /* the arrays above */
    struct flags flags;
    struct sidecar_reader *sidecars; /* NULL: the file has none */
    struct matrix_source matrix;     /* of the feature; dimension 0: none */
    struct workers *workers;
    struct reopen *reopen;
    /* The archive being written: */
    struct sample *sample;
    uint64_t samples;
    int fd;
    const char *name; /* for messages */
    pthread_mutex_t lock;
    struct error error; /* of a thread; guarded by the lock */
};

/* --- which images ------------------------------------------------------------------------------ */

static int compare_keys(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->row > y->row) - (x->row < y->row);
}

static enum status read_selection(struct shards *shards, struct error *err)
{
    struct result *result = shards->config->result;
    struct selections selections;
    enum status status = selections_list(&selections, result, err);
    const struct selection_about *about = selections_find(&selections, shards->config->selection);
    if (status == STATUS_OK && !about)
        status = error_set(err, STATUS_USAGE, "%s holds no selection %s", PATH_TEXT(result->path),
                           shards->config->selection);
    if (status == STATUS_OK) {
        SCOPED_HELD held = {0};
        int64_t *row = held_array(&held, about->rows, sizeof *row);
        char **reason = NULL;
        shards->rows = about->rows;
        shards->chosen = held_array(&shards->held, about->rows, sizeof *shards->chosen);
        status = held_check(&held, "a selection", err);
        if (status == STATUS_OK)
            status = held_check(&shards->held, "a selection", err);
        if (status == STATUS_OK)
            status = selections_read(result, about, row, &reason, err);
        for (uint64_t i = 0; i < about->rows && status == STATUS_OK; i++)
            shards->chosen[i] = (struct chosen){.row = (uint64_t)row[i], .reason = reason[i]};
        free(reason);
    }
    selections_clear(&selections);
    return status;
}

static enum status find_rows(struct shards *shards, struct error *err)
{
    enum status status = STATUS_OK;
    if (shards->config->selection) {
        status = read_selection(shards, err);
    } else {
        shards->rows = result_images(shards->config->result);
        shards->chosen = held_array(&shards->held, shards->rows, sizeof *shards->chosen);
        status = held_check(&shards->held, "rows", err);
        for (uint64_t i = 0; i < shards->rows && status == STATUS_OK; i++)
            shards->chosen[i].row = i;
    }
    if (status != STATUS_OK || !shards->config->shuffle)
        return status;
    for (uint64_t i = 0; i < shards->rows; i++)
        shards->chosen[i].key =
            canonical_random(shards->config->seed, SELECT_ROW_STREAM, shards->chosen[i].row);
    qsort(shards->chosen, shards->rows, sizeof *shards->chosen, compare_keys);
    return STATUS_OK;
}

/* Begins a new archive when the next image would exceed a limit. */
static enum status plan(struct shards *shards, struct error *err)
{
    const struct shards_config *config = shards->config;
    uint64_t samples = 0, bytes = 0;
    shards->first = held_array(&shards->held, shards->rows + 1, sizeof *shards->first);
    if (held_check(&shards->held, "archives", err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint64_t i = 0; i < shards->rows; i++) {
        struct result_image image;
        const enum status status =
            result_image_at(config->result, shards->chosen[i].row, &image, err);
        if (status != STATUS_OK)
            return status;
        const uint64_t more = tar_member_bytes(image.bytes);
        if (i == 0 || (config->samples > 0 && samples == config->samples) ||
            (config->bytes > 0 && samples > 0 && bytes + more > config->bytes)) {
            shards->first[shards->archives++] = i;
            samples = bytes = 0;
        }
        samples++;
        bytes += more;
    }
    shards->first[shards->archives] = shards->rows;
    return STATUS_OK;
}

static enum status read_labels(struct shards *shards, struct error *err)
{
    struct result *result = shards->config->result;
    const uint64_t images = result_images(result);
    shards->labelled = held_array(&shards->held, result->clusters_count, sizeof *shards->labelled);
    enum status status = held_check(&shards->held, "clusterings", err);
    for (unsigned i = 0; i < result->clusters_count && status == STATUS_OK; i++) {
        const struct result_clusters *clusters = &result->clusters[i];
        if (clusters->rows != images)
            continue;
        struct labelled *labelled = &shards->labelled[shards->labelled_count++];
        labelled->clusters = clusters;
        labelled->labels = held_array(&shards->held, images, sizeof *labelled->labels);
        status = held_check(&shards->held, "labels", err);
        if (status == STATUS_OK)
            status = result_clusters_read_rows(clusters, 0, images, labelled->labels, NULL, err);
    }
    return status;
}

/* --- what they were made from ------------------------------------------------------------------ */

/* Adds the checksum of a dataset, or "" if the file has none of that name. */
static void add_root(struct json *json, const struct shards *shards, const char *group,
                     const char *name, const char *column)
{
    char path[2 * FEATURE_NAME_MAX + 32], root[65];
    snprintf(path, sizeof path, "%s/%s%s", group, name, column);
    selections_root(root, shards->config->result, path);
    json_string(json, path + 1, root);
}

/* The text that identifies the archives' input. The caller frees it. */
static char *describe(const struct shards *shards)
{
    static const char *const columns[] = {"digest", "path",     "source",  "sources", "mtime_ns",
                                          "cls",    "txt/data", "txt/end", NULL};
    const struct shards_config *config = shards->config;
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_uint(&json, "clpipe_shards", 2);
    for (unsigned i = 0; columns[i]; i++)
        add_root(&json, shards, "/images", columns[i], "");
    for (unsigned i = 0; i < shards->labelled_count; i++)
        add_root(&json, shards, "/clusters", shards->labelled[i].clusters->name, "/labels");
    if (config->selection) {
        add_root(&json, shards, "/selections", config->selection, "/rows");
        add_root(&json, shards, "/selections", config->selection, "/reason");
    }
    if (config->feature)
        add_root(&json, shards, "/features", config->feature, "");
    if (shards->flags.feature) {
        char hex[65];
        sha256_hex_of(hex, shards->flags.of,
                      result_images(config->result) * sizeof *shards->flags.of);
        json_string(&json, "flags", hex);
    }
    json_uint(&json, "samples", config->samples);
    json_uint(&json, "bytes", config->bytes);
    if (config->shuffle)
        json_uint(&json, "seed", config->seed);
    json_close_object(&json);
    return json_take(&json);
}

static enum status join(char **path, const struct shards *shards, const char *name,
                        struct error *err)
{
    return asprintf(path, "%s/%s", shards->config->directory, name) < 0
               ? error_memory(err, 256, "a file name")
               : STATUS_OK;
}

static enum status join_number(char **path, const struct shards *shards, uint64_t number,
                               const char *suffix, struct error *err)
{
    char name[64];
    snprintf(name, sizeof name, "shard-%06" PRIu64 ".%s", number, suffix);
    return join(path, shards, name, err);
}

static enum status write_whole(const char *path, const char *text, struct error *err)
{
    struct output *output = NULL;
    enum status status = output_open(&output, path, err);
    if (status == STATUS_OK)
        status = write_all(output_descriptor(output), text, strlen(text), path, err);
    if (status == STATUS_OK)
        status = output_commit(output, err);
    output_close(&output);
    return status;
}

/* The same for a file that other commands may write at the same time, with the same text. */
static enum status write_shared(const char *path, const char *text, struct error *err)
{
    size_t size;
    enum status status = write_whole(path, text, err);
    char *there = status == STATUS_OK ? NULL : read_small(&size, AT_FDCWD, path);
    if (there && strcmp(there, text) == 0) {
        *err = (struct error)ERROR_INIT;
        status = STATUS_OK;
    }
    free(there);
    return status;
}

/* *empty: except for a marker that is being written. */
static enum status look_into(const char *directory, bool *empty, struct error *err)
{
    DIR *entries = opendir(directory);
    *empty = true;
    if (!entries)
        return error_errno(err, STATUS_FAILED, errno, "opendir", "cannot write shards to %s",
                           PATH_TEXT(directory));
    for (struct dirent *entry; *empty && (entry = readdir(entries));)
        *empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                 output_is_temporary(entry->d_name, SHARDS_MARKER);
    closedir(entries);
    return STATUS_OK;
}

/* Accepts a directory that is new, empty, or has archives made from the same input. Other commands may
 * begin there at the same time. */
static enum status take_directory(const struct shards *shards, struct error *err)
{
    const char *directory = shards->config->directory;
    char *marker = NULL, *text = describe(shards), *there = NULL;
    size_t size;
    bool empty = false;
    enum status status = text ? STATUS_OK : error_memory(err, 256, "a description");
    const char *shown = PATH_TEXT(directory);
    if (status == STATUS_OK && mkdir(directory, 0777) != 0 && errno != EEXIST)
        status = error_errno(err, STATUS_FAILED, errno, "mkdir", "cannot create %s", shown);
    if (status == STATUS_OK)
        status = join(&marker, shards, SHARDS_MARKER, err);
    if (status == STATUS_OK)
        status = look_into(directory, &empty, err);
    if (status == STATUS_OK && empty)
        status = write_shared(marker, text, err);
    if (status == STATUS_OK) {
        there = read_small(&size, AT_FDCWD, marker);
        if (!there)
            status = error_set(err, STATUS_FAILED, "%s is not empty: name a new directory", shown);
        else if (strcmp(there, text) != 0)
            status = error_set(err, STATUS_FAILED,
                               "%s has shards that were made from other data or with other "
                               "options: name a new directory",
                               shown);
    }
    free(there);
    free(text);
    free(marker);
    return status;
}

/* --- samples ----------------------------------------------------------------------------------- */

static void write_json(struct json *json, const struct shards *shards,
                       const struct result_image *image, uint64_t i)
{
    const uint64_t row = shards->chosen[i].row;
    struct result *result = shards->config->result;
    json_init(json, true);
    json_open_object(json, NULL);
    json_uint(json, "row", row);
    json_string(json, "path", image->path);
    if (image->source < result->source_count)
        json_string(json, "source", result->sources[image->source]);
    json_uint(json, "width", image->width);
    json_uint(json, "height", image->height);
    if (shards->config->selection)
        json_string(json, "reason", shards->chosen[i].reason);
    if (shards->flags.feature) {
        json_open_array(json, "flags");
        for (unsigned f = 0; f < FLAGS; f++)
            if (shards->flags.of[row] >> f & 1)
                json_string(json, NULL, flag_names[f]);
        json_close_array(json);
    }
    if (shards->labelled_count > 0)
        json_open_object(json, "clusters");
    for (unsigned c = 0; c < shards->labelled_count; c++)
        json_int(json, shards->labelled[c].clusters->name, shards->labelled[c].labels[row]);
    if (shards->labelled_count > 0)
        json_close_object(json);
    json_close_object(json);
}

static enum status describe_sample(struct shards *shards, struct sample *sample, uint64_t i,
                                   struct error *err)
{
    struct result_image image;
    struct json json;
    enum status status =
        result_image_at(shards->config->result, shards->chosen[i].row, &image, err);
    if (status != STATUS_OK)
        return status;
    *sample = (struct sample){.row = shards->chosen[i].row,
                              .bytes = image.bytes,
                              .digest = {image.digest[0], image.digest[1]},
                              .seconds = image.mtime_ns / 1000000000,
                              .is_out = image.bytes > TAR_MOST};
    memcpy(sample->format, image.format, sizeof image.format);
    write_json(&json, shards, &image, i);
    sample->text[0] = json_take(&json);
    if (!sample->text[0])
        return error_memory(err, 256, "a sample");
    const char *beside[SIDECAR_COLUMNS];
    if (shards->sidecars)
        status = sidecar_reader_row(shards->sidecars, sample->row, beside, err);
    for (int t = 1; t < TEXTS && shards->sidecars && status == STATUS_OK; t++)
        for (unsigned column = 0; column < SIDECAR_COLUMNS; column++)
            if (strcmp(sidecar_names[column], text_names[t]) == 0 && *beside[column] &&
                !(sample->text[t] = strdup(beside[column])))
                status = error_memory(err, strlen(beside[column]), "a sample");
    return status;
}

static void clear_samples(struct shards *shards)
{
    for (uint64_t i = 0; i < shards->samples; i++)
        for (int t = 0; t < TEXTS; t++)
            free(shards->sample[i].text[t]);
    free(shards->sample);
    shards->sample = NULL;
    shards->samples = 0;
}

/* --- tar (POSIX.1-1988, ustar), with members at positions known in advance --------------------- */

/* The header of a world-readable regular file; seconds since 1970, at least 0. */
static void tar_header(char block[TAR_BLOCK], const char *name, uint64_t bytes, int64_t seconds)
{
    const uint64_t time = seconds < 0                    ? 0
                          : (uint64_t)seconds > TAR_MOST ? TAR_MOST
                                                         : (uint64_t)seconds;
    unsigned sum = 8 * ' '; /* the checksum's own bytes count as spaces */
    memset(block, 0, TAR_BLOCK);
    snprintf(block, TAR_NAME_MOST + 1, "%s", name);
    memcpy(block + 100, "0000644", 7);
    memcpy(block + 108, "0000000", 7);
    memcpy(block + 116, "0000000", 7);
    snprintf(block + 124, 12, "%011" PRIo64, bytes);
    snprintf(block + 136, 12, "%011" PRIo64, time);
    block[156] = '0';
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    for (unsigned i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    block[155] = ' ';
}

/* --- an archive -------------------------------------------------------------------------------- */

static const char *extension(const struct sample *sample)
{
    return strcmp(sample->format, "jpeg") == 0 ? "jpg" : sample->format;
}

static enum status write_header(const struct shards *shards, const struct sample *sample,
                                const char *suffix, uint64_t bytes, uint64_t at, struct error *err)
{
    char block[TAR_BLOCK], name[KEY_MOST + 16];
    snprintf(name, sizeof name, "%010" PRIu64 ".%s", sample->row, suffix);
    tar_header(block, name, bytes, sample->seconds);
    return write_at(shards->fd, block, sizeof block, at, shards->name, err);
}

/* Writes a member from memory; advances *at. */
static enum status write_member(const struct shards *shards, const struct sample *sample,
                                const char *suffix, const void *data, uint64_t bytes, uint64_t *at,
                                struct error *err)
{
    enum status status = write_header(shards, sample, suffix, bytes, *at, err);
    if (status == STATUS_OK)
        status = write_at(shards->fd, data, bytes, *at + TAR_BLOCK, shards->name, err);
    *at += tar_member_bytes(bytes);
    return status;
}

static enum status write_row(struct shards *shards, const struct sample *sample, char *npy,
                             uint64_t *at, struct error *err)
{
    const uint32_t dimension = shards->matrix.dimension;
    size_t length;
    npy_header(npy, &length, "<f4", dimension, 0);
    const enum status status =
        matrix_read(&shards->matrix, sample->row, 1, (float *)(void *)(npy + length), err);
    return status == STATUS_OK
               ? write_member(shards, sample, "npy", npy, length + dimension * 4ull, at, err)
               : status;
}

/* Copies a picture to its place, and checks that its bytes are those of the result. Thread-safe. */
static void copy_picture(void *context, const struct reopened *reopened)
{
    struct shards *shards = context;
    struct sample *sample = &shards->sample[reopened->index];
    struct error err = ERROR_INIT;
    struct murmur3 state;
    uint64_t digest[2], at = 0;
    enum status status = STATUS_OK;
    char *piece = sample->is_out || reopened->blob->bytes != sample->bytes ? NULL : malloc(PIECE);
    if (!piece)
        return;
    murmur3_init(&state);
    while (status == STATUS_OK && at < sample->bytes) {
        const ssize_t got =
            blob_read(reopened->blob, piece, min_u64(PIECE, sample->bytes - at), at);
        if (got <= 0)
            break;
        murmur3_update(&state, piece, (size_t)got);
        status = write_at(shards->fd, piece, (size_t)got, sample->at + TAR_BLOCK + at, shards->name,
                          &err);
        at += (uint64_t)got;
    }
    murmur3_final(&state, digest);
    free(piece);
    if (status == STATUS_OK && at == sample->bytes &&
        memcmp(digest, sample->digest, sizeof digest) == 0)
        status = write_header(shards, sample, extension(sample), sample->bytes, sample->at, &err);
    else if (status == STATUS_OK)
        return;
    pthread_mutex_lock(&shards->lock);
    sample->done = status == STATUS_OK;
    if (status != STATUS_OK && shards->error.status == STATUS_OK)
        shards->error = err;
    pthread_mutex_unlock(&shards->lock);
}

/* Writes the samples that are not left out; *missing counts pictures that turn out to be
 * missing. */
static enum status fill(struct shards *shards, char *npy, uint64_t *missing, struct error *err)
{
    const struct reopen_use use = {.picture = copy_picture, .context = shards};
    uint64_t at = 0;
    enum status status =
        ftruncate(shards->fd, 0) == 0
            ? STATUS_OK
            : error_errno(err, STATUS_FAILED, errno, "ftruncate", "cannot write %s", shards->name);
    for (uint64_t i = 0; i < shards->samples && status == STATUS_OK; i++) {
        struct sample *sample = &shards->sample[i];
        sample->done = false;
        if (sample->is_out)
            continue;
        sample->at = at;
        at += tar_member_bytes(sample->bytes);
        for (int t = 0; t < TEXTS && status == STATUS_OK; t++)
            if (sample->text[t])
                status = write_member(shards, sample, text_names[t], sample->text[t],
                                      strlen(sample->text[t]), &at, err);
        if (status == STATUS_OK && shards->matrix.dimension > 0)
            status = write_row(shards, sample, npy, &at, err);
    }
    if (status == STATUS_OK && ftruncate(shards->fd, (off_t)(at + TAR_END)) != 0)
        status =
            error_errno(err, STATUS_FAILED, errno, "ftruncate", "cannot write %s", shards->name);
    uint64_t *rows = malloc(shards->samples * sizeof *rows + 1);
    if (status == STATUS_OK && !rows)
        status = error_memory(err, shards->samples * sizeof *rows, "rows");
    for (uint64_t i = 0; i < shards->samples && rows; i++)
        rows[i] = shards->sample[i].row;
    if (status == STATUS_OK)
        status = reopen_rows(shards->reopen, rows, shards->samples, &use, err);
    free(rows);
    if (status == STATUS_OK && shards->error.status != STATUS_OK) {
        *err = shards->error;
        return shards->error.status;
    }
    *missing = 0;
    for (uint64_t i = 0; i < shards->samples; i++)
        if (!shards->sample[i].is_out && !shards->sample[i].done) {
            shards->sample[i].is_out = true;
            ++*missing;
        }
    return status;
}

static enum status digest_file(char hex[65], uint64_t *bytes, const struct shards *shards,
                               struct error *err)
{
    struct sha256 state;
    size_t got = PIECE;
    char *piece = malloc(PIECE);
    enum status status = piece ? STATUS_OK : error_memory(err, PIECE, "an archive");
    sha256_init(&state);
    for (*bytes = 0; status == STATUS_OK && got == PIECE; *bytes += got) {
        status = read_at(shards->fd, piece, PIECE, *bytes, &got, shards->name, err);
        if (status == STATUS_OK)
            sha256_update(&state, piece, got);
    }
    sha256_hex(hex, &state);
    free(piece);
    return status;
}

/* Writes the description of a complete archive. */
static enum status write_about(const struct shards *shards, const char *path, uint64_t samples,
                               uint64_t bytes, const char *sha, struct error *err)
{
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_uint(&json, "samples", samples);
    json_uint(&json, "left_out", shards->samples - samples);
    json_uint(&json, "bytes", bytes);
    json_string(&json, "sha256", sha);
    json_close_object(&json);
    const char *text = json_finish(&json);
    const enum status status =
        text ? write_whole(path, text, err) : error_memory(err, 256, "a description");
    json_clear(&json);
    return status;
}

static enum status make_archive(struct shards *shards, uint64_t number,
                                struct shards_report *report, struct error *err)
{
    const uint64_t first = shards->first[number], last = shards->first[number + 1];
    char *path = NULL, *about = NULL, sha[65];
    char *npy = malloc(shards->matrix.dimension * sizeof(float) + NPY_HEADER);
    struct output *output = NULL;
    uint64_t missing = 0, samples = 0, bytes = 0;
    enum status status = join_number(&path, shards, number, "tar", err);
    if (status == STATUS_OK)
        status = join_number(&about, shards, number, "json", err);
    shards->sample = calloc(last - first, sizeof *shards->sample);
    if (status == STATUS_OK && (!shards->sample || !npy))
        status = error_memory(err, (last - first) * sizeof *shards->sample, "an archive");
    for (uint64_t i = first; i < last && status == STATUS_OK; i++)
        status = describe_sample(shards, &shards->sample[shards->samples++], i, err);
    if (status == STATUS_OK)
        status = output_open(&output, path, err);
    if (status == STATUS_OK) {
        shards->fd = output_descriptor(output);
        shards->name = path;
        do
            status = fill(shards, npy, &missing, err);
        while (status == STATUS_OK && missing > 0);
    }
    for (uint64_t i = 0; i < shards->samples; i++)
        samples += !shards->sample[i].is_out;
    if (status == STATUS_OK)
        status = digest_file(sha, &bytes, shards, err);
    if (status == STATUS_OK)
        status = output_commit(output, err);
    if (status == STATUS_OK)
        status = write_about(shards, about, samples, bytes, sha, err);
    report->samples += samples;
    report->left_out += shards->samples - samples;
    output_close(&output);
    clear_samples(shards);
    free(npy);
    free(about);
    free(path);
    return status;
}

/* Whether an archive is complete: has the recorded size. Then *parameters, NULL before, is its
 * description. */
static bool is_there(struct parameters **parameters, const struct shards *shards, uint64_t number)
{
    char *path = NULL, *about = NULL, *text = NULL;
    struct parameters *known = NULL;
    struct stat st;
    uint64_t bytes = 0;
    size_t size;
    if (join_number(&path, shards, number, "tar", NULL) == STATUS_OK &&
        join_number(&about, shards, number, "json", NULL) == STATUS_OK)
        text = read_small(&size, AT_FDCWD, about);
    const bool there = text && parameters_open(&known, text, NULL) == STATUS_OK &&
                       parameters_integer(known, "bytes", &bytes) && stat(path, &st) == 0 &&
                       (uint64_t)st.st_size == bytes;
    if (there)
        *parameters = known;
    else
        parameters_close(&known);
    free(text);
    free(about);
    free(path);
    return there;
}

/* --- all of them ------------------------------------------------------------------------------- */

/* Writes index.json, as webdataset's wids reads it, if all archives exist. */
static enum status write_index(struct shards *shards, bool *whole, struct error *err)
{
    struct json json;
    char name[64], *path = NULL;
    enum status status = STATUS_OK;
    *whole = true;
    json_init(&json, false);
    json_open_object(&json, NULL);
    json_uint(&json, "wids_version", 1);
    json_string(&json, "name", "clpipe");
    json_open_array(&json, "shardlist");
    for (uint64_t i = 0; i < shards->archives && *whole; i++) {
        struct parameters *known = NULL;
        uint64_t number = 0;
        *whole = is_there(&known, shards, i);
        if (!*whole)
            break;
        snprintf(name, sizeof name, "shard-%06" PRIu64 ".tar", i);
        json_open_object(&json, NULL);
        json_string(&json, "url", name);
        parameters_integer(known, "samples", &number);
        json_uint(&json, "nsamples", number);
        parameters_integer(known, "bytes", &number);
        json_uint(&json, "filesize", number);
        json_string(&json, "sha256", parameters_member(known, "sha256"));
        json_close_object(&json);
        parameters_close(&known);
    }
    json_close_array(&json);
    json_close_object(&json);
    if (*whole)
        status = join(&path, shards, "index.json", err);
    const char *text = json_finish(&json);
    if (*whole && status == STATUS_OK)
        status = text ? write_shared(path, text, err) : error_memory(err, 256, "an index");
    json_clear(&json);
    free(path);
    return status;
}

static enum status open_all(struct shards *shards, struct error *err)
{
    const struct shards_config *config = shards->config;
    struct result_feature about;
    enum status status = find_rows(shards, err);
    if (status == STATUS_OK)
        status = plan(shards, err);
    if (status == STATUS_OK)
        status = read_labels(shards, err);
    if (status == STATUS_OK)
        status = flags_read(&shards->flags, config->result, err);
    if (status == STATUS_OK)
        status = sidecar_reader_open(&shards->sidecars, config->result, err);
    if (status == STATUS_OK && config->feature)
        status = feature_matrix_open(&shards->matrix, &about, config->result, config->feature, err);
    if (status == STATUS_OK)
        status = workers_open(&shards->workers, config->machine.threads, err);
    if (status != STATUS_OK)
        return status;
    const struct reopen_config reopen = {.result = config->result,
                                         .workers = shards->workers,
                                         .memory = config->machine.memory,
                                         .watch = config->machine.watch};
    status = reopen_open(&shards->reopen, &reopen, err);
    return status == STATUS_OK ? take_directory(shards, err) : status;
}

static void close_all(struct shards *shards)
{
    reopen_close(&shards->reopen);
    workers_close(&shards->workers);
    matrix_close(&shards->matrix);
    sidecar_reader_close(&shards->sidecars);
    flags_clear(&shards->flags);
    for (uint64_t i = 0; shards->chosen && i < shards->rows; i++)
        free(shards->chosen[i].reason);
    held_free(&shards->held);
    pthread_mutex_destroy(&shards->lock);
}

enum status shards_write(struct shards_report *report, const struct shards_config *config,
                         struct error *err)
{
    struct shards shards = {.config = config, .error = ERROR_INIT};
    const struct watch *watch = &config->machine.watch;
    const uint64_t count = config->share.count ? config->share.count : 1;
    *report = (struct shards_report){0};
    pthread_mutex_init(&shards.lock, NULL);
    enum status status = open_all(&shards, err);
    for (uint64_t i = config->share.index; i < shards.archives && status == STATUS_OK; i += count) {
        status = watch_check(watch, "writing shards: run the same command again to continue", err);
        if (status != STATUS_OK)
            break;
        struct parameters *known = NULL;
        uint64_t left_out = 0;
        report->archives++;
        if (is_there(&known, &shards, i)) {
            report->there++;
            parameters_integer(known, "left_out", &left_out);
            report->left_out += left_out;
            parameters_close(&known);
        } else {
            status = make_archive(&shards, i, report, err);
        }
        report->made = report->archives - report->there;
        watch_show(watch, "shards", i + 1, shards.archives);
    }
    if (status == STATUS_OK)
        status = write_index(&shards, &report->whole, err);
    close_all(&shards);
    return status;
}
