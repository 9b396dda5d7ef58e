/* order.c: the methods that rank images within clusters, and clusters among each other: balanced,
 * nearest, random.
 *
 * Clusters form a tree: those of level 1 are its leaves, parents are above them, and one root is
 * above the last level. The images of a leaf are ordered by their keys. Any other node takes the first
 * image of each of its children, then the second of each, and so on, with the children in a seeded
 * order and exhausted ones left out. So the first N images of the root are divided as equally as
 * possible at every level, with the unused part of small clusters given to the others; a smaller N
 * yields a prefix. */
#include "jobs/selection.h"
#include "kmeans/canonical.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Sorts the candidates below each parent, sets `rank` to their index there, and goes up: the parent
 * becomes the node. */
static void rank_within_parents(struct selection *selection)
{
    struct candidate *candidate = selection->candidate;
    uint64_t rank = 0;
    qsort(candidate, selection->candidates, sizeof *candidate, compare);
    for (uint64_t i = 0; i < selection->candidates; i++) {
        rank = i > 0 && candidate[i].parent == candidate[i - 1].parent ? rank + 1 : 0;
        candidate[i].rank = rank;
        candidate[i].node = candidate[i].parent;
    }
}

/* Within the clusters, each limited to `per_cluster`. */
static void rank_within_clusters(struct selection *selection)
{
    const uint64_t most = selection->config->per_cluster;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < selection->candidates; i++)
        selection->candidate[i].parent = selection->labels[selection->candidate[i].row];
    rank_within_parents(selection);
    for (uint64_t i = 0; i < selection->candidates; i++)
        if (most == 0 || selection->candidate[i].rank < most)
            selection->candidate[kept++] = selection->candidate[i];
    selection->candidates = kept;
}

/* The clusters of a level take turns. parents: of each cluster; NULL: the root is above them. */
static void take_turns(struct selection *selection, uint32_t level, const int32_t *parents)
{
    for (uint64_t i = 0; i < selection->candidates; i++) {
        struct candidate *candidate = &selection->candidate[i];
        candidate->key = canonical_random(selection->config->seed, SELECT_LEVEL_STREAM + level,
                                          (uint64_t)candidate->node);
        candidate->parent = parents ? parents[candidate->node] : 0;
    }
    rank_within_parents(selection);
}

/* By keys within the clusters, then level by level. */
static enum status order_tree(struct selection *selection, struct error *err)
{
    const struct result_clusters *level = selection->clusters;
    const struct result_clusters *above;
    int32_t *parents;
    enum status status = STATUS_OK;
    rank_within_clusters(selection);
    for (uint32_t i = 0; status == STATUS_OK; i++) {
        if (i == selection->result->clusters_count)
            return error_set(err, STATUS_FAILED,
                             "the levels above clusters %s lead back to them: the file is damaged, "
                             "see clpipe verify",
                             selection->clusters->name);
        status = result_parents_read(&parents, &above, selection->result, level, err);
        if (status == STATUS_OK || status == STATUS_END)
            take_turns(selection, i, parents);
        free(parents);
        level = above;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static void set_random_keys(struct selection *selection)
{
    for (uint64_t i = 0; i < selection->candidates; i++) {
        struct candidate *candidate = &selection->candidate[i];
        candidate->key =
            canonical_random(selection->config->seed, SELECT_ROW_STREAM, candidate->row);
    }
}

enum status order_random(struct selection *selection, struct error *err)
{
    set_random_keys(selection);
    if (selection->config->per_cluster > 0)
        rank_within_clusters(selection);
    for (uint64_t i = 0; i < selection->candidates; i++)
        selection->candidate[i].parent = 0, selection->candidate[i].rank = 0;
    rank_within_parents(selection);
    (void)err;
    return STATUS_OK;
}

enum status order_balanced(struct selection *selection, struct error *err)
{
    set_random_keys(selection);
    return order_tree(selection, err);
}

enum status order_nearest(struct selection *selection, struct error *err)
{
    for (uint64_t i = 0; i < selection->candidates; i++)
        selection->candidate[i].key = selection->distances[selection->candidate[i].row];
    return order_tree(selection, err);
}

void reason_random(const void *context, uint64_t i, char text[SELECTION_REASON])
{
    (void)context, (void)i;
    snprintf(text, SELECTION_REASON, "random");
}

void reason_balanced(const void *context, uint64_t i, char text[SELECTION_REASON])
{
    const struct selection *selection = context;
    snprintf(text, SELECTION_REASON, "of cluster %" PRId32,
             selection->labels[selection->candidate[i].row]);
}

void reason_nearest(const void *context, uint64_t i, char text[SELECTION_REASON])
{
    const struct selection *selection = context;
    snprintf(text, SELECTION_REASON, "near the centre of cluster %" PRId32,
             selection->labels[selection->candidate[i].row]);
}
