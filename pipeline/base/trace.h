/* trace.h: spans of time on named tracks, written as Chrome trace-event JSON (opens in Perfetto).
 *
 * All functions accept a NULL trace and then do nothing; any thread may call them. Only spans of a
 * device queue may overlap in time on one track: they are shown on "NAME (2)" and so on. The file
 * appears at the end, complete, or not at all after a write error. */
#ifndef CLPIPE_BASE_TRACE_H
#define CLPIPE_BASE_TRACE_H

#include "base/error.h"
#include <stdint.h>

struct trace;

/* STATUS_FAILED: the file cannot be written, or out of memory; *out is then NULL. */
enum status trace_open(struct trace **out, const char *path, struct error *err);
/* A track for `group` ("host", "NVIDIA H200") and `name` ("decode 3", "upload"); returns its
 * number, 0 for a NULL trace. The same names give the same track. */
unsigned trace_track(struct trace *trace, const char *group, const char *name);
/* A span from start to end (clock_now() nanoseconds); `detail` may be NULL. */
void trace_span(struct trace *trace, unsigned track, const char *name, int64_t start, int64_t end,
                const char *detail);
/* The same for a command of a device, with the times at which it was queued and submitted. */
void trace_command(struct trace *trace, unsigned track, const char *name, int64_t queued,
                   int64_t submitted, int64_t start, int64_t end);
/* Completes the file; reports the first write error. Accepts NULL; sets *trace to NULL. */
enum status trace_close(struct trace **trace, struct error *err);

#endif
