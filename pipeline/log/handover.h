/* handover.h: the values of a log move into the file that is built of it, and the log gives its space
 * back piece by piece, so that both together take little more than the file.
 *
 *   WORK/result        the file, complete but for the rows of its features and the thumbnails: holes
 *   WORK/handover      where everything goes: the head, an entry for each record in the order of the
 *                      rows, then marks, each how many records are in their place
 *   WORK/records       the log
 *
 *   handover_open ─> handover_add... ─> (WORK/result is written) ─> handover_begin ─> handover_finish
 *
 * From handover_begin on all work is done and nothing else may use the log. A piece is given back only
 * once its values are on the disk in WORK/result and a mark says so; so handover_finish, or after a
 * kill handover_resume, continues from the last mark. At the end WORK/result gets its final name. */
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
    uint64_t thumbnails; /* where they lie in WORK/result, end to end; 0: nowhere */
    uint64_t log_end;
    uint64_t by_reason[REASON_COUNT]; /* all records */
};

/* Begins to note the entries. */
enum status handover_open(struct handover **out, const struct workdir *workdir, struct error *err);
/* The name under which the file is to be written; valid until handover_close. */
const char *handover_file(const struct handover *handover);
/* The next record: where its frame lies in the log, whether it is an image, and how many bytes of
 * thumbnail the file has of it. */
enum status handover_add(struct handover *handover, uint64_t offset, uint32_t frame_bytes, bool image,
                         uint32_t thumbnail_bytes, struct error *err);
/* Makes the plan durable; WORK/result must be so. */
enum status handover_begin(struct handover *handover, const struct handover_plan *plan, struct error *err);
/* Moves the values with so many threads, and the file to `output`, where none must be.
 * STATUS_INTERRUPTED: `stop`, which may be NULL, came first. After any failure it can be resumed. */
enum status handover_finish(struct handover *handover, const char *output, unsigned threads,
                            struct stop *stop, struct error *err);
/* Accepts NULL and NULLs. What was not begun is removed. */
void handover_close(struct handover **handover);

/* Finishes what a killed process has begun for `output`; STATUS_OK also where there is nothing. Like
 * workdir_open and handover_finish. */
enum status handover_resume(const char *output, unsigned threads, struct stop *stop, struct error *err);

/* Whether one was begun in a work directory that this process has. */
bool handover_is_begun(const struct workdir *workdir);
/* Takes it back, with the file: what the log held is lost. */
void handover_drop(const struct workdir *workdir);

/* How far a handover that was begun in a work directory is; false: there is none. */
bool handover_look(int directory, uint64_t by_reason[REASON_COUNT], uint64_t *done);

#endif
