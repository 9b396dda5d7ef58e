/* confirm.c: forms stars in rounds.
 *
 * A class waits while it has a pair with an earlier class that may still become a reference. In
 * each round all classes that do not wait become references, and their pairs with classes that no
 * earlier reference has taken are compared. Chains of waiting classes would need many rounds, so a
 * round also compares pairs that may turn out not to matter, if it has few others.
 *
 * Thousands of pages of text may have similar codes without any copies. So once a class has failed
 * against MOST_FAILED earlier ones, it is compared only with those whose codes are among its
 * closest; comparisons that end early, at a fraction of the cost, count as a fraction. */
#include "jobs/confirm.h"

#include "base/held.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

#define NONE        UINT32_MAX
#define CHUNK_PAIRS 4096u /* compared at a time, at most */
#define ROUND_PAIRS 1024u /* per round, at least, */
#define ROUND_SHARE 16u   /* and one in this many of those left */
#define MOST_FAILED 32u
#define JUDGED      4u /* early ends that count as one failed comparison */

enum pair_state { UNSEEN, CHOSEN, COMPARED };

struct confirming {
    const struct confirm_config *config;
    bool *linked;
    uint64_t *unknown;
    uint8_t *state; /* per pair */
    uint64_t *left; /* pairs that may still matter, by rank of their earlier class */
    uint64_t lefts;
    uint64_t done;   /* number of pairs compared or dropped */
    uint32_t *taker; /* per class: rank of the first reference that took it, or NONE */
    bool *reference; /* per class */
    bool *waits;     /* per class */
    bool *close;     /* pairs: among the MOST_FAILED with the closest codes of their later class */
    uint32_t *failed,
        *chosen; /* per class, pairs with earlier ones: failed (JUDGED or 1 each), chosen */
    /* Cached planes, in a ring of `room` slots. */
    uint32_t room, next;
    struct alignment_plane *plane;
    uint32_t *owner; /* per slot: its class, or NONE */
    uint64_t *stamp; /* per slot: the last chunk that needed it */
    uint32_t *slot;  /* per class, or NONE */
    uint64_t chunk;  /* counted from 1 */
    /* For the chunk: pairs, and pictures to decode. */
    uint64_t *pair, *row;
    struct alignment_plane **to;
    bool *gone, *judged;               /* judged: did not end early */
    struct alignment_scratch *scratch; /* one per thread */
};

static void ends(const struct confirming *c, uint64_t pair, uint32_t *earlier, uint32_t *later)
{
    const struct code_pair *p = &c->config->pairs->pair[pair];
    const bool swapped = c->config->rank[p->b] < c->config->rank[p->a];
    *earlier = swapped ? p->b : p->a;
    *later = swapped ? p->a : p->b;
}

