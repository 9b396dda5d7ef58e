/* merge.c: refuses inputs whose merge would not equal the result of one ingest, and makes one list of
 * the rows of all parts, in order.
 *
 * Paths, sources and failures are always copied, so that rows of a lost part can be named. All
 * other columns, features and thumbnails are virtual datasets, or are also copied. */
#include "result/merge.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "matrix/h5_driver.h"
#include "result/codebooks.h"
#include "result/objects.h"
#include "result/parameters.h"
#include "result/parts.h"
#include "result/rewrite.h"
#include "result/sidecars.h"
#include "result/signature.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Parts that HDF5 has open at a time, unless more threads read; and those that need only a descriptor,
 * which stay open. */
#define MOST_OPEN     64
#define MOST_DETACHED 4096

struct merge;

struct merge_input {
    struct part part; /* for the manifest; owns its texts but the path */
    uint64_t failures;
    bool codes, compressed, sidecars;
    bool merged; /* it is itself a merged file */
    uint32_t thumbnail_size;
    unsigned sources;
    unsigned first_source;   /* in the merged file: number of its first source */
    struct list_share share; /* count 0: not a shard */
    /* For reading its rows; it is open while they are read and for some time afterwards. */
    struct merge *merge;
    struct result *result; /* of a merged file: always open */
    struct file_input *file;
    struct row_input rows; /* of `file` */
    unsigned users;
    int *source_now;
};

struct merge_inputs {
    struct merge_input *input; /* in the order of their rows */
    struct part *part;         /* of each */
    unsigned count;
    struct result *first; /* the first of them, open, for what all have in common */
    char **source, **directory;
    unsigned source_count;
    uint64_t images, failures;
    hid_t replaced;    /* the file that the merge replaces, open without its parts; invalid: none */
    char dropped[320]; /* names of its clusterings and other objects, cut to fit */
};

struct merge {
    const struct merge_config *config;
    struct merge_inputs inputs;
    struct signature_parts parts; /* the content of the file, from the first input */
    struct codebooks codebooks;
    struct sidecars *sidecars; /* NULL: the parts have none */
    struct new_rows rows;
    struct row_input *input;
    pthread_mutex_t lock; /* guards the open parts */
    unsigned open, detached;
};

static enum status refuse(struct error *err, const char *path, const char *other, const char *why)
{
    return error_set(err, STATUS_USAGE, "%s and %s cannot be merged: %s", PATH_TEXT(path),
                     PATH_TEXT(other), why);
}

/* --- names of parts -------------------------------------------------------------------------- */

/* The absolute form of a path, without "." and double slashes; NULL if it has "..", or out of
 * memory. */
static char *spelled_out(const char *path)
{
    char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *out, *to;
    if (!here || !(out = malloc(strlen(here) + strlen(path) + 3))) {
        free(here);
        return NULL;
    }
    to = stpcpy(out, strcmp(here, "/") ? here : "");
    free(here);
    while (*path) {
        const size_t length = strcspn(path, "/");
        if (length == 2 && path[0] == '.' && path[1] == '.') {
            free(out);
            return NULL;
        }
        if (length > 0 && !(length == 1 && *path == '.')) {
            *to++ = '/';
            memcpy(to, path, length);
            to += length;
        }
        path += length + (path[length] == '/');
    }
    *to = 0;
    return out;
}

/* `path` relative to the directory of `output`, as a new text; NULL: it is not below. */
static char *below(const char *output, const char *path)
{
    const char *slash = output ? strrchr(output, '/') : NULL;
    const size_t length = slash ? (size_t)(slash - output) + 1 : 0;
    return slash && path && strncmp(output, path, length) == 0 ? strdup(path + length) : NULL;
}

