/* pages_config.h: input and result of a report; pages.h has the function. */
#ifndef CLPIPE_REPORT_PAGES_CONFIG_H
#define CLPIPE_REPORT_PAGES_CONFIG_H

#include "base/error.h"
#include "base/watch.h"
#include <stdbool.h>
#include <stdint.h>

struct ocl_context;

struct pages_config {
    const char *file;      /* the result */
    const char *directory; /* to write: new, empty, or an earlier report */
    const char *name;      /* of the clustering; NULL: "kmeans", or the only one, or none */
    bool link_originals;
    bool keep_current;   /* leave a report made from this file with these options unchanged */
    const char *version; /* of the program, shown */
    unsigned threads;    /* keep a report that was made from this file with these options */
    uint64_t memory;     /* bytes of host buffers for decoding and searching */
    /* Provides contexts to search for similar pictures, open until pages_write returns; called
     * once, only for many rows. NULL, or no contexts: the host searches. */
    void (*find_contexts)(void *context, struct ocl_context *const **contexts, uint32_t *count);
    void *find_contexts_context;
    uint64_t device_memory; /* bytes; 0: all of the devices' memory */
    struct watch watch;
};

struct pages_counts {
    uint64_t images, failed, groups, bytes; /* groups: clusters, or folders; bytes: of all files */
    uint64_t without_thumbnail;
    char clustering[64]; /* its name, or "" */
    bool kept;           /* it was current: only `images` and `clustering` are set */
};

#endif
