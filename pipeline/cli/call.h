/* call.h: the state of one call of the program, apart from its options. Owned by main.c; commands
 * reach it through options->call. */
#ifndef CLPIPE_CLI_CALL_H
#define CLPIPE_CLI_CALL_H

#include "base/json.h"
#include "base/trace.h"
#include "cli/progress.h"
#include "jobs/machine.h"
#include "ocl/ocl.h"

/* Devices, threads and the trace (compute.h). */
struct compute {
    unsigned threads;
    struct ocl_devices devices;
    unsigned chosen[CLUSTERING_DEVICES], count;
    struct trace *trace;
};

struct call {
    struct compute compute; /* zeroed until a command opens it or a job needs devices */
    struct progress progress;
    struct json json;           /* the report: a command writes one value even without --json */
    bool tells_errors;          /* the report also describes failures */
    bool summarised, wall_told; /* a summary with the total time was printed */
};

/* For long-running commands: makes them stop on request, and by themselves after `seconds`
 * (signals_install), and show progress. Call it before other threads start. */
void call_start(const struct options *options, double seconds);

/* Its stop requests and its progress. */
struct watch options_watch(const struct options *options);

#endif
