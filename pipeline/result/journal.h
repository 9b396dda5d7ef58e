/* journal.h: adds records of a run to the logs in its work directory, and keeps the order of all
 * records.
 *
 *   journal_open ─> journal_put... ─> journal_finish
 *   (resume or new)  (in any order)    or journal_stop
 *
 * Records arrive in any order and from any thread; the thread that fills a gap adds them to a block
 * in sequence order, and writes the block when it is full. A thread of the journal syncs the log
 * one second after the oldest record or after 64 MiB, in the background. Records sealed by earlier
 * runs are not written again: only their locations go to the lists. */
#ifndef CLPIPE_RESULT_JOURNAL_H
#define CLPIPE_RESULT_JOURNAL_H

#include "result/records.h"
#include "result/row_list.h"
#include "result/workdir.h"

struct journal;

/* Counts of the records. */
struct journal_tally {
    uint64_t by_reason[REASON_COUNT]; /* REASON_NONE: images */
    uint64_t codes;                   /* images with a perceptual code */
};

/* Takes over the logs of `workdir`, which must outlive it, checks them block by block, and begins
 * one: in addition to these, or with `signature` if there are none. fresh: removes existing logs.
 * Images have features of these widths (records_scan). STATUS_INTERRUPTED: stopped; `stop` may be
 * NULL. */
enum status journal_open(struct journal **out, const struct workdir *workdir, struct records *logs,
                         const uint32_t *widths, unsigned features, bool fresh,
                         const char *signature, struct stop *stop, struct error *err);

/* The logs: those of earlier runs until journal_finish, then also this run's. Their signature is
 * that of the run that created the first one. */
const struct records *journal_records(const struct journal *journal);

/* Adds one record: if it has an origin, only that; else with its values, each feature's row padded
 * to 4 bytes. Any thread; may write to the log. After a failure all later calls fail with the same
 * error. */
enum status journal_put(struct journal *journal, const struct store_record *record,
                        const void *values, struct error *err);

/* Number of records processed in order; the last of them may not be in the file yet. Any thread. */
uint64_t journal_count(struct journal *journal);

/* Writes and syncs: records counted by journal_count then survive a crash. */
enum status journal_seal(struct journal *journal, struct error *err);

/* Seals all records, including those after a gap; nothing may be added afterwards. *kept: number of
 * records. */
enum status journal_stop(struct journal *journal, uint64_t *kept, struct error *err);

/* Seals a complete journal: *lists are its rows in sequence order, owned by the journal. */
enum status journal_finish(struct journal *journal, const struct row_lists **lists,
                           struct journal_tally *tally, struct error *err);

/* Whether the logs have records that are worth keeping. */
bool journal_holds_work(const struct journal *journal);

/* Accepts NULL; the logs are not removed. */
void journal_close(struct journal **journal);

#endif
