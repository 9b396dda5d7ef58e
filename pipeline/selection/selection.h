/* selection.h: what a choice of images is made from, and how far it is. */
#ifndef CLPIPE_SELECTION_SELECTION_H
#define CLPIPE_SELECTION_SELECTION_H

#include "clustering/machine.h"
#include "file/selections.h"

/* The streams of canonical_random: of rows, and of the clusters of level 1, 2... */
#define SELECT_ROW_STREAM   0x53454c00u
#define SELECT_LEVEL_STREAM 0x53454c01u

enum select_preference { SELECT_BY_CENTRE, SELECT_BY_PICTURE };

struct select_config {
    const char *file, *name; /* name of the selection */
    unsigned method;         /* row of select_methods */
    const char *clusters;    /* NULL: the only clustering */
    const char *feature;     /* of methods and limits that compare rows; NULL: that of the clustering, or
                                the only one */
    int metric;              /* of `diverse`: enum cluster_metric, -1: the usual one */
    uint64_t count;          /* images; 0: all that can be had */
    uint64_t per_cluster;    /* at most so many of one; 0: any number */
    double alike;            /* a cosine from which on two of a cluster are alike; NAN: none are */
    enum select_preference preference; /* which one of those stays */
    const char *within;      /* a list of paths to choose from, or NULL */
    uint64_t seed;
    struct clustering_machine machine;
};

/* A row that may be chosen. */
struct candidate {
    uint64_t row, rank;
    double key;     /* the order before: smaller ones first */
    int32_t node;   /* its cluster, of the level that was looked at last */
    int32_t parent; /* the cluster's of the next level */
};

struct selection {
    const struct select_config *config;
    struct result *result;
    const struct result_clusters *clusters; /* NULL: none has a part in it */
    int32_t *labels;                        /* of all rows, with `clusters` */
    float *distances;
    struct candidate *candidate; /* those chosen first, in their order */
    uint64_t candidates;         /* rows that could be chosen */
    uint64_t chosen;
    /* Those left out for being like a kept one of their cluster, by row. */
    int64_t *omitted, *kept;
    float *cosine;
    uint64_t omitted_count;
    bool hidden_known; /* by stored neighbours: */
    uint64_t hidden;   /* candidates with a neighbour in another cluster that is as alike, and stays */
    double radius;     /* of `diverse`: no candidate is farther from a chosen one; else NAN */
    bool stored;       /* the file has it already */
};

#endif
