/* chunks.h: rows of features into chunks of HDF5's deflate filter, deflated by several threads.
 *
 *   chunks_add ─> slot: rows of a chunk ─> deflated (any thread, several at once) ─> file
 *   the caller's thread, rows in order                       the caller's thread, in order
 *
 * HDF5 deflates one chunk after the other, and only while it is called; here it is given chunks
 * that are deflated already. Which chunk comes where in the file does not depend on the threads. */
#ifndef CLPIPE_FILE_CHUNKS_H
#define CLPIPE_FILE_CHUNKS_H

#include "file/h5.h"
#include "file/result.h"

struct chunks;

struct chunks_config {
    uint64_t rows;     /* of each dataset */
    unsigned datasets; /* at most FEATURE_MAX */
    size_t widest;     /* bytes of the longest row of one */
    unsigned threads;  /* that deflate, the caller's among them */
    const char *path;  /* of the file, for messages */
};

/* Chunks have all columns and at most 256 KiB, those of all datasets together 1 MiB, or one row.
 * rows > 0, datasets > 0. */
enum status chunks_open(struct chunks **out, const struct chunks_config *config, struct error *err);

/* Creates the dataset of a feature, which is the caller's to close. */
enum status chunks_create(struct chunks *chunks, hid_t *dataset, hid_t parent,
                          const struct result_feature *feature, struct error *err);

/* Adds the next rows of a dataset, end to end as they are stored. A failure to write is told by this
 * or by chunks_finish. */
enum status chunks_add(struct chunks *chunks, hid_t dataset, const void *rows, uint64_t count,
                       struct error *err);

/* Writes what is left; all rows must have been added. */
enum status chunks_finish(struct chunks *chunks, struct error *err);

/* Ends the threads. Accepts NULL and NULLs. */
void chunks_close(struct chunks **chunks);

#endif
