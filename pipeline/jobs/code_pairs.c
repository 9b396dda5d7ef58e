/* code_pairs.c: all codes against all, 64 at a time. */
#include "jobs/code_pairs.h"

#include "base/avx2.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "code_pairs_shape.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK       64u  /* codes counted at a time, */
#define LANES       8u   /* eight in a word */
#define ROWS        512u /* per task, compared with their own and all later blocks */
#define EVEN        18u  /* bytes of a code's bits that mirroring preserves, a multiple of three, */
#define BYTES       36u  /* and as many that it inverts */
#define PART_CODES  4096u /* laid out by one thread at a time */
#define FLUSH       4096u
#define PROGRESS_NS 200000000ll

_Static_assert(4 * PAIR_ODD <= BYTES - EVEN, "a block has all words of odd bits");

struct block {
    uint64_t byte[BYTES][LANES]; /* byte k of 64 codes */
};

struct scan {
    const struct code_pairs_config *config;
    struct block *block;
    uint32_t blocks, odd_bits;

    pthread_mutex_t lock; /* guards the following, except reads of list.limit */
    struct code_list list;
    struct error error;
    uint64_t done;
    int64_t shown;
};

/* --- 64 distances at a time ------------------------------------------------------------------ */

#define PAIRS   0x5555555555555555u /* the lower half of each two, four or eight bits */
#define NIBBLES 0x3333333333333333u
#define HALVES  0x0f0f0f0f0f0f0f0fu

/* For each of eight lanes: the number of ones in three bytes. */
ALWAYS_INLINE uint64_t count_ones(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t low = (a & PAIRS) + (b & PAIRS) + (c & PAIRS);
    const uint64_t high = (a >> 1 & PAIRS) + (b >> 1 & PAIRS) + (c >> 1 & PAIRS);
    const uint64_t fours =
        (low & NIBBLES) + (low >> 2 & NIBBLES) + (high & NIBBLES) + (high >> 2 & NIBBLES);
    return (fours & HALVES) + (fours >> 4 & HALVES);
}

/* The bits in which bytes [first, end) of a block's codes differ from the query's, whose bytes are
 * repeated in all lanes. */
ALWAYS_INLINE void add_bits(uint64_t sum[LANES], const struct block *block, const uint64_t *query,
                            uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k += 3)
        for (uint32_t i = 0; i < LANES; i++)
            sum[i] += count_ones(block->byte[k][i] ^ query[k], block->byte[k + 1][i] ^ query[k + 1],
                                 block->byte[k + 2][i] ^ query[k + 2]);
}

/* The distances of a block's codes to a query, and which are closer if mirrored; returns the least. */
AVX2_TOO static uint8_t compare(uint8_t distance[BLOCK], bool mirrored[BLOCK],
                                const struct block *block, const uint64_t *query, uint8_t odd_bits)
{
    uint64_t sums[2][LANES] = {{0}};
    const uint8_t *even = (const uint8_t *)sums[0], *odd = (const uint8_t *)sums[1];
    uint8_t least = UINT8_MAX;
    add_bits(sums[0], block, query, 0, EVEN);
    add_bits(sums[1], block, query, EVEN, BYTES);
    for (uint32_t i = 0; i < BLOCK; i++) {
        const uint8_t other = (uint8_t)(odd_bits - odd[i]);
        distance[i] = (uint8_t)(even[i] + (other < odd[i] ? other : odd[i]));
        mirrored[i] = other < odd[i];
        least = distance[i] < least ? distance[i] : least;
    }
    return least;
}

/* --- layout ---------------------------------------------------------------------------------- */

struct layout_job {
    const struct code_pairs_config *config;
    uint32_t place[CODE_BITS]; /* of each bit among the words */
    uint32_t *words;
};

static void lay_out_part(void *context, uint64_t part)
{
    const struct layout_job *job = context;
    const uint32_t end = min_u32((uint32_t)(part + 1) * PART_CODES, job->config->count);
    for (uint32_t c = (uint32_t)part * PART_CODES; c < end; c++) {
        const uint8_t *code = job->config->codes + (size_t)c * CODE_BYTES;
        uint32_t *words = job->words + (size_t)c * PAIR_WORDS;
        for (uint32_t i = 0; i < CODE_BITS; i++)
            words[job->place[i] / 32] |= (code[i / 8] >> (7 - i % 8) & 1u) << job->place[i] % 32;
    }
}

