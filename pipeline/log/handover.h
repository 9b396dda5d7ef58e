/* handover.h: moves the values of a finished log into the result. Each part of the log is released once
 * its values are durable in the result, so both together take little more space than the result.
 *
 *   WORK/result     the result, complete except for feature rows and thumbnails, which are holes
 *   WORK/handover   the plan: a header, one entry per record in row order, then marks; each mark is the
 *                   number of records moved so far
 *   WORK/records    the log
 *
 *   handover_open ─> handover_add... ─> (WORK/result is written) ─> handover_begin ─> handover_finish
 *
 * After handover_begin all files are processed, and nothing else may read or extend the log. A part is
 * released only once its values are durable in WORK/result and a mark says so; so handover_finish, or
 * after a kill handover_resume, continues from the last mark. At the end WORK/result gets its final name;
 * the plan is removed after the log. For the one process that has the work directory. */
#ifndef CLPIPE_LOG_HANDOVER_H
#define CLPIPE_LOG_HANDOVER_H

#include "base/failure.h"
#include "log/workdir.h"
#include <stdbool.h>
#include <stdint.h>

#define HANDOVER_MOST_PARTS 64

struct handover;

/* Where the values go. */
struct handover_plan {
    uint32_t counters; /* words of an image's values in the log */
    uint32_t parts;    /* features */
    struct handover_part {
        uint64_t start; /* in WORK/result: rows of `bytes` bytes, end to end */
        uint32_t place; /* in an image's values, in words */
        uint32_t bytes;
    } part[HANDOVER_MOST_PARTS];
    uint64_t thumbnails; /* where they begin in WORK/result, end to end; 0: there are none */
    uint64_t log_end;
    uint64_t by_reason[REASON_COUNT]; /* all records */
};

/* Starts a plan. */
enum status handover_open(struct handover **out, const struct workdir *workdir, struct error *err);
/* The name under which the result is to be written; valid until handover_close. */
const char *handover_file(const struct handover *handover);
/* Adds the next record: where its frame lies in the log, whether it is an image, and how many bytes of
 * thumbnail the result has of it. */
enum status handover_add(struct handover *handover, uint64_t offset, uint32_t frame_bytes, bool image,
                         uint32_t thumbnail_bytes, struct error *err);
/* Makes the plan durable; WORK/result must already be durable. */
enum status handover_begin(struct handover *handover, const struct handover_plan *plan, struct error *err);
/* Moves the values with up to `threads` threads, then renames the result to `output`, which must not
 * exist. STATUS_INTERRUPTED: `stop`, which may be NULL, came first. It can be resumed after any failure. */
enum status handover_finish(struct handover *handover, const char *output, unsigned threads,
                            struct stop *stop, struct error *err);
/* Accepts NULL and NULLs. Removes a plan that was not begun, and its result. */
void handover_close(struct handover **handover);

/* Finishes what an earlier process has begun for `output`; STATUS_OK also where there is nothing. skip:
 * images whose part of the log is damaged get zeros, which contradict the checksums; else they are an
 * error. Other errors as of workdir_open and handover_finish. */
enum status handover_resume(const char *output, unsigned threads, bool skip, struct stop *stop,
                            struct error *err);
/* Whether there seems to be something to resume. */
bool handover_pending(const char *output);

/* Whether one was begun in a work directory that this process has. */
bool handover_is_begun(const struct workdir *workdir);
/* Discards a handover and its result. What has left the log is lost. */
enum status handover_drop(const struct workdir *workdir, struct error *err);

/* How far a handover is that was begun in a work directory; false: there is none that can be read. */
bool handover_look(int directory, uint64_t by_reason[REASON_COUNT], uint64_t *done);

#endif
