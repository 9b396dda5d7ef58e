/* workdir.h: the directory OUT.h5.partial, which exists while a run is unfinished and belongs to
 * one process at a time.
 *
 *   lock         flock()ed by the process that works here, which is in it
 *   command      the command line of the run that began or resumed last, a NUL, its directory
 *   status.json  how far the run is (ingest/status_file.h)
 *   learned      the codebooks that the run has learned before its first record, if it has
 *   log-*        the logs (records.h), one of each run that has begun here (journal.h)
 *
 * Earlier versions of clpipe kept one log here, `records`, and `handover` beside it. */
#ifndef CLPIPE_LOG_WORKDIR_H
#define CLPIPE_LOG_WORKDIR_H

#include "base/error.h"

#include <stddef.h>

#define WORKDIR_LEARNED    "learned"
#define WORKDIR_STATUS     "status.json"
#define WORKDIR_STATUS_NEW "status.json.new"

struct workdir;

/* Its name, that of the file with ".partial": of the file itself where `output` is a symbolic link,
 * so that two names of one file are one output. *name is the caller's to free; NULL on failure. */
enum status workdir_name(char **name, const char *output, struct error *err);

/* Creates or takes over the directory, and claims the output (output.h). STATUS_FAILED: another process
 * has it (its number is named; err->native is EWOULDBLOCK), or it cannot be made. */
enum status workdir_open(struct workdir **out, const char *output, struct error *err);

/* Whether the directory is still this process's: before it syncs what it wrote there, and by output.h before each
 * of its renames. STATUS_FAILED: another process, which the lock did not keep away or the kernel took for dead,
 * has taken over; then workdir_close and workdir_release remove nothing. Any thread. */
enum status workdir_check(const struct workdir *workdir, struct error *err);

/* Who wrote the line of an open lock file (-1: there is none): "process 123 on HOST", or "another process";
 * *elsewhere: it has not left, and was none of this machine since it was started, as far as one can tell. */
void workdir_holder(char *name, size_t size, bool *elsewhere, int lock);

/* Its name, and its descriptor for openat(). */
const char *workdir_path(const struct workdir *workdir);
int workdir_descriptor(const struct workdir *workdir);

/* Removes all logs that are there. */
void workdir_remove_logs(const struct workdir *workdir);

/* Notes the command line whose work this is, and its working directory, for people who look
 * (unfinished.h). Without space for it nothing is noted. */
void workdir_note_command(const struct workdir *workdir, const char *command);

/* Makes the names in it durable. */
enum status workdir_sync(const struct workdir *workdir, struct error *err);

/* Unlocks; removes the directory unless an unfinished run has left its log there: for those who
 * only kept others away. Accepts NULL and NULLs. */
void workdir_release(struct workdir **workdir);

/* Removes what a process leaves that was killed once its work was done: for those who find the
 * result there. What is in use, or unfinished, stays. */
void workdir_tidy(const char *output);

/* Unlocks; removes everything of ours, and the directory, unless `keep`. Accepts NULL and NULLs. */
void workdir_close(struct workdir **workdir, bool keep);

#endif
