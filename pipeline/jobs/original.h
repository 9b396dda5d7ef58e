/* original.h: the current file of a result's row on this machine.
 *
 * A result has paths relative to its sources, and sources as given by the user. In another
 * directory, or after a file has been replaced, such a path may name a different picture. So the
 * original of a row counts as present only if size and modification time are as stored.
 *
 * Two rows may share a file through symbolic or hard links, or two paths of a directory. */
#ifndef CLPIPE_JOBS_ORIGINAL_H
#define CLPIPE_JOBS_ORIGINAL_H

#include "base/blob.h"
#include "base/file_system.h"
#include "result/result.h"
#include <sys/stat.h>

enum original_state { ORIGINAL_THERE, ORIGINAL_GONE, ORIGINAL_CHANGED };

/* Checks `path` (from locate_image). For a member of an archive only the archive is checked;
 * sets *member (may be NULL). If only paths were stored, any regular file counts. Any
 * thread. */
enum original_state original_check(const char *path, const struct result_image *image,
                                   bool *member);

struct original {
    enum original_state state;
    char *name;    /* from original_name; the rest is only set if the state is THERE */
    char *real;    /* without symbolic links; NULL: equal to `name` */
    size_t member; /* if not 0, the offset in `name` of an archive member's name; then the
                    * members below describe the archive */
    struct stat st;
    enum file_system system;
    uint64_t mount; /* of an untrusted file system; 0: unknown */
};

/* Any thread. */
void original_look(struct original *out, const char *path, const struct result_image *image);
void original_clear(struct original *original);

/* Returns an absolute path without symbolic links in its directories (and, for an archive member,
 * in the archive's name): unique per directory entry. The caller frees it. NULL: it does not
 * exist. */
char *original_name(const char *path);

/* Is it the same file with the same content, judged by times and size? */
bool original_same(const struct original *before, const struct original *now);

enum originals { ORIGINALS_ONE, ORIGINALS_TWO, ORIGINALS_UNCERTAIN };

/* Are two files that are THERE the same file, or certainly different ones? */
enum originals originals_compare(const struct original *a, const struct original *b);

/* Does it have more than one frame or page (only the first is decoded)? Detected from the start of
 * GIF, PNG, WebP, HEIF and TIFF files. Any thread. */
bool original_has_more(const struct blob *blob);

#endif
