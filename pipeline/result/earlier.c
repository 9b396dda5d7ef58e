/* earlier.c: rows taken over say where they were. Those of the log are looked for: in the order of the walk,
 * where a cursor on the old rows finds them, and beyond that, for lists whose order has changed, in a table
 * of all old rows. */
#include "result/earlier.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/source_name.h"
#include "result/parameters.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS  4096u
#define BLOCK_BYTES (4u << 20) /* that are compared at once */
#define AHEAD_BYTES (1u << 20) /* of a column of the log, which is read in whole blocks, that are read at once */

static unsigned column_number(bool failures, const char *name)
{
    const struct table *table = failures ? &failure_table : &image_table;
    unsigned i = 0;
    while (strcmp(table->column[i].name, name) != 0)
        i++;
    return (failures ? ROW_FAILURE : ROW_IMAGE) + i;
}

/* --- names ------------------------------------------------------------------------------------- */

/* Rows [first, first + count): sources, and paths as texts of paths->row_bytes, in *text. */
static enum status read_names(struct move_column *paths, const struct move_column *sources,
                              uint64_t first, uint64_t count, uint64_t *lengths, uint16_t *source,
                              char **text, struct error *err)
{
    size_t longest = 0;
    if (move_lengths(paths, first, count, lengths, err))
        return STATUS_FAILED;
    for (uint64_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? (size_t)lengths[i] : longest;
    paths->row_bytes = longest + 1;
    free(*text);
    *text = malloc(count * paths->row_bytes);
    if (!*text)
        return error_memory(err, count * paths->row_bytes, "paths");
    return move_read(paths, first, count, *text, err) ||
                   move_read(sources, first, count, source, err)
               ? STATUS_FAILED
               : STATUS_OK;
}

/* A block of rows by their names. */
struct names {
    struct move_column paths, sources;
    uint64_t *lengths;
    uint16_t *source;
    char *text;
};

static enum status name_block(struct names *names, uint64_t first, uint64_t count,
                              enum status (*each)(void *context, const struct row_name *name,
                                                  struct error *err),
                              void *context, struct error *err)
{
    enum status status = read_names(&names->paths, &names->sources, first, count, names->lengths,
                                    names->source, &names->text, err);
    struct row_run run = {.count = 0};
    for (uint64_t i = 0; i < count && !status; i++) {
        char *path = names->text + i * names->paths.row_bytes;
        if (first + i >= run.row + run.count)
            run = row_list_at(names->paths.list, row_list_find(names->paths.list, first + i));
        path_from_utf8(path);
        const struct row_name name = {.row = first + i,
                                      .from = run.first + (first + i - run.row),
                                      .input = run.input,
                                      .source = names->source[i],
                                      .path = path,
                                      .path_length = (uint32_t)strlen(path)};
        status = each(context, &name, err);
    }
    return status;
}

enum status row_names_each(const struct earlier_rows *rows, bool failures, uint32_t unnamed,
                           enum status (*each)(void *context, const struct row_name *name,
                                               struct error *err),
                           void *context, struct error *err)
{
    const struct row_list *list = failures ? rows->lists.failures : rows->lists.images;
    struct names names = {.paths = {.kind = MOVE_TEXT,
                                    .number = column_number(failures, "path"),
                                    .list = list,
                                    .input = rows->input},
                          .sources = {.number = column_number(failures, "source"),
                                      .row_bytes = sizeof(uint16_t),
                                      .list = list,
                                      .input = rows->input},
                          .lengths = malloc(BLOCK_ROWS * sizeof *names.lengths),
                          .source = malloc(BLOCK_ROWS * sizeof *names.source)};
    enum status status = names.lengths && names.source
                             ? STATUS_OK
                             : error_memory(err, BLOCK_ROWS * sizeof *names.lengths, "paths");
    /* Rows before `first` are done; those up to `end` are to be named. */
    uint64_t first = 0, end = 0;
    for (uint64_t i = 0; i <= row_list_runs(list) && !status; i++) {
        const struct row_run run =
            i < row_list_runs(list) ? row_list_at(list, i) : (struct row_run){.input = unnamed};
        if (run.input != unnamed)
            end = run.row + run.count;
        while (first < end && !status && (run.input == unnamed || end - first >= BLOCK_ROWS)) {
            const uint64_t count = end - first < BLOCK_ROWS ? end - first : BLOCK_ROWS;
            status = name_block(&names, first, count, each, context, err);
            first += count;
        }
        for (uint64_t r = 0; run.input == unnamed && r < run.count && !status; r++) {
            const struct row_name name = {
                .row = run.row + r, .from = run.first + r, .input = unnamed};
            status = each(context, &name, err);
        }
        if (run.input == unnamed)
            first = end = run.row + run.count;
    }
    free(names.text);
    free(names.source);
    free(names.lengths);
    return status;
}

/* --- rows that are equal ----------------------------------------------------------------------- */

/* Of two inputs `count` rows from a[0] and from a[1] on. */
static enum status compare_texts(bool *same, const struct move_column *column,
                                 const uint32_t input[2], const uint64_t from[2], uint64_t count,
                                 struct error *err)
{
    uint64_t *lengths[2] = {malloc(count * sizeof **lengths), malloc(count * sizeof **lengths)};
    uint8_t *bytes[2] = {NULL, NULL};
    struct move_column sized = *column;
    uint64_t sum = 0;
    enum status status =
        lengths[0] && lengths[1] ? STATUS_OK : error_memory(err, count * sizeof **lengths, "texts");
    for (int i = 0; i < 2 && !status; i++) {
        const struct row_input *in = &column->input[input[i]];
        status = in->lengths(in->context, column, from[i], count, lengths[i], err);
    }
    *same = !status && memcmp(lengths[0], lengths[1], count * sizeof **lengths) == 0;
    sized.row_bytes = 1;
    for (uint64_t i = 0; i < count && *same; i++) {
        sum += lengths[0][i];
        sized.row_bytes = lengths[0][i] > sized.row_bytes ? (size_t)lengths[0][i] : sized.row_bytes;
    }
    if (column->kind == MOVE_TEXT)
        sum = count * sized.row_bytes;
    for (int i = 0; i < 2 && *same && !status; i++) {
        const struct row_input *in = &column->input[input[i]];
        bytes[i] = malloc(sum + 1);
        status = !bytes[i] ? error_memory(err, sum, "texts")
                 : sum > 0 ? in->read(in->context, &sized, from[i], count, bytes[i], err)
                           : STATUS_OK;
    }
    *same = *same && !status && memcmp(bytes[0], bytes[1], sum) == 0;
    for (int i = 0; i < 2; i++) {
        free(bytes[i]);
        free(lengths[i]);
    }
    return status;
}

static enum status compare_fixed(bool *same, const struct move_column *column,
                                 const uint32_t input[2], const uint64_t from[2], uint64_t count,
                                 struct error *err)
{
    const size_t bytes = count * column->row_bytes;
    uint8_t *rows = malloc(2 * bytes);
    enum status status = rows ? STATUS_OK : error_memory(err, 2 * bytes, "rows");
    for (int i = 0; i < 2 && !status; i++) {
        const struct row_input *in = &column->input[input[i]];
        status = in->read(in->context, column, from[i], count, rows + (size_t)i * bytes, err);
    }
    *same = !status && memcmp(rows, rows + bytes, bytes) == 0;
    free(rows);
    return status;
}

static enum status compare_rows(bool *same, const struct move_column *column,
                                const uint32_t input[2], uint64_t a, uint64_t b, uint64_t count,
                                struct error *err)
{
    const uint64_t fit = column->row_bytes ? BLOCK_BYTES / column->row_bytes : 0,
                   most = column->kind != MOVE_FIXED ? 256
                          : fit > 0                  ? fit
                                                     : 1;
    enum status status = STATUS_OK;
    *same = true;
    for (uint64_t done = 0, now; done < count && *same && !status; done += now) {
        const uint64_t from[2] = {a + done, b + done};
        now = count - done < most ? count - done : most;
        status = column->kind == MOVE_FIXED ? compare_fixed(same, column, input, from, now, err)
                                            : compare_texts(same, column, input, from, now, err);
    }
    return status;
}

static struct move_column table_column(const struct earlier_rows *rows, bool failures, unsigned i)
{
    const struct column *column = &(failures ? &failure_table : &image_table)->column[i];
    return (struct move_column){.kind = column->type == VALUE_TEXT ? MOVE_TEXT : MOVE_FIXED,
                                .number = (failures ? ROW_FAILURE : ROW_IMAGE) + i,
                                .row_bytes = value_size(column->type) * column->width,
                                .input = rows->input};
}

/* Whether a run of the log has what the finished file has in its place. */
static enum status compare_run(bool *same, const struct earlier_rows *rows, bool failures,
                               const struct row_run *run, struct error *err)
{
    static const uint32_t input[2] = {INPUT_LOG, INPUT_FILE};
    const struct table *table = failures ? &failure_table : &image_table;
    const struct feature_set *features = rows->content->features;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < table->count && *same && !status; i++) {
        const struct move_column column = table_column(rows, failures, i);
        const char *name = table->column[i].name;
        if (strcmp(name, "inode") == 0 || strcmp(name, "ctime_ns") == 0 ||
            (table->column[i].optional && !rows->codes))
            continue;
        status = compare_rows(same, &column, input, run->first, run->row, run->count, err);
    }
    for (unsigned i = 0; !failures && i < features->count && *same && !status; i++) {
        const struct move_column column = {.number = ROW_FEATURE + i,
                                           .row_bytes = feature_row_bytes(&features->feature[i]),
                                           .input = rows->input};
        status = compare_rows(same, &column, input, run->first, run->row, run->count, err);
    }
    const struct move_column thumbnails = {
        .kind = MOVE_BLOB, .number = ROW_THUMBNAIL, .row_bytes = 8, .input = rows->input};
    if (!failures && rows->content->thumbnail_size > 0 && *same && !status)
        status = compare_rows(same, &thumbnails, input, run->first, run->row, run->count, err);
    return status;
}

