/* move_rows.c: processes ranges of columns in row order.
 *
 * A range has whole pieces of contiguous rows, or whole chunks. If chunks end within a piece, the
 * range extends to the end of the last piece that begins in it, so that one thread digests the
 * whole piece. Pieces of blobs and of their ends may end within ranges: if an earlier range was
 * written later, they are not digested on the way but read back at the end. */
#include "result/move_rows.h"
#include "base/minmax.h"
#include "base/workers.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_BYTES  (1u << 20)
#define PART_ROWS    (1u << 14) /* of a blob column */
#define MOST_THREADS 8
/* Short runs of one input that are close to each other are read at once. */
#define SPAN_BYTES 262144u
#define SPAN_SHORT 16384u
#define SPAN_OTHER 16 /* runs of other inputs between two of them */

struct range {
    uint64_t first, count, turn;
    unsigned column;
};

/* The state of one thread. */
struct buffers {
    uint8_t *rows, *span;
    uint64_t *lengths;
    uint8_t *taken; /* runs of a range that have been read */
    size_t rows_room, taken_room;
};

struct moving {
    const struct move *move;
    enum status (*work)(struct moving *moving, const struct range *range, struct buffers *buffers,
                        struct error *err);
    struct range *range;
    uint64_t ranges;
    _Atomic uint64_t next, done;
    _Atomic bool failed;
    pthread_t caller;
    struct raw_turns turns;
    pthread_mutex_t lock; /* guards error */
    struct error error;
};

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static enum status make_room(uint8_t **bytes, size_t *room, size_t size, struct error *err)
{
    if (size <= *room)
        return STATUS_OK;
    free(*bytes);
    *bytes = malloc(size);
    *room = *bytes ? size : 0;
    return *bytes ? STATUS_OK : error_memory(err, size, "rows");
}

/* --- reading ----------------------------------------------------------------------------------- */

/* The size of a row to read: that of its value or, for texts and blobs, of its length. */
struct reading {
    const struct move_column *column;
    bool lengths;
    size_t row_bytes;
};

static enum status read_input(const struct reading *reading, uint32_t input, uint64_t first,
                              uint64_t count, uint8_t *to, struct error *err)
{
    return row_input_read(&reading->column->input[input], reading->column, reading->lengths, first,
                          count, to, err);
}

static void fill_rows(const struct reading *reading, uint64_t count, uint8_t *to)
{
    const void *fill = reading->lengths ? NULL : reading->column->fill;
    if (!fill)
        memset(to, 0, count * reading->row_bytes);
    for (uint64_t i = 0; fill && i < count; i++)
        memcpy(to + i * reading->row_bytes, fill, reading->row_bytes);
}

/* The part of a run within rows [first, end). */
static struct row_run cut(struct row_run run, uint64_t first, uint64_t end)
{
    const uint64_t skip = run.row < first ? first - run.row : 0;
    run.row += skip;
    run.first += skip;
    run.count -= skip;
    run.count = min_u64(run.count, end - run.row);
    return run;
}

struct window {
    const struct move_column *column;
    uint64_t first, end, first_run, runs; /* rows and runs of the list */
};

static struct row_run run_at(const struct window *window, uint64_t i)
{
    return cut(window->column->list->run[window->first_run + i], window->first, window->end);
}

/* The number of rows of the input to read at once from run `i` on, including following runs; *last is
 * the last of these. */
static uint64_t span_of(const struct reading *reading, const struct window *window, uint64_t i,
                        const uint8_t *taken, uint64_t *last)
{
    const struct row_run run = run_at(window, i);
    uint64_t end = run.first + run.count, wanted = run.count;
    *last = i;
    for (uint64_t j = i + 1; j < window->runs && j - *last <= SPAN_OTHER; j++) {
        const struct row_run next = run_at(window, j);
        if (next.input != run.input || taken[j])
            continue;
        if (next.first < end ||
            (next.first + next.count - run.first) * reading->row_bytes > SPAN_BYTES ||
            next.first + next.count - run.first > 4 * (wanted + next.count))
            break;
        end = next.first + next.count;
        wanted += next.count;
        *last = j;
    }
    return end - run.first;
}

