/* sweep_step.h: several values of k: running them, and showing what speaks for each. */
#ifndef CLPIPE_CLI_SWEEP_STEP_H
#define CLPIPE_CLI_SWEEP_STEP_H

#include "cli/folders.h"
#include "cli/options.h"
#include "cluster/sweep.h"
#include "file/result.h"
#include <stdio.h>

/* Whether -k asks for more than one value. */
bool range_is_sweep(const struct number_range *range);
/* "2:64", "2:64:2"; returns buffer. */
char *range_text(char *buffer, size_t size, const struct number_range *range);

/* Runs for every k of the range; `best` is the outcome of the suggested one. The context of
 * config's callbacks is a struct progress. */
enum status sweep_run(struct cluster_outcome *best, struct result_sweep *sweep,
                      const struct cluster_devices *devices, const struct matrix_source *source,
                      const struct cluster_config *config, const struct number_range *range,
                      const struct folders *folders, struct error *err);

#endif
