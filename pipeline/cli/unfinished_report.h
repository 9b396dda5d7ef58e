/* unfinished_report.h: what clpipe info says of a run that is not finished. */
#ifndef CLPIPE_CLI_UNFINISHED_REPORT_H
#define CLPIPE_CLI_UNFINISHED_REPORT_H

#include "base/json.h"
#include "cli/sink.h"
#include "result/unfinished.h"

/* Lines in the style of clpipe info; nothing where there is none. `file`: the output's name, for the
 * head of what is said where the file itself is not there yet, else NULL. */
void print_unfinished(struct sink *sink, const struct unfinished *unfinished, const char *file);
/* A member "unfinished" of the open object, null where there is none. */
void json_unfinished(struct json *json, const struct unfinished *unfinished);

/* The same of clusterings of `file` that are not finished: their checkpoints lie beside it. The member
 * is "unfinished_clusters", an array. */
void print_checkpoints(struct sink *sink, const char *file);
void json_checkpoints(struct json *json, const char *file);

#endif
