/* row_map.c: maps rows to those of the existing file. Rows taken over have their location; rows of
 * the log are looked up by source and path (prior.h), and their values are compared. */
#include "result/row_map.h"
#include "base/held.h"
#include "base/minmax.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS  4096u
#define BLOCK_BYTES (4u << 20) /* compared at a time */

/* --- rows that are equal ----------------------------------------------------------------------- */

/* Compares `count` rows of the log, from `first` on, with the existing file's from `row` on. */
static enum status compare_texts(bool *same, const struct move_column *column, uint64_t first,
                                 uint64_t row, uint64_t count, struct error *err)
{
    const uint64_t from[] = {[INPUT_LOG] = first, [INPUT_FILE] = row};
    SCOPED_HELD held = {0};
    struct move_column sized = *column;
    uint64_t *lengths[2], sum = 0;
    uint8_t *bytes[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        lengths[i] = held_array(&held, count, sizeof *lengths[i]);
    enum status status = held_check(&held, "texts", err);
    for (int i = 0; i < 2 && !status; i++)
        status = row_input_read(&column->input[i], column, true, from[i], count, lengths[i], err);
    *same = !status && memcmp(lengths[0], lengths[1], count * sizeof *lengths[0]) == 0;
    sized.row_bytes = 1;
    for (uint64_t i = 0; i < count && *same; i++) {
        sum += lengths[0][i];
        sized.row_bytes = max_u64(sized.row_bytes, lengths[0][i]);
    }
    if (column->kind == MOVE_TEXT)
        sum = count * sized.row_bytes;
    for (int i = 0; i < 2 && *same; i++)
        bytes[i] = held_array(&held, sum, 1);
    if (!status)
        status = held_check(&held, "texts", err);
    for (int i = 0; i < 2 && *same && sum > 0 && !status; i++)
        status = row_input_read(&column->input[i], &sized, false, from[i], count, bytes[i], err);
    *same = *same && !status && memcmp(bytes[0], bytes[1], sum) == 0;
    return status;
}

/* Compares rows of the log, from `first` on, with the existing file's rows place[] (-1: none). */
static enum status compare_fixed(uint8_t *differs, const struct move_column *column, uint64_t first,
                                 const int64_t *place, uint64_t count, struct error *err)
{
    const size_t bytes = column->row_bytes;
    uint8_t *rows = malloc(2 * count * bytes), *other = rows ? rows + count * bytes : NULL;
    enum status status =
        rows ? row_input_read(&column->input[INPUT_LOG], column, false, first, count, rows, err)
             : error_memory(err, 2 * count * bytes, "rows");
    for (uint64_t i = 0, run; i < count && !status; i += run) {
        for (run = 1; i + run < count && place[i + run] == place[i] + (int64_t)run;)
            run++;
        if (place[i] >= 0)
            status = row_input_read(&column->input[INPUT_FILE], column, false, (uint64_t)place[i],
                                    run, other + i * bytes, err);
    }
    for (uint64_t i = 0; i < count && !status; i++)
        differs[i] |= place[i] >= 0 && memcmp(rows + i * bytes, other + i * bytes, bytes) != 0;
    free(rows);
    return status;
}

/* The same in blocks. Texts and blobs are compared as a whole; their places are consecutive. */
static enum status compare_rows(uint8_t *differs, const struct move_column *column, uint64_t first,
                                const int64_t *place, uint64_t count, struct error *err)
{
    const uint64_t most =
        column->kind != MOVE_FIXED ? 256 : max_u64(BLOCK_BYTES / column->row_bytes, 1);
    enum status status = STATUS_OK;
    for (uint64_t done = 0, now; done < count && !status; done += now) {
        now = min_u64(count - done, most);
        if (column->kind == MOVE_FIXED) {
            status = compare_fixed(differs + done, column, first + done, place + done, now, err);
            continue;
        }
        bool same;
        status = compare_texts(&same, column, first + done, (uint64_t)place[done], now, err);
        memset(differs + done, !same, now);
    }
    return status;
}

/* Whether rows of the log equal the existing file's rows in their place. */
static enum status compare_block(bool *same, const struct new_rows *rows, bool failures,
                                 uint64_t first, uint64_t row, uint64_t count, struct error *err)
{
    const struct table *table = failures ? &failure_table : &image_table;
    const unsigned features = failures ? 0 : rows->content->features->count;
    const bool thumbnails = !failures && rows->content->thumbnail_size > 0;
    uint8_t differs[BLOCK_ROWS] = {0};
    int64_t place[BLOCK_ROWS];
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < count; i++)
        place[i] = (int64_t)(row + i);
    for (unsigned i = 0; i < table->count + features + thumbnails && *same && !status; i++) {
        const bool of_table = i < table->count;
        const char *name = of_table ? table->column[i].name : "";
        if (strcmp(name, "inode") == 0 || strcmp(name, "ctime_ns") == 0 ||
            (of_table && table->column[i].optional && !rows->codes))
            continue;
        const unsigned number = of_table ? (failures ? ROW_FAILURE : ROW_IMAGE) + i
                                : i - table->count < features ? ROW_FEATURE + i - table->count
                                                              : ROW_THUMBNAIL;
        const struct move_column column = row_column(number, rows->content->features, rows->input);
        status = compare_rows(differs, &column, first, place, count, err);
        *same = !memchr(differs, 1, count);
    }
    return status;
}