enum status rows_are_same(bool *same, const struct earlier_rows *rows, struct result *finished,
                          struct error *err)
{
    enum status status = STATUS_OK;
    *same = finished && row_list_rows(rows->lists.images) == result_images(finished) &&
            row_list_rows(rows->lists.failures) == result_failures(finished) &&
            (rows->content->thumbnail_size == 0 ||
             rows->content->thumbnail_size == result_thumbnail_size(finished)) &&
            (!rows->codes || result_has_codes(finished));
    for (int failures = 0; failures < 2; failures++) {
        const struct row_list *list = failures ? rows->lists.failures : rows->lists.images;
        for (uint64_t i = 0; *same && i < row_list_runs(list) && !status; i++) {
            const struct row_run run = row_list_at(list, i);
            if (run.input == INPUT_FILE)
                *same = run.first == run.row;
            else
                status = compare_run(same, rows, failures, &run, err);
        }
    }
    return status;
}

/* --- places ------------------------------------------------------------------------------------ */

struct finder {
    const struct earlier_rows *rows;
    struct row_map *map;
    struct result *old;
    const int *earlier_source;
    uint8_t *there;
    struct file_input file;    /* `old`, as the second of */
    struct row_input input[2]; /* the inputs that are compared: the first by way of `ahead` */
    struct ahead {
        uint64_t first, count;
        uint8_t *rows;
    } *ahead; /* of each column, the rows that are there */
    const struct row_input *log; /* where they are read, */
    uint64_t left;               /* and how many follow each other from the row on that is compared */
    bool archives;             /* in directories */
    bool ascending;            /* so are the numbers of the sources that stay */
    uint64_t cursor;
    uint64_t *table; /* row + 1; 0: free */
    uint64_t slots;
};