/* As given, or with symbolic links resolved. */
static enum status name_part(char **name, const char *output, const char *path, struct error *err)
{
    char *a = spelled_out(output), *b = spelled_out(path), *target = NULL;
    *name = below(a, b);
    free(a);
    free(b);
    if (!*name && output_resolve(&target, output, NULL) == STATUS_OK) {
        char *slash = strrchr(target, '/'), *whole = NULL;
        if (slash)
            *slash = 0;
        char *directory = realpath(slash ? *target ? target : "/" : ".", NULL);
        char *real = realpath(path, NULL);
        if (directory && (whole = malloc(strlen(directory) + 3))) {
            sprintf(whole, "%s/x", strcmp(directory, "/") ? directory : "");
            *name = below(whole, real);
        }
        free(whole);
        free(real);
        free(directory);
    }
    free(target);
    return *name ? STATUS_OK
                 : error_set(err, STATUS_USAGE,
                             "%s is not below the directory of the merged file, which refers to it "
                             "by a relative path: write the merged file beside its parts or above "
                             "them, or give --copy",
                             PATH_TEXT(path));
}

/* --- one file -------------------------------------------------------------------------------- */

/* Counts objects of the file that are not merged. */
static enum status note_left_out(struct merge_report *report, struct result *result,
                                 struct error *err)
{
    struct objects objects;
    enum status status = objects_list(&objects, result->file, err);
    if (status == STATUS_OK && objects.count > 0 && report->left_out == 0)
        snprintf(report->first_left_out, sizeof report->first_left_out, "%s: %s",
                 PATH_TEXT_IN(200, result->path), objects.object[0].name);
    report->left_out += objects.count;
    objects_clear(&objects);
    return status;
}

static uint64_t length_of(hid_t dataset)
{
    hsize_t size[2] = {0, 0};
    H5_SCOPED hid_t space = H5Dget_space(dataset);
    H5Sget_simple_extent_dims(space, size, NULL);
    return size[0];
}

/* A part's thumbnails must cover all of its data, since those of the next part follow it. */
static enum status look_at_thumbnails(struct merge_input *input, struct result *result,
                                      struct error *err)
{
    H5_SCOPED hid_t data = H5Dopen2(result->file, THUMBNAIL_GROUP "/data", H5P_DEFAULT),
                    ends = H5Dopen2(result->file, THUMBNAIL_GROUP "/end", H5P_DEFAULT);
    uint64_t end = 0;
    input->part.thumbnail_bytes = length_of(data);
    enum status status = input->part.rows > 0
                             ? h5_read_rows(ends, VALUE_U64, input->part.rows - 1, 1, &end, err)
                             : STATUS_OK;
    if (status == STATUS_OK && end != input->part.thumbnail_bytes)
        status = h5_damaged(
            err, result->path, "/thumbnails/end ends at %llu, but /thumbnails/data at %llu",
            (unsigned long long)end, (unsigned long long)input->part.thumbnail_bytes);
    return status;
}

static enum status look_at(struct merge_input *input, struct result *result,
                           const struct merge_config *config, struct error *err)
{
    char identity[65];
    struct stat st;
    struct error why = ERROR_INIT;
    const char *shown = PATH_TEXT(input->part.path);
    if (!result->has_images)
        return error_set(err, STATUS_USAGE, "%s holds no images: clusters are not merged", shown);
    if (!parts_identity(identity, result->file, &why) && why.native) {
        if (err)
            *err = why;
        return why.status;
    }
    if (!*identity)
        return error_set(err, STATUS_USAGE,
                         "%s has no checksums: make it again with ingest --fresh", shown);
    if (result_parts(result) > 0 && !config->copy)
        return error_set(err, STATUS_USAGE,
                         "%s was itself merged from other files: merge those, or give --copy",
                         shown);
    if (stat(input->part.path, &st))
        return error_errno(err, STATUS_FAILED, errno, "stat", "cannot read %s", shown);
    input->part.rows = result_images(result);
    input->part.bytes = (uint64_t)st.st_size;
    input->part.identity = strdup(identity);
    input->failures = result_failures(result);
    input->sources = result->source_count;
    input->merged = result_parts(result) > 0;
    input->sidecars = sidecars_stored(result);
    input->codes = result_has_codes(result);
    input->compressed = result_compressed(result);
    input->thumbnail_size = result->thumbnail_size;
    if (!input->part.identity)
        return error_memory(err, sizeof identity, "the name of a part");
    if (input->thumbnail_size > 0 && look_at_thumbnails(input, result, err))
        return STATUS_FAILED;
    if (config->unnamed) {
        char *real = realpath(input->part.path, NULL);
        input->part.name = real ? strdup(real + 1) : NULL;
        free(real);
        if (!input->part.name)
            return error_memory(err, strlen(input->part.path), "the name of a part");
    } else if (!config->copy) {
        char *name;
        if (name_part(&name, config->output, input->part.path, err))
            return err->status;
        input->part.name = name;
    }
    if (input->part.name) {
        const size_t length = strlen(input->part.name);
        if (!(input->part.text = path_utf8(input->part.name, length)))
            return error_memory(err, 4 * length + 1, "the name of a part");
    }
    input->share = result->share;
    return STATUS_OK;
}