uint32_t *code_pairs_words(uint32_t *odd_bits, const struct code_pairs_config *config,
                           uint32_t padded)
{
    uint8_t mask[CODE_BYTES];
    uint32_t even = 0, odd = 0;
    struct layout_job job = {.config = config,
                             .words = calloc((size_t)padded * PAIR_WORDS, sizeof *job.words)};
    code_mirror_mask(mask);
    for (uint32_t i = 0; i < CODE_BITS; i++)
        job.place[i] = mask[i / 8] >> (7 - i % 8) & 1 ? 32 * PAIR_EVEN + odd++ : even++;
    *odd_bits = odd;
    if (job.words)
        workers_run(config->workers, lay_out_part, &job,
                    ((uint64_t)config->count + PART_CODES - 1) / PART_CODES);
    return job.words;
}

static uint8_t *byte_of(const struct scan *scan, uint32_t code, uint32_t byte)
{
    return (uint8_t *)scan->block[code / BLOCK].byte[byte] + code % BLOCK;
}

static enum status lay_out(struct scan *scan, struct error *err)
{
    const uint32_t count = scan->config->count;
    uint32_t *words = code_pairs_words(&scan->odd_bits, scan->config, count);
    scan->block = calloc(scan->blocks + 1, sizeof *scan->block);
    assert(CODE_BITS - scan->odd_bits <= 8 * EVEN);
    for (uint32_t c = 0; c < count && words && scan->block; c++) {
        const uint32_t *even = words + (size_t)c * PAIR_WORDS, *odd = even + PAIR_EVEN;
        for (uint32_t k = 0; k < EVEN; k++)
            *byte_of(scan, c, k) = (uint8_t)(even[k / 4] >> 8 * (k % 4));
        for (uint32_t k = 0; k < 4 * PAIR_ODD; k++)
            *byte_of(scan, c, EVEN + k) = (uint8_t)(odd[k / 4] >> 8 * (k % 4));
    }
    const bool good = words && scan->block;
    free(words);
    return good ? STATUS_OK : error_memory(err, (uint64_t)count * 80, "the codes of images");
}

/* --- the list -------------------------------------------------------------------------------- */

/* Lowers the limit until the pairs fit, and drops those beyond it. */
static void lower_limit(struct code_list *list)
{
    const struct code_pairs_config *config = list->config;
    uint32_t limit = list->limit;
    uint64_t sum = 0, kept = 0;
    for (uint32_t d = 0; d <= list->limit; d++) {
        sum += list->histogram[d];
        if (sum > config->most) {
            limit = d > config->floor + 1 ? d - 1 : config->floor;
            break;
        }
    }
    if (limit >= list->limit)
        return;
    list->limit = limit;
    for (uint64_t i = 0; i < list->count; i++)
        if (list->pair[i].distance <= limit)
            list->pair[kept++] = list->pair[i];
    list->count = kept;
    for (uint32_t d = limit + 1; d <= CODE_BITS; d++)
        list->histogram[d] = 0;
}

enum status code_list_add(struct code_list *list, const struct code_pair *pair, uint64_t count,
                          struct error *err)
{
    const uint64_t most = list->config->memory / sizeof *pair;
    if (list->count + count > list->room) {
        lower_limit(list);
        uint64_t room = max_u64(list->room, 65536);
        while (room < 2 * (list->count + count))
            room *= 2;
        if (list->count + count > most)
            return error_set(
                err, STATUS_FAILED,
                "more than %llu pairs of images have codes that differ in at most %u bits; "
                "look for closer ones with --near, or allow more with --memory",
                (unsigned long long)most, (unsigned)list->limit);
        struct code_pair *grown = realloc(list->pair, room * sizeof *grown);
        if (!grown)
            return error_memory(err, room * sizeof *grown, "pairs of images");
        list->pair = grown;
        list->room = room;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (pair[i].distance > list->limit)
            continue;
        list->pair[list->count++] = pair[i];
        list->histogram[pair[i].distance]++;
    }
    if (list->count > list->config->most)
        lower_limit(list);
    return STATUS_OK;
}

