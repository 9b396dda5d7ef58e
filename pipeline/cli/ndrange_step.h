/* ndrange_step.h: clpipe devices --ndrange: what a device makes of a range of any size. */
#ifndef CLPIPE_CLI_NDRANGE_STEP_H
#define CLPIPE_CLI_NDRANGE_STEP_H

#include "cli/options.h"

/* True if one of the options asks for it. */
bool ndrange_wanted(const struct options *options);

/* Launches the probe in four cases (OpenCL C 1.2 and 2.0, the local size left to the driver and
 * given) on the first chosen device and prints what the corners see or why the launch was refused;
 * with --image the blur of that picture runs in the same cases and is written to --out. */
enum status ndrange_step(const struct options *options, struct error *err);

#endif
