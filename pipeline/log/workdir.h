/* workdir.h: the directory OUT.h5.partial, which exists while a run is unfinished and belongs to
 * one process at a time.
 *
 *   lock         flock()ed by the process that works here, which is in it (holder.h)
 *   command      the command line of the run that began or resumed last, a NUL, its directory
 *   status.json  how far the run is (ingest/status_file.h)
 *   learned      what the run has learned before its first record (learned.h), if it has
 *   records      the log (records.h), written by one run after another (journal.h)
 *   handover     only of clpipe 0.2: a run that was moving the log into its result */
#ifndef CLPIPE_LOG_WORKDIR_H
#define CLPIPE_LOG_WORKDIR_H

#include "base/error.h"
#include "base/stop.h"

#define WORKDIR_LOG        "records"
#define WORKDIR_HANDOVER   "handover"
#define WORKDIR_STATUS     "status.json"
#define WORKDIR_STATUS_NEW "status.json.new"

struct workdir;

/* Its name, that of the file with ".partial": of the file itself where `output` is a symbolic link,
 * so that two names of one file are one output. *name is the caller's to free; NULL on failure. */
enum status workdir_name(char **name, const char *output, struct error *err);

/* Creates or takes over the directory, after 15 s where another machine's process has left it
 * unfinished, unless `stop` comes, which may be NULL (STATUS_INTERRUPTED), and claims the output
 * (output.h). STATUS_FAILED: another process has it (its number is named; err->native is EWOULDBLOCK), or
 * it cannot be made. */
enum status workdir_open(struct workdir **out, const char *output, struct stop *stop,
                         struct error *err);

/* Whether the directory is still this process's: before it writes there, and by output.h before each of its
 * renames. STATUS_FAILED: it was paused for so long that another process has taken over; then workdir_close
 * and workdir_release remove nothing. Any thread. */
enum status workdir_check(const struct workdir *workdir, struct error *err);

/* Its name, and its descriptor for openat(). */
const char *workdir_path(const struct workdir *workdir);
int workdir_descriptor(const struct workdir *workdir);

/* Whether it has a file of that name, or cannot tell. */
bool workdir_has(const struct workdir *workdir, const char *name);

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
