/* beside.c: reads sidecar files in one pass over the walk, sample by sample.
 *
 * The files of a sample are consecutive, but a picture may come before or after its sidecar files,
 * so its paths are kept until the sample ends. */
#include "ingest/beside.h"

#include "base/array.h"
#include "base/log.h"
#include "base/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    uint16_t source;
    char *key; /* path up to the first dot; NULL: no sample yet */
    char *text[SIDECAR_COLUMNS];
    char **picture;
    unsigned count;
    uint64_t unreadable; /* unreadable files of all samples */
    char first_unreadable[256];
};

static void clear_sample(struct sample *sample)
{
    for (unsigned i = 0; i < sample->count; i++)
        free(sample->picture[i]);
    for (unsigned i = 0; i < SIDECAR_COLUMNS; i++) {
        free(sample->text[i]);
        sample->text[i] = NULL;
    }
    free(sample->key);
    free(sample->picture);
    sample->key = NULL;
    sample->picture = NULL;
    sample->count = 0;
}

static enum status end_sample(struct sidecars *out, struct sample *sample, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < sample->count && status == STATUS_OK; i++) {
        const char *path = sample->picture[i];
        free(sample->text[0]);
        sample->text[0] = sidecars_key(path, strlen(path));
        status = sample->text[0] ? sidecars_add(out, sample->source, path, (uint32_t)strlen(path),
                                                (const char *const *)sample->text, err)
                                 : error_memory(err, strlen(path), "a key");
    }
    clear_sample(sample);
    return status;
}

static enum status add_picture(struct sample *sample, const char *path, struct error *err)
{
    if (array_grow(&sample->picture, sample->count, sizeof *sample->picture, "a sample", err))
        return STATUS_FAILED;
    sample->picture[sample->count] = strdup(path);
    return sample->picture[sample->count++] ? STATUS_OK
                                            : error_memory(err, strlen(path), "a sample");
}

/* The bytes of a blob, trimmed; NULL: it is empty, has a NUL, or *failed. */
static char *read_text(bool *failed, const struct blob *blob, uint64_t bytes)
{
    char *text = malloc(bytes + 1);
    uint64_t filled = 0;
    ssize_t got = 1;
    while (text && filled < bytes &&
           (got = blob_read(blob, text + filled, bytes - filled, filled)) > 0)
        filled += (uint64_t)got;
    *failed = !text || filled < bytes;
    if (*failed || memchr(text, 0, filled)) {
        free(text);
        return NULL;
    }
    uint64_t from = 0;
    while (from < filled && strchr(" \t\r\n", text[from]))
        from++;
    while (filled > from && strchr(" \t\r\n", text[filled - 1]))
        filled--;
    memmove(text, text + from, filled - from);
    text[filled - from] = 0;
    return text;
}

/* A class label as /images/cls stores it: UTF-8 of limited length. */
static char *class_text(bool *failed, char *bytes)
{
    const size_t length = bytes ? strlen(bytes) : 0;
    char *text = bytes && length <= SIDECAR_MOST_CLASS ? path_utf8(bytes, length) : NULL;
    *failed = *failed || (bytes && length <= SIDECAR_MOST_CLASS && !text);
    free(bytes);
    return text;
}

static char *read_item(bool *failed, struct walk *walk, const struct walk_item *item)
{
    struct blob blob = BLOB_NOTHING;
    struct failure failure;
    const struct source_member member = {.path = item->path,
                                         .where = item->entry.where,
                                         .bytes = item->entry.bytes,
                                         .mtime_ns = item->entry.mtime_ns};
    char *text = NULL;
    *failed = item->entry.failure.reason != REASON_NONE;
    if (*failed || item->entry.bytes > SIDECAR_MOST_BYTES)
        return NULL;
    *failed = walk_open_member(&blob, walk, item->source, &member, &failure) != REASON_NONE;
    if (!*failed)
        text = read_text(failed, &blob, item->entry.bytes);
    if (sample_sidecar(item->path, item->path_length) == SIDECAR_CLS)
        text = class_text(failed, text);
    blob_close(&blob);
    return text;
}

static enum status take_item(struct sidecars *out, struct sample *sample, struct walk *walk,
                             const struct walk_item *item, struct error *err)
{
    const size_t key = sample_key(item->path, item->path_length);
    const enum sidecar kind = sample_sidecar(item->path, item->path_length);
    enum status status = STATUS_OK;
    if (sample->key && (sample->source != item->source || strlen(sample->key) != key ||
                        memcmp(sample->key, item->path, key) != 0))
        status = end_sample(out, sample, err);
    if (status != STATUS_OK)
        return status;
    sample->source = item->source;
    if (!sample->key && !(sample->key = strndup(item->path, key)))
        return error_memory(err, key, "a sample");
    if (kind == SIDECAR_NONE)
        return add_picture(sample, item->path, err);
    bool failed = false;
    if (!sample->text[1 + kind])
        sample->text[1 + kind] = read_item(&failed, walk, item);
    if (failed && sample->unreadable++ == 0)
        path_for_message(sample->first_unreadable, sizeof sample->first_unreadable, item->path);
    return STATUS_OK;
}

enum status beside_read(struct sidecars *out, struct walk *walk, struct stop *stop,
                        struct error *err)
{
    struct sample sample = {.key = NULL};
    struct walk_item item;
    enum status status = walk_rewind(walk, err);
    while (status == STATUS_OK && (status = walk_next(walk, &item, err)) == STATUS_OK) {
        status = stop_check(stop, "reading sidecar files", err);
        if (status == STATUS_OK)
            status = take_item(out, &sample, walk, &item, err);
    }
    if (status == STATUS_END)
        status = end_sample(out, &sample, err);
    if (status == STATUS_OK && sample.unreadable > 0)
        log_message(LOG_NOTICE,
                    "notice: unreadable sidecar files, which count as missing: %" PRIu64
                    " (first: %s); the same command tries again",
                    sample.unreadable, sample.first_unreadable);
    clear_sample(&sample);
    return status;
}
