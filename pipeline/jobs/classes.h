/* classes.h: the class of each image: its folder, or from a table. */
#ifndef CLPIPE_JOBS_CLASSES_H
#define CLPIPE_JOBS_CLASSES_H

#include "jobs/folders.h"

/* The folders of images (folders.h). STATUS_FAILED: they are not usable as classes. */
enum status classes_of_folders(struct classes *out, struct result *result, struct error *err);

/* From a CSV file (RFC 4180, UTF-8): the first line names the columns, among them path and class,
 * otherwise these are the first two columns. Paths are matched as in path_match.h; an image that is
 * not listed, or whose class is empty, has none; a notice counts paths without an image.
 * STATUS_USAGE: no such file; STATUS_FAILED: not such a table, no path matches an image, or fewer
 * than two classes remain. */
enum status classes_of_table(struct classes *out, struct result *result, const char *file,
                             struct error *err);

#define CLASSES_OF_CLS "cls"
/* From the images' .cls files (result/sidecars.h); images without one have no class. STATUS_FAILED:
 * the file has no such column, or fewer than two classes. */
enum status classes_of_cls(struct classes *out, struct result *result, struct error *err);

#endif
