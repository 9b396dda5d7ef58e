/* content.h: what a file is made from, and by which run. */
#ifndef CLPIPE_FILE_CONTENT_H
#define CLPIPE_FILE_CONTENT_H

#include "features/feature.h"

/* All that shapes the rows. The pointers belong to the caller. */
struct content {
    const char *const *sources; /* as given */
    unsigned source_count;
    const struct feature_set *features;
    unsigned decode_scale;
    const char *parameters; /* JSON of all options that shape the content, stored to the letter */
};

/* One member of /runs: the fields are stored as attributes of /runs/N. */
struct store_run {
    const char *command; /* the command line */
    const char *json;    /* everything else, as a JSON object */
    const char *device, *driver, *host;
    double seconds;
};

#endif
