/* unfinished_report.h: what clpipe info says of a run that is not finished. */
#ifndef CLPIPE_CLI_UNFINISHED_REPORT_H
#define CLPIPE_CLI_UNFINISHED_REPORT_H

#include "base/json.h"
#include "cli/sink.h"
#include "result/unfinished.h"

/* Lines in the style of clpipe info, nothing where there is none, and a member "unfinished" of the open object, null
 * there. `file`: the output's name, for the head of what is said where the file itself is not there yet, else
 * NULL. */
void tell_unfinished(struct sink *sink, struct json *json, const struct unfinished *unfinished,
                     const char *file);

/* The same of clusterings of `file` that are not finished: their checkpoints lie beside it. The member
 * is "unfinished_clusters", an array. */
void tell_checkpoints(struct sink *sink, struct json *json, const char *file);

#endif
