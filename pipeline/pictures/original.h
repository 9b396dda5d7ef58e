/* original.h: the file behind a row of a result, as it is on this machine now.
 *
 * A result has paths relative to its sources, and sources as they were given. Read in another directory, or
 * after a file was replaced, such a path leads to another picture. The original of a row is there only if
 * size and modification time are those that were stored.
 *
 * Two rows may also have one file: by symbolic or hard links, or because a directory has two paths. */
#ifndef CLPIPE_PICTURES_ORIGINAL_H
#define CLPIPE_PICTURES_ORIGINAL_H

#include "base/blob.h"
#include "base/file_system.h"
#include "base/hash.h"
#include "file/result.h"
#include <sys/stat.h>

enum original_state { ORIGINAL_THERE, ORIGINAL_GONE, ORIGINAL_CHANGED };

/* `path` as locate_image has it. Of a member of an archive only the archive is looked at; *member tells,
 * and may be NULL. Where only paths were stored, any regular file counts. Any thread. */
enum original_state original_check(const char *path, const struct result_image *image,
                                   bool *member);

struct original {
    enum original_state state;
    char *name;    /* original_name; the rest is set only if it is THERE */
    char *real;    /* without any symbolic link; NULL: the same as `name` */
    size_t member; /* where the name of a member of an archive begins in `name`, 0: it is */
                   /* none; the rest is then about the archive */
    struct stat st;
    enum file_system system;
    uint64_t mount; /* of an untrusted file system; 0: not known */
};

/* Any thread. */
void original_look(struct original *out, const char *path, const struct result_image *image);
void original_clear(struct original *original);

/* An absolute path whose directories, and for a member of an archive also that, are no symbolic links: one
 * for each directory entry. Free it. NULL: it leads nowhere. */
char *original_name(const char *path);

/* The same file, with the same content as far as its times and size tell. */
bool original_same(const struct original *before, const struct original *now);

enum originals { ORIGINALS_ONE, ORIGINALS_TWO, ORIGINALS_UNCERTAIN };

/* Are two that are THERE one file, or certainly two? */
enum originals originals_compare(const struct original *a, const struct original *b);

/* Reads all bytes. False: they cannot be read. Any thread. */
bool original_digest(const struct blob *blob, uint64_t digest[2], uint8_t sha[32]);

/* Animations and pages, of which only the first is decoded, as far as GIF, PNG, WebP, HEIF and TIFF tell at
 * their beginning. Any thread. */
bool original_has_more(const struct blob *blob);

#endif
