/* store.h: writes finished items in walk order to a log, and from there to one HDF5 file.
 *
 *   any thread ─ store_put ─> journal.h: WORK/log-* ─ store_finish ─> OUT.h5.tmp ─> OUT.h5
 *
 * Connects the log and the file. Each record of the log carries everything that /images, /features
 * or /failures will hold, so the HDF5 file is a pure function of the log; building it is one pass
 * (rewrite.h). WORK is the directory "OUT.h5.partial", which exists only while a run is unfinished.
 * HDF5 is called by store_open and store_finish, and where prior.h reads the existing file.
 *
 * Resuming: the log of an interrupted run and an existing OUT.h5, both in walk order, are earlier
 * work: store_open offers their rows (prior.h), so that items with the same source, path, size and
 * mtime are not decoded again. */
#ifndef CLPIPE_RESULT_STORE_H
#define CLPIPE_RESULT_STORE_H

#include "base/error.h"
#include "result/content.h"
#include "result/record.h"
#include <stdbool.h>
#include <stdint.h>

struct journal;
struct prior;
struct result;
struct sidecars;
struct store;

/* Its pointers must outlive the store. */
struct store_config {
    const char *output;  /* final name, "F.h5" */
    const char *command; /* the command line, which resumes the run if it is interrupted; or NULL */
    struct content content;
    /* The content of the existing file, as read by the caller to plan an update; if it has changed
     * since, the file is refused. NULL: it must have been made from `content`. */
    const struct content *old;
    /* The number that each source of `content` has in the existing file, ascending but for sources
     * that it does not have (-1). NULL: the same numbers. */
    const int *source_before;
    bool redo;          /* features are added: all images are decoded again */
    bool fresh;         /* ignore earlier work; an existing clpipe file is replaced at the end */
    bool retry_failed;  /* do not offer earlier failures as earlier work */
    bool retry_limited; /* nor failures for too many pixels, scans or seconds: a limit was raised */
    /* Do not offer earlier images without a code (--add-codes). If some rows would lack a code, the
     * file gets no /images/code. */
    bool require_codes;
    label_rows_fn label; /* NULL: rows new to a clustering get no labels */
    unsigned threads;
    /* Called once by store_finish before it writes: may the images that the new file lacks be removed?
     * old: the existing file, or NULL. there: as in row_map.h; NULL: none is lacking. now: for each
     * source of `old` its number in `content`; -1: dropped; NULL: the same. May be NULL. */
    enum status (*may_go)(void *context, struct result *old, const int *now, const uint8_t *there,
                          struct error *err);
    void *may_go_context;
    bool compress;      /* deflate features; those of a compressed file always are */
    const char *remade; /* a clustering that the caller will recompute: omitted from notices */
    /* Checked while an earlier log is read and while the file is written, which then end with
     * STATUS_INTERRUPTED; the log is kept. May be NULL. */
    struct stop *stop;
};

/* Begins, or resumes, unless a feature has no codebook yet: see store_learned. Checks the output
 * (STATUS_FAILED: not writable, a device node, not a clpipe file; STATUS_USAGE: a clpipe file made
 * with other parameters, which the message names) and creates the work directory. A second run on
 * the same output is refused (flock on the work directory's lock file). */
enum status store_open(struct store **out, const struct store_config *config, struct error *err);

/* If features have codebooks to be learned, store_open does not begin the log:
 *
 *     store_open ─> store_learned ─> (learn) ─> store_begin ─> store_put...
 *
 * store_learned binds them to codebooks learned by an interrupted run of the same command, which
 * the store owns. *all: none is missing now. STATUS_FAILED: they are damaged. */
enum status store_learned(struct store *store, struct feature_set *features, bool *all,
                          struct error *err);
/* Begins or resumes the log; the features have their codebooks, which are kept beside the log and must
 * outlive the store. `content` replaces that of the configuration and may have other features. Fails
 * like store_open. */
enum status store_begin(struct store *store, const struct content *content, struct error *err);

/* The work directory: the walk's spool may live there. */
const char *store_work_directory(const struct store *store);

/* Earlier work, and the log, to which only store_put adds records; after store_begin. */
struct prior *store_prior(const struct store *store);
struct journal *store_journal(const struct store *store);
/* The number of images of the existing file's `source` at or below `path`, even if they do not
 * count as earlier work because features are added. */
enum status store_count_at(uint64_t *count, const struct store *store, uint16_t source,
                           const char *path, struct error *err);

/* Whether an existing file is updated: it may have items that the run does not visit. */
bool store_updates(const struct store *store);

/* Sets the share of the list, once the list is known. Call it before store_finish. */
void store_set_share(struct store *store, const struct list_share *share);

/* The pictures' sidecar texts, stored with the rows; it must outlive store_finish. NULL, or without
 * this call: no texts. */
void store_set_sidecars(struct store *store, struct sidecars *sidecars);

/* The longest side of the thumbnails in the existing file; 0: it has none. *file: a file exists and
 * --fresh is not set. */
unsigned store_thumbnail_size(const struct store *store, bool *file);
/* Call it before prior_find and store_put: sets the size of the file's thumbnails, 0: none. all:
 * images without such a thumbnail do not count as earlier work. */
void store_make_thumbnails(struct store *store, unsigned size, bool all);

/* Stores one finished record. Its thumbnail is kept if its size is content.thumbnail_size or, if
 * that is 0, the existing file's. Any thread; may write to the log. After a failure every later call
 * fails with the same error. */
enum status store_put(struct store *store, const struct store_record *record, struct error *err);

/* Counts of the new file's contents. */
struct store_summary {
    uint64_t images, by_reason[REASON_COUNT];
    bool unchanged; /* an existing file already held exactly this; it was not touched */
};

/* Builds OUT.h5 from the log: temporary name, fsync, rename; then removes the work directory. An
 * existing file that already holds exactly these rows is left untouched. Other objects of the existing
 * file move with the rows (carry.h), with notices; with `fresh`, only data of other programs stays.
 * STATUS_FAILED: nothing under the final name has changed, and the work is kept in the log. */
enum status store_finish(struct store *store, const struct store_run *run,
                         struct store_summary *summary, struct error *err);

/* Calls store_config.may_go for a run that leaves no images, in which store_finish is not
 * called. */
enum status store_may_all_go(struct store *store, struct error *err);

/* Declares that this run has nothing worth keeping: store_close will remove the work directory. */
void store_discard(struct store *store);

/* Frees the store. Without store_finish the work directory is kept if it has records, else removed.
 * Accepts NULL and a pointer to NULL. */
void store_close(struct store **store);

#endif
