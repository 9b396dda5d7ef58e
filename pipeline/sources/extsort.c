/* extsort.c: external merge sort.
 *
 * Added records fill the arena from its start, references to them from its end. When it is full,
 * the references are sorted and the records written in that order as a run; all runs are in one
 * file. For merging, the arena is replaced by read buffers of as many runs as fit into its size,
 * merged with a binary heap. If there are more runs, groups of them are first merged into a second file until few
 * enough are left; the last merge is not written but returned by extsort_next. So two descriptors
 * suffice for any size.
 *
 * A record is { uint32 key length, uint32 payload length, key, payload }, padded to 8 bytes. */
#include "sources/extsort.h"
#include "base/array.h"
#include "sources/spool.h"
#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MIN  (64 * 1024)
#define MEMORY_MAX  (UINT64_C(16) << 30) /* offsets in the arena are 32 bits */
#define READ_BUFFER (32 * 1024)          /* minimum read size per run */
#define FAN_IN_MAX  256
#define STOP_EVERY  1024 /* records between checks for a stop */

struct record_header {
    uint32_t key_length, payload_length;
};

#define RECORD_ALIGNMENT 8

struct record_reference {
    uint64_t word;  /* the first 8 bytes of the key, big-endian, zeros after its end */
    uint32_t place; /* the record's offset in the arena / RECORD_ALIGNMENT */
};

struct run {
    uint64_t start, end;
};

/* A run being merged, with its current record. */
struct merge_input {
    struct spool_reader reader;
    struct extsort_record record;
};

struct extsort {
    char *arena;
    size_t size, used, count; /* bytes; bytes of records; number of references */
    const char *directory;
    struct stop *stop;
    size_t largest; /* bytes of the largest record */
    bool adding;
    size_t since_stop; /* records since the last check for a stop */

    size_t next; /* all records in memory: the next reference */

    struct spool *spool; /* has the runs */
    struct run *runs;
    size_t run_count;

    struct merge_input *inputs; /* fan_in of them */
    size_t fan_in;
    struct merge_input **heap; /* by record.key; heap[0] is the smallest */
    size_t heap_count;
    bool taken; /* heap[0] was returned and must advance */
};

static enum status look_at_stop(struct extsort *sort, struct error *err)
{
    return stop_check(sort->stop, "sorting the list of files", err);
}

static enum status count_for_stop(struct extsort *sort, struct error *err)
{
    if (++sort->since_stop < STOP_EVERY)
        return STATUS_OK;
    sort->since_stop = 0;
    return look_at_stop(sort, err);
}

enum status extsort_open(struct extsort **out, const char *directory, uint64_t memory,
                         struct stop *stop, struct error *err)
{
    struct extsort *sort = calloc(1, sizeof *sort);
    if (!sort)
        return error_memory(err, sizeof *sort, "sorting");
    if (memory < MEMORY_MIN)
        memory = MEMORY_MIN;
    if (memory > MEMORY_MAX)
        memory = MEMORY_MAX;
    sort->size = (size_t)memory / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
    sort->adding = true;
    sort->stop = stop;
    sort->arena = malloc(sort->size);
    sort->directory = directory;
    if (!sort->arena) {
        enum status status = error_memory(err, sort->size, "sorting the list of files");
        extsort_close(&sort);
        return status;
    }
    *out = sort;
    return STATUS_OK;
}

static struct record_reference *references(const struct extsort *sort)
{
    return (struct record_reference *)(void *)(sort->arena + sort->size) - sort->count;
}

