/* code_pairs.c: all codes against all, 64 at a time. */
#include "jobs/code_pairs.h"

#include "base/clock.h"
#include "base/minmax.h"
#include "features/code.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86 1
#include <immintrin.h>
#endif

#define BLOCK       64u  /* codes counted at a time */
#define ROWS        512u /* per task, compared with their own and all later blocks */
#define QUERIES     4u   /* codes that share the loads of a block */
#define NIBBLES_MAX 66u  /* groups of four bits, even and odd ones separate */
#define PACKED      (NIBBLES_MAX / 2)
#define FLUSH       4096u
#define PROGRESS_NS 200000000ll

/* Four bits of 64 codes each. */
struct block {
    uint8_t low_high[PACKED][BLOCK]; /* group k in the low, k + PACKED in the high four bits */
};

/* QUERIES codes against a block. Bit i of `hits`: code i is within the limit; only then distance[i]
 * and bit i of `mirrored` are set. */
struct found {
    uint64_t hits[QUERIES], mirrored[QUERIES];
    uint8_t distance[QUERIES][BLOCK];
};

struct scan {
    const struct code_pairs_config *config;
    struct block *block;
    uint8_t (*groups)[NIBBLES_MAX]; /* of each code, one by one, 16 times each */
    uint32_t blocks, even_groups, groups_used;
    uint32_t odd_bits;
    void (*compare)(struct found *found, const struct scan *scan, const uint8_t (*planes)[BLOCK],
                    const uint8_t (*query)[NIBBLES_MAX], uint32_t limit);
    uint8_t table[256]; /* bits in which two groups differ, at 16 times one plus the other */

    pthread_mutex_t lock; /* guards the following, except reads of list.limit */
    struct code_list list;
    struct error error;
    uint64_t done;
    int64_t shown;
};

/* --- 64 distances at a time ------------------------------------------------------------------ */

static void compare_plain(struct found *found, const struct scan *scan,
                          const uint8_t (*planes)[BLOCK], const uint8_t (*query)[NIBBLES_MAX],
                          uint32_t limit)
{
    memset(found, 0, sizeof *found);
    for (uint32_t q = 0; q < QUERIES; q++) {
        uint8_t even[BLOCK] = {0}, odd[BLOCK] = {0};
        for (uint32_t k = 0; k < scan->groups_used; k++) {
            const uint8_t *table = scan->table + query[q][k];
            uint8_t *sum = k < scan->even_groups ? even : odd;
            for (uint32_t i = 0; i < BLOCK; i++)
                sum[i] = (uint8_t)(sum[i] + table[planes[k][i]]);
        }
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t other = scan->odd_bits - odd[i];
            const uint32_t d = even[i] + (other < odd[i] ? other : odd[i]);
            found->distance[q][i] = (uint8_t)d;
            found->hits[q] |= (uint64_t)(d <= limit) << i;
            found->mirrored[q] |= (uint64_t)(other < odd[i]) << i;
        }
    }
}

#ifdef HAVE_X86
#define AVX512 __attribute__((target("avx512f,avx512bw")))
#define AVX2   __attribute__((target("avx2")))

/* Adds groups [from, to) of the queries to their sums. */
AVX512 static inline void add_groups(__m512i *sum, const struct scan *scan,
                                     const uint8_t (*planes)[BLOCK],
                                     const uint8_t (*query)[NIBBLES_MAX], uint32_t from,
                                     uint32_t to)
{
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    const uint8_t *table = scan->table;
    for (uint32_t k = from; k < to; k++) {
        const __m512i plane = _mm512_load_si512(planes[k]);
#define ADD(s, q)                                                                                  \
    s = _mm512_add_epi8(s, _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(             \
                                                   (const __m128i *)(table + query[q][k]))),       \
                                               plane))
        ADD(s0, 0);
        ADD(s1, 1);
        ADD(s2, 2);
        ADD(s3, 3);
#undef ADD
    }
    sum[0] = s0;
    sum[1] = s1;
    sum[2] = s2;
    sum[3] = s3;
}