static enum status old_row(const struct finder *f, uint64_t row, const struct result_image **image,
                           const char **path, struct error *err)
{
    const void *found;
    enum status status = rows_at(f->old->images, row, &found, path, err);
    *image = found;
    return status;
}

static enum status build_table(struct finder *f, struct error *err)
{
    const uint64_t rows = result_images(f->old);
    f->slots = 1024;
    while (f->slots < 2 * rows)
        f->slots *= 2;
    f->table = calloc(f->slots, sizeof *f->table);
    if (!f->table)
        return error_memory(err, f->slots * sizeof *f->table, "the earlier rows");
    for (uint64_t row = 0; row < rows; row++) {
        const struct result_image *image;
        const char *path;
        if (old_row(f, row, &image, &path, err))
            return STATUS_FAILED;
        uint64_t at = hash_of_path(image->source, path, strlen(path)) & (f->slots - 1);
        while (f->table[at])
            at = (at + 1) & (f->slots - 1);
        f->table[at] = row + 1;
    }
    return STATUS_OK;
}

static enum status find_in_table(struct finder *f, uint16_t source, const char *wanted,
                                 int64_t *found, struct error *err)
{
    if (!f->table && build_table(f, err))
        return STATUS_FAILED;
    for (uint64_t at = hash_of_path(source, wanted, strlen(wanted)) & (f->slots - 1); f->table[at];
         at = (at + 1) & (f->slots - 1)) {
        const struct result_image *image;
        const char *path;
        if (old_row(f, f->table[at] - 1, &image, &path, err))
            return STATUS_FAILED;
        if (image->source == source && strcmp(path, wanted) == 0) {
            *found = (int64_t)(f->table[at] - 1);
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static int earlier_source(const struct finder *f, unsigned source)
{
    return f->earlier_source ? f->earlier_source[source] : (int)source;
}

/* The old row of the same place; -1: there is none. */
static enum status find_place(struct finder *f, const struct row_name *name, int64_t *found,
                              struct error *err)
{
    const int source = earlier_source(f, name->source);
    *found = -1;
    if (source < 0)
        return STATUS_OK;
    const bool ordered = source_is_sorted(f->rows->content->sources[name->source], f->archives) &&
                         source_is_sorted(result_source(f->old, (unsigned)source), f->archives);
    for (; f->ascending && f->cursor < result_images(f->old); f->cursor++) {
        const struct result_image *image;
        const char *path;
        if (old_row(f, f->cursor, &image, &path, err))
            return STATUS_FAILED;
        if (image->source < source)
            continue;
        const int order = image->source == source ? strcmp(path, name->path) : 1;
        if (order == 0) {
            *found = (int64_t)f->cursor++;
            return STATUS_OK;
        }
        if (order > 0 || !ordered)
            break;
    }
    return f->ascending && ordered ? STATUS_OK
                                   : find_in_table(f, (uint16_t)source, name->path, found, err);
}

/* Rows of a column of the log, with those behind them. */
static enum status read_ahead(void *context, const struct move_column *column, uint64_t first,
                              uint64_t count, void *rows, struct error *err)
{
    struct finder *f = context;
    struct ahead *ahead = &f->ahead[column->number];
    const size_t bytes = column->row_bytes;
    if (first < ahead->first || first + count > ahead->first + ahead->count) {
        const uint64_t fit = AHEAD_BYTES / bytes > count ? AHEAD_BYTES / bytes : count;
        const uint64_t now = f->left < fit ? f->left : fit;
        uint8_t *room = realloc(ahead->rows, now * bytes);
        if (!room)
            return error_memory(err, now * bytes, "rows");
        *ahead = (struct ahead){first, 0, room};
        const enum status status = f->log->read(f->log->context, column, first, now, room, err);
        if (status)
            return status;
        ahead->count = now;
    }
    memcpy(rows, ahead->rows + (first - ahead->first) * bytes, count * bytes);
    return STATUS_OK;
}

/* Makes *row -1 unless the image has the bytes, and the values, that it had there. */
static enum status check_content(struct finder *f, const struct row_name *name, int64_t *row,
                                 struct error *err)
{
    static const uint32_t input[2] = {0, 1};
    static const char *const columns[] = {"bytes", "digest"};
    const struct feature_set *features = f->rows->content->features;
    enum status status = STATUS_OK;
    bool same = true;
    const struct row_list *list = f->rows->lists.images;
    const struct row_run run = row_list_at(list, row_list_find(list, name->row));
    f->log = &f->rows->input[name->input];
    f->left = run.count - (name->row - run.row);
    for (int i = 0; i < 2 && same && !status; i++) {
        struct move_column column =
            table_column(f->rows, false, column_number(false, columns[i]) - ROW_IMAGE);
        column.input = f->input;
        status = compare_rows(&same, &column, input, name->from, (uint64_t)*row, 1, err);
    }
    for (unsigned i = 0; same && i < features->count && !status; i++) {
        const struct feature *feature = &features->feature[i];
        const struct result_feature *there = result_feature_find(f->old, feature->name);
        const struct move_column column = {
            .number = ROW_FEATURE + i, .row_bytes = feature_row_bytes(feature), .input = f->input};
        if (!there || strcmp(there->spec, feature->spec) != 0 ||
            there->dimension != feature->dimension)
            continue;
        status = compare_rows(&same, &column, input, name->from, (uint64_t)*row, 1, err);
    }
    if (!same)
        *row = -1;
    return status;
}

static enum status map_image(void *context, const struct row_name *name, struct error *err)
{
    struct finder *f = context;
    struct row_map *map = f->map;
    int64_t row = (int64_t)name->from;
    if (name->input == INPUT_FILE)
        f->cursor = name->from + 1;
    else if (find_place(f, name, &row, err))
        return STATUS_FAILED;
    if (f->there && row >= 0)
        f->there[row] |= ROW_THERE;
    if (name->input != INPUT_FILE && row >= 0 && check_content(f, name, &row, err))
        return STATUS_FAILED;
    map->same = map->same && row == (int64_t)name->row;
    map->fresh += row < 0;
    map->earlier[name->row] = row;
    return STATUS_OK;
}

/* What could not be looked at has a failure beside its row. */
static enum status map_failure(void *context, const struct row_name *name, struct error *err)
{
    struct finder *f = context;
    int64_t row;
    if (name->input == INPUT_FILE)
        return STATUS_OK;
    const enum status status = find_place(f, name, &row, err);
    if (!status && row >= 0)
        f->there[row] |= ROW_FAILED;
    return status;
}

enum status row_map_make(struct row_map *out, const struct earlier_rows *rows, struct result *old,
                         const int *sources, uint8_t *there, struct error *err)
{
    const uint64_t images = row_list_rows(rows->lists.images);
    struct finder f = {.rows = rows,
                       .map = out,
                       .old = old,
                       .earlier_source = sources,
                       .there = there,
                       .ascending = true,
                       .archives = parameters_archives(rows->content->parameters)};
    int last = -1;
    *out = (struct row_map){.rows = images, .same = images == result_images(old)};
    for (unsigned i = 0; i < rows->content->source_count; i++)
        if (earlier_source(&f, i) >= 0) {
            f.ascending = f.ascending && earlier_source(&f, i) > last;
            last = earlier_source(&f, i);
        }
    out->earlier = malloc((size_t)images * sizeof *out->earlier + 1);
    enum status status =
        out->earlier ? STATUS_OK
                     : error_memory(err, (size_t)images * sizeof *out->earlier, "the earlier rows");
    result_input_init(&f.input[1], &f.file, old, rows->content->features, NULL, 0);
    f.input[0] = (struct row_input){.read = read_ahead, .context = &f};
    f.ahead = calloc(ROW_COLUMNS, sizeof *f.ahead);
    if (!status && !f.ahead)
        status = error_memory(err, ROW_COLUMNS * sizeof *f.ahead, "rows");
    if (!status)
        status = row_names_each(rows, false, INPUT_FILE, map_image, &f, err);
    f.cursor = 0;
    if (!status && there)
        status = row_names_each(rows, true, INPUT_FILE, map_failure, &f, err);
    out->gone = result_images(old) - (images - out->fresh);
    file_input_clear(&f.file);
    for (int i = 0; f.ahead && i < ROW_COLUMNS; i++)
        free(f.ahead[i].rows);
    free(f.ahead);
    free(f.table);
    if (status)
        row_map_clear(out);
    return status;
}

void row_map_clear(struct row_map *map)
{
    free(map->earlier);
    *map = (struct row_map){.earlier = NULL};
}
