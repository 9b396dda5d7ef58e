/* carry.h: what a file that is written anew keeps of the one that it replaces, besides images and
 * failures: clusterings, imported features and neighbours, whose rows move with the images. */
#ifndef CLPIPE_RESULT_CARRY_H
#define CLPIPE_RESULT_CARRY_H

#include "result/earlier.h"

/* Labels rows by given centroids, as label_rows in kmeans/label_rows.h: those of -1. */
typedef enum status (*carry_label_fn)(void *context, int32_t *labels, float *distances,
                                      const float *rows, uint64_t count, uint32_t dimension,
                                      const float *centroids, uint32_t k, const char *metric,
                                      struct error *err);

struct carry {
    struct result *from;
    hid_t file;         /* that is written; its features and images are complete */
    const char *path;   /* of it, for messages */
    struct result *now; /* the same, while clusterings are carried and new rows get labels */
    const struct row_map *map;
    const struct row_list *rows; /* the same, as a list of rows of `from` */
    carry_label_fn label;        /* NULL: new rows get no labels */
    void *context;
    const bool *leave_out; /* clusters of `from` that are not kept, by number; NULL: none */
    /* Of the new file: what was made from rows of a feature that has another specification now (a new
     * codebook) is left out, with a notice. May be NULL. */
    const struct feature_set *features;
    const char *remade; /* a clustering that notices do not name, or NULL */
    /* What was done. */
    unsigned continued, unlabelled; /* clusterings whose rows all have labels; the others */
    unsigned imported, neighbours;  /* features and graphs that have rows without values now */
    char names[256], unlabelled_names[256]; /* of these, for notices */
};

/* Copies imported features; rows of new images are NaN. */
enum status carry_imported(struct carry *carry, struct error *err);

/* Copies clusterings. Where rows have come, gone or moved, kept rows keep label and distance, new
 * ones get those of the nearest centroid (-1 and NaN where the feature has no values for them),
 * sizes and nearest rows are counted anew, and fitted_rows says how many rows the fit had; agreement
 * with folders is left out. */
enum status carry_clusters(struct carry *carry, struct error *err);

/* Copies /neighbours with row numbers as they are now. A neighbour that is gone is left out: -1 and
 * NaN at the end of its row; so are all those of new rows. */
enum status carry_neighbours(struct carry *carry, struct error *err);

/* What else the format defines: selections with row numbers as they are now
 * (what is gone left out), and, if no row has come, gone or moved, flags; else a notice says that these are
 * left out. After the clusterings. */
enum status carry_next(struct carry *carry, struct error *err);

/* /runs/N/row_map, compressed, in the open group of the run. */
enum status carry_write_map(hid_t run, const struct row_map *map, const char *path,
                            struct error *err);

/* One notice for each kind of thing that an update could not keep whole. */
void carry_tell(const struct carry *carry);

#endif
