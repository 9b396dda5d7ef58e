/* selection.h: chooses images of a file: clpipe select.
 *
 *   result ─> candidates (rows that may be chosen) ─> alike.c: those like a kept one are left out
 *          ─> the method's order, first N ─> result/selections.h
 *
 * A method is one row of select_methods and one function. docs/curation.md defines every result so
 * that it can be reproduced in numpy; it depends only on the file and the parameters. */
#ifndef CLPIPE_JOBS_SELECTION_H
#define CLPIPE_JOBS_SELECTION_H

#include "base/held.h"
#include "jobs/machine.h"
#include "result/selections.h"

/* Streams of canonical_random: for rows, and for the clusters of level 1, 2... */
#define SELECT_ROW_STREAM   0x53454c00u
#define SELECT_LEVEL_STREAM 0x53454c01u

enum select_preference { SELECT_BY_CENTRE, SELECT_BY_PICTURE };

struct select_config {
    const char *file, *name; /* name of the selection */
    int method;              /* row of select_methods */
    const char *clusters;    /* NULL: the only clustering */
    const char *feature;     /* for methods and limits that compare rows; NULL: the clustering's, or
                              * the only one */
    int metric;              /* for `diverse`: enum cluster_metric; -1: the default */
    uint64_t count;          /* images; 0: as many as possible */
    uint64_t per_cluster;    /* maximum per cluster; 0: any number */
    double alike;       /* minimum cosine of similar images of a cluster; NAN: none are similar */
    int preference;     /* enum select_preference: which of these is kept */
    const char *within; /* a list of paths to choose from, or NULL */
    uint32_t without;   /* exclude images with one of these flags (result/flags.h) */
    uint64_t seed;
    struct clustering_machine machine;
};

/* A row that may be chosen. */
struct candidate {
    uint64_t row;
    uint64_t rank;  /* within its node (order.c) */
    double key;     /* the method's order: smaller first */
    int32_t node;   /* its cluster, at the last level considered */
    int32_t parent; /* the parent of that cluster */
};

struct selection {
    const struct select_config *config;
    struct result *result;
    const struct result_clusters *clusters; /* NULL: not used */
    int32_t *labels;                        /* of all rows, if `clusters` */
    float *distances;
    struct candidate *candidate; /* the chosen ones first, in order */
    uint64_t candidates;         /* rows that could be chosen, without the omitted ones */
    uint64_t flagged;            /* images excluded by `without` */
    uint64_t unlabelled;         /* images excluded because `clusters` has no label for them */
    uint64_t incomparable;       /* candidates whose rows `diverse` cannot compare */
    uint64_t chosen;
    /* Left out as similar to a kept one of their cluster; by row. */
    int64_t *omitted, *kept;
    float *cosine;
    uint64_t omitted_count;
    bool hidden_known; /* from stored neighbours: */
    uint64_t hidden;   /* candidates with an equally similar, kept neighbour in another cluster */
    double radius;     /* for `diverse`: no candidate is farther from a chosen one; else NAN */
    bool stored;       /* the file already has it */
    struct held held;  /* the arrays above */
};

struct select_method {
    const char *name;
    bool by_cluster, by_values;
    /* Moves the chosen candidates to the front; with by_values, sets `chosen`. */
    enum status (*order)(struct selection *selection, struct error *err);
    void (*reason)(const void *selection, uint64_t i, char text[SELECTION_REASON]);
};
#define SELECT_METHODS 4
extern const struct select_method select_methods[SELECT_METHODS];

/* Opens the file and chooses. Close it even after a failure. STATUS_USAGE: no such clustering,
 * feature or list; STATUS_FAILED: nothing can be chosen. */
enum status selection_make(struct selection *out, const struct select_config *config,
                           struct error *err);
/* Stores it, unless the file has it; without `replace`, an existing name is STATUS_USAGE. */
enum status selection_store(struct selection *selection, bool replace, struct error *err);
void selection_close(struct selection *selection);

/* Methods, rows of select_methods: each moves the chosen candidates to the front.
 * order_diverse also sets `chosen`; after the others the first `count` are chosen. order.c: methods
 * that compare no values. diverse.c: k-centre greedy (Gonzalez, Clustering to minimize the maximum
 * intercluster distance, 1985). */
enum status order_balanced(struct selection *selection, struct error *err);
enum status order_nearest(struct selection *selection, struct error *err);
enum status order_random(struct selection *selection, struct error *err);
enum status order_diverse(struct selection *selection, struct error *err);
void reason_balanced(const void *selection, uint64_t i, char text[SELECTION_REASON]);
void reason_nearest(const void *selection, uint64_t i, char text[SELECTION_REASON]);
void reason_random(const void *selection, uint64_t i, char text[SELECTION_REASON]);
void reason_diverse(const void *selection, uint64_t i, char text[SELECTION_REASON]);

/* Keeps one of the similar images of a cluster (Abbas et al., SemDeDup, 2023, which may keep any).
 * Removes each candidate whose cosine with a kept one of its cluster is at least config->alike: the
 * images of a cluster are considered in order of preference, and each refers to the first similar
 * one. So no two kept images of a cluster are similar. Rows without values are kept. If the file
 * has cosine neighbours, counts those hidden by cluster borders. STATUS_FAILED: a cluster does not
 * fit in memory. */
enum status alike_leave_out(struct selection *selection, struct error *err);

#endif