/* --- all of them ----------------------------------------------------------------------------- */

/* The computed features, which the parameters list; imported ones are left out. */
static const struct result_feature *next_computed(const struct result *result, unsigned *i)
{
    while (*i < result->feature_count && result_feature_imported(&result->features[*i]))
        ++*i;
    return *i < result->feature_count ? &result->features[(*i)++] : NULL;
}

static enum status compare_features(const struct result *first, const struct result *result,
                                    struct error *err)
{
    char why[3200];
    for (unsigned i = 0, j = 0;;) {
        const struct result_feature *a = next_computed(first, &i), *b = next_computed(result, &j);
        if (!a && !b)
            return STATUS_OK;
        if (!a || !b || strcmp(a->name, b->name) != 0) {
            snprintf(why, sizeof why, "only one of them has the feature %s",
                     !b || (a && strcmp(a->name, b->name) < 0) ? a->name : b->name);
            return refuse(err, first->path, result->path, why);
        }
        const char *codebook[] = {strstr(a->spec, "codebook="), strstr(b->spec, "codebook=")};
        if (codebook[0] && codebook[1] && strcmp(codebook[0], codebook[1]) != 0)
            return refuse(err, first->path, result->path,
                          "their codebooks differ: learn one with clpipe codebook, and give it to "
                          "each ingest with --feature SPEC,codebook=C.h5");
        if (strcmp(a->spec, b->spec) != 0 || strcmp(a->normalize, b->normalize) != 0 ||
            a->decode_scale != b->decode_scale || a->dimension != b->dimension) {
            snprintf(why, sizeof why, "the feature %s is %s in one, %s in the other", a->name,
                     a->spec, b->spec);
            return refuse(err, first->path, result->path, why);
        }
    }
}

static enum status compare(const struct merge_inputs *inputs, const struct merge_input *input,
                           const struct result *result, struct error *err)
{
    const struct result *first = inputs->first;
    const struct merge_input *a = &inputs->input[0];
    char why[800];
    if (strcmp(first->version, result->version) != 0) {
        snprintf(why, sizeof why, "they were made by clpipe %.100s and %.100s", first->version,
                 result->version);
        return refuse(err, first->path, result->path, why);
    }
    if (compare_features(first, result, err))
        return err->status;
    if (parameters_difference(why, sizeof why, first->parameters, result->parameters,
                              "the first")) {
        static const char asks[] = "the command asks for", has[] = "the second has";
        for (char *at; (at = strstr(why, asks));) {
            memcpy(at, has, sizeof has - 1);
            memmove(at + sizeof has - 1, at + sizeof asks - 1, strlen(at + sizeof asks - 1) + 1);
        }
        return refuse(err, first->path, result->path, why);
    }
    if ((!first->preset) != (!result->preset) ||
        (first->preset && strcmp(first->preset, result->preset) != 0))
        return refuse(err, first->path, result->path, "their features belong to different presets");
    if (a->thumbnail_size != input->thumbnail_size)
        return refuse(err, first->path, result->path,
                      "their thumbnails have different sizes, or only one of them has thumbnails");
    if (a->sidecars != input->sidecars)
        return h5_damaged(err, result->path,
                          "only one of them has /images/key, cls, json and txt: it or %s",
                          first->path);
    if ((a->share.count > 0) != (input->share.count > 0))
        return refuse(err, first->path, result->path, "only one of them is a shard");
    if (a->share.count != input->share.count) {
        snprintf(why, sizeof why, "they are shards of %llu and of %llu",
                 (unsigned long long)a->share.count, (unsigned long long)input->share.count);
        return refuse(err, first->path, result->path, why);
    }
    if (a->share.count > 0 && strcmp(a->share.list_digest, input->share.list_digest) != 0)
        return refuse(err, first->path, result->path, "they are shards of different lists");
    return STATUS_OK;
}