AVX512 static void compare_avx512(struct found *found, const struct scan *scan,
                                  const uint8_t (*planes)[BLOCK],
                                  const uint8_t (*query)[NIBBLES_MAX], uint32_t limit)
{
    __m512i even[QUERIES], odd[QUERIES];
    add_groups(even, scan, planes, query, 0, scan->even_groups);
    add_groups(odd, scan, planes, query, scan->even_groups, scan->groups_used);
    for (uint32_t q = 0; q < QUERIES; q++) {
        const __m512i other = _mm512_sub_epi8(_mm512_set1_epi8((char)scan->odd_bits), odd[q]);
        const __m512i d = _mm512_add_epi8(even[q], _mm512_min_epu8(odd[q], other));
        found->hits[q] = _mm512_cmple_epu8_mask(d, _mm512_set1_epi8((char)limit));
        if (found->hits[q]) {
            _mm512_storeu_si512(found->distance[q], d);
            found->mirrored[q] = _mm512_cmplt_epu8_mask(other, odd[q]);
        }
    }
}

AVX2 static void compare_avx2(struct found *found, const struct scan *scan,
                              const uint8_t (*planes)[BLOCK], const uint8_t (*query)[NIBBLES_MAX],
                              uint32_t limit)
{
    for (uint32_t q = 0; q < QUERIES; q++) {
        found->hits[q] = found->mirrored[q] = 0;
        for (uint32_t half = 0; half < BLOCK; half += 32) {
            __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            for (uint32_t odd = 0, k = 0; odd < 2; odd++) {
                __m256i s = _mm256_setzero_si256();
                const uint32_t end = odd ? scan->groups_used : scan->even_groups;
                for (; k < end; k++) {
                    const __m256i table = _mm256_broadcastsi128_si256(
                        _mm_loadu_si128((const __m128i *)(scan->table + query[q][k])));
                    s = _mm256_add_epi8(
                        s, _mm256_shuffle_epi8(
                               table, _mm256_loadu_si256((const __m256i *)(planes[k] + half))));
                }
                sum[odd] = s;
            }
            const __m256i other = _mm256_sub_epi8(_mm256_set1_epi8((char)scan->odd_bits), sum[1]);
            const __m256i less = _mm256_min_epu8(sum[1], other);
            const __m256i d = _mm256_add_epi8(sum[0], less);
            const __m256i most = _mm256_set1_epi8((char)limit);
            const uint32_t inside =
                (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(d, most), d));
            if (!inside)
                continue;
            const uint32_t straight =
                (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(less, sum[1]));
            _mm256_storeu_si256((__m256i *)(found->distance[q] + half), d);
            found->hits[q] |= (uint64_t)inside << half;
            found->mirrored[q] |= (uint64_t)(~straight) << half;
        }
    }
}
#endif