static int by_rows(const void *x, const void *y)
{
    const struct code_pair *a = x, *b = y;
    return a->a != b->a ? (a->a < b->a ? -1 : 1) : a->b != b->b ? (a->b < b->b ? -1 : 1) : 0;
}

void code_list_end(struct code_pairs *out, struct code_list *list)
{
    lower_limit(list);
    if (list->count > 1)
        qsort(list->pair, list->count, sizeof *list->pair, by_rows);
    *out = (struct code_pairs){list->pair, list->count, list->limit};
    list->pair = NULL;
}

/* Adds the pairs that a task has found. */
static void flush(struct scan *scan, const struct code_pair *pair, uint32_t count)
{
    pthread_mutex_lock(&scan->lock);
    if (scan->error.status == STATUS_OK)
        code_list_add(&scan->list, pair, count, &scan->error);
    pthread_mutex_unlock(&scan->lock);
}

static void show(struct scan *scan, uint64_t pairs)
{
    const struct code_pairs_config *config = scan->config;
    pthread_mutex_lock(&scan->lock);
    const int64_t now = clock_now();
    scan->done += pairs;
    if (now - scan->shown > PROGRESS_NS) {
        scan->shown = now;
        watch_show(&config->watch, "comparing codes", scan->done,
                   (uint64_t)config->count * config->count / 2);
    }
    pthread_mutex_unlock(&scan->lock);
}

/* Compares some codes with all later ones. */
static void do_rows(void *context, uint64_t task)
{
    struct scan *scan = context;
    const struct code_pairs_config *config = scan->config;
    struct code_pair pair[FLUSH + BLOCK];
    uint8_t distance[BLOCK];
    bool mirrored[BLOCK];
    const uint32_t first = (uint32_t)task * ROWS;
    const uint32_t end = config->count - first < ROWS ? config->count : first + ROWS;
    const uint8_t odd_bits = (uint8_t)scan->odd_bits;
    uint32_t count = 0;
    for (uint32_t b = first / BLOCK; b < scan->blocks; b++) {
        const struct block *block = &scan->block[b];
        const uint32_t limit = scan->list.limit;
        if (b % 1024 == 0 && stop_requested(config->watch.stop) != STOP_NONE)
            break;
        for (uint32_t i = first; i < end; i++) {
            uint64_t query[BYTES];
            for (uint32_t k = 0; k < BYTES; k++)
                query[k] = *byte_of(scan, i, k) * UINT64_C(0x0101010101010101);
            const uint8_t least = compare(distance, mirrored, block, query, odd_bits);
            for (uint32_t at = 0; at < BLOCK && least <= limit; at++) {
                const uint32_t j = b * BLOCK + at;
                if (distance[at] <= limit && i < j && j < config->count)
                    pair[count++] = (struct code_pair){i, j, distance[at], mirrored[at]};
            }
            if (count >= FLUSH) {
                flush(scan, pair, count);
                count = 0;
            }
        }
    }
    flush(scan, pair, count);
    show(scan, (uint64_t)(config->count - first) * ROWS);
}

enum status code_pairs_find(struct code_pairs *out, const struct code_pairs_config *config,
                            struct error *err)
{
    memset(out, 0, sizeof *out);
    struct scan scan = {.config = config, .blocks = (config->count + BLOCK - 1) / BLOCK};
    scan.list = (struct code_list){.config = config, .limit = config->limit};
    pthread_mutex_init(&scan.lock, NULL);
    if (lay_out(&scan, &scan.error) == STATUS_OK) {
        workers_run(config->workers, do_rows, &scan, (config->count + ROWS - 1) / ROWS);
        if (scan.error.status == STATUS_OK)
            watch_check(&config->watch, "comparing codes", &scan.error);
    }
    pthread_mutex_destroy(&scan.lock);
    free(scan.block);
    if (scan.error.status == STATUS_OK)
        code_list_end(out, &scan.list);
    else if (err)
        *err = scan.error;
    free(scan.list.pair);
    return scan.error.status;
}

void code_pairs_clear(struct code_pairs *pairs)
{
    free(pairs->pair);
    memset(pairs, 0, sizeof *pairs);
}