/* A relative source depends on the directory. */
static bool same_source(const char *source, const char *directory, const struct result *result,
                        unsigned i)
{
    const char *there = result->directories[i];
    return strcmp(source, result->sources[i]) == 0 &&
           (source[source[0] == '@'] == '/' || !directory[0] || !there[0] ||
            strcmp(directory, there) == 0);
}

/* Shards have the same sources; other inputs have their own, which are concatenated. */
static enum status add_sources(struct merge_inputs *inputs, struct merge_input *input,
                               const struct result *result, struct error *err)
{
    const unsigned more = result->source_count;
    char why[512];
    if (input->share.count > 0 && inputs->source_count > 0) {
        bool same = more == inputs->source_count;
        for (unsigned i = 0; i < more && same; i++)
            same = strcmp(inputs->source[i], result->sources[i]) == 0;
        return same ? STATUS_OK
                    : refuse(err, inputs->first->path, result->path, "their sources differ");
    }
    for (unsigned i = 0; i < more; i++)
        for (unsigned j = 0; j < inputs->source_count; j++)
            if (same_source(inputs->source[j], inputs->directory[j], result, i)) {
                const struct merge_input *other = inputs->input;
                while (other + 1 < input && other[1].first_source <= j)
                    other++;
                snprintf(why, sizeof why, "both have the source %s", PATH_TEXT(inputs->source[j]));
                return refuse(err, other->part.path, input->part.path, why);
            }
    input->first_source = inputs->source_count;
    if (inputs->source_count + more > UINT16_MAX + 1)
        return error_set(err, STATUS_USAGE, "the files have more than 65,536 sources together");
    char **grown = realloc(inputs->source, (inputs->source_count + more + 1) * sizeof *grown);
    if (!grown)
        return error_memory(err, more * sizeof *grown, "sources");
    inputs->source = grown;
    grown = realloc(inputs->directory, (inputs->source_count + more + 1) * sizeof *grown);
    if (!grown)
        return error_memory(err, more * sizeof *grown, "sources");
    inputs->directory = grown;
    for (unsigned i = 0; i < more; i++) {
        const unsigned at = inputs->source_count++;
        inputs->source[at] = strdup(result->sources[i]);
        inputs->directory[at] = strdup(result->directories[i]);
        if (!inputs->source[at] || !inputs->directory[at])
            return error_memory(err, 256, "sources");
    }
    return STATUS_OK;
}

static int compare_shards(const void *a, const void *b)
{
    const struct merge_input *x = a, *y = b;
    return (x->share.index > y->share.index) - (x->share.index < y->share.index);
}

