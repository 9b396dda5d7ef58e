/* pages_config.h: input and result of a report; pages.h has the function. */
#ifndef CLPIPE_REPORT_PAGES_CONFIG_H
#define CLPIPE_REPORT_PAGES_CONFIG_H

#include "jobs/machine.h"
#include <stdbool.h>
#include <stdint.h>

struct pages_config {
    const char *file;      /* the result */
    const char *directory; /* to write: new, empty, or an earlier report */
    const char *name;      /* of the clustering; NULL: "kmeans", or the only one, or none */
    bool link_originals;
    bool keep_current; /* leave a report made from this file with these options unchanged */
    /* Its devices are looked for only to compare many rows; if there are none, the host does. */
    struct clustering_machine machine;
};

struct pages_counts {
    uint64_t images, failed, groups, bytes; /* groups: clusters, or folders; bytes: of all files */
    uint64_t without_thumbnail;
    char clustering[64]; /* its name, or "" */
    bool kept;           /* the report was current: only `images` and `clustering` are set */
};

#endif