bool code_count_is_possible(enum code_count count)
{
#ifdef HAVE_X86
    if (count == CODE_COUNT_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    if (count == CODE_COUNT_AVX2)
        return __builtin_cpu_supports("avx2");
#endif
    return count == CODE_COUNT_AUTO || count == CODE_COUNT_PLAIN;
}

static void choose_compare(struct scan *scan, enum code_count how)
{
    scan->compare = compare_plain;
#ifdef HAVE_X86
    if (how == CODE_COUNT_AUTO)
        how = code_count_is_possible(CODE_COUNT_AVX512) ? CODE_COUNT_AVX512
              : code_count_is_possible(CODE_COUNT_AVX2) ? CODE_COUNT_AVX2
                                                        : CODE_COUNT_PLAIN;
    if (how == CODE_COUNT_AVX512)
        scan->compare = compare_avx512;
    if (how == CODE_COUNT_AVX2)
        scan->compare = compare_avx2;
#else
    (void)how;
#endif
}

/* --- layout ---------------------------------------------------------------------------------- */

static void lay_out(struct scan *scan)
{
    uint8_t mask[CODE_BYTES];
    uint32_t place[CODE_BITS], even = 0, odd = 0;
    code_mirror_mask(mask);
    for (uint32_t i = 0; i < CODE_BITS; i++)
        odd += mask[i / 8] >> (7 - i % 8) & 1;
    scan->odd_bits = odd;
    scan->even_groups = (CODE_BITS - odd + 3) / 4;
    scan->groups_used = scan->even_groups + (odd + 3) / 4;
    for (uint32_t i = 0, o = scan->even_groups * 4; i < CODE_BITS; i++)
        place[i] = mask[i / 8] >> (7 - i % 8) & 1 ? o++ : even++;
    for (uint32_t a = 0; a < 16; a++)
        for (uint32_t b = 0; b < 16; b++)
            scan->table[16 * a + b] = (uint8_t)__builtin_popcount(a ^ b);
    for (uint32_t c = 0; c < scan->config->count; c++) {
        const uint8_t *code = scan->config->codes + (size_t)c * CODE_BYTES;
        uint8_t *groups = scan->groups[c];
        for (uint32_t i = 0; i < CODE_BITS; i++)
            groups[place[i] / 4] |= (uint8_t)((code[i / 8] >> (7 - i % 8) & 1) << place[i] % 4);
        struct block *block = &scan->block[c / BLOCK];
        for (uint32_t k = 0; k < PACKED; k++)
            block->low_high[k][c % BLOCK] = (uint8_t)(groups[k] | groups[k + PACKED] << 4);
        for (uint32_t k = 0; k < NIBBLES_MAX; k++)
            groups[k] = (uint8_t)(groups[k] * 16);
    }
}

static void unpack(uint8_t planes[NIBBLES_MAX][BLOCK], const struct block *block)
{
    for (uint32_t k = 0; k < PACKED; k++) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            planes[k][i] = block->low_high[k][i] & 15;
            planes[k + PACKED][i] = block->low_high[k][i] >> 4;
        }
    }
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
    struct code_pair pair[FLUSH + QUERIES * BLOCK];
    struct found found;
    _Alignas(64) uint8_t planes[NIBBLES_MAX][BLOCK];
    const uint32_t first = (uint32_t)task * ROWS;
    const uint32_t end = config->count - first < ROWS ? config->count : first + ROWS;
    uint32_t count = 0;
    for (uint32_t b = first / BLOCK; b < scan->blocks; b++) {
        if (b % 1024 == 0 && stop_requested(config->watch.stop) != STOP_NONE)
            break;
        const uint32_t limit = scan->list.limit;
        unpack(planes, &scan->block[b]);
        for (uint32_t i = first; i < end; i += QUERIES) {
            scan->compare(&found, scan, (const uint8_t(*)[BLOCK])planes,
                          (const uint8_t(*)[NIBBLES_MAX])scan->groups[i], limit);
            for (uint32_t q = 0; q < QUERIES; q++) {
                for (uint64_t hits = found.hits[q]; hits; hits &= hits - 1) {
                    const uint32_t at = (uint32_t)__builtin_ctzll(hits), j = b * BLOCK + at;
                    if (i + q < j && j < config->count)
                        pair[count++] = (struct code_pair){i + q, j, found.distance[q][at],
                                                           found.mirrored[q] >> at & 1};
                }
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
    scan.block = calloc(scan.blocks + 1, sizeof *scan.block);
    scan.groups = calloc((size_t)config->count + QUERIES, sizeof *scan.groups);
    if (!scan.block || !scan.groups) {
        error_memory(&scan.error, (uint64_t)config->count * 100, "the codes of images");
    } else {
        lay_out(&scan);
        choose_compare(&scan, config->how);
        workers_run(config->workers, do_rows, &scan, (config->count + ROWS - 1) / ROWS);
        if (scan.error.status == STATUS_OK)
            watch_check(&config->watch, "comparing codes", &scan.error);
    }
    pthread_mutex_destroy(&scan.lock);
    free(scan.groups);
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