/* Reads rows [first, first + count) of the list. */
static enum status read_list(const struct reading *reading, uint64_t first, uint64_t count,
                             uint8_t *to, struct buffers *buffers, struct error *err)
{
    const struct row_list *list = reading->column->list;
    const size_t row_bytes = reading->row_bytes;
    struct window w = {.column = reading->column, .first = first, .end = first + count};
    if (count == 0)
        return STATUS_OK;
    w.first_run = row_list_find(list, first);
    w.runs = row_list_find(list, first + count - 1) - w.first_run + 1;
    if (make_room(&buffers->taken, &buffers->taken_room, (size_t)w.runs, err))
        return STATUS_FAILED;
    memset(buffers->taken, 0, (size_t)w.runs);
    for (uint64_t i = 0; i < w.runs; i++) {
        const struct row_run run = run_at(&w, i);
        uint64_t last = i, span = run.count;
        if (buffers->taken[i])
            continue;
        if (run.input == ROW_LIST_NONE) {
            fill_rows(reading, run.count, to + (run.row - first) * row_bytes);
            continue;
        }
        if (run.count * row_bytes < SPAN_SHORT)
            span = span_of(reading, &w, i, buffers->taken, &last);
        if (last > i &&
            read_input(reading, run.input, run.first, span, buffers->span, NULL) != STATUS_OK)
            last = i; /* unneeded rows between them may be damaged */
        if (last == i) {
            const enum status status = read_input(reading, run.input, run.first, run.count,
                                                  to + (run.row - first) * row_bytes, err);
            if (status)
                return status;
            continue;
        }
        for (uint64_t j = i; j <= last; j++) {
            const struct row_run part = run_at(&w, j);
            if (part.input != run.input || buffers->taken[j])
                continue;
            memcpy(to + (part.row - first) * row_bytes,
                   buffers->span + (part.first - run.first) * row_bytes, part.count * row_bytes);
            buffers->taken[j] = 1;
        }
    }
    return STATUS_OK;
}

/* Reads blobs of rows of the list, end to end, with these lengths. */
static enum status read_blobs(const struct move_column *column, uint64_t first, uint64_t count,
                              const uint64_t *lengths, uint8_t *to, struct error *err)
{
    const struct window w = {.column = column, .first = first, .end = first + count};
    for (uint64_t row = first, run = row_list_find(column->list, first); row < w.end; run++) {
        const struct row_run part = cut(column->list->run[run], first, w.end);
        uint64_t bytes = 0;
        for (uint64_t i = 0; i < part.count; i++)
            bytes += lengths[row - first + i];
        const enum status status = bytes > 0
                                       ? row_input_read(&column->input[part.input], column, false,
                                                        part.first, part.count, to, err)
                                       : STATUS_OK;
        if (status)
            return status;
        to += bytes;
        row += part.count;
    }
    return STATUS_OK;
}

/* --- ranges ------------------------------------------------------------------------------------ */

static enum status move_fixed(struct moving *moving, const struct move_column *column,
                              const struct range *range, struct buffers *buffers, struct error *err)
{
    const struct reading reading = {column, false, column->row_bytes};
    const uint64_t end = range->first + range->count, piece = row_tree_piece(column->row_bytes),
                   begun = round_up(range->first, piece),
                   digested = column->tree && begun < end
                                  ? min_u64(round_up(end, piece), column->to->rows)
                                  : end;
    enum status status = make_room(&buffers->rows, &buffers->rows_room,
                                   (size_t)(digested - range->first) * column->row_bytes, err);
    if (!status)
        status =
            read_list(&reading, range->first, digested - range->first, buffers->rows, buffers, err);
    if (!status && column->tree && begun < end)
        row_tree_add(column->tree, begun, digested - begun,
                     buffers->rows + (begun - range->first) * column->row_bytes);
    return status ? status
                  : raw_write_rows(column->to, range->first, range->count, buffers->rows,
                                   &moving->turns, range->turn, err);
}

static enum status move_blobs(const struct move_column *column, const struct range *range,
                              struct buffers *buffers, struct error *err)
{
    const struct reading reading = {column, true, sizeof *buffers->lengths};
    uint64_t *lengths = buffers->lengths, at = column->before[range->first / PART_ROWS];
    uint8_t *ends = buffers->span; /* unused after read_list */
    enum status status =
        read_list(&reading, range->first, range->count, (uint8_t *)lengths, buffers, err);
    for (uint64_t i = 0, end = at; i < range->count && !status; i++) {
        end += lengths[i];
        memcpy(ends + i * sizeof end, &end, sizeof end);
    }
    if (status ||
        (status = raw_write_rows(column->to, range->first, range->count, ends, NULL, 0, err)))
        return status;
    if (column->tree)
        row_tree_add(column->tree, range->first, range->count, ends);
    for (uint64_t i = 0, count = 0; i < range->count && !status; i += count) {
        uint64_t bytes = lengths[i];
        for (count = 1; i + count < range->count && bytes + lengths[i + count] <= RANGE_BYTES;
             count++)
            bytes += lengths[i + count];
        if (bytes == 0 || !column->data)
            continue;
        if ((status = make_room(&buffers->rows, &buffers->rows_room, (size_t)bytes, err)) ||
            (status =
                 read_blobs(column, range->first + i, count, lengths + i, buffers->rows, err)) ||
            (status = raw_write_rows(column->data, at, bytes, buffers->rows, NULL, 0, err)))
            break;
        if (column->data_tree)
            row_tree_add(column->data_tree, at, bytes, buffers->rows);
        at += bytes;
    }
    return status;
}

