/* call.h: what one call of the program works with, beside its options. main.c owns it; a command finds it as
 * options->call. */
#ifndef CLPIPE_CLI_CALL_H
#define CLPIPE_CLI_CALL_H

#include "base/json.h"
#include "base/trace.h"
#include "cli/progress.h"
#include "jobs/machine.h"
#include "ocl/ocl.h"

#define COMPUTE_DEVICES CLUSTERING_DEVICES

/* Devices, threads and the trace (compute.h). */
struct compute {
    unsigned threads;
    struct ocl_devices devices;
    unsigned chosen[COMPUTE_DEVICES], count;
    struct trace *trace;
};

struct call {
    struct compute compute; /* zeroed until a command opens it, or a job looks for devices */
    struct progress progress;
    struct json json;  /* the report: a command writes one value, whether --json was given or not */
    bool tells_errors; /* the report is of a command that failed, too */
    bool summarised, wall_told; /* a person has read a summary; and how long all took */
};

/* For commands that take a while: they can be stopped, after `seconds` by themselves (signals_install), and
 * show their progress. Before other threads start. */
void call_start(const struct options *options, double seconds);

#endif