enum status rows_are_same(bool *same, const struct new_rows *rows, struct result *finished,
                          struct error *err)
{
    enum status status = STATUS_OK;
    *same = finished && rows->lists.images.rows == result_images(finished) &&
            rows->lists.failures.rows == result_failures(finished) &&
            (rows->content->thumbnail_size == 0 ||
             rows->content->thumbnail_size == finished->thumbnail_size) &&
            (!rows->codes || result_has_codes(finished));
    for (int failures = 0; failures < 2; failures++) {
        const struct row_list *list = failures ? &rows->lists.failures : &rows->lists.images;
        for (uint64_t i = 0; *same && i < list->runs && !status; i++) {
            const struct row_run run = list->run[i];
            if (run.input == INPUT_FILE)
                *same = run.first == run.row;
            for (uint64_t at = 0; run.input == INPUT_LOG && at < run.count && *same && !status;
                 at += BLOCK_ROWS)
                status = compare_block(same, rows, failures, run.first + at, run.row + at,
                                       min_u64(run.count - at, BLOCK_ROWS), err);
        }
    }
    return status;
}

/* --- places ------------------------------------------------------------------------------------ */

/* Finds the places of a table's rows; those of the log by name. */
static enum status find_places(int64_t *place, uint8_t *there, const struct new_rows *rows,
                               bool failures, struct prior *old, struct error *err)
{
    const struct row_list *list = failures ? &rows->lists.failures : &rows->lists.images;
    const enum location_kind kind = failures ? LOCATION_LOG_FAILURE : LOCATION_LOG_IMAGE;
    enum status status = STATUS_OK;
    prior_seek(old, 0);
    for (uint64_t i = 0; i < list->runs && !status; i++) {
        const struct row_run run = list->run[i];
        for (uint64_t r = 0; r < run.count && !status; r++) {
            int64_t row = failures ? -1 : (int64_t)(run.first + r);
            struct store_record record;
            if (run.input == INPUT_LOG &&
                ((status = prior_at(rows->prior, location_of(kind, run.first + r), &record, err)) ||
                 (status = prior_find_row(old, record.image.source, record.path, record.path_length,
                                          &row, err))))
                break;
            /* An item that could not be read has both a failure and its old row. */
            if (there && row >= 0)
                there[row] |= failures ? ROW_FAILED : ROW_THERE;
            if (place)
                place[run.row + r] = row;
        }
        if (run.input == INPUT_FILE && !failures)
            prior_seek(old, run.first + run.count);
    }
    return status;
}

/* Sets the places of the log's rows to -1 unless bytes and values of the images are unchanged. */
static enum status check_content(struct row_map *map, const struct new_rows *rows,
                                 struct result *old, const struct row_run *run, struct error *err)
{
    static const unsigned content[] = {ROW_IMAGE + IMAGE_BYTES, ROW_IMAGE + IMAGE_DIGEST};
    const struct feature_set *features = rows->content->features;
    uint8_t differs[BLOCK_ROWS];
    enum status status = STATUS_OK;
    for (uint64_t at = 0, count; at < run->count && !status; at += count) {
        int64_t *place = map->earlier + run->row + at;
        count = min_u64(run->count - at, BLOCK_ROWS);
        memset(differs, 0, count);
        for (unsigned i = 0; i < 2 + features->count && !status; i++) {
            const struct feature *feature = i < 2 ? NULL : &features->feature[i - 2];
            const struct result_feature *there =
                feature ? result_feature_find(old, feature->name) : NULL;
            if (feature && (!there || strcmp(there->spec, feature->spec) != 0 ||
                            there->dimension != feature->dimension))
                continue;
            const struct move_column column =
                row_column(feature ? ROW_FEATURE + i - 2 : content[i], features, rows->input);
            status = compare_rows(differs, &column, run->first + at, place, count, err);
        }
        for (uint64_t i = 0; i < count; i++)
            place[i] = differs[i] ? -1 : place[i];
    }
    return status;
}

enum status row_map_make(struct row_map *out, const struct new_rows *given, struct result *old,
                         const int *source_now, const char *directory, uint8_t *there,
                         struct error *err)
{
    const struct row_list *list = &given->lists.images;
    const uint64_t images = list->rows;
    const struct prior_config config = {.content = given->content,
                                        .finished = old,
                                        .source_now = source_now,
                                        .directory = directory};
    struct prior *prior = NULL;
    /* The existing file's also for --fresh, where all rows come from the log. */
    struct row_input input[2] = {[INPUT_LOG] = given->input[INPUT_LOG]};
    struct new_rows rows = *given;
    struct file_input file;
    *out = (struct row_map){.rows = images, .same = images == result_images(old)};
    out->earlier = malloc((size_t)images * sizeof *out->earlier + 1);
    enum status status =
        out->earlier ? prior_open(&prior, &config, err)
                     : error_memory(err, (size_t)images * sizeof *out->earlier, "the earlier rows");
    if (!status)
        status = find_places(out->earlier, there, given, false, prior, err);
    if (!status && there)
        status = find_places(NULL, there, given, true, prior, err);
    prior_close(&prior);
    rows.input = input;
    result_input_init(&input[INPUT_FILE], &file, old, given->content->features, NULL, 0);
    for (uint64_t i = 0; i < list->runs && !status; i++) {
        const struct row_run run = list->run[i];
        if (run.input == INPUT_LOG)
            status = check_content(out, &rows, old, &run, err);
    }
    file_input_clear(&file);
    for (uint64_t i = 0; i < images && !status; i++) {
        out->fresh += out->earlier[i] < 0;
        out->same = out->same && out->earlier[i] == (int64_t)i;
    }
    out->gone = result_images(old) - (images - out->fresh);
    if (status)
        row_map_clear(out);
    return status;
}

void row_map_clear(struct row_map *map)
{
    free(map->earlier);
    *map = (struct row_map){.earlier = NULL};
}
