/* folders.h: the folders of images as classes. */
#ifndef CLPIPE_JOBS_FOLDERS_H
#define CLPIPE_JOBS_FOLDERS_H

#include "jobs/path_list.h"
#include "result/result.h"

/* The class of an image without one. */
#define CLASSES_NONE UINT32_MAX

struct classes {
    uint32_t *of_row; /* per image, below `count` or CLASSES_NONE */
    uint32_t count;
    uint64_t rows; /* images that have a class */
};

/* Frees the classes of rows and zeroes *classes. */
void classes_clear(struct classes *classes);

/* The folders of the images of `result` or, if `paths` is not NULL, of these paths alone: a folder is
 * an image's source and its path without the last component. Folders are classes if there are at
 * least two, and fewer than images; else out->of_row is NULL. */
enum status folders_read(struct classes *out, struct result *result, const struct path_list *paths,
                         struct error *err);

#endif
