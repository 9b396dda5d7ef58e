/* losses.h: which images of the file that is updated have gone, why, and whether so many may go.
 *
 * An update that would remove all images of a source or of one of its directories at the top, or more
 * than 20 and a tenth of the images of the sources that it looks at, is more likely a mistake, or a disk
 * that is not mounted. Sources that the command drops do not count, nor do images that another shard has
 * now. */
#ifndef CLPIPE_INGEST_LOSSES_H
#define CLPIPE_INGEST_LOSSES_H

#include "ingest/ingest_config.h"

/* As store_config.may_go; fills report->removed. STATUS_USAGE: too many would go. With config->sum all
 * processes call it, and judge what all have found; a directory is judged by the process whose images
 * are in it. */
enum status losses_judge(struct ingest_report *report, const struct ingest_config *config,
                         struct result *old, const int *now, const uint8_t *there,
                         struct error *err);

/* How many numbers config->sum adds; a process that does not come so far gives 0 and, as the last, 1. */
size_t losses_numbers(const struct ingest_config *config);

/* "2 gone or not mounted, 1 no longer included"; "" for none. Returns text. */
char *losses_text(char *text, size_t size, const uint64_t removed[LOSSES]);
/* In JSON. */
extern const char *const loss_names[LOSSES];

#endif
