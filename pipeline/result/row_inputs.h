/* row_inputs.h: logs and finished files as inputs of move_rows.h, with common numbers of columns. */
#ifndef CLPIPE_RESULT_ROW_INPUTS_H
#define CLPIPE_RESULT_ROW_INPUTS_H

#include "base/sample_name.h"
#include "features/feature.h"
#include "result/move_rows.h"
#include "result/records.h"
#include "result/result_internal.h"

/* The numbers of columns: ROW_IMAGE + i and ROW_FAILURE + i are the i-th columns of the tables, ROW_SIDECAR + i is
 * that of sidecars.h, ROW_FEATURE + i is the i-th feature. */
enum row_column {
    ROW_IMAGE,
    ROW_FAILURE = TABLE_COLUMNS_MAX,
    ROW_SIDECAR = 2 * TABLE_COLUMNS_MAX,
    ROW_THUMBNAIL = ROW_SIDECAR + 1 + SIDECARS,
    ROW_FEATURE,
    ROW_COLUMNS = ROW_FEATURE + FEATURE_MAX
};

/* The column with that number; its list and destinations are not set. */
struct move_column row_column(unsigned number, const struct feature_set *features,
                              const struct row_input *input);

/* Whether a file merged by reference shows its parts' rows in that column. */
bool row_is_referred(unsigned number);

/* The logs of a work directory. Thumbnails of another size count as missing. */
struct log_input {
    const struct records *log;
    unsigned thumbnail_size;
};
void log_input_init(struct row_input *out, struct log_input *input, const struct records *log,
                    unsigned thumbnail_size);

/* The current stat() of an image's file. */
struct row_stat {
    uint64_t row; /* first: they are sorted by it */
    uint64_t inode;
    int64_t ctime_ns;
};

/* A finished file, whose datasets are opened when their rows are needed. Missing values are zeros;
 * thumbnails as above. */
struct file_input {
    hid_t file;
    int fd;                             /* its own, if it is detached; else -1 */
    const char *path;                   /* for messages */
    const struct feature_set *features; /* matched by name; must have the same width in the file */
    unsigned sources, thumbnail_size;
    const int *source_now;       /* the new number of each of its sources; NULL: unchanged */
    const struct row_stat *stat; /* in row order: replaces the stored values */
    size_t stats;
    pthread_mutex_t lock; /* guards `column` */
    struct file_column {
        bool known, spaces; /* spaces: its texts are padded with them */
        hid_t dataset, data_dataset;
        struct raw *raw, *data; /* data: of blobs */
    } column[ROW_COLUMNS];
};
/* Its arguments must outlive it; thumbnail_size 0: no thumbnails are needed. */
void file_input_init(struct row_input *out, struct file_input *input, hid_t file, unsigned sources,
                     const struct feature_set *features, const int *source_now,
                     unsigned thumbnail_size);
void result_input_init(struct row_input *out, struct file_input *input, const struct result *result,
                       const struct feature_set *features, const int *source_now,
                       unsigned thumbnail_size);
/* Opens the columns whose rows are needed and, if none of them needs HDF5 any more, closes `file`, for
 * which HDF5 takes half a megabyte. `path` must outlive the input. False: it stays open, since a column
 * is in chunks or cannot be opened, or descriptors are short. */
bool file_input_detach(struct file_input *input, const bool needed[ROW_COLUMNS], const char *path);
/* Only on HDF5's thread. */
void file_input_clear(struct file_input *input);

/* The absolute name of a column's dataset; for thumbnails, that of `end`. */
#define ROW_NAME_MAX (FEATURE_NAME_MAX + 16)
void row_column_name(char name[ROW_NAME_MAX], unsigned number, const struct feature_set *features);

#endif
