/* joined_input.h: several files that a command takes as one. */
#ifndef CLPIPE_CLI_JOINED_INPUT_H
#define CLPIPE_CLI_JOINED_INPUT_H

#include "cli/options.h"

/* The files as merged, in a file without a name in $TMPDIR, which holds their paths and failures. */
struct joined_input {
    int fd;        /* negative: there are not several */
    char path[32]; /* by which it is opened */
    char names[300];
};

/* Where a command that takes several INPUTs (command->joins) has got some, merges them; they are one
 * operand then. Errors are those of merge_files; STATUS_USAGE: not all are clpipe files, or the result
 * needs a file of its own. Close it also after a failure. */
enum status joined_input_open(struct joined_input *out, struct options *options, struct error *err);
/* A line that names the file without a name names the files instead. */
void joined_input_close(struct joined_input *joined, struct error *err);

#endif