static int by_rank(const void *x, const void *y, void *context)
{
    const struct confirming *c = context;
    const uint64_t i = *(const uint64_t *)x, j = *(const uint64_t *)y;
    uint32_t a, b, unused;
    ends(c, i, &a, &unused);
    ends(c, j, &b, &unused);
    if (a != b)
        return c->config->rank[a] < c->config->rank[b] ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Sorts by later class, then by distance. */
static int by_closeness(const void *x, const void *y, void *context)
{
    const struct confirming *c = context;
    const uint64_t i = *(const uint64_t *)x, j = *(const uint64_t *)y;
    const struct code_pair *p = &c->config->pairs->pair[i], *q = &c->config->pairs->pair[j];
    uint32_t a, b, unused;
    ends(c, i, &unused, &a);
    ends(c, j, &unused, &b);
    if (a != b)
        return a < b ? -1 : 1;
    if (p->distance != q->distance)
        return p->distance < q->distance ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void find_close(struct confirming *c)
{
    uint32_t before = NONE, unused, later, count = 0;
    qsort_r(c->left, c->lefts, sizeof *c->left, by_closeness, c);
    for (uint64_t i = 0; i < c->lefts; i++) {
        ends(c, c->left[i], &unused, &later);
        count = later == before ? count + 1 : 0;
        c->close[c->left[i]] = count < MOST_FAILED;
        before = later;
    }
}

/* --- which pairs ------------------------------------------------------------------------------ */

static bool is_open(const struct confirming *c, uint32_t class)
{
    return !c->reference[class] && c->taker[class] == NONE;
}

/* Handles a linked pair once its earlier class is a reference. */
static void take(struct confirming *c, uint64_t pair)
{
    uint32_t a, b;
    ends(c, pair, &a, &b);
    if (c->reference[a] && c->linked[pair])
        c->taker[b] = min_u32(c->taker[b], c->config->rank[a]);
}

static void find_references(struct confirming *c)
{
    uint32_t a, b;
    for (uint64_t i = 0; i < c->lefts; i++) {
        ends(c, c->left[i], &a, &b);
        c->waits[a] = c->waits[b] = false;
    }
    for (uint64_t i = 0; i < c->lefts; i++) {
        const uint64_t pair = c->left[i];
        ends(c, pair, &a, &b);
        if (is_open(c, a) && (c->linked[pair] || c->state[pair] == UNSEEN))
            c->waits[b] = true;
    }
    for (uint64_t i = 0; i < c->lefts; i++) {
        ends(c, c->left[i], &a, &b);
        if (is_open(c, a) && !c->waits[a])
            c->reference[a] = true;
    }
    for (uint64_t i = 0; i < c->lefts; i++)
        take(c, c->left[i]);
}

/* Whether a pair is worth comparing at all, counting those chosen for this round. */
static bool has_hope(const struct confirming *c, uint64_t pair, uint32_t later)
{
    return c->close[pair] || c->failed[later] < JUDGED * MOST_FAILED;
}

static bool choose_pair(struct confirming *c, uint64_t pair, uint32_t later)
{
    if (!c->close[pair] && c->failed[later] + JUDGED * c->chosen[later] >= JUDGED * MOST_FAILED)
        return false;
    c->chosen[later]++;
    c->state[pair] = CHOSEN;
    return true;
}

/* Drops the pairs that are decided or no longer matter, and chooses those of this round. */
static void choose(struct confirming *c)
{
    const uint64_t least = max_u64(ROUND_PAIRS, c->lefts / ROUND_SHARE);
    uint64_t stay = 0, chosen = 0;
    uint32_t a, b;
    for (uint64_t i = 0; i < c->lefts; i++) {
        const uint64_t pair = c->left[i];
        ends(c, pair, &a, &b);
        const bool open = is_open(c, a);
        if (c->linked[pair] ? !open
                            : c->state[pair] == COMPARED || !(open || c->reference[a]) ||
                                  c->taker[b] < c->config->rank[a] || !has_hope(c, pair, b)) {
            c->done += c->state[pair] != COMPARED;
            continue;
        }
        c->left[stay++] = pair;
        chosen += !open && choose_pair(c, pair, b);
    }
    c->lefts = stay;
    for (uint64_t i = 0; i < c->lefts && chosen < least; i++) {
        const uint64_t pair = c->left[i];
        ends(c, pair, &a, &b);
        chosen += !c->linked[pair] && c->state[pair] == UNSEEN && choose_pair(c, pair, b);
    }
}

/* --- comparing them --------------------------------------------------------------------------- */

static void align_pair(void *context, uint64_t i)
{
    struct confirming *c = context;
    const uint64_t pair = c->pair[i];
    const struct code_pair *p = &c->config->pairs->pair[pair];
    const struct alignment_plane *a = &c->plane[c->slot[p->a]], *b = &c->plane[c->slot[p->b]];
    c->gone[i] = a->width == 0 || b->width == 0;
    c->judged[i] = false;
    if (c->gone[i] || stop_requested(c->config->watch.stop) != STOP_NONE)
        return;
    const struct alignment alignment =
        alignment_compare(a, b, p->mirrored, &c->scratch[workers_number()]);
    c->judged[i] = alignment.overlap > 0;
    c->linked[pair] = c->config->certain ? alignment.certain : alignment.same;
}

/* Finds a slot for a class without one, among those that this chunk does not need. */
static uint32_t replace(struct confirming *c, uint32_t class)
{
    while (c->stamp[c->next] == c->chunk)
        c->next = (c->next + 1) % c->room;
    const uint32_t slot = c->next;
    if (c->owner[slot] != NONE)
        c->slot[c->owner[slot]] = NONE;
    c->owner[slot] = class;
    c->slot[class] = slot;
    c->next = (slot + 1) % c->room;
    return slot;
}

/* Compares the chosen pairs starting at *next, as many as their pictures fit. */
static enum status compare_chunk(struct confirming *c, uint64_t *next, struct error *err)
{
    const struct confirm_config *config = c->config;
    uint32_t pairs = 0, used = 0, missing = 0, a, b;
    c->chunk++;
    for (; *next < c->lefts && pairs < CHUNK_PAIRS && used + 2 <= c->room; ++*next) {
        const uint64_t pair = c->left[*next];
        const struct code_pair *p = &config->pairs->pair[pair];
        const uint32_t both[2] = {p->a, p->b};
        if (c->state[pair] != CHOSEN)
            continue;
        for (int i = 0; i < 2; i++) {
            if (c->slot[both[i]] == NONE) {
                c->row[missing] = config->row[both[i]];
                c->to[missing++] = &c->plane[replace(c, both[i])];
            }
            used += c->stamp[c->slot[both[i]]] != c->chunk;
            c->stamp[c->slot[both[i]]] = c->chunk;
        }
        c->pair[pairs++] = pair;
    }
    enum status status =
        redecode_read(config->pictures, config->watch.stop, c->row, missing, c->to, NULL, err);
    memset(c->gone, 0, CHUNK_PAIRS * sizeof *c->gone);
    if (status == STATUS_OK)
        workers_run(config->workers, align_pair, c, pairs);
    if (status == STATUS_OK)
        status = watch_check(&config->watch, "comparing pictures", err);
    for (uint32_t i = 0; i < pairs && status == STATUS_OK; i++) {
        *c->unknown += c->gone[i];
        c->state[c->pair[i]] = COMPARED;
        c->done++;
        ends(c, c->pair[i], &a, &b);
        c->chosen[b]--;
        c->failed[b] += c->linked[c->pair[i]] ? 0 : c->judged[i] ? JUDGED : 1;
        take(c, c->pair[i]);
    }
    return status;
}

static void show(const struct confirming *c)
{
    const struct confirm_config *config = c->config;
    watch_show(&config->watch, "comparing pictures", c->done, config->pairs->count);
}

static enum status run_rounds(struct confirming *c, struct error *err)
{
    enum status status = STATUS_OK;
    while (c->lefts > 0 && status == STATUS_OK) {
        find_references(c);
        choose(c);
        show(c);
        for (uint64_t at = 0; at < c->lefts && status == STATUS_OK;) {
            status = compare_chunk(c, &at, err);
            show(c);
        }
    }
    return status;
}

/* --- all of it ------------------------------------------------------------------------------- */

enum status confirm_pairs(bool *linked, uint64_t *unknown, const struct confirm_config *config,
                          struct error *err)
{
    const size_t fine = config->certain ? ALIGNMENT_FINE * ALIGNMENT_FINE : 0;
    const uint64_t pairs = config->pairs->count,
                   fit = config->memory / (sizeof(struct alignment_plane) + fine);
    const uint64_t chunk = 2 * (uint64_t)CHUNK_PAIRS;
    struct confirming c = {.config = config, .linked = linked, .unknown = unknown, .lefts = pairs};
    SCOPED_HELD held = {0};
    c.room = (uint32_t)max_u64(min_u64(fit, config->classes), 64);
    c.state = held_array(&held, pairs, sizeof *c.state);
    c.left = held_array(&held, pairs, sizeof *c.left);
    c.taker = held_array(&held, config->classes, sizeof *c.taker);
    c.reference = held_array(&held, config->classes, sizeof *c.reference);
    c.waits = held_array(&held, config->classes, sizeof *c.waits);
    c.close = held_array(&held, pairs, sizeof *c.close);
    c.failed = held_array(&held, config->classes, sizeof *c.failed);
    c.chosen = held_array(&held, config->classes, sizeof *c.chosen);
    c.plane = held_array(&held, c.room, sizeof *c.plane);
    c.owner = held_array(&held, c.room, sizeof *c.owner);
    c.stamp = held_array(&held, c.room, sizeof *c.stamp);
    c.slot = held_array(&held, config->classes, sizeof *c.slot);
    c.pair = held_array(&held, CHUNK_PAIRS, sizeof *c.pair);
    c.row = held_array(&held, chunk, sizeof *c.row);
    c.to = held_array(&held, chunk, sizeof *c.to);
    c.gone = held_array(&held, CHUNK_PAIRS, sizeof *c.gone);
    c.judged = held_array(&held, CHUNK_PAIRS, sizeof *c.judged);
    c.scratch = held_array(&held, workers_count(config->workers), sizeof *c.scratch);
    for (uint32_t i = 0; i < workers_count(config->workers) && fine && c.scratch; i++)
        c.scratch[i].fine = held_array(&held, 3 * fine, sizeof *c.scratch[i].fine);
    for (uint32_t i = 0; i < c.room && fine && c.plane; i++)
        c.plane[i].fine = held_array(&held, fine, 1);
    enum status status = held_check(&held, "pairs of images", err);
    if (status == STATUS_OK) {
        memset(c.taker, 0xff, config->classes * sizeof *c.taker);
        memset(c.slot, 0xff, config->classes * sizeof *c.slot);
        memset(c.owner, 0xff, c.room * sizeof *c.owner);
        for (uint64_t i = 0; i < pairs; i++)
            c.left[i] = i;
        find_close(&c);
        qsort_r(c.left, pairs, sizeof *c.left, by_rank, &c);
        status = run_rounds(&c, err);
    }
    return status;
}
