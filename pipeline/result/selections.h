/* selections.h: /selections/NAME, the chosen images: `rows` (n) int64 in their order and `reason` (n)
 * text; if images were left out as similar to a kept one, `omitted` and `kept` (m) int64 and `cosine`
 * (m) float32. Attributes of the group: method, content (the identity of the rows), parameters
 * (JSON), seed. */
#ifndef CLPIPE_RESULT_SELECTIONS_H
#define CLPIPE_RESULT_SELECTIONS_H

#include "result/result.h"
#include <hdf5.h>

#define SELECTION_REASON 64

/* Describes a stored selection. */
struct selection_about {
    char name[FEATURE_NAME_MAX], method[16], content[65];
    char *parameters; /* owned */
    int64_t seed;
    uint64_t rows, omitted;
};

/* A selection to store; its texts must fit selection_about. */
struct selection_values {
    struct selection_about about;
    const int64_t *row;
    /* The reason why row i was chosen. */
    void (*reason)(const void *context, uint64_t i, char text[SELECTION_REASON]);
    const void *context;
    const int64_t *omitted, *kept;
    const float *cosine;
};

/* Replaces the file of `result` with a copy that has that selection, in place of one with its
 * name. */
enum status selections_write(struct result *result, const struct selection_values *values,
                             struct error *err);

/* All selections of a file, by name. Clear them even after a failure. */
struct selections {
    struct selection_about *about;
    unsigned count;
};
enum status selections_list(struct selections *out, struct result *result, struct error *err);
void selections_clear(struct selections *selections);
const struct selection_about *selections_find(const struct selections *selections,
                                              const char *name);

/* Reads the about->rows rows of a selection and their reasons (texts_free; NULL: not wanted).
 * STATUS_FAILED: a row is not an image. */
enum status selections_read(struct result *result, const struct selection_about *about,
                            int64_t *rows, char ***reasons, struct error *err);

/* Copies all selections of `from` to a new file with new row numbers: now[] is that of each row of `from`;
 * -1: removed and left out, counted in *gone. */
enum status selections_carry(hid_t file, struct result *from, const int64_t *now, uint64_t *gone,
                             struct error *err);

/* The root of a dataset ("/clusters/kmeans/labels") from the file's checksums; "": missing. */
void selections_root(char root[65], struct result *result, const char *dataset);

#endif