/* Checks that all shards are present, each once. */
static enum status order_shards(struct merge_inputs *inputs, struct error *err)
{
    const struct merge_input *input = inputs->input;
    const uint64_t count = input[0].share.count;
    if (count == 0)
        return STATUS_OK;
    qsort(inputs->input, inputs->count, sizeof *inputs->input, compare_shards);
    for (unsigned i = 0; i < inputs->count; i++) {
        char why[80];
        if (i > 0 && input[i].share.index == input[i - 1].share.index) {
            snprintf(why, sizeof why, "both are shard %llu/%llu",
                     (unsigned long long)input[i].share.index, (unsigned long long)count);
            return refuse(err, input[i - 1].part.path, input[i].part.path, why);
        }
    }
    uint64_t missing = 0;
    while (missing < inputs->count && input[missing].share.index == missing)
        missing++;
    if (inputs->count != count)
        return error_set(err, STATUS_USAGE,
                         "%llu of %llu shards are missing, the first is shard %llu/%llu: all of "
                         "them are merged at once",
                         (unsigned long long)(count - inputs->count), (unsigned long long)count,
                         (unsigned long long)missing, (unsigned long long)count);
    for (unsigned i = 0; i < inputs->count; i++) {
        const uint64_t next =
            i + 1 < inputs->count ? input[i + 1].share.first : input[i].share.list_count;
        if (input[i].share.last != next || (i == 0 && input[0].share.first != 0))
            return refuse(
                err, input[i].part.path, input[i + 1 < inputs->count ? i + 1 : 0].part.path,
                next > input[i].share.last ? "there is a gap between their shares of the list"
                                           : "their shares of the list overlap");
    }
    return STATUS_OK;
}

static enum status open_output(hid_t *file, const char *output, struct error *err)
{
    struct stat out;
    *file = H5I_INVALID_HID;
    if (stat(output, &out) || (S_ISREG(out.st_mode) && out.st_size == 0))
        return STATUS_OK;
    if (S_ISREG(out.st_mode) && h5_open_file(file, output, err) == STATUS_OK &&
        H5Aexists(*file, "clpipe_format") > 0)
        return STATUS_OK;
    if (*file < 0 && H5Fis_hdf5(output) > 0)
        return STATUS_FAILED;
    h5_close(file);
    return error_set(err, STATUS_FAILED, "%s is not a clpipe file and is not overwritten",
                     PATH_TEXT(output));
}

/* Opens the output to be replaced, and checks that it is a clpipe file and not an input. */
static enum status check_output(struct merge_inputs *inputs, const char *output, bool keep_objects,
                                struct error *err)
{
    struct stat out, st;
    struct objects objects = {.count = 0};
    const char *shown = PATH_TEXT(output);
    enum status status = open_output(&inputs->replaced, output, err);
    if (status == STATUS_OK && inputs->replaced > 0)
        status = objects_list(&objects, inputs->replaced, err);
    for (unsigned i = 0; i < objects.count; i++)
        text_add_name(inputs->dropped, sizeof inputs->dropped, objects.object[i].name);
    objects_clear(&objects);
    if (status == STATUS_OK && keep_objects && *inputs->dropped)
        return error_set(err, STATUS_USAGE,
                         "%s holds %s, which a merge does not keep, and its parts have changed: "
                         "rename it, and repeat the command",
                         shown, inputs->dropped);
    if (status != STATUS_OK || stat(output, &out))
        return status;
    for (unsigned i = 0; i < inputs->count; i++)
        if (stat(inputs->input[i].part.path, &st) == 0 && st.st_dev == out.st_dev &&
            st.st_ino == out.st_ino)
            return error_set(err, STATUS_USAGE, "-o %s is one of the files to be merged", shown);
    return STATUS_OK;
}