static enum status move_range(struct moving *moving, const struct range *range,
                              struct buffers *buffers, struct error *err)
{
    const struct move_column *column = &moving->move->column[range->column];
    return column->kind == MOVE_BLOB ? move_blobs(column, range, buffers, err)
                                     : move_fixed(moving, column, range, buffers, err);
}

/* Digests the missing pieces of blobs or of their ends. */
static enum status digest_rest(struct row_tree *tree, const struct raw *raw, struct error *err)
{
    uint8_t *rows = NULL;
    size_t room = 0;
    uint64_t first, count;
    enum status status = STATUS_OK;
    while (!status && tree && row_tree_missing(tree, &first, &count) &&
           !(status = make_room(&rows, &room, (size_t)(count * raw->row_bytes), err)) &&
           !(status = raw_read(raw, first, count, rows, err)))
        row_tree_add(tree, first, count, rows);
    free(rows);
    return status;
}

/* Measures a part of a text or blob column: the sum of its lengths, and for texts the longest. */
static enum status measure_range(struct moving *moving, const struct range *range,
                                 struct buffers *buffers, struct error *err)
{
    struct move_column *column = &moving->move->column[range->column];
    const struct reading reading = {column, true, sizeof *buffers->lengths};
    uint64_t sum = 0, longest = 0;
    const enum status status =
        read_list(&reading, range->first, range->count, (uint8_t *)buffers->lengths, buffers, err);
    for (uint64_t i = 0; i < range->count && !status; i++) {
        sum += buffers->lengths[i];
        longest = buffers->lengths[i] > longest ? buffers->lengths[i] : longest;
    }
    pthread_mutex_lock(&moving->lock);
    column->bytes += sum;
    column->before[range->first / PART_ROWS] = sum;
    if (column->kind == MOVE_TEXT && longest > column->row_bytes)
        column->row_bytes = (size_t)longest;
    pthread_mutex_unlock(&moving->lock);
    return status;
}

/* --- threads ----------------------------------------------------------------------------------- */

static void fail(struct moving *moving, const struct error *error)
{
    pthread_mutex_lock(&moving->lock);
    if (!atomic_exchange(&moving->failed, true))
        moving->error = *error;
    pthread_mutex_unlock(&moving->lock);
    raw_turns_fail(&moving->turns);
}

/* One thread's share: the ranges that it takes. */
static void do_ranges(void *context, uint64_t thread)
{
    (void)thread;
    struct moving *moving = context;
    const struct move *move = moving->move;
    struct buffers b = {.span = malloc(SPAN_BYTES),
                        .lengths = malloc(PART_ROWS * sizeof(uint64_t))};
    uint64_t i;
    _Static_assert(SPAN_BYTES >= PART_ROWS * sizeof(uint64_t), "a span has room for ends");
    while (!atomic_load(&moving->failed) &&
           (i = atomic_fetch_add(&moving->next, 1)) < moving->ranges) {
        struct error error = ERROR_INIT;
        if (!b.span || !b.lengths)
            error_memory(&error, PART_ROWS * sizeof(uint64_t), "rows");
        else if (!watch_check(&move->watch, "writing the file", &error))
            moving->work(moving, &moving->range[i], &b, &error);
        if (error.status)
            fail(moving, &error);
        const uint64_t done = atomic_fetch_add(&moving->done, 1) + 1;
        if (pthread_equal(pthread_self(), moving->caller)) /* the rest counts as done */
            watch_show(&move->watch, "writing the file", min_u64(done, moving->ranges),
                       moving->ranges);
    }
    free(b.rows);
    free(b.span);
    free(b.lengths);
    free(b.taken);
}

