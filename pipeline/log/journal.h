/* journal.h: what one run adds to the log in its work directory, and the order of all its records.
 *
 *   journal_open ─> journal_read_signature ─> journal_begin ─> journal_put... ─> journal_finish
 *                   (an earlier run's log)    (resume or new)  (in any order)    or journal_stop
 *
 * Records arrive in any order and from any thread; the thread that closes the gap writes to the log
 * in the order of sequence numbers. What an earlier run has sealed is not written again: only its
 * location goes into the order. */
#ifndef CLPIPE_LOG_JOURNAL_H
#define CLPIPE_LOG_JOURNAL_H

#include "log/stretches.h"
#include "log/workdir.h"

struct journal;

/* What the records that were put are, in numbers. */
struct journal_tally {
    uint64_t by_reason[REASON_COUNT]; /* REASON_NONE: images */
    uint64_t pixels, bytes;
    uint64_t codes, thumbnail_bytes; /* images that have a code; bytes of all thumbnails */
    struct raw_paths_tally {
        uint64_t rows, bytes;
    } raw_images, raw_failures; /* paths that are not UTF-8 */
};

/* Opens the log of `workdir`, which must stay open as long. An image has `counters` values. */
enum status journal_open(struct journal **out, const struct workdir *workdir, uint32_t counters,
                         struct error *err);

/* What the run that began the log was about; *signature is NULL where there is no log yet, else
 * valid until journal_close. */
enum status journal_read_signature(const char **signature, struct journal *journal,
                                   struct error *err);

/* Resumes the log (whose signature was read), or empties it and begins one of `signature`. A resumed log is checked frame by
 * frame; STATUS_INTERRUPTED: `stop`, which may be NULL, came first. */
enum status journal_begin(struct journal *journal, const char *signature, bool resume,
                          struct stop *stop, struct error *err);

/* The log as it was before this run. */
const struct stretches *journal_earlier(const struct journal *journal);
int journal_log(const struct journal *journal);
const char *journal_path(const struct journal *journal);

/* Takes one record: with an origin as it is, else with its values, `counters` words. Any thread;
 * may write to the log. After a failure every later call fails with the same error. */
enum status journal_put(struct journal *journal, const struct store_record *record,
                        const void *values, struct error *err);

/* Number of records that have been written to the log, in order. Any thread. */
uint64_t journal_written(struct journal *journal);

/* fsyncs the log: what journal_written counts survives a crash from now on. */
enum status journal_seal(struct journal *journal, struct error *err);

/* Seals all that was put, also what waits for records that will not come: nothing may be put any
 * more. *kept: how many records. */
enum status journal_stop(struct journal *journal, uint64_t *kept, struct error *err);

/* Seals a complete journal: *order is a file of `*records` locations of 8 bytes, in sequence order,
 * which stays the journal's; *log_end is where the log ends. */
enum status journal_finish(struct journal *journal, int *order, uint64_t *records,
                           uint64_t *log_end, struct journal_tally *tally, struct error *err);

/* Whether the log holds records that are worth keeping. */
bool journal_holds_work(const struct journal *journal);

/* Accepts NULL and NULLs; the log stays where it is. */
void journal_close(struct journal **journal);

#endif
