/* embedded_asset.h: the pages' files in the program; tools/embed_assets.py generates the table. */
#ifndef CLPIPE_REPORT_EMBEDDED_ASSET_H
#define CLPIPE_REPORT_EMBEDDED_ASSET_H

#include <stddef.h>

struct embedded_asset {
    const char *name; /* "app.js" */
    const unsigned char *data;
    size_t size; /* bytes */
};

/* Ends with a row whose name is NULL. */
extern const struct embedded_asset embedded_assets[];

#endif
