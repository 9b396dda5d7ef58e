/* merge.h: several results as one: shards of one ingest (ingest --shard), or ingests of different
 * sources. Rows, failures and sources are those of one ingest of everything, and so is its identity. */
#ifndef CLPIPE_RESULT_MERGE_H
#define CLPIPE_RESULT_MERGE_H

#include "result/merge_types.h"

/* STATUS_USAGE: the inputs do not belong together; the line says why. STATUS_FAILED: one cannot be
 * read, or the output cannot be written. Only a finished file takes the name of the output. */
enum status merge_files(struct merge_report *report, const struct merge_config *config,
                        struct error *err);

/* Before there are inputs: whether `output` may become the merge of `count` parts, which have these
 * names relative to its directory. *current: it is that, and they have not changed since. STATUS_USAGE:
 * it is another result; STATUS_FAILED: it is no clpipe file. */
enum status merge_look(bool *current, const char *output, const char *const *name, unsigned count,
                       struct error *err);

#endif