static size_t record_size(uint32_t key_length, uint32_t payload_length)
{
    size_t size = sizeof(struct record_header) + (size_t)key_length + payload_length;
    return (size + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
}

/* Sets *record to point into a stored record. */
static void view_record(struct extsort_record *record, const char *bytes)
{
    struct record_header header;
    memcpy(&header, bytes, sizeof header);
    record->key = bytes + sizeof header;
    record->payload = record->key + header.key_length;
    record->key_length = header.key_length;
    record->payload_length = header.payload_length;
}

/* By the bytes of the keys, then by length. */
static int compare_keys(const struct extsort_record *a, const struct extsort_record *b)
{
    const uint32_t common = a->key_length < b->key_length ? a->key_length : b->key_length;
    const int order = memcmp(a->key, b->key, common);
    return order ? order : (a->key_length > b->key_length) - (a->key_length < b->key_length);
}

static void view_reference(struct extsort_record *record, const struct extsort *sort,
                           const struct record_reference *reference)
{
    view_record(record, sort->arena + (size_t)reference->place * RECORD_ALIGNMENT);
}

/* Once a stop is requested, all are equal, so sorting ends soon. */
static int compare_references(const void *a, const void *b, void *context)
{
    const struct extsort *sort = context;
    const struct record_reference *one = a, *two = b;
    struct extsort_record first, second;
    if (stop_requested(sort->stop) != STOP_NONE)
        return 0;
    if (one->word != two->word)
        return one->word < two->word ? -1 : 1;
    view_reference(&first, sort, one);
    view_reference(&second, sort, two);
    return compare_keys(&first, &second);
}

/* Sorts the references to the records in the arena. */
static enum status sort_records(struct extsort *sort, struct error *err)
{
    qsort_r(references(sort), sort->count, sizeof(struct record_reference), compare_references,
            sort);
    return look_at_stop(sort, err);
}

static enum status add_run(struct extsort *sort, uint64_t start, uint64_t end, struct error *err)
{
    if (array_grow(&sort->runs, sort->run_count, sizeof *sort->runs, "the table of sorted runs",
                   err))
        return STATUS_FAILED;
    sort->runs[sort->run_count++] = (struct run){start, end};
    return STATUS_OK;
}

/* Sorts the records in the arena and writes them as a run. */
static enum status write_run(struct extsort *sort, struct error *err)
{
    enum status status = sort_records(sort, err);
    if (status == STATUS_OK && !sort->spool)
        status = spool_open(&sort->spool, sort->directory, err);
    if (status != STATUS_OK)
        return status;
    uint64_t start = spool_size(sort->spool);
    const struct record_reference *sorted = references(sort);
    for (size_t i = 0; i < sort->count; i++) {
        const char *bytes = sort->arena + (size_t)sorted[i].place * RECORD_ALIGNMENT;
        struct record_header header;
        memcpy(&header, bytes, sizeof header);
        if ((status = count_for_stop(sort, err)) != STATUS_OK)
            return status;
        status = spool_write(sort->spool, bytes,
                             record_size(header.key_length, header.payload_length), err);
        if (status != STATUS_OK)
            return status;
    }
    sort->used = 0;
    sort->count = 0;
    return add_run(sort, start, spool_size(sort->spool), err);
}

/* Enlarges the empty arena to at least `size` bytes. */
static enum status grow(struct extsort *sort, size_t size, struct error *err)
{
    assert(sort->count == 0);
    size = (size + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
    if (size <= sort->size)
        return STATUS_OK;
    free(sort->arena);
    sort->size = 0;
    sort->arena = malloc(size);
    if (!sort->arena)
        return error_memory(err, size, "sorting very long paths");
    sort->size = size;
    return STATUS_OK;
}

enum status extsort_add(struct extsort *sort, const struct extsort_record *record,
                        struct error *err)
{
    assert(sort->adding);
    size_t size = record_size(record->key_length, record->payload_length);
    size_t wanted = size + sizeof(struct record_reference);
    enum status status = count_for_stop(sort, err);
    if (status != STATUS_OK)
        return status;
    if (sort->size - sort->used - sort->count * sizeof(struct record_reference) < wanted) {
        if (sort->count > 0 && (status = write_run(sort, err)) != STATUS_OK)
            return status;
        if ((status = grow(sort, wanted, err)) != STATUS_OK)
            return status;
    }
    if (size > sort->largest)
        sort->largest = size;
    char *bytes = sort->arena + sort->used;
    struct record_header header = {record->key_length, record->payload_length};
    size_t filled = sizeof header + (size_t)record->key_length + record->payload_length;
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, record->key, record->key_length);
    if (record->payload_length > 0)
        memcpy(bytes + sizeof header + record->key_length, record->payload, record->payload_length);
    memset(bytes + filled, 0, size - filled);
    uint64_t word = 0;
    memcpy(&word, record->key, record->key_length < sizeof word ? record->key_length : sizeof word);
    sort->count++;
    *references(sort) = (struct record_reference){
        .word = be64toh(word), .place = (uint32_t)(sort->used / RECORD_ALIGNMENT)};
    sort->used += size;
    return STATUS_OK;
}

/* Reads the input's next record; STATUS_END at the end of its run. */
static enum status advance(struct merge_input *input, struct error *err)
{
    const char *bytes;
    struct record_header header;
    enum status status = spool_peek(&bytes, &input->reader, sizeof header, err);
    if (status != STATUS_OK)
        return status;
    memcpy(&header, bytes, sizeof header);
    size_t size = record_size(header.key_length, header.payload_length);
    status = spool_peek(&bytes, &input->reader, size, err);
    assert(status != STATUS_END);
    if (status != STATUS_OK)
        return status;
    view_record(&input->record, bytes);
    spool_take(&input->reader, size);
    return STATUS_OK;
}

static bool before(const struct merge_input *a, const struct merge_input *b)
{
    return compare_keys(&a->record, &b->record) < 0;
}

static void sift_down(struct extsort *sort, size_t at)
{
    struct merge_input *moving = sort->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sort->heap_count)
            break;
        if (child + 1 < sort->heap_count && before(sort->heap[child + 1], sort->heap[child]))
            child++;
        if (!before(sort->heap[child], moving))
            break;
        sort->heap[at] = sort->heap[child];
        at = child;
    }
    sort->heap[at] = moving;
}

