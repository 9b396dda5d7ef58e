/* journal.h: what one run adds to the logs in its work directory, and the order of all their records.
 *
 *   journal_open ─> journal_begin ─> journal_put... ─> journal_finish
 *                   (resume or new)  (in any order)    or journal_stop
 *
 * Records arrive in any order and from any thread; the thread that closes the gap adds them to a block in the
 * order of sequence numbers, and writes the block once it is full. A thread of the journal syncs the log, a
 * second after the oldest record or after 64 MiB; nobody waits for it. What an earlier run has sealed is not
 * written again: only its location goes into the order. */
#ifndef CLPIPE_LOG_JOURNAL_H
#define CLPIPE_LOG_JOURNAL_H

#include "base/text.h"
#include "log/records.h"
#include "log/workdir.h"

struct journal;

/* What the records that were put are, in numbers. */
struct journal_tally {
    uint64_t by_reason[REASON_COUNT]; /* REASON_NONE: images */
    uint64_t pixels, bytes;
    uint64_t codes; /* images that have one */
};

/* Opens the logs of `workdir`, which must stay open as long, without reading more than their headers; fails
 * like records_open. fresh: they are left unread. An image has features of these widths (records_scan). */
enum status journal_open(struct journal **out, const struct workdir *workdir,
                         const uint32_t *widths, unsigned features, bool fresh, struct error *err);

/* The logs: of earlier runs until journal_finish, then with this one's, too. Their signature is that of the run
 * that began them. */
const struct records *journal_records(const struct journal *journal);

/* Begins a log: beside those that are there, which are checked block by block, or of `signature` if there are none.
 * Those that were left unread are removed. STATUS_INTERRUPTED: `stop`, which may be NULL, came first. */
enum status journal_begin(struct journal *journal, const char *signature, struct stop *stop,
                          struct error *err);

/* Takes one record: with an origin as it is, else with its values: words, each feature's row filled up to 4
 * bytes. Any thread; may write to the log. After a failure every later call fails with the same error. */
enum status journal_put(struct journal *journal, const struct store_record *record,
                        const void *values, struct error *err);

/* Number of records that have been taken in order. Any thread. */
uint64_t journal_written(struct journal *journal);

/* Writes and syncs: what journal_written counts survives a crash from now on. */
enum status journal_seal(struct journal *journal, struct error *err);

/* Seals all that was put, also what waits for records that will not come: nothing may be put any
 * more. *kept: how many records. */
enum status journal_stop(struct journal *journal, uint64_t *kept, struct error *err);

/* Seals a complete journal: *order is a file of `*records` locations of 8 bytes, in sequence order,
 * which stays the journal's. */
enum status journal_finish(struct journal *journal, int *order, uint64_t *records,
                           struct journal_tally *tally, struct error *err);

/* Whether the logs hold records that are worth keeping. */
bool journal_holds_work(const struct journal *journal);

/* Accepts NULL and NULLs; the logs stay where they are. */
void journal_close(struct journal **journal);

#endif
