/* compute.h: devices, threads and trace of a command, from --device, --threads, --profile. */
#ifndef CLPIPE_CLI_COMPUTE_H
#define CLPIPE_CLI_COMPUTE_H

#include "cli/call.h"
#include "cli/options.h"
#include "device/variant.h"

/* Opens options->call->compute: prepares the environment for OpenCL, starts the trace and, if `device` is
 * set, finds and chooses devices. Call it before other threads start. */
enum status compute_open(const struct options *options, bool device, struct error *err);
/* The devices for a job, which calls it with the options: found and chosen, unless that has been
 * done. Must be the process's first OpenCL call. STATUS_FAILED: no usable device; the message has
 * advice. */
enum status compute_selection(void *options, struct ocl_selection *found, struct error *err);
/* A context on the first chosen device, for commands that use one; a notice if more were chosen. */
enum status compute_context(struct ocl_context **out, const struct compute *compute,
                            struct error *err);
/* Completes the trace; reports its error only if `status` has none, and returns the outcome.
 * Accepts one that was never opened (zeroed). */
enum status compute_close(struct compute *compute, enum status status, struct error *err);

/* The histogram variant of that name, the value of --option; an error lists all. */
enum status compute_variant(enum histogram_variant *out, const char *option, const char *name,
                            struct error *err);

/* STATUS_USAGE unless bench and tune can measure each spec's feature: it must have no blur. */
enum status compute_check_specs(const char *const *specs, unsigned count, struct error *err);

/* Reports the number of wrong values, called `what` ("wrong counter"): STATUS_PARTIAL; STATUS_OK for 0. */
enum status compute_verdict(uint64_t wrong, const char *what);

/* --threads, or the number of CPUs available to this process. */
unsigned compute_threads(const struct options *options);

#endif
