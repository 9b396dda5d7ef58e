/* embedded_asset.h: the pages' files in the program; tools/embed_assets.py generates the table. */
#ifndef CLPIPE_REPORT_EMBEDDED_ASSET_H
#define CLPIPE_REPORT_EMBEDDED_ASSET_H

struct embedded_asset {
    const char *name;         /* "app.js" */
    const char *const *lines; /* terminated by NULL; each ends in a newline */
};

/* Ends with a row whose name is NULL. */
extern const struct embedded_asset embedded_assets[];

#endif
