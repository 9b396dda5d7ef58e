/* compute.h: what a computing command needs of the machine, from --device, --threads, --profile. */
#ifndef CLPIPE_CLI_COMPUTE_H
#define CLPIPE_CLI_COMPUTE_H

#include "cli/call.h"
#include "cli/options.h"
#include "device/variant.h"

/* Opens options->call->compute: prepares the environment for OpenCL, starts the trace, and finds and chooses
 * devices where `device` is true. Before other threads start. */
enum status compute_open(const struct options *options, bool device, struct error *err);
/* Finds and chooses devices. The process's first OpenCL call. STATUS_FAILED: no usable device, and
 * what to do. */
enum status compute_find_devices(const struct options *options, struct error *err);
/* A context on the first chosen device, for commands that use one; a notice if more were chosen. */
enum status compute_context(struct ocl_context **out, const struct compute *compute,
                            struct error *err);
/* Completes the trace; reports its error only if `status` has none, and returns the outcome.
 * Accepts one that was never opened (zeroed). */
enum status compute_close(struct compute *compute, enum status status, struct error *err);

/* The histogram variant of that name, which --option was given; misuse lists them. */
enum status compute_variant(enum histogram_variant *out, const char *option, const char *name,
                            const struct options *options, struct error *err);

/* STATUS_USAGE unless each spec is a feature that bench and tune measure: one without blur. */
enum status compute_check_specs(const char *const *specs, unsigned count,
                                const struct options *options, struct error *err);

/* What a command that has found so many wrong values ("wrong counter") comes to: STATUS_PARTIAL, and says so. */
enum status compute_verdict(uint64_t wrong, const char *what);

/* --threads, or what this process may use. */
unsigned compute_threads(const struct options *options);

#endif
