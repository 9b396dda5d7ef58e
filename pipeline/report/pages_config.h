/* pages_config.h: what goes into a report and what it came to; pages.h has the function. */
#ifndef CLPIPE_REPORT_PAGES_CONFIG_H
#define CLPIPE_REPORT_PAGES_CONFIG_H

#include "base/error.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stdint.h>

struct ocl_context;

struct pages_config {
    const char *file;      /* the result */
    const char *directory; /* to write: new, empty, or an earlier report */
    const char *name;      /* of the clustering; NULL: "kmeans", or the only one, or none */
    bool link_originals;
    bool keep_current; /* leave a report as it is that was made from this file with these options */
    const char *version; /* of the program, shown */
    unsigned threads;    /* at least 1 */
    uint64_t memory;     /* bytes of host buffers for decoding and searching */
    /* Gives contexts to search for similar pictures on, open until pages_write returns; called once and
     * only where there are many rows. NULL, or none: the host. */
    void (*find_contexts)(void *context, struct ocl_context *const **contexts, uint32_t *count);
    void *find_contexts_context;
    uint64_t device_memory; /* bytes; 0: what the devices have */
    struct stop *stop;      /* may be NULL */
    /* May be NULL; from the calling thread. `phase` is static. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *progress_context;
};

struct pages_counts {
    uint64_t images, failed, groups, bytes; /* groups: clusters, or folders; bytes: of all files */
    uint64_t without_thumbnail;
    char clustering[64]; /* its name, or "" */
    bool kept;           /* it was current: only `images` and `clustering` are known */
};

#endif