static enum status open_inputs(struct merge_inputs *out, struct merge_report *report,
                               const struct merge_config *config, struct error *err)
{
    enum status status = STATUS_OK;
    struct result *result = NULL;
    if (config->count > PARTS_MOST)
        return error_set(
            err, STATUS_USAGE,
            "%u files are more than the %d that can be merged at once: merge some with "
            "--copy first",
            config->count, PARTS_MOST);
    out->input = calloc(config->count, sizeof *out->input);
    if (!out->input)
        return error_memory(err, config->count * sizeof *out->input, "the parts");
    for (unsigned i = 0; i < config->count && status == STATUS_OK; i++) {
        struct merge_input *input = &out->input[out->count++];
        input->part.path = config->input[i];
        status = watch_check(&config->watch, "looking at the files", err);
        if (status == STATUS_OK)
            status = result_open(&result, input->part.path, err);
        if (status == STATUS_OK)
            status = look_at(input, result, config, err);
        if (status == STATUS_OK && i > 0)
            status = compare(out, input, result, err);
        if (status == STATUS_OK && !out->first)
            out->first = result;
        if (status == STATUS_OK)
            status = add_sources(out, input, result, err);
        if (status == STATUS_OK)
            status = note_left_out(report, result, err);
        out->images += input->part.rows;
        out->failures += input->failures;
        if (result != out->first)
            result_close(&result);
        result = NULL;
    }
    if (status == STATUS_OK)
        status = order_shards(out, err);
    if (status == STATUS_OK)
        status = check_output(out, config->output, config->keep_objects, err);
    if (status == STATUS_OK && out->images == 0)
        status = error_set(err, STATUS_FAILED, "there is no image in these files");
    out->part = malloc(config->count * sizeof *out->part);
    for (unsigned i = 0; i < out->count && out->part; i++)
        out->part[i] = out->input[i].part;
    return status || out->part ? status
                               : error_memory(err, config->count * sizeof *out->part, "the parts");
}

/* --- rows of parts ----------------------------------------------------------------------------- */

static void close_part(struct merge_input *part)
{
    if (!part->file)
        return;
    hid_t file = part->result ? H5I_INVALID_HID : part->file->file;
    if (part->file->fd < 0)
        part->merge->open--;
    file_input_clear(part->file);
    h5_close(&file);
    free(part->file);
    part->file = NULL;
}

/* Under both locks. */
static enum status open_part(struct merge_input *part, struct error *err)
{
    struct merge *m = part->merge;
    char identity[65];
    part->file = malloc(sizeof *part->file);
    if (!part->file)
        return error_memory(err, sizeof *part->file, "a part");
    hid_t file = part->result ? part->result->file : H5I_INVALID_HID;
    enum status status = part->result ? STATUS_OK : h5_open_file(&file, part->part.path, err);
    if (status == STATUS_OK &&
        (!parts_identity(identity, file, NULL) || strcmp(identity, part->part.identity) != 0))
        status = h5_damaged(err, part->part.path, "it changed while it was being merged");
    if (status != STATUS_OK) {
        if (!part->result)
            h5_close(&file);
        free(part->file);
        part->file = NULL;
        return status;
    }
    file_input_init(&part->rows, part->file, file, part->sources, &m->parts.features,
                    part->source_now, part->thumbnail_size);
    m->open++;
    return STATUS_OK;
}

/* Closes the part as far as its rows can be read without HDF5. */
static void detach(struct merge_input *part)
{
    struct merge *m = part->merge;
    bool needed[ROW_COLUMNS] = {[ROW_THUMBNAIL] = true};
    for (unsigned i = 0; i < image_table.count; i++)
        needed[ROW_IMAGE + i] = m->config->copy || !row_is_referred(ROW_IMAGE + i);
    for (unsigned i = 0; i < failure_table.count; i++)
        needed[ROW_FAILURE + i] = part->failures > 0;
    for (unsigned i = 0; i < m->parts.features.count; i++)
        needed[ROW_FEATURE + i] = m->config->copy;
    if (m->detached < MOST_DETACHED && file_input_detach(part->file, needed, part->part.path)) {
        m->detached++;
        m->open--;
    }
}

static enum status acquire(struct merge_input *part, struct error *err)
{
    struct merge *m = part->merge;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&m->lock);
    part->users++;
    if (!part->file) {
        h5_driver_lock();
        for (unsigned i = 0; i < m->inputs.count && m->open >= MOST_OPEN; i++) {
            struct merge_input *other = &m->inputs.input[i];
            if (other->file && other->file->fd < 0 && other->users == 0)
                close_part(other);
        }
        status = open_part(part, err);
        h5_driver_unlock();
        part->users -= status != STATUS_OK;
        if (!status && !part->result)
            detach(part);
    }
    pthread_mutex_unlock(&m->lock);
    return status;
}

static void release(struct merge_input *part)
{
    pthread_mutex_lock(&part->merge->lock);
    part->users--;
    pthread_mutex_unlock(&part->merge->lock);
}

