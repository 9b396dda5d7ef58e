/* pages.h: a report: static pages that show the pictures of a result, for a browser that opens them
 * from disk.
 *
 *   result_open ─> album_read ─> thumbs_open, thumbs_sheets ─> neighbours, map ─> duplicates
 *                  order, groups     sheets/NNNNN.jpg              data/similar-N.js   data/...
 *               ─> data/summary.js, find-N.js, images-N.js, failures-N.js ─> index.html, app.js, style.css
 *
 * Everything is written to a temporary directory that is renamed when complete
 * (output_directory.h). Data is in script files that call one function: browsers load scripts from
 * disk, but no other data. The pages name no hosts, users or absolute paths, and contain no Exif
 * data, unless link_originals asks for links to the files. */
#ifndef CLPIPE_REPORT_PAGES_H
#define CLPIPE_REPORT_PAGES_H

#include "report/pages_config.h"

/* Writes the report. STATUS_USAGE: no such clustering, or several and no name. STATUS_FAILED: no
 * images, a damaged file, or the directory cannot be written. STATUS_INTERRUPTED: nothing was
 * written. */
enum status pages_write(struct pages_counts *counts, const struct pages_config *config,
                        struct error *err);

/* Whether the directory can be written, checked before hours of work. */
enum status pages_check(const char *directory, struct error *err);

#endif
