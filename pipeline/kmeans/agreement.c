/* agreement.c: purity, normalised mutual information and the adjusted Rand index.
 *
 * Rows are sorted by class, so that only one class's counts are needed at a time: the table of
 * clusters and classes, which may be as large as the data, is never built. */
#include "base/held.h"
#include "kmeans/sweep.h"
#include <math.h>

struct table {
    uint64_t *class_begin; /* class_count + 1 */
    int32_t *labels;       /* n, in the order of classes, then rows */
    uint64_t *sizes;       /* k: of clusters */
    uint64_t *counts;      /* k: in one class */
    uint64_t *most;        /* k: most of a cluster's rows in one class */
};

static void sort_by_class(struct table *table, const int32_t *labels, const uint32_t *classes,
                          uint32_t class_count, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        table->class_begin[classes[i] + 1]++;
        table->sizes[labels[i]]++;
    }
    for (uint32_t c = 0; c < class_count; c++)
        table->class_begin[c + 1] += table->class_begin[c];
    for (uint64_t i = 0; i < n; i++)
        table->labels[table->class_begin[classes[i]]++] = labels[i];
    for (uint32_t c = class_count; c > 0; c--)
        table->class_begin[c] = table->class_begin[c - 1];
    table->class_begin[0] = 0;
}

static double entropy_part(uint64_t count, uint64_t n)
{
    return count > 0 ? -((double)count / (double)n) * (log((double)count) - log((double)n)) : 0;
}

/* With N rows, n_ij of them in cluster i and class j: sums over i and j in order. */
struct sums {
    double mutual, cluster_entropy, class_entropy;
    double pairs, cluster_pairs, class_pairs; /* sums of squares */
};

static void add_class(struct sums *sums, struct table *table, uint32_t class, uint64_t n)
{
    const uint64_t from = table->class_begin[class], to = table->class_begin[class + 1];
    const double size = (double)(to - from);
    for (uint64_t i = from; i < to; i++)
        table->counts[table->labels[i]]++;
    for (uint64_t i = from; i < to; i++) {
        const int32_t label = table->labels[i];
        const uint64_t count = table->counts[label];
        if (count == 0) /* counted already */
            continue;
        const double both = (double)count;
        sums->mutual += both / (double)n *
                        (log(both) + log((double)n) - log((double)table->sizes[label]) - log(size));
        sums->pairs += both * both;
        if (count > table->most[label])
            table->most[label] = count;
        table->counts[label] = 0;
    }
    sums->class_entropy += entropy_part(to - from, n);
    sums->class_pairs += size * size;
}

static void derive(struct cluster_agreement *out, const struct sums *sums,
                   const struct table *table, uint32_t k, uint64_t n)
{
    const double rows = (double)n;
    uint64_t pure = 0;
    for (uint32_t i = 0; i < k; i++)
        pure += table->most[i];
    out->purity = (double)pure / rows;
    const double entropy = (sums->cluster_entropy + sums->class_entropy) / 2;
    const double mutual = sums->mutual > 0 ? sums->mutual : 0;
    out->nmi = entropy > 0 ? fmin(mutual / entropy, 1) : 1;
    /* Pairs of rows: together in both, only in the clusters, only in the classes, in neither. */
    const double both = sums->pairs - rows, clusters = sums->cluster_pairs - sums->pairs,
                 classes = sums->class_pairs - sums->pairs,
                 neither = rows * rows - sums->cluster_pairs - sums->class_pairs + sums->pairs;
    out->ari = clusters == 0 && classes == 0 ? 1
                                             : 2 * (both * neither - classes * clusters) /
                                                   ((both + classes) * (classes + neither) +
                                                    (both + clusters) * (clusters + neither));
}

enum status cluster_agree(struct cluster_agreement *out, const int32_t *labels, uint32_t k,
                          const uint32_t *classes, uint32_t class_count, uint64_t n,
                          struct error *err)
{
    SCOPED_HELD held = {0};
    struct table table = {
        .class_begin = held_array(&held, (uint64_t)class_count + 1, sizeof *table.class_begin),
        .labels = held_array(&held, n, sizeof *table.labels),
        .sizes = held_array(&held, k, sizeof *table.sizes),
        .counts = held_array(&held, k, sizeof *table.counts),
        .most = held_array(&held, k, sizeof *table.most),
    };
    struct sums sums = {0};
    const enum status status = held_check(&held, "comparing with the folders", err);
    if (status == STATUS_OK) {
        sort_by_class(&table, labels, classes, class_count, n);
        for (uint32_t class = 0; class < class_count; class ++)
            add_class(&sums, &table, class, n);
        for (uint32_t i = 0; i < k; i++) {
            sums.cluster_entropy += entropy_part(table.sizes[i], n);
            sums.cluster_pairs += (double)table.sizes[i] * (double)table.sizes[i];
        }
        derive(out, &sums, &table, k, n);
    }
    return status;
}
