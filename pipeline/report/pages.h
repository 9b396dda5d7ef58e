/* pages.h: a report: static pages that show the pictures of a result, which a browser opens from disk.
 *
 *   result_open ─> pictures_read ─> thumbs_open, thumbs_sheets ─> neighbours, map ─> duplicates
 *                  order, groups     sheets/NNNNN.jpg              data/similar-N.js   data/...
 *               ─> data/summary.js, images-N.js, failures-N.js ─> index.html, app.js, style.css
 *
 * Everything grows in a temporary directory that is renamed when it is whole (output_directory.h). Data
 * is in script files that call one function: browsers load scripts from disk, but no other data. The
 * pages name neither hosts, users nor absolute paths, and hold nothing of Exif, unless link_originals
 * asks for links to the files. */
#ifndef CLPIPE_REPORT_PAGES_H
#define CLPIPE_REPORT_PAGES_H

#include "base/error.h"
#include "base/stop.h"
#include <stdbool.h>
#include <stdint.h>

struct pages_config {
    const char *file;      /* the result */
    const char *directory; /* to write: new, empty, or an earlier report */
    const char *name;      /* of the clustering; NULL: "kmeans", or the only one, or none */
    bool link_originals;
    const char *version; /* of the program, shown */
    unsigned threads;    /* at least 1 */
    uint64_t memory;     /* bytes of host buffers for decoding and searching */
    struct stop *stop;   /* may be NULL */
    /* May be NULL; from the calling thread. `phase` is static. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *progress_context;
};

struct pages_counts {
    uint64_t images, failed, groups, bytes; /* groups: clusters, or folders; bytes: of all files */
    uint64_t without_thumbnail;
    char clustering[64]; /* its name, or "" */
};

/* Writes the report. STATUS_USAGE: no such clustering, or several and no name. STATUS_FAILED: no images,
 * a damaged file, or the directory cannot be written. STATUS_INTERRUPTED: nothing was written. */
enum status pages_write(struct pages_counts *counts, const struct pages_config *config,
                        struct error *err);

/* Whether the directory may be written, before hours of work. */
enum status pages_check(const char *directory, struct error *err);

#endif