/* Starts to merge runs[first..first + count). */
static enum status merge_begin(struct extsort *sort, size_t first, size_t count, struct error *err)
{
    sort->heap_count = 0;
    sort->taken = false;
    for (size_t i = 0; i < count; i++) {
        struct merge_input *input = &sort->inputs[i];
        const struct run *run = &sort->runs[first + i];
        spool_reader_clear(&input->reader);
        enum status status = spool_reader_init(&input->reader, sort->spool, run->start, run->end,
                                               sort->size / count, err);
        if (status == STATUS_OK)
            status = advance(input, err);
        if (status != STATUS_OK)
            return status; /* runs are never empty: not STATUS_END */
        sort->heap[sort->heap_count++] = input;
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(sort, i);
    return STATUS_OK;
}

static enum status merge_next(struct extsort *sort, struct extsort_record *record,
                              struct error *err)
{
    enum status status = count_for_stop(sort, err);
    if (status != STATUS_OK)
        return status;
    if (sort->taken) {
        status = advance(sort->heap[0], err);
        if (status == STATUS_END)
            sort->heap[0] = sort->heap[--sort->heap_count];
        else if (status != STATUS_OK)
            return status;
        if (sort->heap_count > 1)
            sift_down(sort, 0);
    }
    sort->taken = sort->heap_count > 0;
    if (!sort->taken)
        return STATUS_END;
    *record = sort->heap[0]->record;
    return STATUS_OK;
}

/* Merges groups of up to fan_in runs into one each, in a new file that replaces the old one. */
static enum status merge_pass(struct extsort *sort, struct error *err)
{
    struct spool *merged = NULL;
    enum status status = spool_open(&merged, sort->directory, err);
    if (status != STATUS_OK)
        return status;
    size_t groups = 0, fan_in = sort->fan_in;
    for (size_t first = 0; first < sort->run_count; first += fan_in) {
        size_t count = sort->run_count - first < fan_in ? sort->run_count - first : fan_in;
        uint64_t start = spool_size(merged);
        struct extsort_record record;
        status = merge_begin(sort, first, count, err);
        if (status != STATUS_OK)
            goto out;
        while ((status = merge_next(sort, &record, err)) == STATUS_OK) {
            /* The record is complete in its read buffer, with header and padding. */
            status = spool_write(merged, record.key - sizeof(struct record_header),
                                 record_size(record.key_length, record.payload_length), err);
            if (status != STATUS_OK)
                goto out;
        }
        if (status != STATUS_END)
            goto out;
        sort->runs[groups++] = (struct run){start, spool_size(merged)};
    }
    sort->run_count = groups;
    spool_close(&sort->spool);
    sort->spool = merged;
    merged = NULL;
    status = STATUS_OK;
out:
    spool_close(&merged);
    return status;
}

enum status extsort_finish(struct extsort *sort, struct error *err)
{
    assert(sort->adding);
    sort->adding = false;
    if (sort->run_count == 0)
        return sort_records(sort, err);
    enum status status = STATUS_OK;
    if (sort->count > 0)
        status = write_run(sort, err);
    if (status != STATUS_OK)
        return status;
    free(sort->arena);
    sort->arena = NULL;
    const size_t fit = sort->size / (sort->largest > READ_BUFFER ? sort->largest : READ_BUFFER);
    sort->fan_in = fit < 2 ? 2 : fit > FAN_IN_MAX ? FAN_IN_MAX : fit;
    sort->inputs = calloc(sort->fan_in, sizeof *sort->inputs);
    sort->heap = calloc(sort->fan_in, sizeof *sort->heap);
    if (!sort->inputs || !sort->heap)
        return error_memory(err, sort->fan_in * sizeof *sort->inputs, "merging sorted runs");
    while (sort->run_count > sort->fan_in)
        if ((status = merge_pass(sort, err)) != STATUS_OK)
            return status;
    return merge_begin(sort, 0, sort->run_count, err);
}

enum status extsort_next(struct extsort *sort, struct extsort_record *record, struct error *err)
{
    assert(!sort->adding);
    if (sort->run_count > 0)
        return merge_next(sort, record, err);
    if (sort->next == sort->count)
        return STATUS_END;
    view_reference(record, sort, &references(sort)[sort->next++]);
    return count_for_stop(sort, err);
}

void extsort_close(struct extsort **sort)
{
    if (!sort || !*sort)
        return;
    spool_close(&(*sort)->spool);
    for (size_t i = 0; (*sort)->inputs && i < (*sort)->fan_in; i++)
        spool_reader_clear(&(*sort)->inputs[i].reader);
    free((*sort)->runs);
    free((*sort)->inputs);
    free((*sort)->heap);
    free((*sort)->arena);
    free(*sort);
    *sort = NULL;
}