static enum status read_part(void *context, const struct move_column *column, bool lengths,
                             uint64_t first, uint64_t count, void *to, struct error *err)
{
    struct merge_input *part = context;
    enum status status = acquire(part, err);
    if (status != STATUS_OK)
        return status;
    status = row_input_read(&part->rows, column, lengths, first, count, to, err);
    release(part);
    return status;
}

/* Lists all rows of all parts, with new source numbers. */
static enum status list_rows(struct merge *m, struct error *err)
{
    const unsigned count = m->inputs.count;
    enum status status = STATUS_OK;
    m->rows.input = m->input = calloc(count, sizeof *m->input);
    if (!m->input)
        return error_memory(err, count * sizeof *m->input, "the parts");
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        struct merge_input *part = &m->inputs.input[i];
        part->merge = m;
        m->input[i] = (struct row_input){read_part, part};
        part->source_now = malloc((part->sources + 1) * sizeof *part->source_now);
        if (!part->source_now)
            return error_memory(err, part->sources * sizeof *part->source_now, "sources");
        for (unsigned s = 0; s < part->sources; s++)
            part->source_now[s] = (int)(part->first_source + s);
        /* If it has parts of its own, they are checked when it is opened. */
        if (part->merged)
            status = result_open(&part->result, part->part.path, err);
        if (status == STATUS_OK)
            status = row_list_add(&m->rows.lists.images, i, 0, m->inputs.part[i].rows, err);
        if (status == STATUS_OK)
            status = row_list_add(&m->rows.lists.failures, i, 0, part->failures, err);
    }
    return status;
}

/* Sidecar texts are copied, like all texts. */
static enum status add_sidecars(struct merge *m, struct error *err)
{
    enum status status = sidecars_stored(m->inputs.first)
                             ? sidecars_open(&m->sidecars, process_temporary_directory(), err)
                             : STATUS_OK;
    for (unsigned i = 0; i < m->inputs.count && m->sidecars && status == STATUS_OK; i++) {
        const char *text[SIDECAR_COLUMNS];
        struct sidecar_reader *reader = NULL;
        struct result *part;
        status = result_open(&part, m->inputs.input[i].part.path, err);
        if (status == STATUS_OK)
            status = sidecar_reader_open(&reader, part, err);
        for (uint64_t row = 0; row < m->inputs.part[i].rows && status == STATUS_OK; row++) {
            status = sidecar_reader_row(reader, row, text, err);
            if (status == STATUS_OK)
                status = sidecars_row_of(m->sidecars, text, err);
        }
        sidecar_reader_close(&reader);
        result_close(&part);
    }
    return status;
}

/* --- all of it --------------------------------------------------------------------------------- */

/* The column exists only if every image has a code. */
static bool has_codes(const struct merge_inputs *inputs)
{
    for (unsigned i = 0; i < inputs->count; i++)
        if (inputs->part[i].rows > 0 && !inputs->input[i].codes)
            return false;
    return true;
}

/* Sets the content common to all parts. */
static enum status read_content(struct merge *m, struct error *err)
{
    struct result *first = m->inputs.first;
    enum status status = signature_parts_of(&m->parts, first, err);
    if (status == STATUS_OK)
        status = codebooks_read(&m->codebooks, first, NULL, err);
    if (status == STATUS_OK)
        status = codebooks_bind(&m->codebooks, &m->parts.features, first->path, err);
    m->parts.content.sources = (const char *const *)m->inputs.source;
    m->parts.content.directories = (const char *const *)m->inputs.directory;
    m->parts.content.source_count = m->inputs.source_count;
    m->parts.content.share = (struct list_share){.count = 0};
    m->rows.content = &m->parts.content;
    m->rows.codes = has_codes(&m->inputs);
    return status;
}

static void tell(void *context, const char *phase, uint64_t done, uint64_t total)
{
    const struct merge *m = context;
    const uint64_t rows = m->inputs.images + m->inputs.failures;
    (void)phase;
    watch_show(&m->config->watch, "merging",
               (uint64_t)((double)rows * (double)done / (double)total), rows);
}

