/* folders.h: the folders of images as classes. */
#ifndef CLPIPE_JOBS_FOLDERS_H
#define CLPIPE_JOBS_FOLDERS_H

#include "jobs/path_list.h"
#include "result/result.h"

struct folders {
    uint32_t *of_row; /* a number below count per image; NULL: the folders are not classes */
    uint32_t count;
};

/* A folder is an image's source and its path without the last component. Folders are classes if
 * there are at least two, and fewer than images. */
enum status folders_read(struct folders *out, struct result *result, struct error *err);
/* The same for paths alone. */
enum status folders_of_paths(struct folders *out, const struct path_list *list, struct error *err);
void folders_clear(struct folders *folders);

/* Numbers folders in the order in which they are looked up; initially zeroed. The owner frees
 * `slot`. */
struct folder_numbers {
    struct folder_slot *slot; /* by digest: open addressing, at most half full */
    size_t slots;             /* a power of two */
    uint32_t count;
};
enum status folder_number(uint32_t *number, struct folder_numbers *numbers, uint16_t source,
                          const char *folder, size_t length, struct error *err);

#endif
