/* amend.h: a copy of a finished file that is changed before it takes the name.
 *
 * A finished file is never modified: its bytes are shared with or copied to a temporary file by the
 * file system, objects are added there or removed, and the copy appears by rename. References
 * between HDF5 objects are offsets, so they hold in a copy. One thread. */
#ifndef CLPIPE_FILE_AMEND_H
#define CLPIPE_FILE_AMEND_H

#include "file/h5.h"

struct amend;

/* Begins `output` as a copy of `base` (a clpipe file; may be the same name), or, where base is
 * NULL, as a new file that holds only the attributes of its root. */
enum status amend_open(struct amend **out, const char *output, const char *base, struct error *err);
/* The copy, open for writing; owned by the amend, as it may be closed only here. */
hid_t amend_file(const struct amend *amend);
/* Completes the copy and gives it its name. Everything that was opened in it must be closed. */
enum status amend_commit(struct amend *amend, struct error *err);
/* Removes the copy unless it was committed. Call it before anything of the file is closed if an
 * error came (a full disk): then nothing is written any more. Accepts NULL and NULLs. */
void amend_close(struct amend **amend);

#endif
