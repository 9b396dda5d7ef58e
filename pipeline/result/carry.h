/* carry.h: carries clusterings, imported features and neighbours from the existing file to the new
 * one; their rows move with the images. */
#ifndef CLPIPE_RESULT_CARRY_H
#define CLPIPE_RESULT_CARRY_H

#include "result/row_map.h"

struct carry {
    struct result *from;
    hid_t file;         /* the new file; its features and images are complete */
    struct result *now; /* the new file as a result, while new rows of clusterings are labelled */
    const struct row_map *map;
    /* Set by carry_objects: the map as a list of rows of `from`, and the new number of each of these
     * (-1: removed); NULL if the map is the same. */
    const struct row_list *rows;
    int64_t *row_now;
    label_rows_fn label; /* with the two that follow; NULL: new rows get no labels */
    unsigned threads;
    struct stop *stop;
    const bool *leave_out; /* by number: clusterings of `from` to leave out; NULL: none */
    /* Of the new file. Objects made from a feature whose specification has changed (a new codebook)
     * are left out with a notice. May be NULL. */
    const struct feature_set *features;
    const char *remade; /* a clustering left out of notices, or NULL */
    /* Results: */
    unsigned continued, unlabelled; /* clusterings that label all new rows; the others */
    unsigned imported, neighbours;  /* features and graphs that now have rows without values */
    char names[256], unlabelled_names[256]; /* of these, for notices */
};

/* Copies what has a value or a number for each image. Imported features of new images are NaN. If rows
 * were added, removed or moved:
 *
 * - in clusterings, kept rows keep their label and distance, new ones get those of the nearest centroid
 *   (-1 and NaN if the feature has no values for them), sizes and nearest rows are recomputed,
 *   fitted_rows is set to the number of rows of the fit, and agreement with folders is left out;
 * - neighbours get new row numbers; removed ones are left out, so rows end with -1 and NaN, and new rows
 *   have none;
 * - selections get new row numbers and lose removed rows; flags are left out, with a notice. */
enum status carry_objects(struct carry *carry, struct error *err);

/* Writes /runs/N/row_map, compressed, to the open group of the run. */
enum status carry_write_map(hid_t run, const struct row_map *map, struct error *err);

/* Prints a notice for each kind of object that an update could not keep completely. */
void carry_tell(const struct carry *carry);

#endif
