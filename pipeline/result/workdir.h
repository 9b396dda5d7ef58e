/* workdir.h: the directory OUT.h5.partial, which exists while a run is unfinished and belongs to
 * one process at a time.
 *
 *   lock         flock()ed by the process that works here, with a line that names it
 *   command      command line of the last run that began or resumed, NUL, its directory
 *   status.json  progress of the run (ingest/status_file.h)
 *   learned      codebooks learned by the run before its first record, if any
 *   log-*        the logs (records.h), one per run (journal.h)
 *
 * Earlier versions of clpipe kept one log here, `records`, and `handover` beside it. */
#ifndef CLPIPE_RESULT_WORKDIR_H
#define CLPIPE_RESULT_WORKDIR_H

#include "base/error.h"

#include <stddef.h>

#define WORKDIR_LINE       256 /* of the lock file */
#define WORKDIR_LEARNED    "learned"
#define WORKDIR_STATUS     "status.json"
#define WORKDIR_STATUS_NEW "status.json.new"

/* An open one. The first part is read-only, the rest is private. */
struct workdir {
    char *path;
    int directory; /* its descriptor */

    int lock;
    char who[WORKDIR_LINE]; /* this process's line */
    struct output *claim;
};

/* The directory's name: that of the file plus ".partial". A symbolic link `output` is resolved, so
 * two names of a file are one output. The caller frees *name; NULL on failure. */
enum status workdir_name(char **name, const char *output, struct error *err);

/* Creates or takes over the directory, and claims the output (output.h). STATUS_FAILED: another
 * process has it (its pid is in the message; err->native is EWOULDBLOCK), or it cannot be
 * created. */
enum status workdir_open(struct workdir **out, const char *output, struct error *err);

/* Checks that the directory still belongs to this process. Called before each sync, and by output.h
 * before each rename. STATUS_FAILED: another process has taken over, despite the lock or because
 * the kernel considered this one dead; then workdir_close and workdir_release remove nothing. Any
 * thread. */
enum status workdir_check(const struct workdir *workdir, struct error *err);

/* The writer of the line in an open lock file (-1: none): "process 123 on HOST", or "another
 * process"; *elsewhere: it has not left and, as far as can be determined, does not belong to this
 * machine since it was booted. */
void workdir_holder(char *name, size_t size, bool *elsewhere, int lock);

/* Removes all logs. */
void workdir_remove_logs(const struct workdir *workdir);

/* Stores the command line and its working directory for unfinished.h. Does nothing if the disk is
 * full. */
void workdir_note_command(const struct workdir *workdir, const char *command);

/* Syncs the directory. */
enum status workdir_sync(const struct workdir *workdir, struct error *err);

/* Unlocks; removes the directory unless it has the log of an unfinished run. For processes that
 * only kept others out. Accepts NULL. */
void workdir_release(struct workdir **workdir);

/* For callers that have found the finished result: removes leftovers of a process that was killed
 * after it had finished. A directory that is in use or unfinished stays. */
void workdir_tidy(const char *output);

/* Unlocks; unless `keep`, removes clpipe's files and the directory. Accepts NULL. */
void workdir_close(struct workdir **workdir, bool keep);

#endif