static enum status write_output(struct merge *m, int64_t began, struct error *err)
{
    const struct merge_config *config = m->config;
    struct rewrite_report report;
    struct rewrite rewrite = {.output = config->output,
                              .unnamed = config->unnamed,
                              .rows = &m->rows,
                              .compress = config->compress,
                              .threads = config->threads,
                              .parts = config->copy ? NULL : m->inputs.part,
                              .part_count = m->inputs.count,
                              .sidecars = m->sidecars,
                              .run = config->run,
                              .others_of = m->inputs.replaced,
                              .classes_of = m->inputs.first,
                              .began = began,
                              .watch = {config->watch.stop, tell, m}};
    for (unsigned i = 0; i < m->inputs.count; i++)
        rewrite.compress = rewrite.compress || m->inputs.input[i].compressed;
    enum status status = rewrite_file(&report, &rewrite, err);
    const char *shown = PATH_TEXT(config->output);
    if (status == STATUS_OK && *m->inputs.dropped)
        log_message(LOG_NOTICE, "notice: %s had %s, which a merge does not keep", shown,
                    m->inputs.dropped);
    if (status == STATUS_OK && report.foreign.lost > 0)
        log_message(LOG_NOTICE, "notice: %s of other programs in %s could not be kept",
                    NUMBER_OF(report.foreign.lost, "item"), shown);
    return status;
}

static void clear(struct merge *m)
{
    struct merge_inputs *inputs = &m->inputs;
    for (unsigned i = 0; i < inputs->count; i++) {
        struct merge_input *input = &inputs->input[i];
        close_part(input);
        result_close(&input->result);
        free(input->source_now);
        free((void *)(uintptr_t)input->part.name);
        free((void *)(uintptr_t)input->part.text);
        free((void *)(uintptr_t)input->part.identity);
    }
    for (unsigned i = 0; i < inputs->source_count; i++) {
        free(inputs->source[i]);
        free(inputs->directory[i]);
    }
    free(inputs->source);
    free(inputs->directory);
    free(inputs->input);
    free(inputs->part);
    result_close(&inputs->first);
    h5_close(&inputs->replaced);
    free(m->input);
    row_lists_clear(&m->rows.lists);
    sidecars_close(&m->sidecars);
    codebooks_clear(&m->codebooks);
    signature_parts_clear(&m->parts);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

enum status merge_files(struct merge_report *report, const struct merge_config *config,
                        struct error *err)
{
    const int64_t began = clock_now();
    struct merge *m = calloc(1, sizeof *m);
    *report = (struct merge_report){.parts = config->count};
    if (!m)
        return error_memory(err, sizeof *m, "a merge");
    pthread_mutex_init(&m->lock, NULL);
    m->inputs.replaced = H5I_INVALID_HID;
    m->config = config;
    enum status status = open_inputs(&m->inputs, report, config, err);
    if (status == STATUS_OK)
        status = list_rows(m, err);
    if (status == STATUS_OK)
        status = read_content(m, err);
    if (status == STATUS_OK)
        status = add_sidecars(m, err);
    if (status == STATUS_OK)
        status = write_output(m, began, err);
    report->images = m->inputs.images;
    report->failures = m->inputs.failures;
    report->shards = m->inputs.count > 0 && m->inputs.input[0].share.count > 0;
    clear(m);
    return status;
}

enum status merge_look(bool *current, const char *output, const char *const *name, unsigned count,
                       struct error *err)
{
    hid_t file;
    bool same = true;
    *current = false;
    enum status status = open_output(&file, output, err);
    if (status == STATUS_OK && file > 0)
        status = parts_are(&same, current, file, output, name, count, err);
    h5_close(&file);
    if (status != STATUS_OK || same)
        return status;
    return error_set(err, STATUS_USAGE, "%s is another result, not merged from %u parts like %s",
                     PATH_TEXT(output), count, name[0]);
}