static enum status run(struct moving *moving, struct error *err)
{
    const unsigned most =
        moving->move->threads < MOST_THREADS ? moving->move->threads : MOST_THREADS;
    const unsigned threads = (unsigned)min_u64(moving->ranges, most > 0 ? most : 1);
    moving->caller = pthread_self();
    workers_once(threads, do_ranges, moving, threads);
    if (moving->failed && err)
        *err = moving->error;
    return moving->failed ? moving->error.status : STATUS_OK;
}

static enum status moving_init(struct moving *moving, const struct move *move, uint64_t ranges,
                               struct error *err)
{
    *moving = (struct moving){.move = move,
                              .range = malloc((size_t)(ranges + 1) * sizeof *moving->range)};
    raw_turns_init(&moving->turns);
    pthread_mutex_init(&moving->lock, NULL);
    return moving->range
               ? STATUS_OK
               : error_memory(err, (size_t)ranges * sizeof *moving->range, "ranges of rows");
}

static void moving_clear(struct moving *moving)
{
    raw_turns_clear(&moving->turns);
    pthread_mutex_destroy(&moving->lock);
    free(moving->range);
}

static uint64_t range_rows(const struct move_column *column)
{
    const uint64_t chunk = column->to ? column->to->chunk_rows : 0,
                   step = chunk > 0 ? chunk : row_tree_piece(column->row_bytes);
    const uint64_t fit = RANGE_BYTES / (step * column->row_bytes);
    return column->kind == MOVE_BLOB ? PART_ROWS : step * (fit > 0 ? fit : 1);
}

static int by_row(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->column > y->column) - (x->column < y->column);
}

static void add_ranges(struct moving *moving, unsigned column, uint64_t rows, uint64_t step)
{
    for (uint64_t first = 0; first < rows; first += step)
        moving->range[moving->ranges++] =
            (struct range){.first = first, .count = min_u64(step, rows - first), .column = column};
}

enum status move_measure(const struct move *move, struct error *err)
{
    struct moving moving;
    uint64_t ranges = 0;
    for (unsigned c = 0; c < move->columns; c++)
        ranges += move->column[c].list->rows / PART_ROWS + 1;
    enum status status = moving_init(&moving, move, ranges, err);
    moving.work = measure_range;
    for (unsigned c = 0; c < move->columns && !status; c++) {
        struct move_column *column = &move->column[c];
        const uint64_t rows = column->list->rows;
        if (column->kind == MOVE_FIXED)
            continue;
        column->bytes = 0;
        column->row_bytes = column->kind == MOVE_BLOB ? sizeof(uint64_t) : 1;
        column->before = calloc((size_t)(rows / PART_ROWS + 1), sizeof *column->before);
        if (!column->before)
            status = error_memory(err, (size_t)rows, "lengths");
        else
            add_ranges(&moving, c, rows, PART_ROWS);
    }
    if (!status)
        status = run(&moving, err);
    for (unsigned c = 0; c < move->columns && !status; c++) {
        const uint64_t parts = move->column[c].list->rows / PART_ROWS + 1;
        uint64_t before = 0, *sum = move->column[c].before;
        for (uint64_t p = 0; sum && p < parts; p++) {
            const uint64_t bytes = sum[p];
            sum[p] = before;
            before += bytes;
        }
    }
    moving_clear(&moving);
    return status;
}

enum status move_rows(const struct move *move, struct error *err)
{
    struct moving moving;
    uint64_t ranges = move->columns, turn = 0;
    for (unsigned c = 0; c < move->columns; c++)
        ranges += move->column[c].list->rows / range_rows(&move->column[c]) + 1;
    enum status status = moving_init(&moving, move, ranges, err);
    moving.work = move_range;
    for (unsigned c = 0; c < move->columns && !status; c++)
        if (move->column[c].to)
            add_ranges(&moving, c, move->column[c].list->rows, range_rows(&move->column[c]));
    qsort(moving.range, moving.ranges, sizeof *moving.range, by_row);
    for (uint64_t i = 0; i < moving.ranges; i++)
        if (move->column[moving.range[i].column].to->chunk_rows > 0)
            moving.range[i].turn = turn++;
    if (!status)
        status = run(&moving, err);
    moving_clear(&moving);
    for (unsigned c = 0; c < move->columns && !status; c++) {
        const struct move_column *column = &move->column[c];
        if (column->kind == MOVE_BLOB && !(status = digest_rest(column->tree, column->to, err)))
            status = digest_rest(column->data_tree, column->data, err);
    }
    return status;
}
