/* merge.c: makes one list of the rows of all parts, in order.
 *
 * Paths, sources and failures are always copied, so that rows of a lost part can be named. All
 * other columns, features and thumbnails are virtual datasets, or are also copied. */
#include "result/merge.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "matrix/h5_driver.h"
#include "result/codebooks.h"
#include "result/merge_inputs.h"
#include "result/rewrite.h"
#include "result/signature.h"
#include <stdlib.h>
#include <string.h>

/* Parts that HDF5 has open at a time, unless more threads read; and those that need only a descriptor,
 * which stay open. */
#define MOST_OPEN     64
#define MOST_DETACHED 4096

struct merge;

/* The rows of a part, which is open while it is read and for some time afterwards. */
struct merge_part {
    struct merge *merge;
    const struct merge_input *input;
    struct result *result; /* of a merged file: always open */
    struct file_input *file;
    struct row_input rows; /* of `file` */
    unsigned users;
    int *source_now;
};

struct merge {
    const struct merge_config *config;
    struct merge_inputs inputs;
    const char *path;             /* of the output, for messages */
    struct signature_parts parts; /* the content of the file, from the first input */
    struct codebooks codebooks;
    struct sidecars *sidecars; /* NULL: the parts have none */
    struct row_lists lists;
    struct row_input *input;
    struct merge_part *open_part;
    pthread_mutex_t lock; /* guards the open parts */
    unsigned open, detached;
};

/* --- rows of parts ----------------------------------------------------------------------------- */

static void close_part(struct merge_part *part)
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
static enum status open_part(struct merge_part *part, struct error *err)
{
    struct merge *m = part->merge;
    const struct merge_input *input = part->input;
    char identity[65];
    part->file = malloc(sizeof *part->file);
    if (!part->file)
        return error_memory(err, sizeof *part->file, "a part");
    hid_t file = part->result ? part->result->file : H5I_INVALID_HID;
    enum status status = part->result ? STATUS_OK : h5_open_file(&file, input->part.path, err);
    if (status == STATUS_OK &&
        (!parts_identity(identity, file) || strcmp(identity, input->part.identity) != 0))
        status = h5_damaged(err, input->part.path, "it changed while it was being merged");
    if (status != STATUS_OK) {
        if (!part->result)
            h5_close(&file);
        free(part->file);
        part->file = NULL;
        return status;
    }
    file_input_init(&part->rows, part->file, file, input->sources, &m->parts.features,
                    part->source_now, input->thumbnail_size);
    m->open++;
    return STATUS_OK;
}

/* Closes the part as far as its rows can be read without HDF5. */
static void detach(struct merge_part *part)
{
    struct merge *m = part->merge;
    bool needed[ROW_COLUMNS] = {[ROW_THUMBNAIL] = true};
    for (unsigned i = 0; i < image_table.count; i++)
        needed[ROW_IMAGE + i] = m->config->copy || !row_is_referred(ROW_IMAGE + i);
    for (unsigned i = 0; i < failure_table.count; i++)
        needed[ROW_FAILURE + i] = part->input->failures > 0;
    for (unsigned i = 0; i < m->parts.features.count; i++)
        needed[ROW_FEATURE + i] = m->config->copy;
    if (m->detached < MOST_DETACHED &&
        file_input_detach(part->file, needed, part->input->part.path)) {
        m->detached++;
        m->open--;
    }
}

static enum status acquire(struct merge_part *part, struct error *err)
{
    struct merge *m = part->merge;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&m->lock);
    part->users++;
    if (!part->file) {
        h5_driver_lock();
        for (unsigned i = 0; i < m->inputs.count && m->open >= MOST_OPEN; i++) {
            struct merge_part *other = &m->open_part[i];
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

static void release(struct merge_part *part)
{
    pthread_mutex_lock(&part->merge->lock);
    part->users--;
    pthread_mutex_unlock(&part->merge->lock);
}

static enum status read_part(void *context, const struct move_column *column, bool lengths,
                             uint64_t first, uint64_t count, void *to, struct error *err)
{
    struct merge_part *part = context;
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
    enum status status = row_lists_open(&m->lists, process_temporary_directory(), err);
    m->input = calloc(count, sizeof *m->input);
    m->open_part = calloc(count, sizeof *m->open_part);
    if (!m->input || !m->open_part)
        return error_memory(err, count * sizeof *m->open_part, "the parts");
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        const struct merge_input *input = &m->inputs.input[i];
        struct merge_part *part = &m->open_part[i];
        *part = (struct merge_part){.merge = m, .input = input};
        m->input[i] = (struct row_input){read_part, part};
        part->source_now = malloc((input->sources + 1) * sizeof *part->source_now);
        if (!part->source_now)
            return error_memory(err, input->sources * sizeof *part->source_now, "sources");
        for (unsigned s = 0; s < input->sources; s++)
            part->source_now[s] = (int)(input->first_source + s);
        /* If it has parts of its own, they are checked when it is opened. */
        if (input->merged)
            status = result_open(&part->result, input->part.path, err);
        if (status == STATUS_OK)
            status = row_list_add(m->lists.images, i, 0, m->inputs.part[i].rows, err);
        if (status == STATUS_OK)
            status = row_list_add(m->lists.failures, i, 0, input->failures, err);
    }
    return status == STATUS_OK ? row_lists_finish(&m->lists, err) : status;
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
    const struct rewrite_refer referring = {m->inputs.part, m->inputs.count};
    struct rewrite_report report;
    struct rewrite rewrite = {.output = m->path,
                              .unnamed = config->unnamed,
                              .content = &m->parts.content,
                              .input = m->input,
                              .images = m->lists.images,
                              .failures = m->lists.failures,
                              .codes = has_codes(&m->inputs),
                              .compress = config->compress,
                              .threads = config->threads,
                              .refer = config->copy ? NULL : &referring,
                              .sidecars = m->sidecars,
                              .run = config->run,
                              .others_of = m->inputs.replaced,
                              .classes_of = m->inputs.first,
                              .began = began,
                              .watch = {config->watch.stop, tell, m}};
    for (unsigned i = 0; i < m->inputs.count; i++)
        rewrite.compress = rewrite.compress || m->inputs.input[i].compressed;
    enum status status = rewrite_file(&report, &rewrite, err);
    const char *shown = PATH_TEXT(m->path);
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
    for (unsigned i = 0; i < m->inputs.count && m->open_part; i++) {
        struct merge_part *part = &m->open_part[i];
        close_part(part);
        result_close(&part->result);
        free(part->source_now);
    }
    free(m->open_part);
    free(m->input);
    row_lists_close(&m->lists);
    sidecars_close(&m->sidecars);
    codebooks_clear(&m->codebooks);
    signature_parts_clear(&m->parts);
    merge_inputs_clear(&m->inputs);
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
    m->config = config;
    m->path = config->output;
    enum status status = merge_inputs_open(&m->inputs, report, config, err);
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
    char shown[256];
    hid_t file;
    bool same = true;
    *current = false;
    enum status status = merge_open_output(&file, output, err);
    if (status == STATUS_OK && file > 0)
        status = parts_are(&same, current, file, output, name, count, err);
    h5_close(&file);
    if (status != STATUS_OK || same)
        return status;
    return error_set(err, STATUS_USAGE, "%s is another result, not merged from %u parts like %s",
                     path_for_message(shown, sizeof shown, output), count, name[0]);
}
