/* change.h: a finished file written anew, with one object more or less, or under another name.
 *
 *   change_open ─> what the file has, but for what is left out ─> (objects are added) ─> change_commit ─>
 *   checksums, runs, data of others ─> sync ─> rename
 *
 * Its rows keep their checksums, so that damage stays visible. HDF5's one thread. */
#ifndef CLPIPE_RESULT_CHANGE_H
#define CLPIPE_RESULT_CHANGE_H

#include "result/result.h"
#include <hdf5.h>

struct change;

/* Begins `output` as a copy of `base` (may be the file of the same name; must outlive it) without the objects
 * of these absolute names; or, where base is NULL, as a new file that holds only the attributes of its root. */
enum status change_open(struct change **out, const char *output, struct result *base,
                        const char *const *leave_out, unsigned count, struct error *err);
/* Open for writing; owned by the change, as it may be closed only here. */
hid_t change_file(const struct change *change);
/* Gives a clustering, and the scales that are its own, another name. */
void change_rename(struct change *change, const char *from, const char *to);
/* Notes that `run` made the clustering `name` under its usual name; NULL: that it made none. */
void change_note_run(struct change *change, const char *name);
/* Completes the file and gives it its name. Everything that was opened in it must be closed. */
enum status change_commit(struct change *change, struct error *err);
/* Removes the file unless it was committed. After an error (a full disk), call it before closing
 * anything in the file, so that nothing more is written. Accepts NULL and a pointer to NULL. */
void change_close(struct change **change);

#endif
