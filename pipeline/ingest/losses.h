/* losses.h: finds images removed from the existing file, with reasons, and whether that many may be
 * removed.
 *
 * An update is probably a mistake, or a disk is not mounted, if it would remove all images of a
 * source or of one of its top-level directories, or more than 20 images that are also more than a
 * tenth of those of the sources that it reads. Sources removed by the command and images that moved
 * to another shard do not count. */
#ifndef CLPIPE_INGEST_LOSSES_H
#define CLPIPE_INGEST_LOSSES_H

#include "ingest/ingest_config.h"

/* For store_config.may_go; fills report->removed. STATUS_USAGE: too many. With config->sum all
 * processes call it and judge the sums; a directory is judged by the process that has its
 * images. */
enum status losses_judge(struct ingest_report *report, const struct ingest_config *config,
                         struct result *old, const int *now, const uint8_t *there,
                         struct error *err);

/* How many numbers config->sum adds; a process that fails earlier adds 0s and a 1 as the last. */
size_t losses_numbers(const struct ingest_config *config);

/* "2 gone or not mounted, 1 no longer included"; "" if none. Returns text. */
char *losses_text(char *text, size_t size, const uint64_t removed[LOSSES]);
/* Names in JSON. */
extern const char *const loss_names[LOSSES];

#endif
